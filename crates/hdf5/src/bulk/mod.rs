//! Selections of many datasets read at once by several threads, into buffers of the caller.
//!
//! For interactive readers: h5py-like selections (ranges with steps, lists of elements) of any number of datasets of one
//! file become one list of units, which a few threads work off. A merge does not come here: its engine plans tiles. What
//! a unit reads comes from [`DatasetReader`]; readers and their buffers are kept for the next call.
//!
//! Invariants: the bytes of a request's buffer are all written, or the read fails; no two units write the same byte
//! without a lock; a chunk is decoded once per read, but for chunks that meet several units of a selection with lists.

mod axes;
mod gather;
mod units;

pub use axes::AxisSelection;

use crate::error::{Hdf5Error, Result};
use crate::read::{DatasetReader, DatasetSource, MAX_RANK, ReadCounts, ReaderLimits};
use gather::GatherPlan;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use units::DirectUnit;

/// Decoded bytes for which another thread is worth its start (some 20 µs: 128 KiB take longer to decode and to copy).
const THREAD_LEN_BYTES: u64 = 128 * 1024;

/// So many units for each thread, of the last, are cut in two: the longest keep a thread for a few milliseconds.
const LAST_UNITS_PER_THREAD: usize = 1;

/// How often the calling thread asks whether to go on.
const ASKING_PERIOD: Duration = Duration::from_millis(20);

/// A selection of one dataset and where it goes.
#[derive(Debug)]
pub struct Request<'a> {
    /// The dataset.
    pub source: DatasetSource<'a>,
    /// One selection per axis; none for a scalar.
    pub axes: &'a [AxisSelection],
    /// Elements as stored, in row-major order of the selection: exactly as long as they are.
    pub out: &'a mut [u8],
}

/// Whether a read came to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// All was read.
    Complete(ReadCounts),
    /// The caller said stop; buffers hold a part.
    Stopped,
}

/// Reads with a fixed number of threads; keeps their buffers.
#[derive(Debug)]
pub struct BulkReader {
    threads: usize,
    limits: ReaderLimits,
    idle: Mutex<Vec<DatasetReader>>,
}

impl BulkReader {
    /// A reader with up to `threads` threads, the calling one included.
    pub fn new(threads: usize, limits: ReaderLimits) -> Self {
        Self { threads: threads.max(1), limits, idle: Mutex::default() }
    }

    /// Serves all requests. `go_on` is asked now and then by the calling thread.
    ///
    /// # Errors
    /// If a selection does not lie in its dataset or its buffer, and as [`DatasetReader::read_box`].
    pub fn read(&self, requests: Vec<Request<'_>>, go_on: &mut dyn FnMut() -> bool) -> Result<Outcome> {
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
        // The longest first, so that short ones are left for the thread that is done first.
        direct.sort_by_key(|unit| Reverse(unit.len_bytes()));
        units::halve_last(&mut direct, LAST_UNITS_PER_THREAD * self.threads);
        let unit_count = gathered.iter().fold(direct.len() as u64, |sum, plan| sum.saturating_add(plan.unit_count()));
        let worth = (len_bytes / THREAD_LEN_BYTES + 1).min(unit_count);
        let threads = self.threads.min(usize::try_from(worth).unwrap_or(usize::MAX));
        let work = Work {
            direct: Mutex::new(direct.into_iter()),
            gathered: &gathered,
            taken: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
            counts: Mutex::new(ReadCounts::default()),
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // Where no more threads can be had, those that are there do it all.
                if std::thread::Builder::new().spawn_scoped(scope, || self.work(&work, &mut || true)).is_err() {
                    break;
                }
            }
            self.work(&work, &mut paced(go_on));
        });
        match work.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None if work.stop.into_inner() => Ok(Outcome::Stopped),
            None => Ok(Outcome::Complete(work.counts.into_inner().unwrap_or_else(PoisonError::into_inner))),
        }
    }

    /// Works off units until there are none, one fails, or the reader is to stop.
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

/// What the threads of one read share.
struct Work<'w, 'a> {
    direct: Mutex<std::vec::IntoIter<DirectUnit<'a>>>,
    gathered: &'w [GatherPlan<'a>],
    /// Units of `gathered` that were taken, over all plans.
    taken: AtomicU64,
    stop: AtomicBool,
    failure: Mutex<Option<Hdf5Error>>,
    counts: Mutex<ReadCounts>,
}

impl Work<'_, '_> {
    /// Does the next unit; `None` where there is none.
    fn unit(&self, reader: &mut DatasetReader, scratch: &mut Vec<u8>) -> Result<Option<ReadCounts>> {
        // Bound first: the lock must not last as long as the reading.
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

/// `go_on`, asked no more often than is useful.
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

/// Fails unless the selection lies in the dataset and fills its buffer.
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
