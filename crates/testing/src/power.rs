//! What a folder may hold after the power failed, from the changes that a program made to it.
//!
//! The model: a sync makes what was done to that file before it last. Of the rest any part may be there: each write or
//! truncation by itself, a write also cut at a sector. Names (of files made, renamed, removed) come in the order in which
//! they were made, as file systems with a journal have it, up to any point behind the last sync of the folder, and
//! without regard to content. Not modelled: devices that lie about syncs, and sectors half written.
//!
//! Invariant: with everything kept, the folder is what the program left.

use crate::strategy::Draw;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// What a device writes whole or not at all.
const SECTOR_LEN_BYTES: usize = 512;

/// Flag of `open` (Linux on x86 and ARM): cut the file to nothing.
const O_TRUNC: u64 = 0o1000;

/// A change, as the program made it; paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A file was opened, and made if it was not there.
    Create {
        /// Its path.
        path: PathBuf,
        /// Whether it lost its content.
        truncated: bool,
    },
    /// Bytes were written.
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// A file got another length.
    Truncate {
        /// Its path.
        path: PathBuf,
        /// The length.
        len_bytes: u64,
    },
    /// A file or folder was synced.
    Sync {
        /// Its path.
        path: PathBuf,
    },
    /// A file got another name, and what had that name has none.
    Rename {
        /// Old path.
        from: PathBuf,
        /// New path.
        to: PathBuf,
    },
    /// A file got a second name.
    Link {
        /// First path.
        from: PathBuf,
        /// Second path.
        to: PathBuf,
    },
    /// A name was removed.
    Unlink {
        /// The path.
        path: PathBuf,
    },
}

/// Reads the log of [`crate::faults::trace`].
///
/// # Panics
/// If it is none.
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

/// What is lost of all that was not synced.
#[derive(Debug, Clone)]
pub enum Loss {
    /// Nothing: the program stopped, the power did not.
    Nothing,
    /// Everything.
    Everything,
    /// Something, drawn from this.
    Some(Draw),
}

/// Names to files.
type Names = BTreeMap<PathBuf, usize>;

/// A file's changes, in order; the first `synced` of them last.
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

/// A folder while it is changed.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    inodes: Vec<Inode>,
    /// States of the names, oldest first: the first is the one that lasts.
    names: Vec<Names>,
}

impl Disk {
    /// The folder with these files (names in it, and contents), which last.
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
        // A file without a name, as the lock is in its last moment: nobody will see it.
        let Some(&inode) = self.now().get(path) else { return };
        self.inodes[inode].changes.push(change);
    }

    /// Takes in what the program did.
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

    /// The files after the power failed now.
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
                    // Sectors of the file, not of the write.
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

    /// What a shell does in a folder, and what it leaves there.
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
