//! Files that ranks write collectively through MPI-IO: one collective write per round writes the runs of all ranks.
//!
//! The calls themselves are in `ffi`. Invariants: when a file is finished, the written data has been verified to be in
//! it; every rank takes part in every collective of a round, even if it has nothing to write or has failed before,
//! unless its failure leaves the others waiting in a write.

use crate::MpiCommunicator;
use crate::error::MpiError;
use crate::ffi::{self, HINT_LIMITS, MpiFailure};
use mpi::ffi::{MPI_ERR_ACCESS, MPI_ERR_NO_SPACE, MPI_ERR_NO_SUCH_FILE, MPI_ERR_QUOTA, MPI_ERR_READ_ONLY};
use raddle_core::engine::{OutputRun, SharedFiles, SharedIo, SharedSink};
use raddle_core::output::folder_of;
use raddle_core::output::read_back::WrittenExtent;
use raddle_core::output::space::available_bytes;
use std::cell::{Cell, RefCell};
use std::ffi::CString;
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum bytes per rank in one collective write: MPI uses 31-bit lengths, and MPI-IO adds some of them up.
const MAX_STEP_BYTES: usize = 1 << 30;

/// Files of a communicator's ranks, opened with the same hints.
#[derive(Debug)]
pub struct MpiFiles<'a> {
    ranks: &'a MpiCommunicator,
    hints: Vec<(CString, CString)>,
    step_limit_bytes: usize,
}

impl<'a> MpiFiles<'a> {
    /// Creates files of `ranks`, opened with `hints` (pairs of key and value, for example `romio_cb_write`, `enable`).
    ///
    /// # Errors
    /// If a hint is longer than MPI allows, or contains a zero byte.
    pub fn new(ranks: &'a MpiCommunicator, hints: &[(String, String)]) -> crate::Result<Self> {
        let of_pair = |(key, value): &(String, String)| {
            let fits = !key.is_empty() && key.len() <= HINT_LIMITS.0 && value.len() <= HINT_LIMITS.1;
            let pair = CString::new(key.as_str()).ok().zip(CString::new(value.as_str()).ok()).filter(|_| fits);
            pair.ok_or_else(|| MpiError::Hint { key: key.clone(), limits: HINT_LIMITS })
        };
        let hints = hints.iter().map(of_pair).collect::<crate::Result<_>>()?;
        Ok(Self { ranks, hints, step_limit_bytes: MAX_STEP_BYTES })
    }

    /// Returns the same files, but splits writes into steps of a different maximum length; for tests.
    #[must_use]
    pub fn with_step_limit(self, step_limit_bytes: usize) -> Self {
        Self { step_limit_bytes, ..self }
    }
}

impl SharedFiles for MpiFiles<'_> {
    fn open(&self, path: &Path) -> std::io::Result<Box<dyn SharedSink + '_>> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        let file = ffi::MpiFile::open(self.ranks.raw(), &name, &self.hints).map_err(to_io)?;
        // All ranks query the length of the file before any of them writes.
        let len_bytes = file.len_bytes().map_err(to_io);
        let [longest] = self.ranks.most([*len_bytes.as_ref().unwrap_or(&0)]);
        let (ranks, step_limit_bytes) = (self.ranks, self.step_limit_bytes);
        len_bytes?;
        Ok(Box::new(MpiFile {
            file,
            ranks,
            step_limit_bytes,
            len_bytes: Cell::new(longest),
            path: path.to_path_buf(),
            written: RefCell::default(),
        }))
    }
}

/// A file that ranks write collectively.
#[derive(Debug)]
struct MpiFile<'a> {
    file: ffi::MpiFile,
    ranks: &'a MpiCommunicator,
    step_limit_bytes: usize,
    /// Known minimum length of the file.
    len_bytes: Cell<u64>,
    path: PathBuf,
    /// Data written by this rank so far.
    written: RefCell<Vec<WrittenExtent>>,
}

impl MpiFile<'_> {
    /// Compares the contents of the file with the data that this rank wrote: OMPIO of Open MPI 4.1 reports success even
    /// if the system calls of a collective write have failed.
    fn read_back(&self) -> std::io::Result<()> {
        let file = std::fs::File::open(&self.path)?;
        for written in self.written.borrow().iter() {
            if !written.is_in(&file)? {
                let WrittenExtent { address, len_bytes, .. } = written;
                let what = format!("MPI-IO lost some of {len_bytes} bytes at {address} without reporting an error");
                return Err(Error::other(what));
            }
        }
        Ok(())
    }

    /// Collective. Fails on every rank if the file system has too little space for the `local_len_bytes` of all ranks. In
    /// OMPIO of Open MPI 4.1, a rank whose system call fails leaves a collective write, and the others wait for it
    /// forever.
    fn check_space(&self, local_len_bytes: u64) -> std::io::Result<()> {
        let needed = self.ranks.total(local_len_bytes);
        let local_available = available_bytes(folder_of(&self.path)).unwrap_or(u64::MAX);
        let [missing] = self.ranks.most([needed.saturating_sub(local_available)]);
        if missing == 0 {
            return Ok(());
        }
        let what = format!("{needed} bytes are needed, and {} are free", needed - missing);
        Err(Error::new(ErrorKind::StorageFull, what))
    }

    /// Collective. Extends the file to `end` if it is shorter. MPI-IO reads gaps between blocks and writes them back,
    /// and its buffers contain arbitrary data for a gap after the end of the file (seen with ROMIO and OMPIO).
    fn grow(&self, end: u64) -> Result<(), MpiFailure> {
        if end <= self.len_bytes.get() {
            return Ok(());
        }
        self.len_bytes.set(end);
        self.file.set_len(end)
    }
}

impl SharedSink for MpiFile<'_> {
    fn write_together(&self, runs: &[OutputRun<'_>]) -> std::io::Result<()> {
        self.check_space(runs.iter().map(|run| run.bytes.len() as u64).sum())?;
        let steps = steps(runs, self.step_limit_bytes);
        let local_end =
            steps.last().and_then(|step| step.last()).map_or(0, |(address, bytes)| address + bytes.len() as u64);
        let [count, end] = self.ranks.most([steps.len() as u64, local_end]);
        let mut outcome = self.grow(end);
        for step in 0..count as usize {
            // A rank that has failed continues without anything to write, because the others wait for it.
            let blocks = steps.get(step).filter(|_| outcome.is_ok()).map_or(&[][..], Vec::as_slice);
            let written = self.file.write_at_all(blocks);
            outcome = outcome.and(written);
            if !self.ranks.meet_after(&outcome) {
                break;
            }
        }
        self.written.borrow_mut().extend(runs.iter().map(|run| WrittenExtent::of(run.address, run.bytes)));
        outcome.map_err(to_io)
    }

    fn describe(&self) -> SharedIo {
        let hints = self.file.hints().unwrap_or_default();
        SharedIo { interface: "MPI-IO".to_owned(), hints: hints.into_iter().collect() }
    }

    fn finish(self: Box<Self>) -> std::io::Result<()> {
        let synced = self.file.sync().map_err(to_io);
        // Any rank may have written for any other, so all must have synced before one reads.
        if !self.ranks.meet_after(&synced) {
            return synced;
        }
        let is_there = synced.and_then(|()| self.read_back());
        let closed = self.file.close().map_err(to_io);
        is_there.and(closed)
    }
}

/// Returns the runs in ascending order, in steps of at most `limit_bytes`.
fn steps<'a>(runs: &[OutputRun<'a>], limit_bytes: usize) -> Vec<Vec<(u64, &'a [u8])>> {
    let limit_bytes = limit_bytes.max(1);
    let mut runs: Vec<_> = runs.iter().filter(|run| !run.bytes.is_empty()).collect();
    runs.sort_unstable_by_key(|run| run.address);
    let (mut steps, mut step, mut room) = (Vec::new(), Vec::new(), limit_bytes);
    for run in runs {
        let (mut address, mut rest) = (run.address, run.bytes);
        while !rest.is_empty() {
            if room == 0 {
                steps.push(std::mem::take(&mut step));
                room = limit_bytes;
            }
            let (block, others) = rest.split_at(rest.len().min(room));
            step.push((address, block));
            (address, rest, room) = (address + block.len() as u64, others, room - block.len());
        }
    }
    if !step.is_empty() {
        steps.push(step);
    }
    steps
}

/// Converts an MPI failure to an error of the corresponding kind of the operating system.
fn to_io(failed: MpiFailure) -> Error {
    let kind = match failed.class {
        MPI_ERR_NO_SPACE => ErrorKind::StorageFull,
        MPI_ERR_QUOTA => ErrorKind::QuotaExceeded,
        MPI_ERR_ACCESS => ErrorKind::PermissionDenied,
        MPI_ERR_READ_ONLY => ErrorKind::ReadOnlyFilesystem,
        MPI_ERR_NO_SUCH_FILE => ErrorKind::NotFound,
        _ => ErrorKind::Other,
    };
    Error::new(kind, failed.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_sorted_and_cut_into_steps() {
        let run = |address, bytes| OutputRun { file: 0, address, bytes };
        let runs = [run(20, &b"cdefg"[..]), run(5, b"ab"), run(9, b""), run(25, b"h")];
        assert_eq!(steps(&runs, 100), [vec![(5, &b"ab"[..]), (20, b"cdefg"), (25, b"h")]]);
        let cut = steps(&runs, 3);
        assert_eq!(cut, [vec![(5, &b"ab"[..]), (20, b"c")], vec![(21, b"def")], vec![(24, b"g"), (25, b"h")]]);
        assert!(steps(&[], 3).is_empty());
    }
}
