//! Errors of showing a report.

use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, ReportError>;

/// Reason why a report cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Underlying error.
        source: std::io::Error,
    },
    /// The file is not JSON, or not a report of a run.
    #[error("{}: not a report of a run: {source}", path.display())]
    Json {
        /// Path of the file.
        path: PathBuf,
        /// Cause, with line and column.
        source: serde_json::Error,
    },
    /// The report is from a command without stages to draw.
    #[error("{}: is a report of raddle {command}, which contains nothing to draw", path.display())]
    OtherCommand {
        /// Path of the file.
        path: PathBuf,
        /// Name of the command.
        command: String,
    },
    /// The report is of a failed run.
    #[error("{}: reports a run that failed: {message}", path.display())]
    Failed {
        /// Path of the file.
        path: PathBuf,
        /// Reason why the run failed.
        message: String,
    },
    /// The file is JSON, but contains no stages of a run.
    #[error("{}: not a report of a run: it contains no stages", path.display())]
    NoStages {
        /// Path of the file.
        path: PathBuf,
    },
}
