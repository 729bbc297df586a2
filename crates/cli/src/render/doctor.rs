//! The report of `raddle doctor` as text of at most 80 columns.

use super::quantity;
use crate::doctor::{Check, Mark, Report};

/// Columns of a narrow terminal.
const WIDTH: usize = 80;

/// Columns before names: two blanks, the longest mark, two blanks.
const NAME_AT: usize = 11;

/// Formats the report: a paragraph for each section, and a summary.
pub fn text(report: &Report) -> String {
    let checks = || report.sections.iter().flat_map(|section| &section.checks);
    let found_at = NAME_AT + checks().map(|check| check.name.chars().count()).max().unwrap_or(0) + 2;
    let mut text = String::new();
    for section in &report.sections {
        text.push_str(&format!("{}\n", section.name));
        section.checks.iter().for_each(|check| push_check(&mut text, check, found_at));
        text.push('\n');
    }
    let count = |mark: Mark| checks().filter(|check| check.mark == mark).count() as u64;
    let (broken, missing) = (count(Mark::Broken), count(Mark::Missing));
    text.push_str(&match (broken, missing) {
        (0, 0) => "raddle can work here.\n".to_owned(),
        (0, missing) => format!("raddle can work here; {} missing.\n", are(missing)),
        (broken, _) => format!("raddle cannot work here: {} broken.\n", are(broken)),
    });
    text
}

fn are(number: u64) -> String {
    format!("{} {}", quantity::counted(number, "item"), if number == 1 { "is" } else { "are" })
}

fn push_check(text: &mut String, check: &Check, found_at: usize) {
    let head = format!("  {:<7}  {:<width$}  ", check.mark.word(), check.name, width = found_at - NAME_AT - 2);
    push_wrapped(text, &head, &check.found, found_at);
    let below = " ".repeat(NAME_AT);
    if let Some(without) = &check.without {
        push_wrapped(text, &below, &format!("without it, you cannot {without}"), NAME_AT + 2);
    }
    if let Some(remedy) = &check.remedy {
        push_wrapped(text, &below, &format!("what to do: {remedy}"), NAME_AT + 2);
    }
}

/// Adds `words` after `head`, in lines that begin at column `indent` and are cut between words. A longer word, such as
/// a path, has its own line.
fn push_wrapped(text: &mut String, head: &str, words: &str, indent: usize) {
    let (mut line, mut has_words) = (head.to_owned(), false);
    let mut used = head.chars().count();
    for word in words.split_whitespace() {
        let len = word.chars().count();
        if has_words && used + 1 + len > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            (line, has_words, used) = (" ".repeat(indent), false, indent);
        }
        if has_words {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        (has_words, used) = (true, used + len);
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Section;

    fn check(mark: Mark, name: &str, found: &str, without: Option<&str>, remedy: Option<&str>) -> Check {
        let (name, found) = (name.to_owned(), found.to_owned());
        let (without, remedy) = (without.map(str::to_owned), remedy.map(str::to_owned));
        Check { name, mark, found, value: None, without, remedy, exit_code: None }
    }

    fn report(checks: Vec<Check>) -> Report {
        let sections = vec![Section { name: "mpi".to_owned(), checks }];
        Report { program: "raddle 0.1.0", exit_code: 0, sections }
    }

    #[test]
    fn lines_are_aligned_and_cut_between_words() {
        let found = "a rather long text that says what was found on this machine, in more words than one line has";
        let text = text(&report(vec![
            check(Mark::Ok, "ranks", "one", None, None),
            check(Mark::Missing, "mpirun", found, Some("start raddle"), Some("apt install openmpi-bin")),
        ]));
        let expected = "\
mpi
  ok       ranks   one
  missing  mpirun  a rather long text that says what was found on this machine,
                   in more words than one line has
           without it, you cannot start raddle
           what to do: apt install openmpi-bin

raddle can work here; 1 item is missing.
";
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.len() <= WIDTH));
    }

    #[test]
    fn a_path_is_not_cut() {
        let path = format!("/{}", "x".repeat(100));
        let text = text(&report(vec![check(Mark::Broken, "path", &format!("{path} is absent"), None, None)]));
        assert!(text.contains(&path) && text.ends_with("raddle cannot work here: 1 item is broken.\n"), "{text}");
    }
}
