//! Files that cannot be rewritten, with the reasons.

use crate::error::Error;
use crate::exit::Exit;
use raddle_merge::path_text;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A file that cannot be rewritten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedFile {
    /// Path of the input, as given.
    #[serde(serialize_with = "path_text::of")]
    pub path: PathBuf,
    /// Reason why the file cannot be rewritten.
    pub reason: String,
    #[serde(skip)]
    pub(crate) exit: Exit,
    #[serde(skip)]
    pub(crate) errno: Option<i32>,
}

impl FailedFile {
    pub(super) fn new(path: &Path, exit: Exit, reason: String, errno: Option<i32>) -> Self {
        Self { path: path.to_path_buf(), reason, exit, errno }
    }

    pub(super) fn of(path: &Path, error: &Error) -> Self {
        let reason = error.message().replacen(&format!("{}: ", path.display()), "", 1);
        let reason = reason.trim_end_matches("; nothing was written").to_owned();
        Self::new(path, error.exit, reason, error.errno)
    }
}
