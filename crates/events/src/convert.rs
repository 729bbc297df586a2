//! From a source to a sink: ranges of entries are read and prepared by a pool of threads and put in place in order.
//!
//! Invariants: the sink sees the same blocks in the same order for any number of threads; memory under permits stays
//! within the budget; of several faults the one of the first entries is reported, so that it is the same in every run.

use crate::error::{EventsError, Result};
use crate::sink::{Prepare, Sink};
use crate::source::Source;
use raddle_core::CoreError;
use raddle_core::cancel::CancelToken;
use raddle_core::memory::{MemoryBudget, Permit};
use raddle_core::progress::{Event, Observer, Stage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How to convert.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// Threads.
    pub jobs: NonZeroUsize,
    /// Limit of the memory for blocks.
    pub memory_len_bytes: u64,
    /// Products by number, in the order in which the sink gets them; all if `None`.
    pub products: Option<Vec<usize>>,
    /// Entries; all if `None`.
    pub entries: Option<Range<u64>>,
    /// Memory of a block, as far as the source can cut ranges to that. The sink's output may depend on it.
    pub unit_len_bytes: u64,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            jobs: NonZeroUsize::MIN,
            memory_len_bytes: 1 << 30,
            products: None,
            entries: None,
            unit_len_bytes: 4 << 20,
        }
    }
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Converted {
    /// Entries that went to the sink.
    pub entries: u64,
    /// Blocks.
    pub units: u64,
    /// Length of all blocks in memory.
    pub block_len_bytes: u64,
    /// Wall time.
    pub elapsed_s: f64,
    /// Time of all threads together in reading and decoding.
    pub read_s: f64,
    /// Time of all threads together in preparing.
    pub prepare_s: f64,
    /// Time in putting in place, which one thread at a time does.
    pub commit_s: f64,
    /// Most memory that was under permits at once.
    pub peak_memory_len_bytes: u64,
}

/// What threads share.
struct Shared<Committer, Prepared> {
    /// First entry that is not yet handed out.
    next_entry: u64,
    /// Number of the next range to hand out.
    next_unit: u64,
    /// Number of the next range to put in place.
    next_commit: u64,
    /// Prepared ranges whose turn has not come.
    waiting: BTreeMap<u64, Waiting<Prepared>>,
    /// The sink, unless a thread is putting something in place.
    committer: Option<Committer>,
    /// The failure of the first range that failed.
    failure: Option<(u64, EventsError)>,
    converted: Converted,
}

struct Waiting<Prepared> {
    prepared: Prepared,
    entries: u64,
    block_len_bytes: u64,
    /// Held until the block is in its place.
    _permit: Permit,
}

/// A range of entries that one thread works on.
struct Unit {
    number: u64,
    entries: Range<u64>,
    permit: Permit,
}

/// Converts; `sink` must have been made for the products that `options` choose.
///
/// # Errors
/// The first range of entries that cannot be read or prepared, a failure of the sink, or cancellation. The sink is then
/// dropped without being finished.
pub fn convert<S: Source + ?Sized, K: Sink>(
    source: &S,
    mut sink: K,
    options: &ConvertOptions,
    observer: &dyn Observer,
    cancel: &CancelToken,
) -> Result<(Converted, K::Summary)> {
    let started = Instant::now();
    let all: Vec<usize> = (0..source.schema().products.len()).collect();
    let products = options.products.as_deref().unwrap_or(&all);
    let entries = options.entries.clone().unwrap_or(0..source.len_entries());
    crate::source::check_entries(&source.place(), &entries, source.len_entries())?;
    let budget = MemoryBudget::new(options.memory_len_bytes);
    observer.event(&Event::StageStarted { stage: Stage::Read, total_bytes: None });
    let run = Run {
        source,
        products,
        end_entry: entries.end,
        unit_len_bytes: options.unit_len_bytes,
        budget: &budget,
        observer,
        cancel,
        shared: Mutex::new(Shared {
            next_entry: entries.start,
            next_unit: 0,
            next_commit: 0,
            waiting: BTreeMap::new(),
            committer: None,
            failure: None,
            converted: Converted::default(),
        }),
        handing_out: Mutex::new(()),
    };
    let preparers = (0..options.jobs.get()).map(|_| sink.preparer()).collect::<Result<Vec<_>>>()?;
    run.lock().committer = Some(&mut sink);
    std::thread::scope(|scope| -> Result<()> {
        let mut preparers = preparers.into_iter();
        let own = preparers.next();
        for preparer in preparers {
            let work = || run.work(preparer);
            let spawned = std::thread::Builder::new().name("events".to_owned()).spawn_scoped(scope, work);
            if let Err(source) = spawned {
                run.fail(0, CoreError::Threads { source }.into());
                break;
            }
        }
        own.into_iter().for_each(|preparer| run.work(preparer));
        Ok(())
    })?;
    let shared = run.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, error)) = shared.failure {
        return Err(error);
    }
    cancel.check()?;
    let mut converted = shared.converted;
    let summary = sink.finish()?;
    converted.elapsed_s = started.elapsed().as_secs_f64();
    converted.peak_memory_len_bytes = budget.peak_bytes();
    observer.event(&Event::StageFinished { stage: Stage::Read, elapsed_s: converted.elapsed_s });
    Ok((converted, summary))
}

/// One conversion, seen by all its threads.
struct Run<'run, S: ?Sized, Committer, Prepared> {
    source: &'run S,
    products: &'run [usize],
    end_entry: u64,
    unit_len_bytes: u64,
    budget: &'run MemoryBudget,
    observer: &'run dyn Observer,
    cancel: &'run CancelToken,
    shared: Mutex<Shared<Committer, Prepared>>,
    /// Held while waiting for memory, so that ranges get it in their order: what the next range in turn needs is never
    /// held by later ones alone.
    handing_out: Mutex<()>,
}

impl<'run, S: Source + ?Sized, K: Sink> Run<'run, S, &'run mut K, K::Prepared> {
    fn lock(&self) -> MutexGuard<'_, Shared<&'run mut K, K::Prepared>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the failure of a range. What waits for its turn is given up, and its memory with it: a thread may be waiting
    /// for that, and ranges behind one that failed never have their turn.
    fn fail(&self, unit: u64, error: EventsError) {
        let mut shared = self.lock();
        shared.waiting.clear();
        if shared.failure.as_ref().is_none_or(|(first, _)| unit < *first) {
            shared.failure = Some((unit, error));
        }
    }

    /// The next range, once there is memory for it; `None` if there is none or the run has failed.
    fn next_unit(&self) -> Option<Unit> {
        let _turn = self.handing_out.lock().unwrap_or_else(PoisonError::into_inner);
        if self.cancel.is_cancelled() {
            return None;
        }
        let (number, start) = {
            let shared = self.lock();
            if shared.failure.is_some() || shared.next_entry >= self.end_entry {
                return None;
            }
            (shared.next_unit, shared.next_entry)
        };
        let end = self.source.unit_end(start, self.unit_len_bytes).clamp(start + 1, self.end_entry);
        // As read and as prepared.
        let len_bytes = self.source.unit_len_bytes(start..end).saturating_mul(2);
        let permit = match self.budget.acquire(len_bytes, "a range of entries") {
            Ok(permit) => permit,
            Err(error) => {
                self.fail(number, error.into());
                return None;
            }
        };
        let mut shared = self.lock();
        if shared.failure.is_some() {
            return None;
        }
        (shared.next_unit, shared.next_entry) = (number + 1, end);
        Some(Unit { number, entries: start..end, permit })
    }

    /// What each thread does.
    fn work(&self, mut preparer: K::Preparer) {
        let mut reader = match self.source.reader(self.products) {
            Ok(reader) => reader,
            Err(error) => return self.fail(0, error),
        };
        while let Some(Unit { number, entries, permit }) = self.next_unit() {
            let started = Instant::now();
            let block = match reader.read(entries.clone()) {
                Ok(block) => block,
                Err(error) => return self.fail(number, error),
            };
            let (read_s, block_len_bytes) = (started.elapsed().as_secs_f64(), block.len_bytes() as u64);
            let started = Instant::now();
            let prepared = match preparer.prepare(block) {
                Ok(prepared) => prepared,
                Err(error) => return self.fail(number, error),
            };
            let mut shared = self.lock();
            if shared.failure.is_some() {
                return;
            }
            shared.converted.read_s += read_s;
            shared.converted.prepare_s += started.elapsed().as_secs_f64();
            let entries = entries.end - entries.start;
            shared.waiting.insert(number, Waiting { prepared, entries, block_len_bytes, _permit: permit });
            drop(shared);
            self.observer.event(&Event::Advanced { stage: Stage::Read, bytes: block_len_bytes, items: entries });
            if let Err((number, error)) = self.commit_waiting() {
                return self.fail(number, error);
            }
        }
    }

    /// Puts in place what is prepared and in turn, unless another thread is doing it.
    fn commit_waiting(&self) -> Result<(), (u64, EventsError)> {
        let mut shared = self.lock();
        let Some(committer) = shared.committer.take() else { return Ok(()) };
        loop {
            let number = shared.next_commit;
            // Under the same lock under which others see whether there is a committer: nothing is left waiting.
            let Some(waiting) = shared.waiting.remove(&number) else {
                shared.committer = Some(committer);
                return Ok(());
            };
            drop(shared);
            let started = Instant::now();
            committer.commit(waiting.prepared).map_err(|error| (number, error))?;
            shared = self.lock();
            shared.next_commit += 1;
            let converted = &mut shared.converted;
            converted.commit_s += started.elapsed().as_secs_f64();
            converted.units += 1;
            converted.entries += waiting.entries;
            converted.block_len_bytes += waiting.block_len_bytes;
        }
    }
}
