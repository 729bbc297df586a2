//! Input files, with a limit on how many are open at once, so that a process with 1,024 descriptors can read thousands
//! of files.
//!
//! The least recently used file is closed, and reopened when it is next read. Invariant: reads come from the file that
//! was opened first, or fail.

use crate::machine;
use lru::LruCache;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// Metadata that identifies a file's content well enough to detect changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Length of the file.
    pub len_bytes: u64,
    /// Modification time, nanoseconds since the epoch.
    pub modified_ns: i128,
}

impl FileIdentity {
    /// Extracts the identity from file metadata.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            len_bytes: metadata.len(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        }
    }

    /// Returns whether `later` describes the same unchanged file. Device numbers are not compared, because machines
    /// sharing a file system number its device differently.
    pub fn is_unchanged(&self, later: &Self) -> bool {
        (self.inode, self.len_bytes, self.modified_ns) == (later.inode, later.len_bytes, later.modified_ns)
    }
}

/// Maximum number of files open at once, but never more than half of the available descriptors.
const MAX_OPEN: usize = 512;

/// Open files of all handles of this process, by handle number.
type OpenFiles = LruCache<u64, Arc<File>>;

/// A table of open files, and its replacement in a process that was forked while another thread used the table.
struct OpenFileTable {
    files: Mutex<OpenFiles>,
    replacement: OnceLock<Box<OpenFileTable>>,
}

impl OpenFileTable {
    fn new() -> Self {
        Self { files: Mutex::new(LruCache::new(max_open())), replacement: OnceLock::new() }
    }

    /// Returns the table in use.
    fn used(&self) -> &Self {
        std::iter::successors(Some(self), |table| table.replacement.get().map(Box::as_ref)).last().unwrap_or(self)
    }

    fn after_fork(&self) {
        let used = self.used();
        if let Err(TryLockError::WouldBlock) = used.files.try_lock() {
            used.replacement.get_or_init(|| Box::new(Self::new()));
        }
    }
}

static TABLE: LazyLock<OpenFileTable> = LazyLock::new(OpenFileTable::new);

/// Replaces the table of open files if another thread used it during the fork that created this process, because no
/// thread of this process would release its lock. Files are then opened again when they are read. Must be called
/// before the new process reads a file.
pub fn after_fork() {
    TABLE.after_fork();
}

/// Returns the number of input files that this process keeps open at once.
pub fn max_open() -> NonZeroUsize {
    let most = machine::open_files().limit.map_or(MAX_OPEN, |limit| MAX_OPEN.min(limit as usize / 2));
    NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN)
}

/// Number of the next handle.
static NEXT: AtomicU64 = AtomicU64::new(0);

fn open_files() -> MutexGuard<'static, OpenFiles> {
    TABLE.used().files.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A regular file for positional reads, closed and reopened as needed.
#[derive(Debug)]
pub struct PooledFile {
    path: PathBuf,
    identity: FileIdentity,
    number: u64,
}

impl PooledFile {
    /// Opens a regular file.
    ///
    /// # Errors
    /// If the file cannot be opened, or is a directory or special file.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, identity) = open_regular(path)?;
        let handle = Self { path: path.to_path_buf(), identity, number: NEXT.fetch_add(1, Ordering::Relaxed) };
        handle.keep(Arc::new(file));
        Ok(handle)
    }

    /// Returns the path passed to [`PooledFile::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the identity of the file when it was first opened.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Returns the identity that the file has now: that of the open file, even if another one has its path; if it is
    /// closed, that of the file with its path.
    ///
    /// # Errors
    /// If the file is closed and nothing has its path.
    pub fn identity_now(&self) -> Result<FileIdentity> {
        let open = open_files().get(&self.number).map(Arc::clone);
        let metadata = match open {
            Some(file) => file.metadata()?,
            None => std::fs::metadata(&self.path)?,
        };
        Ok(FileIdentity::of(&metadata))
    }

    /// Fills `out` from absolute `offset`.
    ///
    /// # Errors
    /// If reading fails. [`ErrorKind::UnexpectedEof`] if the file is too short or has been replaced since it was
    /// opened.
    pub fn read_exact_at(&self, out: &mut [u8], offset: u64) -> Result<()> {
        self.file()?.read_exact_at(out, offset)
    }

    /// Returns whether a program holds an exclusive `flock` on the file, as libhdf5 does while it has a file open for
    /// writing. File systems without locks never report one.
    ///
    /// # Errors
    /// If the file was closed meanwhile and cannot be opened again.
    pub fn is_locked_by_writer(&self) -> Result<bool> {
        let file = self.file()?;
        let locked = flock(&file, FlockOperation::NonBlockingLockShared);
        if locked.is_ok() {
            let _ = flock(&file, FlockOperation::Unlock);
        }
        Ok(locked == Err(Errno::WOULDBLOCK))
    }

    /// Returns the open file, after opening it again if it was closed.
    fn file(&self) -> Result<Arc<File>> {
        let open = open_files().get(&self.number).map(Arc::clone);
        open.map_or_else(|| self.open_again(), Ok)
    }

    fn open_again(&self) -> Result<Arc<File>> {
        let (file, identity) = open_regular(&self.path)?;
        if !self.identity.is_unchanged(&identity) {
            return Err(Error::new(ErrorKind::UnexpectedEof, "the file was replaced after it was opened"));
        }
        let file = Arc::new(file);
        self.keep(Arc::clone(&file));
        Ok(file)
    }

    /// Keeps the file open until others are used more recently.
    fn keep(&self, file: Arc<File>) {
        // The evicted file is closed after the lock is released.
        let closed = open_files().push(self.number, file);
        drop(closed);
    }
}

impl Drop for PooledFile {
    fn drop(&mut self) {
        let closed = open_files().pop(&self.number);
        drop(closed);
    }
}

fn open_regular(path: &Path) -> Result<(File, FileIdentity)> {
    // Opening a FIFO would block, so check the type first.
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let file = File::open(path)?;
    let identity = FileIdentity::of(&file.metadata()?);
    Ok((file, identity))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn byte(handle: &PooledFile) -> Result<u8> {
        let mut out = [0];
        handle.read_exact_at(&mut out, 0).map(|()| out[0])
    }

    fn open_descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").unwrap().count()
    }

    #[test]
    fn a_table_that_another_thread_uses_during_a_fork_is_replaced() {
        let table = OpenFileTable::new();
        table.after_fork();
        assert!(std::ptr::eq(table.used(), &raw const table));
        for _ in 0..2 {
            let used = table.used();
            let _guard = used.files.lock().unwrap();
            table.after_fork();
            assert!(!std::ptr::eq(table.used(), used));
            assert!(table.used().files.try_lock().is_ok());
        }
    }

    #[test]
    fn more_files_are_read_than_are_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = |number: usize| folder.path().join(number.to_string());
        let count = MAX_OPEN + 100;
        for number in 0..count {
            std::fs::write(path(number), [number as u8]).unwrap();
        }
        let handles: Vec<PooledFile> = (0..count).map(|number| PooledFile::open(&path(number)).unwrap()).collect();
        for round in 0..2 {
            for (number, handle) in handles.iter().enumerate() {
                assert_eq!(byte(handle).unwrap(), number as u8, "round {round}");
            }
        }
        assert!(open_descriptors() < count);
        // The first file is closed by now: a replacement must not be read.
        std::fs::remove_file(path(0)).unwrap();
        std::fs::write(path(0), [7, 7]).unwrap();
        assert_eq!(byte(&handles[0]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        // The last file is still open: removing its name does not matter.
        std::fs::remove_file(path(count - 1)).unwrap();
        assert_eq!(byte(&handles[count - 1]).unwrap(), (count - 1) as u8);
        let before = open_descriptors();
        drop(handles);
        assert!(open_descriptors() + 64 < before);
    }

    #[test]
    fn anything_but_a_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(PooledFile::open(folder.path()).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(PooledFile::open(&folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
