//! Phase 3: the files of a time step while it is written, opened by every rank that writes blocks to them.
//!
//! Publishing is left to `publish`. Invariant: after finishing, a rank's writes are durable if that was requested; if
//! not, no failed write is lost.

use crate::dataset::compression::{RECORD_LEN_BYTES, Record};
use crate::error::{IdxError, Result};
use crate::write::step_plan::{BlockPlace, StepPlan};
use raddle_core::engine::Sink;
use raddle_core::output::close;
use raddle_core::output::durability::Durability;
use raddle_core::output::flusher::{Flusher, MIN_FLUSH_LEN_BYTES};
use raddle_core::ranks::communicator::Communicator;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of open files: those of the batches in flight, and a few more.
const OPEN_FILES: usize = 64;

/// Files of a step in its hidden folder.
#[derive(Debug)]
pub(crate) struct StepFiles<'a> {
    folder: PathBuf,
    step: &'a StepPlan,
    durability: Durability,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Open files, most recently used first.
    open: VecDeque<(u32, Arc<File>)>,
    /// Files written to, with the bytes written since their last flush.
    written: BTreeMap<u32, u64>,
    flusher: Flusher,
    /// First file whose close failed, if files are not synced.
    unclosed: Option<(u32, std::io::Error)>,
}

impl<'a> StepFiles<'a> {
    pub(crate) fn new(folder: PathBuf, step: &'a StepPlan, durability: Durability) -> Self {
        Self { folder, step, durability, state: Mutex::default() }
    }

    fn path(&self, file: usize) -> PathBuf {
        self.folder.join(&self.step.files[file].name)
    }

    fn failed(&self, file: usize, operation: &'static str) -> impl FnOnce(std::io::Error) -> IdxError + use<> {
        let path = self.path(file);
        move |source| IdxError::Write { path, operation, source }
    }

    /// Creates this rank's share of the files; their folders already exist.
    pub(crate) fn create(&self, ranks: &dyn Communicator) -> Result<()> {
        for file in (ranks.rank()..self.step.files.len()).step_by(ranks.size()) {
            let created = File::create_new(self.path(file)).map_err(self.failed(file, "create"))?;
            if self.durability == Durability::Unsynced {
                close(created).map_err(self.failed(file, "close"))?;
            }
        }
        Ok(())
    }

    /// Opens the file for writing.
    fn open(&self, file: u32) -> std::io::Result<Arc<File>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.written.entry(file).or_default();
        if let Some(at) = state.open.iter().position(|(number, _)| *number == file)
            && let Some(found) = state.open.remove(at)
        {
            state.open.push_front(found.clone());
            return Ok(found.1);
        }
        let opened = Arc::new(OpenOptions::new().write(true).open(self.path(file as usize))?);
        state.open.push_front((file, Arc::clone(&opened)));
        while state.open.len() > OPEN_FILES
            && let Some((number, least)) = state.open.pop_back()
        {
            self.release(&mut state, number, least);
        }
        Ok(opened)
    }

    /// Closes a file that no other thread uses. If files are not synced, this is the only chance to see a failed write.
    fn release(&self, state: &mut State, number: u32, file: Arc<File>) {
        let closed = match Arc::into_inner(file) {
            Some(file) if self.durability == Durability::Unsynced => close(file),
            _ => Ok(()),
        };
        state.unclosed = state.unclosed.take().or(closed.err().map(|cause| (number, cause)));
    }

    /// Writes `bytes` at `address` and flushes the file if enough has been written.
    fn put(&self, number: u32, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        let file = self.open(number)?;
        file.write_all_at(bytes, address)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.durability == Durability::Unsynced {
            self.release(&mut state, number, file);
            return Ok(());
        }
        let State { written, flusher, .. } = &mut *state;
        let unflushed = written.entry(number).or_default();
        *unflushed += bytes.len() as u64;
        if *unflushed >= MIN_FLUSH_LEN_BYTES && flusher.flush(number, &file) {
            *unflushed = 0;
        }
        Ok(())
    }

    /// Writes `bytes` of a block at `address`.
    pub(crate) fn write(&self, file: usize, address: u64, bytes: &[u8]) -> Result<()> {
        self.put(file as u32, address, bytes).map_err(self.failed(file, "write"))
    }

    /// Writes the tables of a file: the records of its blocks, sorted by address.
    pub(crate) fn write_tables(&self, records: &[(BlockPlace, Record)]) -> Result<()> {
        let at = |place: &BlockPlace| self.step.record_address(*place);
        for run in records.chunk_by(|(a, _), (b, _)| at(a) + RECORD_LEN_BYTES == at(b)) {
            let bytes: Vec<u8> = run.iter().flat_map(|(_, record)| record.to_bytes()).collect();
            self.write(run[0].0.file, at(&run[0].0), &bytes)?;
        }
        Ok(())
    }

    /// Closes the files that this rank has written, and syncs them unless durability was not requested.
    pub(crate) fn finish(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, file) in std::mem::take(&mut state.open) {
            self.release(&mut state, number, file);
        }
        if self.durability == Durability::Unsynced {
            return match state.unclosed.take() {
                Some((file, cause)) => Err(self.failed(file as usize, "close")(cause)),
                None => Ok(()),
            };
        }
        state.flusher.finish().map_err(|(file, cause)| self.failed(file as usize, "fsync")(cause))?;
        for file in std::mem::take(&mut state.written).into_keys() {
            let file = file as usize;
            let synced = File::open(self.path(file)).and_then(|open| open.sync_all());
            synced.map_err(self.failed(file, "fsync"))?;
        }
        Ok(())
    }
}

impl Sink for StepFiles<'_> {
    fn write_at(&self, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.write_file_at(0, address, bytes)
    }

    fn write_file_at(&self, file: u32, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        let written = self.put(file, address, bytes);
        written.map_err(|cause| named(&self.path(file as usize), &cause))
    }
}

/// Adds the name of the file to the cause, because the engine does not know it.
pub(crate) fn named(path: &Path, cause: &std::io::Error) -> std::io::Error {
    std::io::Error::new(cause.kind(), format!("{}: {cause}", path.display()))
}
