//! An output file: a temporary name beside the output's, fsync, rename.
//!
//! Invariant: under the output's name there is what was there before, or the whole new file.

use crate::error::{EventsError, Result};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file on its way to its name. Dropped unpublished, it is removed.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
    len_bytes: u64,
    is_published: bool,
}

impl Output {
    /// Begins the output `path`, which must not exist unless `replace`.
    pub(crate) fn begin(path: &Path, replace: bool) -> Result<Self> {
        if !replace && std::fs::symlink_metadata(path).is_ok() {
            return Err(EventsError::OutputExists { path: path.to_path_buf() });
        }
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".raddle-{}", std::process::id()));
        let temporary = path.with_file_name(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&temporary)
            .map_err(|source| EventsError::Io { path: temporary.clone(), operation: "create", source })?;
        Ok(Self { path: path.to_path_buf(), temporary, file, len_bytes: 0, is_published: false })
    }

    /// The output's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends `bytes`.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|source| self.io("write", source))?;
        self.len_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Writes `bytes` at an address, wherever [`Output::write`] is.
    pub(crate) fn write_at(&self, bytes: &[u8], address: u64) -> Result<()> {
        self.file.write_all_at(bytes, address).map_err(|source| self.io("write", source))
    }

    /// Another handle of the file, for reading and writing.
    pub(crate) fn file(&self) -> Result<File> {
        self.file.try_clone().map_err(|source| self.io("duplicate the descriptor", source))
    }

    /// Makes the file durable and gives it its name; returns its length.
    pub(crate) fn publish(mut self, replace: bool) -> Result<u64> {
        self.file.sync_all().map_err(|source| self.io("fsync", source))?;
        if replace {
            std::fs::rename(&self.temporary, &self.path).map_err(|source| self.io("rename", source))?;
            self.is_published = true;
        } else {
            // Unlike a rename, a link fails if the name was taken meanwhile.
            std::fs::hard_link(&self.temporary, &self.path).map_err(|source| match source.kind() {
                std::io::ErrorKind::AlreadyExists => EventsError::OutputExists { path: self.path.clone() },
                _ => self.io("link", source),
            })?;
        }
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|source| self.io("fsync of its folder", source))?;
        Ok(self.len_bytes)
    }

    fn io(&self, operation: &'static str, source: std::io::Error) -> EventsError {
        EventsError::Io { path: self.path.clone(), operation, source }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.is_published {
            // Nothing more can be done, and an error must not hide the one that led here.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
