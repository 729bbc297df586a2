//! Paths as text in reports.

pub use raddle_core::path_text::{of, of_some};

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
        let (what, row) = ("a different value".to_owned(), None);
        let mismatch = Mismatch { path: "/x".to_owned(), what, row, input: Some(path) };
        assert!(serde_json::to_string(&mismatch).unwrap().contains("run\u{fffd}.h5"));
    }
}
