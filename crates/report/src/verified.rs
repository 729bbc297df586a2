//! Results of `verify`, as in its `--report` file, and how a page shows them: separately, and with the run that wrote
//! the file.

use crate::error::{ReportError, Result};
use crate::markup::{facts, part, text_table};
use crate::quantity;
use crate::run::command_of;
use crate::svg::html;
use serde::Deserialize;
use std::path::Path;

/// Report of a verification.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Verification {
    /// Program and version.
    pub program: Option<String>,
    /// The command line.
    pub invocation: Vec<String>,
    /// Name of the machine.
    pub host: Option<String>,
    /// Time when the verification ended, in seconds since 1970.
    pub finished_unix_s: Option<f64>,
    /// Path of the verified file.
    pub file: String,
    /// Number of inputs that it was compared with; 0 if it was compared with its own digests.
    pub against: u64,
    /// Number of datasets compared.
    pub datasets: u64,
    /// Length of the compared values.
    pub compared_len_bytes: u64,
    /// Differences found.
    pub mismatches: Vec<Mismatch>,
    /// Wall time in seconds.
    pub elapsed_s: Option<f64>,
}

/// A difference between the output and its inputs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Mismatch {
    /// Path of the object.
    pub path: String,
    /// Description of the difference.
    pub what: String,
    /// First row that differs.
    pub row: Option<u64>,
    /// Input that contains this row.
    pub input: Option<String>,
}

/// Maximum number of differences listed; the others are counted.
const MAX_ROWS: usize = 100;

/// Returns whether the report `text` is one of `verify`.
pub fn is_verification(text: &[u8]) -> bool {
    command_of(text).as_deref() == Some("verify")
}

impl Verification {
    /// Parses a report; `path` is used in messages.
    ///
    /// # Errors
    /// If it is not a valid report of `verify`.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self> {
        serde_json::from_slice(text).map_err(|source| ReportError::Json { path: path.to_path_buf(), source })
    }

    /// Returns the result in a few words.
    pub(crate) fn outcome(&self) -> String {
        let with = match self.against {
            0 => "its digests".to_owned(),
            inputs => quantity::counted(inputs, "input"),
        };
        match self.mismatches.len() {
            0 => format!("equal to {with}"),
            count => format!("{} from {with}", quantity::counted(count as u64, "difference")),
        }
    }

    /// Returns the section of a page.
    pub(crate) fn section(&self) -> String {
        let mut text = format!("<p>{}</p>\n", html(&self.file));
        text.push_str(&facts(&[
            ("verified", Some(self.outcome())),
            ("date", self.finished_unix_s.map(quantity::date)),
            ("host", self.host.clone()),
            ("datasets", Some(quantity::count(self.datasets))),
            ("compared", Some(quantity::size(self.compared_len_bytes))),
            ("time", self.elapsed_s.map(quantity::seconds)),
        ]));
        text + &self.differences()
    }

    /// Returns the list of differences; empty if there are none.
    pub(crate) fn differences(&self) -> String {
        if self.mismatches.is_empty() {
            return String::new();
        }
        let row = |mismatch: &Mismatch| {
            let row = mismatch.row.map_or_else(|| "-".to_owned(), quantity::count);
            vec![mismatch.path.clone(), mismatch.what.clone(), row, mismatch.input.clone().unwrap_or_default()]
        };
        let rows: Vec<Vec<String>> = self.mismatches.iter().take(MAX_ROWS).map(row).collect();
        let mut listed = text_table(&["object", "what differs", "row", "input"], &rows);
        if let Some(more @ 1..) = self.mismatches.len().checked_sub(MAX_ROWS) {
            listed.push_str(&format!("<p>and {} more</p>\n", quantity::count(more as u64)));
        }
        part("What differs", &listed)
    }
}
