//! Errors of queries. Each names the column or file, and the remedy if there is one.

use raddle_core::error::CoreError;
use raddle_core::output::publish::PublishError;
use raddle_hdf5::Hdf5Error;
use std::path::PathBuf;

/// Result with this crate's error.
pub type Result<T, E = QueryError> = std::result::Result<T, E>;

/// An error of a query.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// No group or dataset has this name.
    #[error("{table}: no {what} {name:?}{}", near(alternatives))]
    Unknown {
        /// Path of the group.
        table: String,
        /// Kind of the object: `column` or `group`.
        what: &'static str,
        /// Requested name.
        name: String,
        /// Similar names.
        alternatives: Vec<String>,
    },
    /// The columns of a scan do not have the same number of rows.
    #[error("{table}: {column} has {rows} rows and {other} has {other_rows}; a scan needs columns of one table")]
    Rows {
        /// Path of the group.
        table: String,
        /// First column.
        column: String,
        /// Number of rows of the first column.
        rows: u64,
        /// Column with a different number of rows.
        other: String,
        /// Number of rows of the other column.
        other_rows: u64,
    },
    /// A column cannot be used as requested.
    #[error("{table}: {column} {reason}")]
    Column {
        /// Path of the group.
        table: String,
        /// Name of the column.
        column: String,
        /// Reason and remedy.
        reason: String,
    },
    /// Attributes change the values of a column for readers of netCDF, and it was not chosen which values are searched.
    #[error("{object} has {attributes}, so readers of netCDF see other values than those in the file")]
    Packed {
        /// Paths of the file and of the dataset.
        object: String,
        /// Attributes and their values.
        attributes: String,
    },
    /// The values that the attributes of a column define cannot be computed.
    #[error("{object} {reason}")]
    Undecodable {
        /// Paths of the file and of the dataset.
        object: String,
        /// Attributes that are not understood.
        reason: String,
    },
    /// A word is not a choice of values.
    #[error("{word:?} is not a choice of values: they are stored or decoded")]
    Values {
        /// The word.
        word: String,
    },
    /// A table cannot be selected by events.
    #[error("{table} {reason}")]
    Keys {
        /// Path of the group.
        table: String,
        /// Reason and remedy.
        reason: String,
    },
    /// A string is not a condition.
    #[error("{text:?} is not a condition: {reason}")]
    Condition {
        /// Text of the condition.
        text: String,
        /// Reason and remedy.
        reason: String,
    },
    /// An index cannot be written.
    #[error("{}: {reason}", path.display())]
    Output {
        /// Path of the index.
        path: PathBuf,
        /// Reason and remedy.
        reason: String,
    },
    /// An index cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// An index cannot be read.
    #[error("{}: {reason}", path.display())]
    Index {
        /// Path of the index.
        path: PathBuf,
        /// Reason and remedy.
        reason: String,
    },
    /// The file cannot be read.
    #[error(transparent)]
    Hdf5(#[from] Hdf5Error),
    /// The run was cancelled, or memory or threads are missing.
    #[error(transparent)]
    Core(#[from] CoreError),
}

impl QueryError {
    /// Returns what the user can do about the error, where the message does not say so.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Packed { .. } => Some(
                "--values decoded searches the values that xarray shows, and --values stored the numbers in the file",
            ),
            Self::Undecodable { .. } => Some("--values stored searches the numbers in the file"),
            _ => None,
        }
    }
}

fn near(alternatives: &[String]) -> String {
    match alternatives {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}
