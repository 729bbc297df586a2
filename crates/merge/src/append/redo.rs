//! The redo log of an append, which makes changes at many places of a file atomic.
//!
//! The log is the file `.NAME.raddle-redo` in the same folder. While new data is written after the old end of the file,
//! it only records where that end was; if the append is interrupted, the next run truncates the file there. When all
//! data is written, the log is replaced, by a rename, with a list of all bytes to be changed below the old end: the
//! commit. If the append is interrupted later, the next run writes these bytes, repeatedly if necessary, as they are
//! the same each time.
//!
//! Invariant: before the commit no byte below the old end changes, so that readers see the old file; after the commit,
//! the next raddle that opens the file completes the append. Between the commit and the last of the changes, other
//! readers may see a mix of both.

use crate::error::{MergeError, Result};
use raddle_core::digest::Digest;
use raddle_core::output::{LockError, OutputLock, folder_of, hidden_sibling};
use raddle_hdf5::native::Superblock;
use raddle_hdf5::source::InputFile;
use raddle_hdf5::write::Change;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// First bytes of a log, without the number of its format.
const TITLE: &[u8] = b"raddle redo ";
/// First bytes of a log; the number is the format version.
const MAGIC: &[u8; 16] = b"raddle redo 1\n\0\0";
/// Number of bytes per sample by which a log recognises its file: at the start and at the end of a range.
const SAMPLE_LEN_BYTES: u64 = 4096;
/// How long to wait for another raddle that writes committed changes, which takes as long as writing some metadata.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Content of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Log {
    /// Device and inode of the file.
    device: u64,
    inode: u64,
    /// Length of the file before the append.
    old_end: u64,
    /// Digest of samples of the file: below the old end before the commit, of the new data after it.
    sample: u64,
    /// Commit, if there is one: new length and changes.
    commit: Option<(u64, Vec<Change>)>,
}

impl Log {
    fn to_bytes(&self) -> Vec<u8> {
        let (new_end, changes) = self.commit.as_ref().map_or((0, &[][..]), |(end, changes)| (*end, changes.as_slice()));
        let mut bytes = MAGIC.to_vec();
        let head = [u64::from(self.commit.is_some()), self.device, self.inode, self.old_end, new_end, self.sample];
        let mut put = |word: u64| bytes.extend_from_slice(&word.to_le_bytes());
        head.into_iter().for_each(&mut put);
        put(changes.len() as u64);
        for change in changes {
            for word in [change.address, change.bytes.len() as u64, Digest::of(&change.bytes).crc64_nvme()] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
            bytes.extend_from_slice(&change.bytes);
        }
        let seal = Digest::of(&bytes).crc64_nvme();
        bytes.extend_from_slice(&seal.to_le_bytes());
        bytes
    }

    /// Parses a log; `None` if it is truncated or damaged.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        fn word(rest: &mut &[u8]) -> Option<u64> {
            let (head, tail) = rest.split_first_chunk::<8>()?;
            *rest = tail;
            Some(u64::from_le_bytes(*head))
        }
        let (sealed, seal) = bytes.split_last_chunk::<8>()?;
        if Digest::of(sealed).crc64_nvme() != u64::from_le_bytes(*seal) {
            return None;
        }
        let mut rest = sealed.strip_prefix(MAGIC)?;
        let is_commit = word(&mut rest)? == 1;
        let (device, inode, old_end, new_end, sample) =
            (word(&mut rest)?, word(&mut rest)?, word(&mut rest)?, word(&mut rest)?, word(&mut rest)?);
        let mut changes = Vec::new();
        for _ in 0..word(&mut rest)? {
            let (address, len_bytes, crc) = (word(&mut rest)?, word(&mut rest)?, word(&mut rest)?);
            let (bytes, tail) = rest.split_at_checked(usize::try_from(len_bytes).ok()?)?;
            if Digest::of(bytes).crc64_nvme() != crc || address.checked_add(len_bytes)? > old_end {
                return None;
            }
            changes.push(Change { address, bytes: bytes.to_vec() });
            rest = tail;
        }
        let commit = is_commit.then_some((new_end, changes));
        rest.is_empty().then_some(Self { device, inode, old_end, sample, commit })
    }
}

/// The redo log of a file that is being appended to.
#[derive(Debug)]
pub(crate) struct Redo {
    file_path: PathBuf,
    log_path: PathBuf,
    new_log_path: PathBuf,
    device: u64,
    inode: u64,
    old_end: u64,
}

impl Redo {
    /// Records the current end of `file`, open for writing under `path`, before anything is written after it.
    pub fn begin(path: &Path, file: &File) -> Result<Self> {
        let metadata = file.metadata().map_err(failed(path, "stat"))?;
        let redo = Self {
            file_path: path.to_path_buf(),
            log_path: log_path(path),
            new_log_path: hidden_sibling(path, ".raddle-redo-part"),
            device: metadata.dev(),
            inode: metadata.ino(),
            old_end: metadata.len(),
        };
        let sample = sample(file, 0, redo.old_end).map_err(failed(path, "read a sample"))?;
        let log = Log { device: redo.device, inode: redo.inode, old_end: redo.old_end, sample, commit: None };
        let begun = redo.prepare(&log).and_then(|()| redo.put()).and_then(|()| sync_folder(path));
        if let Err(error) = begun {
            // Nothing has been placed, so the log is not needed.
            let _ = remove(&redo.log_path);
            let _ = remove(&redo.new_log_path);
            return Err(error);
        }
        Ok(redo)
    }

    /// Returns the length of the file before the append.
    pub fn old_end(&self) -> u64 {
        self.old_end
    }

    /// Discards the appended data, which restores the file.
    pub fn discard(self, file: &File) -> Result<()> {
        file.set_len(self.old_end).map_err(failed(&self.file_path, "truncate to its old end"))?;
        file.sync_all().map_err(failed(&self.file_path, "fsync"))?;
        self.remove()
    }

    /// Makes `changes` part of the file, which has `new_end` bytes. All appended data must already be durable. After an
    /// error, the file is unchanged or, if the error states so, committed: every raddle that opens it from then on
    /// completes the changes.
    pub fn commit(self, file: &File, new_end: u64, changes: Vec<Change>) -> Result<()> {
        let sample = match sample(file, self.old_end, new_end) {
            Ok(sample) => sample,
            Err(source) => {
                // The error that led here is the one to report; the next raddle that opens the file tries again.
                let error = failed(&self.file_path, "read a sample of the appended data")(source);
                let _ = self.discard(file);
                return Err(error);
            }
        };
        let (device, inode, old_end) = (self.device, self.inode, self.old_end);
        let log = Log { device, inode, old_end, sample, commit: Some((new_end, changes)) };
        if let Err(error) = self.prepare(&log).and_then(|()| self.put()) {
            // If the new log exists in spite of the error, it must not be found next to a truncated file.
            let _ = remove(&self.log_path);
            let _ = remove(&self.new_log_path);
            let _ = self.discard(file);
            return Err(error);
        }
        // From here on the append counts as done. It is not applied before the log is durable.
        let named = "make the log durable (the next raddle that opens the file completes the append): fsync";
        File::open(folder_of(&self.file_path))
            .and_then(|folder| folder.sync_all())
            .map_err(failed(&self.file_path, named))?;
        let Some((_, changes)) = log.commit else { return Ok(()) };
        apply(&self.file_path, file, &changes)?;
        self.remove()
    }

    /// Writes `log` under a temporary name.
    fn prepare(&self, log: &Log) -> Result<()> {
        let path = &self.new_log_path;
        let mut file = File::create(path).map_err(failed(path, "create"))?;
        file.write_all(&log.to_bytes()).map_err(failed(path, "write"))?;
        file.sync_all().map_err(failed(path, "fsync"))
    }

    /// Replaces the existing log with the prepared one.
    fn put(&self) -> Result<()> {
        std::fs::rename(&self.new_log_path, &self.log_path).map_err(failed(&self.log_path, "rename"))
    }

    fn remove(&self) -> Result<()> {
        remove(&self.log_path)?;
        // Durability does not matter: if the log reappears, it is still valid.
        let _ = sync_folder(&self.file_path);
        Ok(())
    }
}

/// State in which a file was found before an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// No log, or an append in progress that has not changed the file yet.
    Nothing,
    /// An append was interrupted before its commit: the file has been restored to its earlier state.
    Discarded,
    /// An append was interrupted after its commit: the append has been completed.
    Completed,
}

impl Recovery {
    /// Encodes the state for messages between ranks.
    pub(super) fn code(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Discarded => 1,
            Self::Completed => 2,
        }
    }

    /// Decodes [`Self::code`].
    pub(super) fn of_code(code: u64) -> Self {
        match code {
            1 => Self::Discarded,
            2 => Self::Completed,
            _ => Self::Nothing,
        }
    }
}

/// Completes or discards an interrupted append to `path`. Without a log this costs a single lookup of a name.
///
/// # Errors
/// If the file cannot be written, the log does not belong to it, or another raddle keeps writing it.
pub fn settle(path: &Path) -> Result<Recovery> {
    let resolved_path = match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()),
        _ => path.to_path_buf(),
    };
    if std::fs::symlink_metadata(log_path(&resolved_path)).is_err() {
        return Ok(Recovery::Nothing);
    }
    let started = Instant::now();
    loop {
        match OutputLock::take(&resolved_path) {
            Ok(_lock) => return settle_locked(&resolved_path),
            Err(error @ LockError::Held { .. }) => match read_log(&resolved_path)? {
                Some(Log { commit: Some(_), .. }) if started.elapsed() < MAX_WAIT => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Some(Log { commit: Some(_), .. }) => return Err(error.into()),
                _ => return Ok(Recovery::Nothing),
            },
            Err(error) => return Err(error.into()),
        }
    }
}

/// Like [`settle`], for the holder of the lock on `path`, which must not be a symbolic link.
pub(crate) fn settle_locked(path: &Path) -> Result<Recovery> {
    let log_path = log_path(path);
    if std::fs::symlink_metadata(&log_path).is_err() {
        return Ok(Recovery::Nothing);
    }
    // A log is renamed into place when it is complete, so a damaged log was damaged later and cannot be used.
    let Some(log) = read_log(path)? else {
        return Err(foreign(path, "is damaged"));
    };
    let open = OpenOptions::new().read(true).write(true).open(path);
    let file = open.map_err(failed(path, "open to complete or discard an interrupted append"))?;
    let metadata = file.metadata().map_err(failed(path, "stat"))?;
    let is_same_inode = (metadata.dev(), metadata.ino()) == (log.device, log.inode);
    let Some((new_end, changes)) = log.commit else {
        let is_old = is_same_inode
            && metadata.len() > log.old_end
            && sample(&file, 0, log.old_end).is_ok_and(|sample| sample == log.sample)
            && ends_before(path, log.old_end);
        // Otherwise nothing was appended, or the file has been replaced and must not be truncated.
        if is_old {
            file.set_len(log.old_end).map_err(failed(path, "truncate to its old end"))?;
            file.sync_all().map_err(failed(path, "fsync"))?;
        }
        remove(&log_path)?;
        return Ok(if is_old { Recovery::Discarded } else { Recovery::Nothing });
    };
    let is_placed = metadata.len() == new_end
        && sample(&file, log.old_end, new_end).is_ok_and(|sample| sample == log.sample)
        && (is_same_inode || new_end > log.old_end);
    if !is_placed {
        return Err(foreign(path, "belongs to a different state of the file"));
    }
    apply(path, &file, &changes)?;
    remove(&log_path)?;
    let _ = sync_folder(path);
    Ok(Recovery::Completed)
}

fn foreign(path: &Path, what: &str) -> MergeError {
    let log = log_path(path);
    let reason = format!(
        "an append to it was interrupted, and the log {} {what}; if the file has been replaced since, remove the log, \
         otherwise restore the file",
        log.display()
    );
    MergeError::Output { path: path.to_path_buf(), reason }
}

fn log_path(path: &Path) -> PathBuf {
    hidden_sibling(path, ".raddle-redo")
}

/// Reads the log of the file at `path`; returns `None` if there is none or it is damaged.
///
/// # Errors
/// If the log cannot be read, or has another format: then it cannot be decided whether the append was committed.
fn read_log(path: &Path) -> Result<Option<Log>> {
    let log_path = log_path(path);
    match std::fs::read(&log_path) {
        Ok(bytes) if bytes.starts_with(TITLE) && !bytes.starts_with(MAGIC) => {
            let reason = format!(
                "an append to it was interrupted, and the log {} has another format; complete the append with the raddle \
                 that began it, or a newer one: with that version, read the file once (raddle verify)",
                log_path.display()
            );
            Err(MergeError::Output { path: path.to_path_buf(), reason })
        }
        Ok(bytes) => Ok(Log::of_bytes(&bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(MergeError::Input { path: log_path, source }),
    }
}

/// Returns whether the end of file in the superblock is at most `end`.
fn ends_before(path: &Path, end: u64) -> bool {
    let superblock = InputFile::open(path).and_then(|file| Superblock::read(&file));
    superblock.is_ok_and(|superblock| superblock.end <= end)
}

fn apply(path: &Path, file: &File, changes: &[Change]) -> Result<()> {
    let unfinished = "complete the append (the next raddle that opens the file retries): write";
    for change in changes {
        file.write_all_at(&change.bytes, change.address).map_err(failed(path, unfinished))?;
    }
    file.sync_all().map_err(failed(path, "complete the append (the next raddle that opens the file retries): fsync"))
}

/// Returns the digest of the first and the last bytes of a range of the file.
fn sample(file: &File, start: u64, end: u64) -> std::io::Result<u64> {
    let len_bytes = (end - start).min(SAMPLE_LEN_BYTES);
    let mut bytes = vec![0; len_bytes as usize];
    let mut digest = Digest::default();
    for address in [start, end - len_bytes] {
        file.read_exact_at(&mut bytes, address)?;
        digest = digest.then(Digest::of(&bytes));
    }
    Ok(digest.crc64_nvme())
}

fn sync_folder(path: &Path) -> Result<()> {
    let folder = folder_of(path);
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder, "fsync"))
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(path, "remove")(error)),
        _ => Ok(()),
    }
}

fn failed<'p>(path: &'p Path, operation: &'static str) -> impl FnOnce(std::io::Error) -> MergeError + 'p {
    move |source| MergeError::Write { path: path.to_path_buf(), operation, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes() -> Vec<Change> {
        vec![Change { address: 3, bytes: b"new".to_vec() }, Change { address: 100, bytes: vec![7; 50] }]
    }

    /// Returns a file of 1,000 bytes with 500 bytes appended, its log, and the expected content after a commit.
    fn placed(folder: &Path) -> (PathBuf, File, Redo, Vec<u8>) {
        let path = folder.join("file.h5");
        let old: Vec<u8> = (0..1000).map(|at| at as u8).collect();
        std::fs::write(&path, &old).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let redo = Redo::begin(&path, &file).unwrap();
        file.write_all_at(&[9; 500], 1000).unwrap();
        let mut new = std::fs::read(&path).unwrap();
        for change in changes() {
            new[change.address as usize..][..change.bytes.len()].copy_from_slice(&change.bytes);
        }
        (path, file, redo, new)
    }

    fn log_of(path: &Path) -> Log {
        read_log(path).unwrap().unwrap()
    }

    #[test]
    fn a_commit_changes_the_file_and_leaves_no_log() {
        let folder = tempfile::tempdir().unwrap();
        let (path, file, redo, new) = placed(folder.path());
        redo.commit(&file, 1500, changes()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), new);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_log_is_whole_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, ..) = placed(folder.path());
        let log = Log { commit: Some((1500, changes())), ..log_of(&path) };
        let bytes = log.to_bytes();
        assert_eq!(Log::of_bytes(&bytes), Some(log));
        for len in 0..bytes.len() {
            assert_eq!(Log::of_bytes(&bytes[..len]), None, "cut at {len}");
            let mut damaged = bytes.clone();
            damaged[len] ^= 1;
            assert_eq!(Log::of_bytes(&damaged), None, "changed at {len}");
        }
    }

    #[test]
    fn the_format_of_logs_stays_the_same() {
        let log = Log { device: 1, inode: 2, old_end: 1000, sample: 3, commit: Some((1500, changes())) };
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let [new, sevens, seal] = [0x9d89_c1cc_3fbf_3a4a, 0x8e8c_3ef1_0009_0c10, 0x8a02_d350_20fd_df7c];
        let expected = [
            b"raddle redo 1\n\0\0".as_slice(),
            &words(&[1, 1, 2, 1000, 1500, 3, 2]),
            &words(&[3, 3, new]),
            b"new",
            &words(&[100, 50, sevens]),
            &[7; 50],
            &words(&[seal]),
        ];
        // If this changes, logs of earlier versions are refused: the number in MAGIC must change, too.
        assert_eq!(log.to_bytes(), expected.concat());
        assert_eq!(Log::of_bytes(&expected.concat()), Some(log));
    }

    #[test]
    fn a_log_of_another_format_is_kept_for_the_version_that_knows_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, file, redo, _) = placed(folder.path());
        let sample = sample(&file, 1000, 1500).unwrap();
        let log = Log { sample, commit: Some((1500, changes())), ..log_of(&path) };
        redo.prepare(&log).and_then(|()| redo.put()).unwrap();
        let mut bytes = std::fs::read(log_path(&path)).unwrap();
        bytes[12] = b'2';
        std::fs::write(log_path(&path), &bytes).unwrap();
        let (before, lock) = (std::fs::read(&path).unwrap(), OutputLock::take(&path).unwrap());
        for lock in [Some(lock), None] {
            let error = settle(&path).unwrap_err().to_string();
            assert!(error.contains("has another format") && error.contains("newer"), "{error}");
            drop(lock);
        }
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(std::fs::read(log_path(&path)).unwrap(), bytes);
    }

    #[test]
    fn a_commit_that_was_interrupted_is_completed_from_any_state() {
        for applied in 0..=2 {
            let folder = tempfile::tempdir().unwrap();
            let (path, file, redo, new) = placed(folder.path());
            let sample = sample(&file, 1000, 1500).unwrap();
            let log = Log { sample, commit: Some((1500, changes())), ..log_of(&path) };
            redo.prepare(&log).and_then(|()| redo.put()).unwrap();
            apply(&path, &file, &changes()[..applied]).unwrap();
            assert_eq!(settle(&path).unwrap(), Recovery::Completed);
            assert_eq!(std::fs::read(&path).unwrap(), new);
            assert_eq!(settle(&path).unwrap(), Recovery::Nothing);
        }
    }

    #[test]
    fn a_log_of_another_state_is_refused_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, file, redo, _) = placed(folder.path());
        let sample = sample(&file, 1000, 1500).unwrap();
        redo.prepare(&Log { sample, commit: Some((1500, changes())), ..log_of(&path) }).unwrap();
        redo.put().unwrap();
        for other in [vec![1; 1500], vec![1; 1000]] {
            std::fs::write(&path, &other).unwrap();
            assert!(matches!(settle(&path), Err(MergeError::Output { .. })));
            assert_eq!(std::fs::read(&path).unwrap(), other);
        }
    }

    #[test]
    fn what_was_placed_is_not_cut_off_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, ..) = placed(folder.path());
        let other = vec![1; 1500];
        std::fs::write(&path, &other).unwrap();
        assert_eq!(settle(&path).unwrap(), Recovery::Nothing);
        assert_eq!(std::fs::read(&path).unwrap(), other);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_append_that_is_under_way_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (path, ..) = placed(folder.path());
        let lock = OutputLock::take(&path).unwrap();
        assert_eq!(settle(&path).unwrap(), Recovery::Nothing);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 1500);
        drop(lock);
    }
}
