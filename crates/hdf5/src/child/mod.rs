//! Reads files with libhdf5 in a child process, which may crash without harm.
//!
//! libhdf5 can crash, hang or exhaust memory on malicious metadata, so this crate never opens an input with it in its
//! own process. A [`ChildReader`] starts another instance of the program's own executable, with an argument that makes
//! it call [`serve`], and communicates with it over a socket. It is used for what the native reader does not support
//! (see [`crate::metadata`]) and for values that only libhdf5 can locate: those of virtual datasets and external files.
//!
//! Invariants: the parent neither crashes nor waits forever, whatever the file does to the child; a child serves a
//! single file, so that corruption of its memory by one file cannot affect another file's values; only the named file
//! is opened, and others only if they lie in the same folder or [`ChildOptions::foreign_files`] allows them. For a
//! symbolic link, the folder of the file that it leads to counts as well.

#[doc(hidden)]
pub mod arbitrary;
mod command;
mod cpu_time;
mod inherited;
mod library;
mod process;
mod protocol;
mod serve;

pub use command::{OwnProgram, ReaderCommand};
pub use protocol::{ListedChunk, ObjectName};
pub use serve::serve;

use crate::error::{Hdf5Error, Result};
use crate::model::{FileTree, Link, LinkTarget, Object, ObjectKind};
use crate::source::InputFile;
use process::{ChildExit, Process};
use protocol::{Answer, Fragment, Frame, Hello, Request, Task};
use raddle_core::pooled_file::FileIdentity;
use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The command-line argument that makes the `raddle` executable call [`serve`].
pub const READER_ARGUMENT: &str = "__hdf5-reader";

/// Access to files other than the one being read (sources of virtual datasets, external raw data).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForeignFiles {
    /// Files in the folder of the file, or of the file that its path leads to if that is a symbolic link; named without
    /// `..`, and with links resolved.
    #[default]
    SameFolder,
    /// Any file that the user can read: for trusted inputs only.
    Anywhere,
}

/// Limits and permissions of a child.
#[derive(Debug, Clone)]
pub struct ChildOptions {
    /// Maximum time to wait for one answer.
    pub timeout: Duration,
    /// CPU time for an answer about an empty file. Long files or many values may take longer, at a rate that libhdf5
    /// always reaches.
    pub cpu_time: Duration,
    /// Total time per file that may be lost to missing answers. After that, requests about it fail at once.
    pub patience: Duration,
    /// Maximum size of the child's address space.
    pub address_space_len_bytes: u64,
    /// Maximum length of an answer.
    pub answer_limit_len_bytes: u64,
    /// Other files that may be opened.
    pub foreign_files: ForeignFiles,
    /// Path, free of links, of a file that will be replaced and must not be a source of values.
    pub replaced: Option<PathBuf>,
    /// Maximum number of idle children kept for further requests on their file.
    pub idle_limit: usize,
}

impl Default for ChildOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            // Metadata of small files takes milliseconds.
            cpu_time: Duration::from_secs(5),
            patience: Duration::from_secs(10),
            // Metadata of 100,000 objects takes about 300 MB in libhdf5 and the tree built from it.
            address_space_len_bytes: 4 << 30,
            answer_limit_len_bytes: 1 << 30,
            foreign_files: ForeignFiles::default(),
            replaced: None,
            idle_limit: 4,
        }
    }
}

/// Reader of files with libhdf5 in child processes. It may be used from any thread.
#[derive(Debug)]
pub struct ChildReader {
    command: ReaderCommand,
    options: ChildOptions,
    idle: Mutex<Vec<Idle>>,
    /// Time lost to files that made a child hang.
    lost: Mutex<HashMap<FileIdentity, Duration>>,
}

/// A child that has answered and is ready for further requests about its file.
#[derive(Debug)]
struct Idle {
    path: PathBuf,
    identity: FileIdentity,
    process: Process,
}

impl ChildReader {
    /// Creates a reader whose children run `command` and must answer within `timeout`.
    pub fn new(command: impl Into<ReaderCommand>, timeout: Duration) -> Self {
        Self::with_options(command, ChildOptions { timeout, ..ChildOptions::default() })
    }

    /// Creates a reader whose children run `command`.
    pub fn with_options(command: impl Into<ReaderCommand>, options: ChildOptions) -> Self {
        Self { command: command.into(), options, idle: Mutex::default(), lost: Mutex::default() }
    }

    /// Reads the metadata of the whole file.
    pub fn read_tree(&self, path: &Path) -> Result<FileTree> {
        match self.ask(path, Task::Tree)? {
            Reply::Message(Answer::Tree(tree)) if is_closed(&tree.objects) => Ok(tree),
            _ => Err(unexpected(path)),
        }
    }

    /// Reads the objects at `addresses` (absolute file offsets of their headers), in that order, followed by all
    /// objects that their links lead to, as in a breadth-first walk from several roots. Hard links use indices of the
    /// returned list.
    pub fn read_objects(&self, path: &Path, addresses: &[u64]) -> Result<Vec<Object>> {
        match self.ask(path, Task::Fragment { addresses: addresses.to_vec() })? {
            Reply::Message(Answer::Fragment(Fragment { objects }))
                if objects.len() >= addresses.len() && is_closed(&objects) =>
            {
                Ok(objects)
            }
            _ => Err(unexpected(path)),
        }
    }

    /// Reads the values in all or some rows of axis 0 of a dataset. They are stored bytes (file byte order, C order)
    /// for fixed types, and canonical bytes (module `logical`) for file-local ones.
    ///
    /// # Errors
    /// If the values cannot be read. A missing source of a virtual dataset is also an error (libhdf5 would return fill
    /// values), as is a source or external file that [`ChildOptions::foreign_files`] does not allow.
    pub fn read_values(&self, path: &Path, object: ObjectName, rows: Option<Range<u64>>) -> Result<Vec<u8>> {
        match self.ask(path, Task::Values { object, rows })? {
            Reply::Values(bytes) => Ok(bytes),
            Reply::Message(_) => Err(unexpected(path)),
        }
    }

    /// Reads the list of stored chunks of a chunked dataset, in the order of libhdf5's index.
    pub fn read_chunks(&self, path: &Path, object: ObjectName) -> Result<Vec<ListedChunk>> {
        match self.ask(path, Task::Chunks { object })? {
            Reply::Message(Answer::Chunks(chunks)) => Ok(chunks),
            _ => Err(unexpected(path)),
        }
    }

    fn ask(&self, path: &Path, task: Task) -> Result<Reply> {
        let died = |death: ChildExit| Hdf5Error::ReaderDied { path: path.to_path_buf(), status: death.to_string() };
        // Opening also refuses folders and special files, which would block the child.
        let identity = InputFile::open(path)?.identity();
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner).get(&identity).copied();
        if let Some(lost) = lost.filter(|lost| *lost >= self.options.patience) {
            return Err(died(ChildExit::GivenUp(lost)));
        }
        let request = protocol::encode(&Request { task });
        let mut process = match self.take_idle(path, identity) {
            Some(process) => process,
            None => self.start(path)?,
        };
        let asked = Instant::now();
        let frame = process.exchange(&request, self.options.timeout, self.options.answer_limit_len_bytes);
        let frame = frame.map_err(|death| {
            if death.is_hang() {
                let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
                *lost.entry(identity).or_default() += asked.elapsed();
            }
            died(death)
        })?;
        let reply = match frame {
            Frame::Values(bytes) => Reply::Values(bytes),
            Frame::Message(bytes) => match protocol::decode(&bytes) {
                Ok(answer) => Reply::Message(answer),
                Err(error) => return Err(died(ChildExit::Garbage(error))),
            },
        };
        self.put_idle(Idle { path: path.to_path_buf(), identity, process });
        match reply {
            Reply::Message(Answer::Failed(failure)) => Err(failure.into_error(path)),
            reply => Ok(reply),
        }
    }

    /// Starts a child and sends the greeting.
    fn start(&self, path: &Path) -> Result<Process> {
        let start = |source| Hdf5Error::Io {
            path: self.command.executable.clone(),
            operation: "start the reader process".to_owned(),
            source,
        };
        let absolute = std::path::absolute(path).map_err(start)?;
        let mut process = Process::start(&self.command.executable, &self.command.arguments).map_err(start)?;
        let greeting = protocol::encode(&Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            path: absolute.as_os_str().as_bytes().to_vec(),
            any_foreign_file: self.options.foreign_files == ForeignFiles::Anywhere,
            replaced: self.options.replaced.as_ref().map(|path| path.as_os_str().as_bytes().to_vec()),
            address_space_len_bytes: self.options.address_space_len_bytes,
            answer_limit_len_bytes: self.options.answer_limit_len_bytes,
            cpu_time_s: self.options.cpu_time.as_secs(),
        });
        let answer = process
            .exchange(&greeting, self.options.timeout, self.options.answer_limit_len_bytes)
            .and_then(|frame| match frame {
                Frame::Message(bytes) => protocol::decode(&bytes).map_err(ChildExit::Garbage),
                Frame::Values(_) => Err(ChildExit::Garbage("values in reply to the greeting".to_owned())),
            })
            .map_err(|death| Hdf5Error::ReaderNotStarted {
                executable: self.command.executable.clone(),
                status: death.to_string(),
            })?;
        match answer {
            Answer::Ready => Ok(process),
            _ => Err(Hdf5Error::ReaderNotStarted {
                executable: self.command.executable.clone(),
                status: "it has a different version".to_owned(),
            }),
        }
    }

    fn take_idle(&self, path: &Path, identity: FileIdentity) -> Option<Process> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let position = idle.iter().rposition(|idle| idle.path == path)?;
        let found = idle.remove(position);
        // A file that changed is opened again.
        (found.identity == identity).then_some(found.process)
    }

    fn put_idle(&self, back: Idle) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(back);
        if idle.len() > self.options.idle_limit {
            drop(idle.remove(0));
        }
    }
}

/// Reply of a child.
enum Reply {
    Message(Answer),
    Values(Vec<u8>),
}

/// Returns whether there is at least one object and every hard link leads to an object of the list: users of trees
/// follow links without checking.
fn is_closed(objects: &[Object]) -> bool {
    let leads_out = |link: &Link| matches!(link.target, LinkTarget::Hard(target) if target as usize >= objects.len());
    let leads_nowhere = |object: &Object| match &object.kind {
        ObjectKind::Group(group) => group.links.iter().any(leads_out),
        _ => false,
    };
    !objects.is_empty() && !objects.iter().any(leads_nowhere)
}

/// Creates the error for an answer of the wrong kind.
fn unexpected(path: &Path) -> Hdf5Error {
    Hdf5Error::ReaderDied {
        path: path.to_path_buf(),
        status: ChildExit::Garbage("unexpected kind of answer".to_owned()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CreationOrder, Group};

    #[test]
    fn links_of_an_answer_lead_to_its_objects() {
        let group = |targets: &[u32]| {
            let link = |target: &u32| Link {
                name: b"a".to_vec(),
                utf8: false,
                creation_order: None,
                target: LinkTarget::Hard(*target),
            };
            let links = targets.iter().map(link).collect();
            let kind = ObjectKind::Group(Group { links, link_order: CreationOrder::default() });
            Object {
                address: 0,
                kind,
                attributes: Vec::new(),
                attribute_order: CreationOrder::default(),
                comment: None,
            }
        };
        assert!(!is_closed(&[]));
        assert!(is_closed(&[group(&[0, 1]), group(&[])]));
        assert!(!is_closed(&[group(&[0, 2]), group(&[])]));
    }
}
