//! Output file of one process, or of ranks that write it together: a lock, a temporary name next to the output, fsync,
//! rename.
//!
//! Invariants: the name of the output always refers to the previous file, if any, or to the complete new one; the next
//! run removes what a killed run has left.

use crate::error::{EventsError, Result};
use raddle_core::output::{OutputLock, beside, sync_folder};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// File that has not been published yet. If dropped unpublished, it is removed; with several ranks, by rank 0.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
    len_bytes: u64,
    /// Whether to keep the file on drop, because it is published or another rank removes it.
    is_kept: bool,
    /// Lock, in the process that removes the file.
    _lock: Option<OutputLock>,
}

impl Output {
    /// Creates the temporary file of the output `path`, which must not exist unless `replace`.
    pub(crate) fn begin(path: &Path, replace: bool) -> Result<Self> {
        let lock = OutputLock::take(path)?;
        if !replace && std::fs::symlink_metadata(path).is_ok() {
            return Err(EventsError::OutputExists { path: path.to_path_buf() });
        }
        let temporary = beside(path, ".raddle-part");
        let io = |operation| {
            let path = temporary.clone();
            move |source| EventsError::Io { path, operation, source }
        };
        // Since the lock is held, such a file can only be the remains of a killed run.
        match std::fs::remove_file(&temporary) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(io("remove the file of a killed run")(source));
            }
            _ => {}
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&temporary).map_err(io("create"))?;
        Ok(Self { path: path.to_path_buf(), temporary, file, len_bytes: 0, is_kept: false, _lock: Some(lock) })
    }

    /// Collective. Begins the output on rank 0 and opens it on every other rank.
    pub(crate) fn begin_collective(path: &Path, replace: bool, ranks: &dyn Communicator) -> Result<Self> {
        let begun = if ranks.rank() == 0 { Some(Self::begin(path, replace)).transpose() } else { Ok(None) };
        let begun = ranks.agree("begin the output", begun)?;
        let name = begun.as_ref().map_or_else(Vec::new, |output| output.temporary.as_os_str().as_bytes().to_vec());
        let temporary = PathBuf::from(OsString::from_vec(ranks.broadcast(0, &name)?));
        let joined = match begun {
            Some(begun) => Ok(begun),
            None => OpenOptions::new()
                .write(true)
                .open(&temporary)
                .map(|file| Self {
                    path: path.to_path_buf(),
                    temporary: temporary.clone(),
                    file,
                    len_bytes: 0,
                    is_kept: true,
                    _lock: None,
                })
                .map_err(|source| EventsError::Io { path: temporary.clone(), operation: "open the output", source }),
        };
        ranks.agree("open the output", joined)
    }

    /// Returns the output's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends `bytes`.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_at(bytes, self.len_bytes)?;
        self.len_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Writes `bytes` at `address`.
    pub(crate) fn write_at(&self, bytes: &[u8], address: u64) -> Result<()> {
        self.file.write_all_at(bytes, address).map_err(|source| self.io("write", source))
    }

    /// Returns the number of bytes appended so far.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Collective. Appends the `bytes` of all ranks in rank order.
    pub(crate) fn append_collective(&mut self, bytes: &[u8], ranks: &dyn Communicator) -> Result<()> {
        let lengths = ranks.all_gather_u64(bytes.len() as u64)?;
        let before: u64 = lengths[..ranks.rank()].iter().sum();
        ranks.agree("write", self.write_at(bytes, self.len_bytes + before))?;
        self.len_bytes += lengths.iter().sum::<u64>();
        Ok(())
    }

    /// Collective. Makes the bytes that this rank wrote durable.
    pub(crate) fn sync_collective(&self, ranks: &dyn Communicator) -> Result<()> {
        ranks.agree("fsync", self.file.sync_all().map_err(|source| self.io("fsync", source)))
    }

    /// Returns another handle to the file, for reading and writing.
    pub(crate) fn file(&self) -> Result<File> {
        self.file.try_clone().map_err(|source| self.io("duplicate the descriptor", source))
    }

    /// Makes the file durable, gives it its final name and returns its length.
    pub(crate) fn publish(mut self, replace: bool) -> Result<u64> {
        self.file.sync_all().map_err(|source| self.io("fsync", source))?;
        if replace {
            std::fs::rename(&self.temporary, &self.path).map_err(|source| self.io("rename", source))?;
            self.is_kept = true;
        } else {
            // Unlike a rename, a hard link fails if the name was taken in the meantime.
            std::fs::hard_link(&self.temporary, &self.path).map_err(|source| match source.kind() {
                std::io::ErrorKind::AlreadyExists => EventsError::OutputExists { path: self.path.clone() },
                _ => self.io("link", source),
            })?;
        }
        sync_folder(&self.path)
            .map_err(|source| self.io("the file is complete and published, but syncing its folder failed", source))?;
        Ok(self.len_bytes)
    }

    fn io(&self, operation: &'static str, source: std::io::Error) -> EventsError {
        EventsError::Io { path: self.path.clone(), operation, source }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nothing more can be done, and an error here must not hide the original one.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
