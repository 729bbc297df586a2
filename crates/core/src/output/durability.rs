//! Choice of whether a writer waits for the disk before it publishes files.
//!
//! The order of renames is the same either way: a killed program leaves the old or the new output. Invariant: no failed
//! write goes unnoticed, whether fsync or close reports it.

use super::{close, sync_folder};
use serde::Serialize;
use std::fs::File;
use std::path::Path;

/// Data that a crash of the machine may lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Nothing that was published: files and folders are synced before they are renamed.
    #[default]
    Synced,
    /// Data that the system has not yet written to disk; names may then exist without their contents. Other processes,
    /// and a crash of the program alone, still leave the output whole.
    Unsynced,
}

impl Durability {
    /// Closes a file after writing, and syncs it if required.
    ///
    /// # Errors
    /// If a write has failed.
    pub fn finish(self, file: File) -> std::io::Result<()> {
        match self {
            Self::Synced => file.sync_all(),
            Self::Unsynced => close(file),
        }
    }

    /// Returns the name of the operation that [`Self::finish`] performs, for errors.
    pub fn finishing(self) -> &'static str {
        match self {
            Self::Synced => "fsync",
            Self::Unsynced => "close",
        }
    }

    /// Makes renames in the folder of `output` durable, if required.
    ///
    /// # Errors
    /// If the folder cannot be opened or synced.
    pub fn names_changed(self, output: &Path) -> std::io::Result<()> {
        match self {
            Self::Synced => sync_folder(output),
            Self::Unsynced => Ok(()),
        }
    }

    /// Syncs a folder and those below it, if required, before it is published; its files are already finished.
    ///
    /// # Errors
    /// If a folder cannot be read or synced.
    pub fn folders_created(self, path: &Path) -> std::io::Result<()> {
        match self {
            Self::Synced => sync_folders(path),
            Self::Unsynced => Ok(()),
        }
    }
}

/// Syncs the directory entries of a folder and of those below it; the files themselves are already durable.
///
/// # Errors
/// If a folder cannot be read or synced.
pub fn sync_folders(path: &Path) -> std::io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            sync_folders(&entry?.path())?;
        }
        File::open(path)?.sync_all()?;
    }
    Ok(())
}
