//! Input files of which only some are open at once: thousands may be read in turn by a process that may have 1,024 descriptors.
//!
//! The least recently used is closed, and opened again when it is read. Invariant: what is read comes from the file that was
//! opened first, or there is an error.

use lru::LruCache;
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// What identifies a file's content well enough to notice that it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Length.
    pub len_bytes: u64,
    /// Modification time, nanoseconds since the epoch.
    pub modified_ns: i128,
}

impl FileIdentity {
    /// Identity from file metadata.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            len_bytes: metadata.len(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        }
    }

    /// Whether two looks at one path saw the same file. Machines that share a file system number its device each in
    /// their own way.
    pub fn is_unchanged(&self, later: &Self) -> bool {
        (self.inode, self.len_bytes, self.modified_ns) == (later.inode, later.len_bytes, later.modified_ns)
    }
}

/// Most files that are open at once, where as many more descriptors are left for others.
const MOST_OPEN: usize = 512;

/// The open files of all handles of this process, by their numbers.
static OPEN: LazyLock<Mutex<LruCache<u64, Arc<File>>>> = LazyLock::new(|| {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = limit.map_or(MOST_OPEN, |limit| MOST_OPEN.min(limit as usize / 2));
    Mutex::new(LruCache::new(NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN)))
});

/// The number of the next handle.
static NEXT: AtomicU64 = AtomicU64::new(0);

fn open_files() -> MutexGuard<'static, LruCache<u64, Arc<File>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A regular file to be read at offsets; open, or to be opened again.
#[derive(Debug)]
pub struct Handle {
    path: PathBuf,
    identity: FileIdentity,
    number: u64,
}

impl Handle {
    /// Opens a regular file.
    ///
    /// # Errors
    /// It cannot be opened, or is a folder or special file.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, identity) = open_regular(path)?;
        let handle = Self { path: path.to_path_buf(), identity, number: NEXT.fetch_add(1, Ordering::Relaxed) };
        handle.keep(Arc::new(file));
        Ok(handle)
    }

    /// Path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Identity when it was opened first.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Fills `out` from absolute `offset`.
    ///
    /// # Errors
    /// As reading; `UnexpectedEof` where the file ends before, and where it is no longer the file that was opened.
    pub fn read_exact_at(&self, out: &mut [u8], offset: u64) -> Result<()> {
        let open = open_files().get(&self.number).map(Arc::clone);
        let file = match open {
            Some(file) => file,
            None => self.open_again()?,
        };
        file.read_exact_at(out, offset)
    }

    fn open_again(&self) -> Result<Arc<File>> {
        let (file, identity) = open_regular(&self.path)?;
        if !self.identity.is_unchanged(&identity) {
            return Err(Error::new(ErrorKind::UnexpectedEof, "it is no longer the file that was opened"));
        }
        let file = Arc::new(file);
        self.keep(Arc::clone(&file));
        Ok(file)
    }

    /// Keeps it open, until others are used more recently.
    fn keep(&self, file: Arc<File>) {
        // What is closed for it is closed when nobody holds the lock.
        let closed = open_files().push(self.number, file);
        drop(closed);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let closed = open_files().pop(&self.number);
        drop(closed);
    }
}

fn open_regular(path: &Path) -> Result<(File, FileIdentity)> {
    // A FIFO would block in open: look first.
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let file = File::open(path)?;
    let identity = FileIdentity::of(&file.metadata()?);
    Ok((file, identity))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn byte(handle: &Handle) -> Result<u8> {
        let mut out = [0];
        handle.read_exact_at(&mut out, 0).map(|()| out[0])
    }

    fn open_descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").unwrap().count()
    }

    #[test]
    fn more_files_are_read_than_are_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = |number: usize| folder.path().join(number.to_string());
        let count = MOST_OPEN + 100;
        for number in 0..count {
            std::fs::write(path(number), [number as u8]).unwrap();
        }
        let handles: Vec<Handle> = (0..count).map(|number| Handle::open(&path(number)).unwrap()).collect();
        for round in 0..2 {
            for (number, handle) in handles.iter().enumerate() {
                assert_eq!(byte(handle).unwrap(), number as u8, "round {round}");
            }
        }
        assert!(open_descriptors() < count);
        // The first is closed by now: what takes its place is not read.
        std::fs::remove_file(path(0)).unwrap();
        std::fs::write(path(0), [7, 7]).unwrap();
        assert_eq!(byte(&handles[0]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        // The last is open: that it has lost its name does not matter.
        std::fs::remove_file(path(count - 1)).unwrap();
        assert_eq!(byte(&handles[count - 1]).unwrap(), (count - 1) as u8);
        let before = open_descriptors();
        drop(handles);
        assert!(open_descriptors() + 64 < before);
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Handle::open(folder.path()).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(Handle::open(&folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
