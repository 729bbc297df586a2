//! What this machine and this raddle have and lack, as plain data: sections of checks.
//!
//! Each module makes one section. Defaults come from the code that applies them: the number of threads, the memory of a
//! merge, the filters. Invariant: the report changes nothing on the machine; what a check writes, it removes.

mod filters;
mod folder;
mod machine;
mod preload;
mod program;
mod ranks;

use crate::exit::Exit;
use crate::ranks::Ranks;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::sync::OnceLock;

/// Outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// The subject of the check is as it should be.
    Ok,
    /// Usable, but worth knowing.
    Note,
    /// Absent; only what needs it does not work.
    Missing,
    /// Fails, and raddle needs it for any work.
    Broken,
}

impl Mark {
    /// Returns the mark as a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Missing => "missing",
            Self::Broken => "broken",
        }
    }
}

/// A single fact of a section. Names and values are a stable interface: names may be added, but not changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Name, unique in its section.
    pub name: String,
    /// Outcome.
    pub mark: Mark,
    /// What was found, for people.
    pub found: String,
    /// What was found, for programs: a number with its unit in `found`, a list, a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What the user cannot do as long as it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<String>,
    /// What to do: a command, or advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Exit code of the command, if it is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
}

impl Check {
    fn new(name: &str, mark: Mark, found: impl Into<String>) -> Self {
        let (name, found) = (name.to_owned(), found.into());
        Self { name, mark, found, value: None, without: None, remedy: None, exit_code: None }
    }

    fn ok(name: &str, found: impl Into<String>) -> Self {
        Self::new(name, Mark::Ok, found)
    }

    fn note(name: &str, found: impl Into<String>) -> Self {
        Self::new(name, Mark::Note, found)
    }

    /// Creates the check of something absent, without which the user cannot do `without`.
    fn missing(name: &str, found: impl Into<String>, without: &str) -> Self {
        Self { without: Some(without.to_owned()), ..Self::new(name, Mark::Missing, found) }
    }

    fn broken(name: &str, found: impl Into<String>, exit: Exit) -> Self {
        Self { exit_code: Some(exit.code()), ..Self::new(name, Mark::Broken, found) }
    }

    fn value(mut self, value: impl Into<Value>) -> Self {
        self.value = Some(value.into());
        self
    }

    fn remedy(mut self, remedy: &str) -> Self {
        self.remedy = Some(remedy.to_owned());
        self
    }
}

/// Checks on one subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Subject.
    pub name: String,
    /// Checks, in order.
    pub checks: Vec<Check>,
}

impl Section {
    fn new(name: &str, checks: Vec<Check>) -> Self {
        Self { name: name.to_owned(), checks }
    }
}

/// Report on what this machine and this raddle have and lack.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Name and version of the program.
    pub program: &'static str,
    /// Exit code: 0, unless something is broken that raddle needs for any work.
    pub exit_code: u8,
    /// Sections, in order.
    pub sections: Vec<Section>,
}

impl Report {
    /// Collects everything, with the folder of future outputs. `team` holds the ranks of this run, and `others` are
    /// sections of the program that contains the command.
    pub fn of(folder: &Path, team: &Ranks, others: &[Section]) -> Self {
        let mut sections = vec![
            program::section(),
            machine::processor(team),
            machine::memory(),
            folder::section(folder),
            filters::section(),
            ranks::section(team),
            preload::section(),
        ];
        sections.extend_from_slice(others);
        let broken = sections.iter().flat_map(|section| &section.checks).filter_map(|check| check.exit_code);
        let exit_code = broken.into_iter().next().unwrap_or(Exit::Done.code());
        Self { program: concat!("raddle ", env!("CARGO_PKG_VERSION")), exit_code, sections }
    }
}

/// Sections of the program that contains the command.
static ADDED_SECTIONS: OnceLock<Vec<Section>> = OnceLock::new();

/// Adds sections to the reports that the command prints in this process. Only the first call has an effect.
pub fn add_sections(sections: Vec<Section>) {
    ADDED_SECTIONS.get_or_init(|| sections);
}

/// Returns the sections of the program that contains the command.
pub fn added_sections() -> &'static [Section] {
    ADDED_SECTIONS.get().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_each_fact_once_and_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let more = [Section::new("more", vec![Check::broken("heart", "stopped", Exit::Limit)])];
        let report = Report::of(folder.path(), &Ranks::alone(), &more);
        assert_eq!(report.exit_code, Exit::Limit.code());
        assert_eq!(Report::of(folder.path(), &Ranks::alone(), &[]).exit_code, 0);
        let mut names: Vec<_> = report.sections.iter().map(|section| section.name.as_str()).collect();
        assert_eq!(names, ["raddle", "processor", "memory", "folder", "filters", "mpi", "apply", "more"]);
        names.extend(report.sections.iter().flat_map(|section| &section.checks).map(|check| check.name.as_str()));
        for section in &report.sections {
            assert!(!section.checks.is_empty(), "{}", section.name);
            for (at, check) in section.checks.iter().enumerate() {
                assert!(section.checks[..at].iter().all(|other| other.name != check.name), "{check:?}");
                assert_eq!(check.mark == Mark::Missing, check.without.is_some(), "{check:?}");
                assert!(check.mark != Mark::Missing || check.remedy.is_some(), "{check:?}");
                assert_eq!(check.mark == Mark::Broken, check.exit_code.is_some(), "{check:?}");
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
