//! Details of a run: its inputs, their differences, files left out, and warnings.
//!
//! Lists may be long; entries that are not shown are counted. Invariant: a run without details gives an empty string.

use crate::markup::{part, table, text_table};
use crate::quantity;
use crate::run::Run;
use crate::svg::html;

/// Maximum number of lines shown of a list; a job may have 100,000 inputs.
const MAX_LINES: usize = 200;
/// Maximum number of inputs named in a cell.
const MAX_NAMES: usize = 3;

/// Returns all details of `run`.
pub(crate) fn of(run: &Run) -> String {
    let mut text = String::new();
    if !run.warnings.is_empty() {
        let line = |warning: &String| format!("<li>{}</li>\n", html(warning));
        let lines: String = run.warnings.iter().take(MAX_LINES).map(line).collect();
        text.push_str(&part("Warnings", &format!("<ul>\n{lines}</ul>\n{}", rest(run.warnings.len()))));
    }
    if !run.differences.is_empty() {
        let rows = run.differences.iter().take(MAX_LINES).map(|difference| {
            let kind = difference.kind.replace('_', " ");
            let (expected, found) = (difference.expected.clone(), difference.found.clone());
            vec![difference.path.clone(), kind, expected, found, names(&difference.inputs)]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let listed = text_table(&["object", "difference", "kept", "found", "input"], &rows);
        text.push_str(&part("Differences between inputs", &(listed + &rest(run.differences.len()))));
    }
    if !run.skipped.is_empty() {
        let rows = run.skipped.iter().take(MAX_LINES).map(|skipped| vec![skipped.path.clone(), skipped.reason.clone()]);
        let listed = text_table(&["input", "why it was left out"], &rows.collect::<Vec<_>>());
        text.push_str(&part("Left out", &(listed + &rest(run.skipped.len()))));
    }
    if !run.input_files.is_empty() {
        let row = |input: &crate::run::InputFile| vec![input.path.clone(), quantity::size(input.len_bytes)];
        let rows: Vec<Vec<String>> = run.input_files.iter().take(MAX_LINES).map(row).collect();
        let listed = table(&["input", "size"], &rows) + &rest(run.input_files.len());
        let count = quantity::counted(run.input_files.len() as u64, "input");
        text.push_str(&format!("<details>\n<summary>{count}</summary>\n{listed}</details>\n"));
    }
    text
}

fn rest(len: usize) -> String {
    match len.checked_sub(MAX_LINES) {
        Some(more @ 1..) => format!("<p class=\"soft\">and {} more</p>\n", quantity::count(more as u64)),
        _ => String::new(),
    }
}

/// Formats names: `a.h5, b.h5, c.h5 and 7 more`.
fn names(inputs: &[String]) -> String {
    let names: Vec<&str> = inputs.iter().take(MAX_NAMES).map(|path| path.rsplit('/').next().unwrap_or(path)).collect();
    match inputs.len().checked_sub(MAX_NAMES) {
        Some(more @ 1..) => format!("{} and {} more", names.join(", "), quantity::count(more as u64)),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::InputFile;

    #[test]
    fn long_lists_say_what_they_leave_out() {
        let input_files = (0..1200).map(|number| InputFile { path: format!("<{number}>.h5"), len_bytes: 1 }).collect();
        let text = of(&Run { input_files, ..Run::default() });
        assert!(text.contains("1,200 inputs") && text.contains("and 1,000 more") && text.contains("&lt;199&gt;.h5"));
        assert!(!text.contains("&lt;200&gt;") && of(&Run::default()).is_empty());
        assert_eq!(names(&["d/a".to_owned(), "b".to_owned()]), "a, b");
        assert_eq!(names(&["a", "b", "c", "d"].map(str::to_owned)), "a, b, c and 1 more");
    }
}
