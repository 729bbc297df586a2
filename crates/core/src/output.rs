//! The right to write one output, and the hidden files in its folder that belong to it.
//!
//! Not for what an output is or how it gets its name. Invariant: of all processes that take the lock on an output one has
//! it at a time, and none is kept out by what a killed one left.

use rustix::fs::FlockOperation;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why an output cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("{}: another raddle is writing it (lock {})", path.display(), lock.display())]
    Held {
        /// Output.
        path: PathBuf,
        /// Lock file.
        lock: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: {operation} failed: {source}", path.display())]
    Io {
        /// Lock file.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// Cause.
        source: std::io::Error,
    },
}

/// The right to change one output, which only one process has at a time.
#[derive(Debug)]
pub struct OutputLock {
    path: PathBuf,
    file: File,
}

impl OutputLock {
    /// Takes the lock on `output`, or fails at once.
    ///
    /// # Errors
    /// If another process has it, or the folder of the output cannot be written to.
    pub fn take(output: &Path) -> Result<Self, LockError> {
        Self::take_at(output, beside(output, ".raddle-lock"))
    }

    /// Takes the lock file `path`, for a piece of the work on `output`.
    ///
    /// # Errors
    /// As [`OutputLock::take`].
    pub fn take_at(output: &Path, path: PathBuf) -> Result<Self, LockError> {
        let file = take_file(output, &path)?;
        Ok(Self { path, file })
    }
}

impl Drop for OutputLock {
    fn drop(&mut self) {
        // Removed while the lock is held: whoever waits on the old inode notices that the name is gone and tries anew.
        let _ = std::fs::remove_file(&self.path);
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

fn take_file(output: &Path, lock_path: &Path) -> Result<File, LockError> {
    let failed =
        |operation| move |source: std::io::Error| LockError::Io { path: lock_path.to_path_buf(), operation, source };
    loop {
        let lock = OpenOptions::new().create(true).append(true).open(lock_path).map_err(failed("create"))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(LockError::Held { path: output.to_path_buf(), lock: lock_path.to_path_buf() });
            }
            Err(error) => return Err(failed("lock")(error.into())),
        }
        let ours = lock.metadata().map_err(failed("stat"))?;
        match std::fs::metadata(lock_path) {
            Ok(named) if (named.dev(), named.ino()) == (ours.dev(), ours.ino()) => return Ok(lock),
            _ => {} // the holder before us removed the name between our open and our lock
        }
    }
}

/// Path of a hidden file in the folder of `output` that belongs to it.
pub fn beside(output: &Path, suffix: &str) -> PathBuf {
    let mut hidden = OsString::from(".");
    hidden.push(output.file_name().unwrap_or_default());
    hidden.push(suffix);
    folder_of(output).join(hidden)
}

/// The folder in which `output` lies.
pub fn folder_of(output: &Path) -> &Path {
    match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Closes a file that was written to. Some file systems (NFS, FUSE) tell only here that a write has failed, which dropping
/// the file would not pass on; whoever syncs it has heard before.
///
/// # Errors
/// If one has. The file is closed all the same.
pub fn close(file: File) -> std::io::Result<()> {
    Ok(nix::unistd::close(file)?)
}

/// Makes what happened to names in the folder of `output` durable.
///
/// # Errors
/// If the folder cannot be opened or synced.
pub fn sync_folder(output: &Path) -> std::io::Result<()> {
    File::open(folder_of(output)).and_then(|folder| folder.sync_all())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_lock_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out");
        let first = OutputLock::take(&output).unwrap();
        assert!(matches!(OutputLock::take(&output), Err(LockError::Held { .. })));
        let other = OutputLock::take_at(&output, beside(&output, ".piece")).unwrap();
        drop((first, other));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(OutputLock::take(&output).unwrap());
        let nowhere = folder.path().join("none/out");
        assert!(matches!(OutputLock::take(&nowhere), Err(LockError::Io { operation: "create", .. })));
    }

    #[test]
    fn names() {
        assert_eq!(beside(Path::new("a/b.h5"), ".x"), Path::new("a/.b.h5.x"));
        assert_eq!((folder_of(Path::new("b")), folder_of(Path::new("/b"))), (Path::new("."), Path::new("/")));
    }
}
