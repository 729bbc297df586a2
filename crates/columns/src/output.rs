//! Output file of one process, or of ranks that write it together.
//!
//! `raddle_core::output::publish` gives the finished file its name. Invariant: one process holds the lock, removes what
//! a killed run has left, and publishes.

use crate::error::{ColumnsError, Result};
use raddle_core::output::publish::{AtomicFile, IfExists};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// File that has not been published yet. If dropped unpublished, it is removed; with several ranks, by rank 0.
#[derive(Debug)]
pub struct UnpublishedFile {
    path: PathBuf,
    file: File,
    len_bytes: u64,
    /// State in the process that publishes the file.
    unpublished: Option<AtomicFile>,
}

impl UnpublishedFile {
    /// Creates the temporary file of the output `path`, which must not exist unless `replace`.
    pub fn begin(path: &Path, replace: bool) -> Result<Self> {
        let existing = if replace { IfExists::Replace } else { IfExists::Fail };
        let unpublished = AtomicFile::begin(path, existing, || existing.check(path))?;
        let file = unpublished.create()?;
        Ok(Self { path: path.to_path_buf(), file, len_bytes: 0, unpublished: Some(unpublished) })
    }

    /// Collective. Begins the output on rank 0 and opens it on every other rank.
    pub fn begin_collective(path: &Path, replace: bool, ranks: &dyn Communicator) -> Result<Self> {
        let begun = if ranks.rank() == 0 { Some(Self::begin(path, replace)).transpose() } else { Ok(None) };
        let begun = ranks.agree("begin the output", begun)?;
        let name = begun.as_ref().and_then(|output| output.unpublished.as_ref());
        let name = name.map_or_else(Vec::new, |unpublished| unpublished.path().as_os_str().as_bytes().to_vec());
        let temporary = PathBuf::from(OsString::from_vec(ranks.broadcast(0, &name)?));
        let joined = match begun {
            Some(begun) => Ok(begun),
            None => OpenOptions::new()
                .write(true)
                .open(&temporary)
                .map(|file| Self { path: path.to_path_buf(), file, len_bytes: 0, unpublished: None })
                .map_err(|source| ColumnsError::Io { path: temporary.clone(), operation: "open the output", source }),
        };
        ranks.agree("open the output", joined)
    }

    /// Returns the output's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends `bytes`.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_at(bytes, self.len_bytes)?;
        self.len_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Writes `bytes` at `address`.
    pub fn write_at(&self, bytes: &[u8], address: u64) -> Result<()> {
        self.file.write_all_at(bytes, address).map_err(|source| self.io("write", source))
    }

    /// Returns the number of bytes appended so far.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Collective. Appends the `bytes` of all ranks in rank order.
    pub fn append_collective(&mut self, bytes: &[u8], ranks: &dyn Communicator) -> Result<()> {
        let lengths = ranks.all_gather_u64(bytes.len() as u64)?;
        let before: u64 = lengths[..ranks.rank()].iter().sum();
        ranks.agree("write", self.write_at(bytes, self.len_bytes + before))?;
        self.len_bytes += lengths.iter().sum::<u64>();
        Ok(())
    }

    /// Collective. Makes the bytes that this rank wrote durable.
    pub fn sync_collective(&self, ranks: &dyn Communicator) -> Result<()> {
        ranks.agree("fsync", self.file.sync_all().map_err(|source| self.io("fsync", source)))
    }

    /// Returns another handle to the file, for reading and writing.
    pub fn file(&self) -> Result<File> {
        self.file.try_clone().map_err(|source| self.io("duplicate the descriptor", source))
    }

    /// Makes the file durable, gives it its final name and returns its length. Only rank 0 calls it.
    pub fn publish(self) -> Result<u64> {
        self.file.sync_all().map_err(|source| self.io("fsync", source))?;
        if let Some(unpublished) = &self.unpublished {
            unpublished.publish_synced()?;
        }
        Ok(self.len_bytes)
    }

    fn io(&self, operation: &'static str, source: std::io::Error) -> ColumnsError {
        ColumnsError::Io { path: self.path.clone(), operation, source }
    }
}
