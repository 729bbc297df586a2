//! Why a report cannot be shown.

use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, ReportError>;

/// Why a report cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// It is no JSON, or not of a run.
    #[error("{}: no report of a run: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The cause, with line and column.
        source: serde_json::Error,
    },
    /// It is the report of a command that has no stages to draw.
    #[error("{}: is a report of raddle {command}, of which there is nothing to draw", path.display())]
    OtherCommand {
        /// The file.
        path: PathBuf,
        /// The command.
        command: String,
    },
    /// It tells only why a run failed.
    #[error("{}: reports a run that failed: {message}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        message: String,
    },
    /// It is JSON without any stage of a run.
    #[error("{}: no report of a run: it tells of no stages", path.display())]
    NoStages {
        /// The file.
        path: PathBuf,
    },
}
