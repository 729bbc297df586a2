//! Possible contents of a folder after a power failure, derived from the changes that a program made to it.
//!
//! The model: syncing a file makes its earlier changes durable. Of the other changes any subset may have reached the
//! disk: each write or truncation separately, a write also partially up to a sector boundary. Changes of names (of
//! created, renamed and removed files) reach the disk in order, as with a journalling file system, up to any point
//! after the last sync of the folder, and independently of contents. Devices that lie about syncs and half-written
//! sectors are not modelled.
//!
//! Invariant: if nothing is lost, the folder is as the program left it.

use crate::strategy::Draw;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Unit that a device writes atomically.
const SECTOR_LEN_BYTES: usize = 512;

/// Flag of `open` (Linux on x86 and ARM) that truncates the file.
const O_TRUNC: u64 = 0o1000;

/// A change made by the program; paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A file was opened, and created if it did not exist.
    Create {
        /// Path of the file.
        path: PathBuf,
        /// Whether the file was truncated.
        truncated: bool,
    },
    /// Bytes were written.
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Offset in the file.
        offset: u64,
        /// Bytes written.
        bytes: Vec<u8>,
    },
    /// The length of a file was changed.
    Truncate {
        /// Path of the file.
        path: PathBuf,
        /// New length.
        len_bytes: u64,
    },
    /// A file or folder was synced.
    Sync {
        /// Path of the file or folder.
        path: PathBuf,
    },
    /// A file was renamed, replacing any file with the new name.
    Rename {
        /// Old path.
        from: PathBuf,
        /// New path.
        to: PathBuf,
    },
    /// A file got a second name.
    Link {
        /// Existing path.
        from: PathBuf,
        /// New path.
        to: PathBuf,
    },
    /// A name was removed.
    Unlink {
        /// Path of the file.
        path: PathBuf,
    },
}

/// Reads the log of [`crate::faults::trace`].
///
/// # Panics
/// If it is not a valid log.
pub fn changes(log: &Path) -> Vec<Change> {
    let bytes = std::fs::read(log).expect("the log");
    let (mut rest, mut changes) = (bytes.as_slice(), Vec::new());
    while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
        let line = std::str::from_utf8(&rest[..end]).expect("paths of tests are UTF-8");
        let mut fields = line.splitn(4, ' ');
        let mut field = || fields.next().expect("a line of four fields");
        let (call, len, offset, path) = (field(), field(), field(), field());
        let len: usize = len.parse().expect("a length");
        let offset: u64 = offset.parse().expect("an offset");
        let two = || path.split_once('\t').map(|(from, to)| (from.into(), to.into())).expect("two paths");
        let content = &rest[end + 1..][..len];
        changes.push(match call {
            "create" => Change::Create { path: path.into(), truncated: offset & O_TRUNC != 0 },
            "write" => Change::Write { path: path.into(), offset, bytes: content.to_vec() },
            "truncate" => Change::Truncate { path: path.into(), len_bytes: offset },
            "sync" => Change::Sync { path: path.into() },
            "rename" => {
                let (from, to) = two();
                Change::Rename { from, to }
            }
            "link" => {
                let (from, to) = two();
                Change::Link { from, to }
            }
            "unlink" => Change::Unlink { path: path.into() },
            other => panic!("unknown call {other}"),
        });
        rest = &rest[end + 1 + len..];
    }
    changes
}

/// Loss of changes that were not synced.
#[derive(Debug, Clone)]
pub enum Loss {
    /// Nothing: the program stopped, but the power did not fail.
    Nothing,
    /// All changes that were not synced.
    Everything,
    /// A random part of these changes.
    Some(Draw),
}

/// Files by name.
type Names = BTreeMap<PathBuf, usize>;

/// A file as its list of changes; the first `synced` are durable.
#[derive(Debug, Default)]
struct Inode {
    changes: Vec<DataChange>,
    synced: usize,
}

#[derive(Debug, Clone)]
enum DataChange {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { len_bytes: usize },
}

/// A folder with its changes.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    inodes: Vec<Inode>,
    /// States of the names, oldest first; the first is durable.
    names: Vec<Names>,
}

impl Disk {
    /// Creates the folder with these files (names in it, and contents), all durable.
    pub fn new(folder: &Path, files: &[(&str, &[u8])]) -> Self {
        let mut disk = Self { folder: folder.to_path_buf(), inodes: Vec::new(), names: vec![Names::new()] };
        for (name, content) in files {
            let change = DataChange::Write { offset: 0, bytes: content.to_vec() };
            disk.names[0].insert(folder.join(name), disk.inodes.len());
            disk.inodes.push(Inode { changes: vec![change], synced: 1 });
        }
        disk
    }

    fn now(&self) -> &Names {
        self.names.last().expect("one state at the least")
    }

    fn rename(&mut self, change: impl FnOnce(&mut Names)) {
        let mut names = self.now().clone();
        change(&mut names);
        self.names.push(names);
    }

    fn change(&mut self, path: &Path, change: DataChange) {
        // A file that no longer has a name, like the lock shortly before it is closed, has no effect.
        let Some(&inode) = self.now().get(path) else { return };
        self.inodes[inode].changes.push(change);
    }

    /// Applies a change made by the program.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Create { path, truncated } => {
                if !self.now().contains_key(path) {
                    let inode = self.inodes.len();
                    self.inodes.push(Inode::default());
                    self.rename(|names| {
                        names.insert(path.clone(), inode);
                    });
                } else if *truncated {
                    self.change(path, DataChange::Truncate { len_bytes: 0 });
                }
            }
            Change::Write { path, offset, bytes } => {
                self.change(path, DataChange::Write { offset: *offset as usize, bytes: bytes.clone() });
            }
            Change::Truncate { path, len_bytes } => {
                self.change(path, DataChange::Truncate { len_bytes: *len_bytes as usize });
            }
            Change::Sync { path } if *path == self.folder => drop(self.names.drain(..self.names.len() - 1)),
            Change::Sync { path } => {
                if let Some(&inode) = self.now().get(path) {
                    self.inodes[inode].synced = self.inodes[inode].changes.len();
                }
            }
            Change::Rename { from, to } => self.rename(|names| {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }),
            Change::Link { from, to } => self.rename(|names| {
                if let Some(&inode) = names.get(from) {
                    names.insert(to.clone(), inode);
                }
            }),
            Change::Unlink { path } => self.rename(|names| {
                names.remove(path);
            }),
        }
    }

    /// Returns the files if the power failed now.
    pub fn after(&self, loss: &mut Loss) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = match loss {
            Loss::Nothing => self.names.len() - 1,
            Loss::Everything => 0,
            Loss::Some(draw) => draw.below(self.names.len() as u64) as usize,
        };
        let mut contents = HashMap::new();
        let names = self.names[state].iter();
        let files = names.map(|(path, &inode)| {
            let content = contents.entry(inode).or_insert_with(|| self.inodes[inode].after(loss));
            (path.clone(), content.clone())
        });
        files.collect()
    }
}

impl Inode {
    fn after(&self, loss: &mut Loss) -> Vec<u8> {
        let mut content = Vec::new();
        for (number, change) in self.changes.iter().enumerate() {
            let mut kept_len_bytes = usize::MAX;
            if number >= self.synced {
                match loss {
                    Loss::Nothing => {}
                    Loss::Everything => continue,
                    Loss::Some(draw) => match draw.below(4) {
                        0 | 1 => {}
                        2 => kept_len_bytes = draw.below(64) as usize * SECTOR_LEN_BYTES,
                        _ => continue,
                    },
                }
            }
            match change {
                DataChange::Write { offset, bytes } => {
                    // Cut at sector boundaries of the file, not of the write.
                    let kept = &bytes[..bytes.len().min(kept_len_bytes.saturating_sub(offset % SECTOR_LEN_BYTES))];
                    let end = offset + kept.len();
                    content.resize(content.len().max(end), 0);
                    content[*offset..end].copy_from_slice(kept);
                }
                DataChange::Truncate { len_bytes } => content.resize(*len_bytes, 0),
            }
        }
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Runs a script in a folder; returns the folder, the changes, and the files it left.
    fn shell(script: &str) -> (PathBuf, Vec<Change>, BTreeMap<PathBuf, Vec<u8>>) {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = folder.path().canonicalize().unwrap();
        let mut command = Command::new("sh");
        command.current_dir(&root).args(["-c", script]);
        crate::faults::trace(&mut command, &root, &outside.path().join("log"));
        assert!(command.status().unwrap().success());
        let left = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
        let left = left.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        (root, changes(&outside.path().join("log")), left)
    }

    #[test]
    fn with_everything_kept_the_folder_is_what_was_left() {
        let (root, changes, left) =
            shell("echo one > a; echo two >> a; echo three > b; mv b c; echo four > a; ln c d; mv a c");
        let mut disk = Disk::new(&root, &[]);
        changes.iter().for_each(|change| disk.apply(change));
        assert!(left.len() == 2 && left[&root.join("c")] == b"four\n");
        assert_eq!(disk.after(&mut Loss::Nothing), left);
        assert_eq!(disk.after(&mut Loss::Everything), BTreeMap::new());
    }

    #[test]
    fn what_was_synced_lasts_and_what_was_not_may_be_lost() {
        let (root, path) = (Path::new("/x"), PathBuf::from("/x/a"));
        let mut disk = Disk::new(root, &[("old", b"old")]);
        let write = |offset, byte, len| Change::Write { path: path.clone(), offset, bytes: vec![byte; len] };
        disk.apply(&Change::Create { path: path.clone(), truncated: true });
        disk.apply(&write(0, 1, 1000));
        disk.apply(&Change::Sync { path: path.clone() });
        assert_eq!(disk.after(&mut Loss::Everything).len(), 1, "the name was not synced");
        disk.apply(&Change::Sync { path: root.to_path_buf() });
        disk.apply(&write(1000, 2, 1000));
        disk.apply(&Change::Rename { from: path.clone(), to: "/x/old".into() });
        assert_eq!(disk.after(&mut Loss::Everything)[&path], [1; 1000]);
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..5000 {
            let files = disk.after(&mut Loss::Some(Draw::new(seed)));
            let content = files.get(&path).or(files.get(Path::new("/x/old")).filter(|_| files.len() == 1)).unwrap();
            assert!(content[..1000] == [1; 1000] && content[1000..].iter().all(|&byte| byte == 2));
            seen.insert((files.len(), content.len()));
        }
        assert!(seen.contains(&(1, 1000)) && seen.contains(&(2, 2000)) && seen.contains(&(2, 1024)), "{seen:?}");
    }
}
