//! Paths as text in reports. JSON strings are Unicode, so bytes that are not UTF-8 become U+FFFD.

use serde::Serializer;
use std::path::{Path, PathBuf};

/// Serialises a path; for `#[serde(serialize_with)]`.
///
/// # Errors
/// If the serializer fails.
pub fn of<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Serialises a path that may be absent.
///
/// # Errors
/// If the serializer fails.
pub fn of_some<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => serializer.serialize_some(&path.to_string_lossy()),
        None => serializer.serialize_none(),
    }
}
