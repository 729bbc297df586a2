//! The lock on an output, and the hidden files next to it.
//!
//! Callers define what an output is; `publish` gives it its name. Invariant: at most one process holds the lock on an
//! output at any time, and leftovers of a killed process never prevent locking.

pub(crate) mod addresses;
pub mod arenas;
pub mod check;
pub mod claims;
pub mod durability;
pub mod flusher;
pub mod journal;
pub mod publish;
pub mod read_back;
pub mod scratch;
pub mod space;
pub mod stripes;
pub mod trial;

use rustix::fs::FlockOperation;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Error of locking an output.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("{}: another raddle is writing it (lock {})", path.display(), lock.display())]
    Held {
        /// Path of the output.
        path: PathBuf,
        /// Path of the lock file.
        lock: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: {operation} failed: {source}", path.display())]
    Io {
        /// Path of the lock file.
        path: PathBuf,
        /// Operation that failed.
        operation: &'static str,
        /// Cause.
        source: std::io::Error,
    },
}

/// Exclusive lock on an output, held by at most one process.
#[derive(Debug)]
pub struct OutputLock {
    path: PathBuf,
    file: File,
}

impl OutputLock {
    /// Acquires the lock on `output`, or fails immediately.
    ///
    /// # Errors
    /// If another process holds it, or the directory of the output is not writable.
    pub fn take(output: &Path) -> Result<Self, LockError> {
        Self::take_at(output, hidden_sibling(output, ".raddle-lock"))
    }

    /// Acquires the lock file `path`, for a part of the work on `output`.
    ///
    /// # Errors
    /// As for [`OutputLock::take`].
    pub fn take_at(output: &Path, path: PathBuf) -> Result<Self, LockError> {
        let file = take_file(output, &path)?;
        Ok(Self { path, file })
    }
}

impl Drop for OutputLock {
    fn drop(&mut self) {
        // Removed while the lock is held: a process waiting on the old inode notices that the name is gone and retries.
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

/// Returns the path of a hidden file that belongs to `output` and is located in the same directory.
pub fn hidden_sibling(output: &Path, suffix: &str) -> PathBuf {
    let mut hidden = OsString::from(".");
    hidden.push(output.file_name().unwrap_or_default());
    hidden.push(suffix);
    folder_of(output).join(hidden)
}

/// Returns the directory that contains `output`.
pub fn folder_of(output: &Path) -> &Path {
    match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Closes a file that was written to. Some file systems (NFS, FUSE) report a failed write only on close, which dropping
/// the file would ignore; callers that sync the file have already seen the error.
///
/// # Errors
/// If a write has failed. The file is closed anyway.
pub fn close(file: File) -> std::io::Result<()> {
    Ok(nix::unistd::close(file)?)
}

/// Syncs the directory that contains `output`, which makes changes to names in it durable.
///
/// # Errors
/// If the directory cannot be opened or synced.
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
        let other = OutputLock::take_at(&output, hidden_sibling(&output, ".piece")).unwrap();
        drop((first, other));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(OutputLock::take(&output).unwrap());
        let nowhere = folder.path().join("none/out");
        assert!(matches!(OutputLock::take(&nowhere), Err(LockError::Io { operation: "create", .. })));
    }

    #[test]
    fn names() {
        assert_eq!(hidden_sibling(Path::new("a/b.h5"), ".x"), Path::new("a/.b.h5.x"));
        assert_eq!((folder_of(Path::new("b")), folder_of(Path::new("/b"))), (Path::new("."), Path::new("/")));
    }
}
