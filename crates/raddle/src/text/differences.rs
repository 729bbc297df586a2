//! Tables of problems with inputs: unreadable inputs, and differences between readable ones.

use super::keywords::beside_values;
use super::table::{CellAlign, Columns};
use super::{escape, quantity};
use crate::rechunk::FailedFile;
use raddle_merge::error::{BadInput, MissingKey};
use raddle_merge::schema::join::{Difference, DifferenceKind};
use std::path::{Path, PathBuf};

/// Maximum number of rows of a table on the terminal; a wrong folder may contain thousands of bad files with the same
/// message.
const MAX_TABLE_ROWS: usize = 100;
/// Maximum number of file names in one cell.
const NAMES_IN_CELL: usize = 3;

/// Formats the inputs that cannot be read, with the reasons.
pub fn bad_inputs(bad: &[BadInput]) -> String {
    let mut columns = Columns::new(&[("input", CellAlign::Left), ("what is wrong", CellAlign::Left)]);
    columns.rows(bad, MAX_TABLE_ROWS, |bad| [escape::path(&bad.path), reason(bad)]);
    columns.render()
}

/// Formats the files that cannot be rewritten, with the reasons.
pub fn failed_files(failed: &[FailedFile]) -> String {
    let mut columns = Columns::new(&[("input", CellAlign::Left), ("what is wrong", CellAlign::Left)]);
    columns.rows(failed, MAX_TABLE_ROWS, |file| [escape::path(&file.path), escape::text(&file.reason).into_owned()]);
    columns.render()
}

/// Formats the reason why an input cannot be read, without its name. Errors do not preserve names that are not valid
/// UTF-8.
pub fn reason(BadInput { path, error }: &BadInput) -> String {
    let reason = error.to_string().replacen(&format!("{}: ", path.display()), "", 1);
    escape::text(&reason).into_owned()
}

/// Formats the inputs that have no value to sort by.
pub fn missing_keys(missing: &[MissingKey]) -> String {
    let mut columns = Columns::new(&["input", "dataset", "what is wrong"].map(|title| (title, CellAlign::Left)));
    columns.rows(missing, MAX_TABLE_ROWS, |MissingKey { path, dataset, reason }| {
        [escape::path(path), escape::text(dataset).into_owned(), (*reason).to_owned()]
    });
    columns.render()
}

/// Formats the inputs that a file already contains, with the names under which it recorded them.
pub fn repeated(repeated: &[(PathBuf, PathBuf)]) -> String {
    let mut columns = Columns::new(&["input", "in the file as"].map(|title| (title, CellAlign::Left)));
    columns.rows(repeated, MAX_TABLE_ROWS, |(path, known)| [escape::path(path), escape::path(known)]);
    columns.render()
}

/// Formats the differences between `inputs`.
pub fn table(differences: &[Difference], inputs: &[PathBuf]) -> String {
    table_in(str::to_owned, differences, inputs)
}

/// Formats the differences between `inputs`, with options as Python keywords.
pub fn table_with_keywords(differences: &[Difference], inputs: &[PathBuf]) -> String {
    table_in(beside_values, differences, inputs)
}

/// Formats differences, with `wording` applied to everything that may name an option.
fn table_in(wording: fn(&str) -> String, differences: &[Difference], inputs: &[PathBuf]) -> String {
    let titles = ["object", "difference", "expected", "found", "input"].map(|title| (title, CellAlign::Left));
    let mut columns = Columns::new(&titles).with_whole_names();
    columns.rows(differences, MAX_TABLE_ROWS, |difference| {
        [
            escape::shorten(&escape::text(&difference.path)).into_owned(),
            difference.kind.words().to_owned(),
            escape::shorten(&escape::text(&difference.expected)).into_owned(),
            found(difference, wording),
            holders(&difference.inputs, inputs),
        ]
    });
    columns.render()
}

/// Formats the value found in the inputs. For some kinds, the decisive part is at the end, so the text is not
/// shortened.
fn found(difference: &Difference, wording: fn(&str) -> String) -> String {
    let text = wording(&escape::text(&difference.found));
    match difference.kind {
        DifferenceKind::Meaning | DifferenceKind::Convention => text,
        _ => escape::shorten(&text).into_owned(),
    }
}

/// Formats `run2.h5, run5.h5 and 14 more`.
fn holders(numbers: &[u32], inputs: &[PathBuf]) -> String {
    let name = |&number: &u32| match inputs.get(number as usize) {
        Some(path) => escape::path(path.file_name().map_or(path.as_path(), Path::new)),
        None => format!("input {}", u64::from(number) + 1),
    };
    if numbers.len() > 1 && numbers.len() == inputs.len() {
        return format!("all {} inputs", numbers.len());
    }
    let name_count = if numbers.len() == NAMES_IN_CELL + 1 { NAMES_IN_CELL + 1 } else { NAMES_IN_CELL };
    let names: Vec<String> = numbers.iter().take(name_count).map(name).collect();
    match numbers.len().checked_sub(name_count) {
        Some(more @ 1..) => format!("{} and {} more", names.join(", "), quantity::count(more as u64)),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_merge::schema::join::DifferenceKind;

    fn inputs(count: usize) -> Vec<PathBuf> {
        (0..count).map(|number| PathBuf::from(format!("/data/run{number}.h5"))).collect()
    }

    #[test]
    fn few_files_are_named_and_many_are_counted() {
        let inputs = inputs(20);
        assert_eq!(holders(&[1], &inputs), "run1.h5");
        assert_eq!(holders(&[0, 1, 2, 3], &inputs), "run0.h5, run1.h5, run2.h5, run3.h5");
        assert_eq!(holders(&[0, 1, 2, 3, 4], &inputs), "run0.h5, run1.h5, run2.h5 and 2 more");
        assert_eq!(holders(&(0..20).collect::<Vec<_>>(), &inputs), "all 20 inputs");
        assert_eq!(holders(&[7], &[]), "input 8");
    }

    #[test]
    fn names_from_files_cannot_reach_the_terminal() {
        let difference = Difference {
            path: "/a\x1b[2Jb".to_owned(),
            kind: DifferenceKind::Datatype,
            expected: "int32".to_owned(),
            found: "int64\n".to_owned(),
            inputs: vec![0],
        };
        let text = table(&[difference], &inputs(2));
        assert!(text.contains("/a\\x1b[2Jb") && text.contains("int64\\n") && !text.contains('\x1b'), "{text}");
    }
}
