//! The files of parts beside the output: their names, how far they are, and joining them.
//!
//! Not for who may do it and when. Invariant: a journal tells of nothing that is not in its file of tiles, and that file
//! is made durable before the journal of what was joined is written.

use crate::error::{MergeError, Result};
use crate::publish::{beside, folder_of, journal_path, sync_folder, temporary_path};
use crate::resume::{Record, open_new};
use raddle_core::engine::Kept;
use raddle_core::journal::{self, Binding, Journal};
use raddle_core::plan::TileIndex;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Tiles, their journal, and the lock of the process that makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartFiles {
    pub data: PathBuf,
    pub journal: PathBuf,
    pub lock: PathBuf,
}

const JOURNAL_SUFFIX: &str = "-journal";

impl PartFiles {
    /// Those of part `number`.
    pub fn of(output: &Path, number: u32) -> Self {
        let named = |suffix: &str| beside(output, &format!(".raddle-part-{number}{suffix}"));
        Self { data: named(""), journal: named(JOURNAL_SUFFIX), lock: named("-lock") }
    }

    /// Those of all parts together, which are those of a merge by one process.
    pub fn joined(output: &Path) -> Self {
        let lock = beside(output, ".raddle-lock");
        Self { data: temporary_path(output), journal: journal_path(output), lock }
    }

    /// Numbers of the parts that lie beside the output, of whatever plan.
    pub fn beside(output: &Path) -> Result<Vec<u32>> {
        let folder = folder_of(output);
        let failed = |source| MergeError::Input { path: folder.to_path_buf(), source };
        let first = beside(output, ".raddle-part-");
        let start = first.file_name().unwrap_or_default().as_bytes();
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let number = name.as_bytes().strip_prefix(start).and_then(|rest| rest.strip_suffix(JOURNAL_SUFFIX.as_bytes()));
            numbers.extend(number.and_then(|number| std::str::from_utf8(number).ok()?.parse::<u32>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The files as a record that begins with `first_tile` at `start_address`.
    pub fn record(&self, first_tile: u64, start_address: u64) -> Record<'_> {
        Record { data: &self.data, journal: &self.journal, first_tile, start_address }
    }

    /// Makes a finished part durable, for processes on other machines, too.
    pub fn sync(&self, data: &File, output: &Path) -> Result<()> {
        data.sync_all().map_err(|source| self.failed("fsync", source))?;
        let journal = File::open(&self.journal).and_then(|journal| journal.sync_all());
        journal.and_then(|()| sync_folder(output)).map_err(|source| self.failed("fsync the journal", source))
    }

    /// An error about the tiles.
    pub fn failed(&self, operation: &'static str, source: std::io::Error) -> MergeError {
        MergeError::Write { path: self.data.clone(), operation, source }
    }
}

/// How far a part is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is there, or nothing that can be read.
    Missing,
    /// Some tiles are there.
    Begun,
    /// All tiles are there.
    Complete(Kept),
    /// It is of another plan: what differs.
    Differs(String),
}

/// How far a record of `count` tiles is that should be of `binding`.
pub(super) fn state_of(record: Record<'_>, count: u64, binding: &Binding, index: &TileIndex) -> Result<State> {
    let Some(mut journal) = open_journal(record)? else { return Ok(State::Missing) };
    if let Some(subject) = binding.difference(journal.binding()) {
        return Ok(State::Differs(subject.to_owned()));
    }
    while journal.next_record(index).map_err(unread(record))?.is_some() {}
    let kept = journal.kept();
    let end = record.start_address.saturating_add(kept.stored_len_bytes);
    let is_whole = kept.tiles == count && std::fs::metadata(record.data).is_ok_and(|data| data.len() >= end);
    Ok(if is_whole { State::Complete(kept) } else { State::Begun })
}

fn unread(record: Record<'_>) -> impl FnOnce(std::io::Error) -> MergeError {
    move |source| MergeError::Write { path: record.journal.to_path_buf(), operation: "read", source }
}

/// The journal of a record; `None` if there is none that can be read.
fn open_journal(record: Record<'_>) -> Result<Option<Journal<BufReader<File>>>> {
    match File::open(record.journal) {
        Ok(journal) => {
            let journal = Journal::open(BufReader::new(journal), record.first_tile, record.start_address);
            journal.map_err(unread(record))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(unread(record)(source)),
    }
}

/// Joins complete parts, in the order of their tiles, to what a merge by one process would have left.
pub(super) fn join(
    parts: &[(Record<'_>, Kept)],
    joined: Record<'_>,
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
            // Where the file system can, it copies inside, or not at all.
            .and_then(|_| std::io::copy(&mut tiles.take(kept.stored_len_bytes), &mut data))
            .map_err(failed(joined.data, "copy the parts"))?;
        if copied != kept.stored_len_bytes {
            return Err(failed(part.data, "read")(ErrorKind::UnexpectedEof.into()));
        }
        end += copied;
    }
    // Before there is a journal that tells of it.
    data.sync_all().map_err(failed(joined.data, "fsync"))?;
    let journal = OpenOptions::new().write(true).create_new(true).open(joined.journal);
    let mut out = BufWriter::new(journal.map_err(failed(joined.journal, "create"))?);
    journal::begin(&mut out, binding).map_err(failed(joined.journal, "write"))?;
    let mut before = joined.start_address;
    for (part, kept) in parts {
        let mut records = open_journal(*part)?.ok_or_else(|| unread(*part)(ErrorKind::NotFound.into()))?;
        while let Some(mut batch) = records.next_record(index).map_err(unread(*part))? {
            batch.address += before;
            journal::append(&mut out, &batch, index).map_err(failed(joined.journal, "write"))?;
        }
        before += kept.stored_len_bytes;
    }
    let out = out.into_inner().map_err(|error| failed(joined.journal, "write")(error.into_error()))?;
    out.sync_all().map_err(failed(joined.journal, "fsync"))
}
