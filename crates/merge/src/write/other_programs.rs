//! Detection of other programs that have a file open through libhdf5 while it is extended or replaced.
//!
//! libhdf5 holds an exclusive lock on a file that it writes, and a shared one on a file that it reads. Invariant: a
//! file system without locks, and programs that take none, never make a run fail.

use crate::error::{MergeError, Result};
use rustix::fs::FlockOperation;
use std::fs::File;
use std::path::Path;

/// Locks `file` at `path` against programs that write it; others may continue to read it.
///
/// # Errors
/// [`MergeError::InUse`] if a program has it open for writing.
pub(crate) fn lock_out_writers(file: &File, path: &Path) -> Result<()> {
    match try_lock(file, FlockOperation::NonBlockingLockShared) {
        true => Ok(()),
        false => Err(MergeError::InUse { path: path.to_path_buf() }),
    }
}

/// Locks `file` against all other programs. Returns whether none of them has it open.
pub(crate) fn lock_out_readers(file: &File) -> bool {
    try_lock(file, FlockOperation::NonBlockingLockExclusive)
}

/// Returns `false` only if another program holds a lock that excludes this one.
fn try_lock(file: &File, operation: FlockOperation) -> bool {
    rustix::fs::flock(file, operation) != Err(rustix::io::Errno::WOULDBLOCK)
}

/// Opens the file at `path`, which is going to be replaced, and locks it against programs that write it: what they write
/// later would be lost with the old file. The lock lasts until the returned file is dropped.
///
/// # Errors
/// As for [`lock_out_writers`]; [`MergeError::Input`] if the file cannot be opened.
pub(crate) fn open_without_writers(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(|source| MergeError::Input { path: path.to_path_buf(), source })?;
    lock_out_writers(&file, path)?;
    Ok(file)
}
