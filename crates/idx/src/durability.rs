//! Whether whoever writes waits for the disk before names are given.
//!
//! Not for the order of names, which is the same: a program that is killed leaves the old or the new in both cases. Invariant:
//! no failure of a write goes unnoticed, whether it is told by fsync or by close.

use raddle_core::output::{close, sync_folder};
use serde::Serialize;
use std::fs::File;
use std::path::Path;

/// What of the output a crash of the machine may lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Nothing, once it has its name: files and folders are synced before.
    #[default]
    Synced,
    /// Whatever the system had not yet brought to the disk; names may be there without what they stand for. It is as whole as
    /// ever for other processes, and after a crash of the program.
    Unsynced,
}

impl Durability {
    /// Ends the use of a file that was written to.
    pub(crate) fn finish(self, file: File) -> std::io::Result<()> {
        match self {
            Self::Synced => file.sync_all(),
            Self::Unsynced => close(file),
        }
    }

    /// What `finish` does.
    pub(crate) fn finishing(self) -> &'static str {
        match self {
            Self::Synced => "fsync",
            Self::Unsynced => "close",
        }
    }

    /// After names were changed in the folder of `output`.
    pub(crate) fn names_changed(self, output: &Path) -> std::io::Result<()> {
        match self {
            Self::Synced => sync_folder(output),
            Self::Unsynced => Ok(()),
        }
    }

    /// Before what lies in a folder and those below it gets its name; files are finished.
    pub(crate) fn folders_made(self, path: &Path) -> std::io::Result<()> {
        match self {
            Self::Synced => sync_folders(path),
            Self::Unsynced => Ok(()),
        }
    }
}

/// Makes the names in a folder and those below it durable; files are already.
pub(crate) fn sync_folders(path: &Path) -> std::io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            sync_folders(&entry?.path())?;
        }
        File::open(path)?.sync_all()?;
    }
    Ok(())
}
