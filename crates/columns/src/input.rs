//! Input file, or bytes in memory presented as one, read at offsets.
//!
//! Files are read with `pread` rather than mapped: truncating a file while it is read must cause an error, not a
//! SIGBUS. Invariant: nothing is allocated or read beyond the length that the file had when it was opened.

use crate::error::{ColumnsError, Result, UnlocatedError};
use raddle_core::pooled_file::{FileIdentity, PooledFile};
use std::path::{Path, PathBuf};

/// Open input file.
#[derive(Debug)]
pub struct InputFile {
    path: PathBuf,
    content: InputContent,
    len_bytes: u64,
}

#[derive(Debug)]
enum InputContent {
    File(PooledFile),
    Memory(Vec<u8>),
}

impl InputFile {
    /// Opens a regular file; refuses anything else.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |source| ColumnsError::Io { path: path.to_path_buf(), operation: "open", source };
        let file = PooledFile::open(path).map_err(io)?;
        let len_bytes = file.identity().len_bytes;
        Ok(Self { path: path.to_path_buf(), content: InputContent::File(file), len_bytes })
    }

    /// Presents bytes as a file; `path` names it in messages.
    pub fn of_bytes(path: &Path, bytes: Vec<u8>) -> Self {
        let len_bytes = bytes.len() as u64;
        Self { path: path.to_path_buf(), len_bytes, content: InputContent::Memory(bytes) }
    }

    /// Returns the path with which the file was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length that the file had when it was opened.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Fails if the file has changed since it was opened.
    pub fn check_unchanged(&self) -> Result<()> {
        let InputContent::File(file) = &self.content else { return Ok(()) };
        match std::fs::metadata(&self.path) {
            Ok(now) if file.identity().is_unchanged(&FileIdentity::of(&now)) => Ok(()),
            Ok(_) => Err(ColumnsError::Changed { path: self.path.clone() }),
            Err(source) => Err(ColumnsError::Io { path: self.path.clone(), operation: "check it again", source }),
        }
    }

    /// Fails if the range does not lie within the file.
    pub fn check_range(&self, address: u64, len_bytes: u64, structure: &'static str) -> Result<(), UnlocatedError> {
        let end = address.saturating_add(len_bytes);
        if end > self.len_bytes || end == u64::MAX {
            return Err(UnlocatedError::BeyondEnd { structure, end, file_len_bytes: self.len_bytes });
        }
        Ok(())
    }

    /// Replaces the contents of `out` with the bytes of the range.
    pub fn read_into(
        &self,
        address: u64,
        len_bytes: u64,
        structure: &'static str,
        out: &mut Vec<u8>,
    ) -> Result<(), UnlocatedError> {
        self.check_range(address, len_bytes, structure)?;
        match &self.content {
            InputContent::File(file) => {
                // Not cleared first: present bytes are overwritten, so only new ones need to be cleared.
                out.resize(len_bytes as usize, 0);
                file.read_exact_at(out, address).map_err(|error| UnlocatedError::Unread {
                    address,
                    len_bytes,
                    structure,
                    message: error.to_string(),
                })
            }
            InputContent::Memory(bytes) => {
                // The range was checked.
                out.clear();
                out.extend_from_slice(&bytes[address as usize..(address + len_bytes) as usize]);
                Ok(())
            }
        }
    }

    /// Reads the bytes of the range.
    pub fn read(&self, address: u64, len_bytes: u64, structure: &'static str) -> Result<Vec<u8>, UnlocatedError> {
        let mut out = Vec::new();
        self.read_into(address, len_bytes, structure, &mut out)?;
        Ok(out)
    }

    /// Creates the error for a file in another format.
    pub fn other_format(&self, expected: impl Into<String>) -> ColumnsError {
        let first = self.read(0, self.len_bytes.min(8), "the first bytes").unwrap_or_default();
        let found = match first.is_empty() {
            true => "nothing, it is empty".to_owned(),
            false => format!("\"{}\"", first.escape_ascii()),
        };
        ColumnsError::OtherFormat { path: self.path.clone(), expected: expected.into(), found }
    }
}
