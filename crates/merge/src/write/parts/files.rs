//! Files of the parts next to the output: their names, their progress, and joining them.
//!
//! This module does not decide when and by whom they may be joined. The journal of a part is renamed once part and
//! journal are durable: until then the part is not complete, whatever the journal contains. Invariant: a journal never
//! records tiles that are missing from the tile file, and the joined tile file is made durable before its journal is
//! written.

use crate::error::{MergeError, Result};
use crate::write::publish::remove_recorded;
use crate::write::resume::{JournalPaths, open_new};
use raddle_core::engine::Checkpoint;
use raddle_core::output::journal::{self, Binding};
use raddle_core::output::{folder_of, hidden_sibling, sync_folder};
use raddle_core::plan::TileIndex;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Paths of one part: its tiles, its journal while it is being written and when it is complete, and the lock of its
/// process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartFiles {
    pub data: PathBuf,
    pub journal: PathBuf,
    done: PathBuf,
    pub lock: PathBuf,
}

const JOURNAL_SUFFIX: &str = "-journal";
const DONE_SUFFIX: &str = "-done";

impl PartFiles {
    /// Returns the paths of part `number`.
    pub fn of(output: &Path, number: u32) -> Self {
        let named = |suffix: &str| hidden_sibling(output, &format!(".raddle-part-{number}{suffix}"));
        Self { data: named(""), journal: named(JOURNAL_SUFFIX), done: named(DONE_SUFFIX), lock: named("-lock") }
    }

    /// Returns the numbers of all parts next to the output, whichever plan they belong to.
    pub fn existing(output: &Path) -> Result<Vec<u32>> {
        let folder = folder_of(output);
        let failed = |source| MergeError::Input { path: folder.to_path_buf(), source };
        let first = hidden_sibling(output, ".raddle-part-");
        let start = first.file_name().unwrap_or_default().as_bytes();
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let Some(rest) = name.as_bytes().strip_prefix(start).and_then(|rest| std::str::from_utf8(rest).ok()) else {
                continue;
            };
            let number = rest.strip_suffix(JOURNAL_SUFFIX).or_else(|| rest.strip_suffix(DONE_SUFFIX));
            numbers.extend(number.and_then(|number| number.parse::<u32>().ok()));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// Returns the record of an unfinished part that begins with `first_tile`.
    pub fn record(&self, first_tile: u64) -> JournalPaths<'_> {
        JournalPaths { data: &self.data, journal: &self.journal, first_tile, start_address: 0 }
    }

    /// Returns the record of a complete part.
    pub fn done(&self, first_tile: u64) -> JournalPaths<'_> {
        JournalPaths { journal: &self.done, ..self.record(first_tile) }
    }

    /// Makes a finished part durable, also for processes on other nodes, and marks it as complete.
    pub fn conclude(&self, data: &File, output: &Path) -> Result<()> {
        let failed = |path: &Path, operation| {
            let path = path.to_path_buf();
            move |source| MergeError::Write { path, operation, source }
        };
        data.sync_all().map_err(failed(&self.data, "fsync"))?;
        let journal = File::open(&self.journal).and_then(|journal| journal.sync_all());
        journal.map_err(failed(&self.journal, "fsync"))?;
        std::fs::rename(&self.journal, &self.done).map_err(failed(&self.done, "rename"))?;
        sync_folder(output).map_err(failed(&self.done, "make the name durable"))
    }

    /// Returns the progress of the part with `count` tiles from `first_tile`.
    pub fn state(&self, first_tile: u64, count: u64, binding: &Binding, index: &TileIndex) -> Result<State> {
        match state_of(self.done(first_tile), count, binding, index)? {
            State::Missing => Ok(match state_of(self.record(first_tile), count, binding, index)? {
                // Not durable yet, or its process was killed just before it was made durable.
                State::Complete(_) => State::ResumedRun,
                state => state,
            }),
            state => Ok(state),
        }
    }

    /// Removes all files of the part.
    pub fn remove(&self) -> Result<()> {
        remove_recorded(&self.data, &self.done)?;
        remove_recorded(&self.data, &self.journal)
    }
}

/// Progress of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// The part has no readable files.
    Missing,
    /// Some tiles of the part are written.
    ResumedRun,
    /// All tiles of the part are written.
    Complete(Checkpoint),
    /// The part belongs to a different plan; names the difference.
    Differs(String),
}

/// Returns the progress of a record that should have `count` tiles and this `binding`.
pub(super) fn state_of(record: JournalPaths<'_>, count: u64, binding: &Binding, index: &TileIndex) -> Result<State> {
    let Some(mut journal) = record.open_journal()? else { return Ok(State::Missing) };
    if let Some(subject) = binding.difference(journal.binding()) {
        return Ok(State::Differs(subject.to_owned()));
    }
    while journal.next_record(index).map_err(|source| record.unread(source))?.is_some() {}
    let kept = journal.kept();
    let end = record.start_address.saturating_add(kept.stored_len_bytes);
    let is_whole = kept.tiles == count && std::fs::metadata(record.data).is_ok_and(|data| data.len() >= end);
    Ok(if is_whole { State::Complete(kept) } else { State::ResumedRun })
}

/// Joins complete parts, in tile order, into the files that an interrupted merge by one process would have left.
pub(super) fn join(
    parts: &[(JournalPaths<'_>, Checkpoint)],
    joined: JournalPaths<'_>,
    binding: &Binding,
    index: &TileIndex,
) -> Result<()> {
    let failed = |path: &Path, operation| {
        let path = path.to_path_buf();
        move |source| MergeError::Write { path, operation, source }
    };
    let mut data = open_new(joined.data)?;
    let mut end = joined.start_address;
    for (part, kept) in parts {
        let tiles = File::open(part.data).map_err(failed(part.data, "open"))?;
        let copied = data
            .seek(SeekFrom::Start(end))
            // Some file systems copy internally, or share the data without copying.
            .and_then(|_| std::io::copy(&mut tiles.take(kept.stored_len_bytes), &mut data))
            .map_err(failed(joined.data, "copy the parts"))?;
        if copied != kept.stored_len_bytes {
            return Err(failed(part.data, "read")(ErrorKind::UnexpectedEof.into()));
        }
        end += copied;
    }
    // The data must be durable before a journal refers to it.
    data.sync_all().map_err(failed(joined.data, "fsync"))?;
    let journal = OpenOptions::new().write(true).create_new(true).open(joined.journal);
    let mut out = BufWriter::new(journal.map_err(failed(joined.journal, "create"))?);
    journal::begin(&mut out, binding).map_err(failed(joined.journal, "write"))?;
    let mut before = joined.start_address;
    for (part, kept) in parts {
        let mut records = part.open_journal()?.ok_or_else(|| part.unread(ErrorKind::NotFound.into()))?;
        while let Some(mut batch) = records.next_record(index).map_err(|source| part.unread(source))? {
            batch.address += before;
            journal::append(&mut out, &batch, index).map_err(failed(joined.journal, "write"))?;
        }
        before += kept.stored_len_bytes;
    }
    let out = out.into_inner().map_err(|error| failed(joined.journal, "write")(error.into_error()))?;
    out.sync_all().map_err(failed(joined.journal, "fsync"))
}
