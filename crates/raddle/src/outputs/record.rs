//! Record of the outputs of an interrupted run that are done, so that the next run continues with the others.
//!
//! Each folder with outputs has one hidden file per set of options, with one or more lines per output. The last line
//! before an output is published describes the complete hidden file; publication keeps its inode and times. A run
//! that finishes all files removes its records. Invariant: a file counts as done only if it is unchanged since it
//! was written, and so is its input unless it was replaced. A run with other options may reuse the inode of a hidden
//! file, so an inode alone identifies no contents.

use raddle_core::digest::Digest;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Length, and time of the last change in seconds and nanoseconds.
type Stamp = (u64, i64, i64);

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DoneFile {
    /// Name of the output in its folder; bytes that are not ASCII are escaped.
    name: String,
    /// Inode of the output.
    inode: u64,
    /// State of the output, which is the same before and after it is published.
    output: Stamp,
    /// State of the input, unless it was replaced by the output or is identified by the options.
    input: Option<Stamp>,
}

/// Record of the finished files in one folder.
#[derive(Debug)]
pub(crate) struct FolderRecord {
    path: PathBuf,
    known: HashMap<String, DoneFile>,
    out: Mutex<Option<File>>,
}

impl FolderRecord {
    /// Reads the record in `folder` of runs of a command with these options, if there is one. A line that cannot be
    /// read, such as the last one of a killed run, is ignored.
    ///
    /// # Errors
    /// If an existing record cannot be read.
    pub(crate) fn open(folder: &Path, command: &str, options: &str) -> std::io::Result<Self> {
        let of_version = format!("{} {options}", env!("CARGO_PKG_VERSION"));
        let digest = Digest::of(of_version.as_bytes()).crc64_nvme();
        let path = folder.join(format!(".raddle-{command}-{digest:016x}"));
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            // A folder that is missing or not a folder is refused elsewhere.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Vec::new(),
            Err(error) => return Err(error),
        };
        let lines = text.split(|&byte| byte == b'\n');
        let read = lines.filter_map(|line| serde_json::from_slice::<DoneFile>(line).ok());
        let known = read.map(|done| (done.name.clone(), done)).collect();
        Ok(Self { path, known, out: Mutex::new(None) })
    }

    /// Forgets all finished files, so that they are written again.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Returns whether the record lists this output of this input, and both are unchanged.
    pub(crate) fn is_done(&self, input: &Path, output: &Path) -> bool {
        let Some(known) = self.known.get(&name_of(output)) else { return false };
        let is_input_unchanged = known.input.is_none() || known.input == state(input).ok().map(|(_, stamp)| stamp);
        let Ok((inode, stamp)) = state(output) else { return false };
        is_input_unchanged && (known.inode, known.output) == (inode, stamp)
    }

    /// Adds an output that is complete in `file`: under its name, or under a hidden name if it will be published
    /// unchanged. `input` is `None` if it is replaced, or if the options identify it. A file that cannot be recorded
    /// would be written again by the next run.
    pub(crate) fn add(&self, input: Option<&Path>, output: &Path, file: &Path) {
        // Without a record the next run has more to do, but nothing is lost.
        let _ = self.try_add(input, output, file);
    }

    fn try_add(&self, input: Option<&Path>, output: &Path, file: &Path) -> std::io::Result<()> {
        let input = input.map(state).transpose()?.map(|(_, stamp)| stamp);
        let (inode, stamp) = state(file)?;
        let done = DoneFile { name: name_of(output), inode, output: stamp, input };
        let mut line = serde_json::to_vec(&done)?;
        line.push(b'\n');
        let mut out = self.out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let file = match out.take() {
            Some(file) => file,
            None => {
                let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
                // The last line of a killed run may lack its end.
                file.write_all(b"\n")?;
                file
            }
        };
        out.insert(file).write_all(&line)
    }

    /// Removes the record.
    ///
    /// # Errors
    /// If it exists and cannot be removed.
    pub(crate) fn remove(&self) -> std::io::Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn name_of(output: &Path) -> String {
    output.file_name().unwrap_or_default().as_bytes().escape_ascii().to_string()
}

/// Returns the inode and the state of a file.
fn state(path: &Path) -> std::io::Result<(u64, Stamp)> {
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.ino(), (metadata.len(), metadata.mtime(), metadata.mtime_nsec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unchanged_files_are_done() {
        let folder = tempfile::tempdir().unwrap();
        let [input, output, other] = ["in", "out \u{fc}\n", "other"].map(|name| folder.path().join(name));
        std::fs::write(&input, "old").unwrap();
        std::fs::write(&output, "new").unwrap();
        std::fs::write(&other, "other").unwrap();
        let open = |options| FolderRecord::open(folder.path(), "rechunk", options).unwrap();
        let record = open("a");
        assert!(!record.is_done(&input, &output));
        record.add(Some(&input), &output, &output);
        record.add(None, &other, &other);
        assert!(open("a").is_done(&input, &output) && open("a").is_done(&other, &other));
        assert!(!open("b").is_done(&input, &output));

        // A killed run may leave a part of a line.
        let mut file = OpenOptions::new().append(true).open(&record.path).unwrap();
        file.write_all(b"{\"name\":\"in").unwrap();
        let record = open("a");
        assert!(record.is_done(&input, &output));
        record.add(None, &input, &input);
        assert!(open("a").is_done(&input, &input) && open("a").is_done(&other, &other));

        std::fs::write(&other, "changed").unwrap();
        assert!(!open("a").is_done(&other, &other));
        std::fs::write(&input, "a longer input").unwrap();
        assert!(!open("a").is_done(&input, &output));

        // A file counts as done if it is published by the time of the next run.
        let hidden = folder.path().join("hidden");
        std::fs::write(&hidden, "newer").unwrap();
        open("a").add(Some(&input), &output, &hidden);
        assert!(!open("a").is_done(&input, &output));
        std::fs::rename(&hidden, &output).unwrap();
        assert!(open("a").is_done(&input, &output));

        // Another run may write other contents to the same inode before it is published.
        open("a").add(Some(&input), &other, &output);
        std::fs::write(&output, "of other options").unwrap();
        std::fs::rename(&output, &other).unwrap();
        assert!(!open("a").is_done(&input, &other));

        open("a").remove().unwrap();
        open("a").remove().unwrap();
        assert!(!open("a").is_done(&other, &other));
    }
}
