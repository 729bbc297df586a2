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

#[cfg(test)]
mod tests {
    use crate::verify::Mismatch;
    use crate::write::SkippedInput;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    #[test]
    fn any_name_can_be_reported() {
        let path = PathBuf::from(OsStr::from_bytes(b"run\xff.h5"));
        let skipped = SkippedInput { path: path.clone(), reason: "damaged".to_owned() };
        let reported = serde_json::to_string(&skipped).unwrap();
        assert_eq!(reported, "{\"path\":\"run\u{fffd}.h5\",\"reason\":\"damaged\"}");
        let (what, row) = ("another value".to_owned(), None);
        let mismatch = Mismatch { path: "/x".to_owned(), what, row, input: Some(path) };
        assert!(serde_json::to_string(&mismatch).unwrap().contains("run\u{fffd}.h5"));
    }
}
