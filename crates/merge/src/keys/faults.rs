//! Faults of ids, which are collected over all tables and reported together.

use serde::{Deserialize, Serialize};

/// Rows of one table whose ids cannot be used as keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyFault {
    /// Path of the group, escaped for display.
    pub group: String,
    /// Kind of the fault.
    pub kind: KeyFaultKind,
    /// Number of rows with this fault.
    pub rows: u64,
    /// First row with this fault.
    pub first_row: u64,
    /// Ids of the first row with this fault.
    pub ids: Vec<i128>,
}

/// Kind of fault that rows can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyFaultKind {
    /// The index group has no such ids.
    Missing,
    /// An earlier row of the index group has the same ids.
    Repeated,
    /// The event is smaller than the event of the previous row, so events have no ranges of rows.
    Descending,
}

impl KeyFaultKind {
    /// Describes the kind.
    pub fn words(self) -> &'static str {
        match self {
            Self::Missing => "ids that the index group does not have",
            Self::Repeated => "ids that an earlier row has",
            Self::Descending => "an event before that of the row above",
        }
    }
}
