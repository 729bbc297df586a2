//! Reads selections of many datasets at once with several threads, into buffers of the caller.
//!
//! This serves interactive readers. Selections as in h5py (ranges with steps, lists of elements) of any number of
//! datasets of one file become one list of units, which a few threads process. Merges do not use it: their engine plans
//! tiles. Units are read by [`DatasetReader`]; readers and their buffers are kept for the next call.
//!
//! Invariants: all bytes of a request's buffer are written, or the read fails; no two units write the same byte without
//! a lock; each chunk is decoded once per read, except for chunks shared by several units of a selection with lists.

mod axes;
mod gather;
mod units;

pub use axes::AxisSelection;

use crate::error::{Hdf5Error, Result};
use crate::read::{DatasetReader, DatasetSource, MAX_RANK, ReadCounts, ReaderLimits};
use gather::GatherPlan;
use raddle_core::parallel::pool;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use units::DirectUnit;

/// Decoded bytes that justify starting another thread (about 20 µs; 128 KiB take longer to decode and copy).
const THREAD_LEN_BYTES: u64 = 128 * 1024;

/// Number of units per thread that are cut in two at the end of a read, because the longest units occupy a thread for a
/// few milliseconds.
const LAST_UNITS_PER_THREAD: usize = 1;

/// Interval at which the calling thread checks whether to continue.
const ASKING_PERIOD: Duration = Duration::from_millis(20);

/// A selection of one dataset and the buffer for it.
#[derive(Debug)]
pub struct Request<'a> {
    /// Dataset to read from.
    pub source: DatasetSource<'a>,
    /// Selection per axis; empty for a scalar.
    pub axes: &'a [AxisSelection],
    /// Buffer for the elements as stored, in row-major order of the selection, with exactly their length.
    pub out: &'a mut [u8],
}

/// Result of a read that the caller may stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReadOutcome {
    /// All requests were read.
    Complete(ReadCounts),
    /// The caller stopped the read; the buffers are partly filled.
    Stopped,
}

/// Reader with a fixed number of threads, whose buffers it keeps.
#[derive(Debug)]
pub struct BulkReader {
    threads: usize,
    limits: ReaderLimits,
    idle: Mutex<Vec<DatasetReader>>,
}

impl BulkReader {
    /// Creates a reader with up to `threads` threads, including the calling one.
    pub fn new(threads: usize, limits: ReaderLimits) -> Self {
        Self { threads: threads.max(1), limits, idle: Mutex::default() }
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Serves all requests. The calling thread calls `go_on` from time to time and stops when it returns false.
    ///
    /// # Errors
    /// If a selection does not lie in its dataset or does not fit its buffer, and as for [`DatasetReader::read_box`].
    pub fn read(&self, requests: Vec<Request<'_>>, go_on: &mut dyn FnMut() -> bool) -> Result<ReadOutcome> {
        self.read_with(self.threads, requests, go_on)
    }

    /// Like [`BulkReader::read`], with up to `threads` threads.
    pub fn read_with(
        &self,
        threads: usize,
        requests: Vec<Request<'_>>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<ReadOutcome> {
        let (mut direct, mut gathered, mut len_bytes) = (Vec::new(), Vec::new(), 0_u64);
        for request in requests {
            check(&request)?;
            len_bytes = len_bytes.saturating_add(request.out.len() as u64);
            match request.out.is_empty() {
                true => {}
                false if units::is_direct(&request) => units::split(request, &mut direct),
                false => gathered.push(GatherPlan::new(request)),
            }
        }
        // The longest units go first, so that short ones are left for threads that finish early.
        direct.sort_by_key(|unit| Reverse(unit.len_bytes()));
        units::halve_last(&mut direct, LAST_UNITS_PER_THREAD * threads);
        let unit_count = gathered.iter().fold(direct.len() as u64, |sum, plan| sum.saturating_add(plan.unit_count()));
        let worth = (len_bytes / THREAD_LEN_BYTES + 1).min(unit_count);
        let threads = threads.min(usize::try_from(worth).unwrap_or(usize::MAX));
        let work = Work {
            direct: Mutex::new(direct.into_iter()),
            gathered: &gathered,
            taken: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
            counts: Mutex::new(ReadCounts::default()),
        };
        pool::run_with_helpers(
            threads.saturating_sub(1),
            || self.work(&work, &mut || true),
            || self.work(&work, &mut paced(go_on)),
        );
        match work.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None if work.stop.into_inner() => Ok(ReadOutcome::Stopped),
            None => Ok(ReadOutcome::Complete(work.counts.into_inner().unwrap_or_else(PoisonError::into_inner))),
        }
    }

    /// Processes units until none are left, one fails, or the read is stopped.
    fn work(&self, work: &Work<'_, '_>, go_on: &mut dyn FnMut() -> bool) {
        let mut reader = lock(&self.idle).pop().unwrap_or_else(|| DatasetReader::new(self.limits));
        let (mut scratch, mut counts) = (Vec::new(), ReadCounts::default());
        while !work.stop.load(Ordering::Relaxed) {
            if !go_on() {
                work.stop.store(true, Ordering::Relaxed);
                break;
            }
            match work.unit(&mut reader, &mut scratch) {
                Ok(Some(read)) => counts += read,
                Ok(None) => break,
                Err(error) => {
                    work.stop.store(true, Ordering::Relaxed);
                    lock(&work.failure).get_or_insert(error);
                    break;
                }
            }
        }
        *lock(&work.counts) += counts;
        lock(&self.idle).push(reader);
    }
}

/// State shared by the threads of one read.
struct Work<'w, 'a> {
    direct: Mutex<std::vec::IntoIter<DirectUnit<'a>>>,
    gathered: &'w [GatherPlan<'a>],
    /// Number of `gathered` units taken so far, over all plans.
    taken: AtomicU64,
    stop: AtomicBool,
    failure: Mutex<Option<Hdf5Error>>,
    counts: Mutex<ReadCounts>,
}

impl Work<'_, '_> {
    /// Processes the next unit; returns `None` if there is none.
    fn unit(&self, reader: &mut DatasetReader, scratch: &mut Vec<u8>) -> Result<Option<ReadCounts>> {
        // Bound first, so that the lock is not held while reading.
        let unit = lock(&self.direct).next();
        if let Some(unit) = unit {
            return unit.read(reader).map(Some);
        }
        let mut number = self.taken.fetch_add(1, Ordering::Relaxed);
        for plan in self.gathered {
            match number.checked_sub(plan.unit_count()) {
                Some(rest) => number = rest,
                None => return plan.read(number, reader, scratch).map(Some),
            }
        }
        Ok(None)
    }
}

/// Limits how often `go_on` is called.
fn paced(go_on: &mut dyn FnMut() -> bool) -> impl FnMut() -> bool {
    let mut asked = Instant::now();
    move || {
        if asked.elapsed() < ASKING_PERIOD {
            return true;
        }
        asked = Instant::now();
        go_on()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks that the selection lies in the dataset and fills its buffer.
fn check(request: &Request<'_>) -> Result<()> {
    let dims = request.source.dataset.dataspace.dims();
    let lies_in = request.axes.len() == dims.len()
        && dims.len() <= MAX_RANK
        && request.axes.iter().zip(dims).all(|(axis, &dim)| axis.lies_in(dim));
    let element_len_bytes = request.source.dataset.datatype.class.len_bytes();
    let needed = request.axes.iter().try_fold(element_len_bytes, |len, axis| len.checked_mul(axis.count()));
    if lies_in && needed == Some(request.out.len() as u64) {
        return Ok(());
    }
    Err(Hdf5Error::BoxOutside {
        path: request.source.file.path().to_path_buf(),
        start: request.axes.iter().map(|axis| axis.bounds(0..axis.count()).0).collect(),
        count: request.axes.iter().map(AxisSelection::count).collect(),
        dims: dims.to_vec(),
    })
}
