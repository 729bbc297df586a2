//! Serialisable errors about an input, for sending to another process that knows the file under the user's path: from
//! the child that runs libhdf5 to its parent, and from one rank of a scan to the others.
//!
//! Invariant: errors about metadata arrive unchanged; of other errors at least the message arrives.

use crate::error::Hdf5Error;
use crate::other_format::OtherFormat;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// An error in serialisable form, without the path of the file.
#[derive(Debug, Serialize, Deserialize)]
pub struct WireError {
    object: Option<String>,
    cause: Cause,
}

#[derive(Debug, Serialize, Deserialize)]
enum Cause {
    Io { operation: String, code: Option<i32>, message: String },
    NotHdf5 { format: Option<OtherFormat> },
    Truncated { what: String, end: u64, file_len_bytes: u64 },
    Malformed { address: u64, what: String },
    Unsupported { address: u64, what: String },
    Limit { what: String, limit: u64 },
    Memory { needed: u64, limit: u64 },
    Library { operation: String, detail: String },
    ForeignFile { foreign: String },
    ReplacedSource { foreign: String },
    MissingSource { missing: String },
    ChangedSource { changed: String, mapped: u64, found: u64 },
    InUse,
    ReaderDied { status: String },
}

impl From<Hdf5Error> for WireError {
    fn from(error: Hdf5Error) -> Self {
        let cause = match error {
            Hdf5Error::InObject { object, source } => {
                return Self { object: Some(object), ..Self::from(*source) };
            }
            Hdf5Error::Io { operation, source, .. } => {
                Cause::Io { operation, code: source.raw_os_error(), message: source.to_string() }
            }
            Hdf5Error::NotHdf5 { format, .. } => Cause::NotHdf5 { format },
            Hdf5Error::Truncated { what, end, file_len_bytes, .. } => Cause::Truncated { what, end, file_len_bytes },
            Hdf5Error::Malformed { address, what, .. } => Cause::Malformed { address, what },
            Hdf5Error::Unsupported { address, what, .. } => Cause::Unsupported { address, what },
            Hdf5Error::Limit { what, limit, .. } => Cause::Limit { what, limit },
            Hdf5Error::Memory { needed, limit, .. } => Cause::Memory { needed, limit },
            Hdf5Error::Library { operation, detail, .. } => Cause::Library { operation, detail },
            Hdf5Error::ForeignFile { foreign, .. } => Cause::ForeignFile { foreign },
            Hdf5Error::ReplacedSource { foreign, .. } => Cause::ReplacedSource { foreign },
            Hdf5Error::MissingSource { missing, .. } => Cause::MissingSource { missing },
            Hdf5Error::ChangedSource { changed, mapped, found, .. } => Cause::ChangedSource { changed, mapped, found },
            Hdf5Error::InUse { .. } => Cause::InUse,
            Hdf5Error::ReaderDied { status, .. } => Cause::ReaderDied { status },
            // The other variants concern raw data and outputs; if one occurs while reading metadata, its message is
            // kept.
            other => Cause::Library { operation: "reader".to_owned(), detail: other.to_string() },
        };
        Self { object: None, cause }
    }
}

impl WireError {
    /// Converts back to an error about the file that the receiver calls `path`.
    pub fn into_error(self, path: &Path) -> Hdf5Error {
        let path = path.to_path_buf();
        let error = match self.cause {
            Cause::Io { operation, code, message } => {
                let source = code.map_or_else(|| io::Error::other(message), io::Error::from_raw_os_error);
                Hdf5Error::Io { path, operation, source }
            }
            Cause::NotHdf5 { format } => Hdf5Error::NotHdf5 { path, format },
            Cause::Truncated { what, end, file_len_bytes } => Hdf5Error::Truncated { path, what, end, file_len_bytes },
            Cause::Malformed { address, what } => Hdf5Error::Malformed { path, address, what },
            Cause::Unsupported { address, what } => Hdf5Error::Unsupported { path, address, what },
            Cause::Limit { what, limit } => Hdf5Error::Limit { path, what, limit },
            Cause::Memory { needed, limit } => Hdf5Error::Memory { path, needed, limit },
            Cause::Library { operation, detail } => Hdf5Error::Library { path, operation, detail },
            Cause::ForeignFile { foreign } => Hdf5Error::ForeignFile { path, foreign },
            Cause::ReplacedSource { foreign } => Hdf5Error::ReplacedSource { path, foreign },
            Cause::MissingSource { missing } => Hdf5Error::MissingSource { path, missing },
            Cause::ChangedSource { changed, mapped, found } => {
                Hdf5Error::ChangedSource { path, changed, mapped, found }
            }
            Cause::InUse => Hdf5Error::InUse { path },
            Cause::ReaderDied { status } => Hdf5Error::ReaderDied { path, status },
        };
        match self.object {
            Some(object) => error.in_object(object),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_arrive_as_they_left() {
        let sent = Hdf5Error::Unsupported { path: "child".into(), address: 96, what: "x".to_owned() }.in_object("/a");
        let text = WireError::from(sent).into_error(Path::new("parent.h5")).to_string();
        assert_eq!(text, "/a: parent.h5: not supported (at byte 96): x");
    }

    #[test]
    fn the_words_of_any_error_arrive() {
        let path = Path::new("in.h5");
        let in_use = WireError::from(Hdf5Error::InUse { path: path.into() }).into_error(path);
        assert!(matches!(in_use, Hdf5Error::InUse { .. }));
        let sent = Hdf5Error::Changed { path: path.into(), what: "its size" };
        assert!(WireError::from(sent).into_error(path).to_string().contains("changed while it was being read"));
    }
}
