//! Trial of a folder: performs each operation of raddle's writers once, and reports what the file system supports.
//!
//! Invariant: nothing of a trial remains in the folder, whatever fails.

use super::publish::rename_new;
use super::{OutputLock, hidden_sibling, read_back, scratch, sync_folder};
use serde::Serialize;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Operation of a writer on its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderOperation {
    /// Creating, writing and reading a file. All writers need it.
    Write,
    /// Locking an output against other processes. All writers need it.
    Lock,
    /// Making a file and its name durable. All writers need it, except with `--no-sync`.
    Sync,
    /// Renaming to a name only if that name is free. Folders need this operation; files can use a hard link instead.
    RenameNew,
    /// Linking to a second name.
    HardLink,
    /// Creating a file without a name. If this is not possible, a file with a name is created and unlinked at once.
    Unnamed,
    /// Dropping the pages of a file from memory, so that data is read back from the device.
    Evict,
}

impl FolderOperation {
    /// All operations, in the order in which they are tried.
    pub const ALL: [Self; 7] =
        [Self::Write, Self::Lock, Self::Sync, Self::RenameNew, Self::HardLink, Self::Unnamed, Self::Evict];
}

/// Outcome of an operation.
#[derive(Debug)]
pub struct TrialOutcome {
    /// Operation.
    pub operation: FolderOperation,
    /// The error of the system, if it failed.
    pub outcome: std::io::Result<()>,
}

/// Content of the file of a trial.
const CONTENT: &[u8] = b"raddle";

/// Files of a trial, removed when it is dropped.
struct TrialFiles {
    first: PathBuf,
    second: PathBuf,
}

impl Drop for TrialFiles {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.first);
        let _ = std::fs::remove_file(&self.second);
    }
}

/// Tries all operations in `folder`. If the first one fails, the others are not tried.
pub fn try_folder(folder: &Path) -> Vec<TrialOutcome> {
    let output = folder.join(format!("raddle-trial-{}", std::process::id()));
    let files = TrialFiles { first: hidden_sibling(&output, ".first"), second: hidden_sibling(&output, ".second") };
    let mut tried = Vec::new();
    for operation in FolderOperation::ALL {
        let outcome = match operation {
            FolderOperation::Write => write(&files.first),
            FolderOperation::Lock => lock(&output),
            FolderOperation::Sync => {
                File::open(&files.first).and_then(|file| file.sync_all()).and_then(|()| sync_folder(&output))
            }
            FolderOperation::RenameNew => rename(&files),
            FolderOperation::HardLink => link(&files),
            FolderOperation::Unnamed => scratch::unnamed(folder).map(drop).map_err(Error::from),
            FolderOperation::Evict => File::open(&files.first).and_then(|file| read_back::evict(&file)),
        };
        let is_useless = operation == FolderOperation::Write && outcome.is_err();
        tried.push(TrialOutcome { operation, outcome });
        if is_useless {
            break;
        }
    }
    tried
}

fn write(path: &Path) -> std::io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(CONTENT)?;
    super::close(file)?;
    let mut content = Vec::new();
    File::open(path)?.read_to_end(&mut content)?;
    if content == CONTENT { Ok(()) } else { Err(ErrorKind::InvalidData.into()) }
}

/// Takes the lock on an output, and checks that nobody else gets it.
fn lock(output: &Path) -> std::io::Result<()> {
    let first = OutputLock::take(output).map_err(Error::other)?;
    let second = OutputLock::take(output);
    drop(first);
    match second {
        Err(super::LockError::Held { .. }) => Ok(()),
        Err(error) => Err(Error::other(error)),
        Ok(_) => Err(Error::other("a lock was granted twice")),
    }
}

/// Renames to a free name and back, and checks that a taken name is refused.
fn rename(files: &TrialFiles) -> std::io::Result<()> {
    rename_new(&files.first, &files.second)?;
    File::create_new(&files.first)?;
    let refused = rename_new(&files.second, &files.first);
    std::fs::remove_file(&files.first)?;
    rename_new(&files.second, &files.first)?;
    match refused {
        Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => Err(Error::other("an existing file was replaced")),
    }
}

fn link(files: &TrialFiles) -> std::io::Result<()> {
    std::fs::hard_link(&files.first, &files.second)?;
    std::fs::remove_file(&files.second)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn left(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_usual_folder_supports_everything_and_keeps_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let tried = try_folder(folder.path());
        assert_eq!(tried.iter().map(|tried| tried.operation).collect::<Vec<_>>(), FolderOperation::ALL);
        for TrialOutcome { operation, outcome } in tried {
            // Some file systems of containers have no unnamed files.
            assert!(outcome.is_ok() || operation == FolderOperation::Unnamed, "{operation:?}: {outcome:?}");
        }
        assert_eq!(left(folder.path()), 0);
    }

    #[test]
    fn a_folder_without_a_file_is_tried_once() {
        let folder = tempfile::tempdir().unwrap();
        let tried = try_folder(&folder.path().join("none"));
        assert!(
            matches!(&tried[..], [TrialOutcome { operation: FolderOperation::Write, outcome: Err(_) }]),
            "{tried:?}"
        );
    }

    #[test]
    fn files_of_others_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join(format!("raddle-trial-{}", std::process::id()));
        let lock = OutputLock::take(&output).unwrap();
        let tried = try_folder(folder.path());
        assert!(tried[1].operation == FolderOperation::Lock && tried[1].outcome.is_err(), "{tried:?}");
        drop(lock);
        assert_eq!(left(folder.path()), 0);
    }
}
