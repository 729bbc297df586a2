//! Scratch files, for data that does not fit in memory. They take space in the output's directory and have no name, so
//! that they disappear with the process, however it ends.

use super::{folder_of, hidden_sibling};
use crate::ranks::communicator::{AgreedError, Communicator, CommunicatorExt};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Error of a scratch file.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {operation}: {source}", folder.display())]
pub struct ScratchError {
    /// Directory of the file.
    pub folder: PathBuf,
    /// Operation that failed.
    pub operation: &'static str,
    /// Cause.
    pub source: std::io::Error,
}

/// Scratch file, which is appended to or written at any offset, and read at any offset.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    folder: PathBuf,
    len_bytes: u64,
}

impl Scratch {
    /// Creates a scratch file in the directory of `output`.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(output: &Path) -> Result<Self, ScratchError> {
        let folder = folder_of(output);
        Self::of(folder, unnamed_or_unlinked(folder))
    }

    /// Collective. Creates a scratch file in the directory of `output` that all `ranks` write and read.
    ///
    /// # Errors
    /// If the file cannot be created or opened on a rank.
    pub fn create_shared<E: From<ScratchError> + AgreedError>(
        output: &Path,
        ranks: &dyn Communicator,
    ) -> Result<Self, E> {
        const OPERATION: &str = "create a scratch file";
        if ranks.size() == 1 {
            return Ok(Self::create(output)?);
        }
        let (folder, path) = (folder_of(output), hidden_sibling(output, ".raddle-scratch"));
        let options = || OpenOptions::new().read(true).write(true).to_owned();
        let created = match ranks.rank() {
            0 => Self::of(folder, options().create(true).truncate(true).open(&path)).map(Some),
            _ => Ok(None),
        };
        let created = ranks.agree(OPERATION, created.map_err(E::from))?;
        let opened = created.map_or_else(|| Self::of(folder, options().open(&path)), Ok);
        let opened = ranks.agree(OPERATION, opened.map_err(E::from));
        if ranks.rank() == 0 {
            // The file stays until the last rank closes it.
            let _ = std::fs::remove_file(&path);
        }
        opened
    }

    fn of(folder: &Path, file: std::io::Result<File>) -> Result<Self, ScratchError> {
        let folder = folder.to_path_buf();
        match file {
            Ok(file) => Ok(Self { file, folder, len_bytes: 0 }),
            Err(source) => Err(ScratchError { folder, operation: "create a scratch file", source }),
        }
    }

    /// Checks whether the file system has space for `len_bytes`.
    ///
    /// # Errors
    /// If it does not have that much space.
    pub fn check_space(&self, len_bytes: u64) -> Result<(), ScratchError> {
        if let Ok(space) = rustix::fs::fstatvfs(&self.file) {
            let available = space.f_bavail.saturating_mul(space.f_frsize);
            if available < len_bytes {
                let text = format!("{len_bytes} bytes are needed, and {available} are free");
                return Err(self.failed("write a scratch file", std::io::Error::new(ErrorKind::StorageFull, text)));
            }
        }
        Ok(())
    }

    /// Frees all space of the file and makes it `len_bytes` long; bytes read as zeros until they are written.
    ///
    /// # Errors
    /// If the file cannot be changed.
    pub fn clear(&self, len_bytes: u64) -> Result<(), ScratchError> {
        let cleared = self.file.set_len(0).and_then(|()| self.file.set_len(len_bytes));
        cleared.map_err(|source| self.failed("write a scratch file", source))
    }

    /// Appends `bytes` and returns their offset.
    ///
    /// # Errors
    /// If the bytes cannot be written.
    pub fn append(&mut self, bytes: &[u8]) -> Result<u64, ScratchError> {
        let at = self.len_bytes;
        self.write_at(at, bytes)?;
        self.len_bytes += bytes.len() as u64;
        Ok(at)
    }

    /// Writes `bytes` at `offset_bytes`.
    ///
    /// # Errors
    /// If the bytes cannot be written.
    pub fn write_at(&self, offset_bytes: u64, bytes: &[u8]) -> Result<(), ScratchError> {
        let written = self.file.write_all_at(bytes, offset_bytes);
        written.map_err(|source| self.failed("write a scratch file", source))
    }

    /// Reads the bytes at `offset_bytes`.
    ///
    /// # Errors
    /// If the file does not have these bytes.
    pub fn read(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), ScratchError> {
        self.file.read_exact_at(out, offset_bytes).map_err(|source| self.failed("read a scratch file", source))
    }

    fn failed(&self, operation: &'static str, source: std::io::Error) -> ScratchError {
        ScratchError { folder: self.folder.clone(), operation, source }
    }
}

/// Creates a file in `folder` that has no name when this returns.
fn unnamed_or_unlinked(folder: &Path) -> std::io::Result<File> {
    match unnamed(folder) {
        // On systems and file systems without unnamed files, creates a named one that is unlinked at once.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => unlinked(folder),
        created => Ok(created?),
    }
}

/// Creates a file without a name in `folder`.
#[cfg(target_os = "linux")]
pub(super) fn unnamed(folder: &Path) -> Result<File, Errno> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR).map(File::from)
}

/// Returns an error: only Linux creates files without a name.
#[cfg(not(target_os = "linux"))]
pub(super) fn unnamed(_folder: &Path) -> Result<File, Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Creates a file with a free name in `folder` and removes the name.
fn unlinked(folder: &Path) -> std::io::Result<File> {
    for number in 0_u32.. {
        let path = folder.join(format!(".raddle-scratch-{}-{number}", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => return std::fs::remove_file(&path).map(|()| file),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(source) => return Err(source),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::error::CoreError;
    use crate::ranks::threads::Threads;

    #[derive(Debug)]
    struct Failure(String);

    impl From<ScratchError> for Failure {
        fn from(error: ScratchError) -> Self {
            Self(error.to_string())
        }
    }

    impl AgreedError for Failure {
        fn message(&self) -> String {
            self.0.clone()
        }

        fn of_ranks(error: CoreError) -> Self {
            Self(error.to_string())
        }
    }

    #[test]
    fn what_was_written_is_read_and_nothing_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut scratch = Scratch::create(&folder.path().join("out.h5")).unwrap();
        assert_eq!(scratch.append(b"first").unwrap(), 0);
        assert_eq!(scratch.append(b"second").unwrap(), 5);
        let mut read = [0; 6];
        scratch.read(5, &mut read).unwrap();
        assert_eq!(&read, b"second");
        assert!(scratch.read(6, &mut read).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut again = unlinked(folder.path()).unwrap();
        std::io::Write::write_all(&mut again, b"x").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn more_than_the_free_space_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(&folder.path().join("out.h5")).unwrap();
        scratch.check_space(2).unwrap();
        let error = scratch.check_space(u64::MAX).unwrap_err();
        assert_eq!(error.source.kind(), ErrorKind::StorageFull);
        assert!(error.to_string().contains("cannot write a scratch file: 18446744073709551615 bytes are needed"));
    }

    #[test]
    fn a_cleared_file_takes_no_space() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(&folder.path().join("out.h5")).unwrap();
        scratch.write_at(0, &[1; 1 << 16]).unwrap();
        scratch.file.sync_data().unwrap();
        assert!(scratch.file.metadata().unwrap().blocks() > 0);
        scratch.clear(2).unwrap();
        scratch.file.sync_data().unwrap();
        let mut read = [1; 2];
        scratch.read(0, &mut read).unwrap();
        assert_eq!((read, scratch.file.metadata().unwrap().blocks()), ([0, 0], 0));
        assert!(scratch.read(1, &mut read).is_err());
    }

    #[test]
    fn ranks_share_a_file_that_leaves_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.h5");
        let read = Threads::run(3, |ranks| {
            let scratch = Scratch::create_shared::<Failure>(&output, ranks).unwrap();
            scratch.write_at(ranks.rank() as u64, &[b'a' + ranks.rank() as u8]).unwrap();
            ranks.all_gather_u64(0).unwrap();
            let mut read = [0; 3];
            scratch.read(0, &mut read).unwrap();
            read
        });
        assert_eq!(read, [*b"abc"; 3]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let nowhere = folder.path().join("none/out.h5");
        let failed = Threads::run(2, |ranks| Scratch::create_shared::<Failure>(&nowhere, ranks).is_err());
        assert_eq!(failed, [true, true]);
    }
}
