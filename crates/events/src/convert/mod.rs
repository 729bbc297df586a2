//! Conversion from a source to a sink: a pool of threads reads and prepares ranges of entries, which are committed in
//! order.
//!
//! If the sink cuts tiles from the blocks, the same pool encodes them before it reads further ranges. Invariants: the
//! sink receives the same blocks and tiles in the same order with any number of threads; the memory for which permits
//! are held stays within the budget; if several ranges fail, the error of the first one is reported, so that every run
//! reports the same error.

pub(crate) mod ranks;

use crate::error;
use raddle_columns::error::{ColumnsError, Result};
use raddle_columns::sink::{Prepare, Sink};
use raddle_columns::source::{RangeReader, Source};
use raddle_core::CoreError;
use raddle_core::cancel::CancelToken;
use raddle_core::memory::{MemoryBudget, Permit};
use raddle_core::parallel::ordered::InOrder;
use raddle_core::report::progress::{Event, Observer, Stage};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Options of a conversion.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// Number of threads.
    pub jobs: NonZeroUsize,
    /// Memory limit for blocks.
    pub memory_len_bytes: u64,
    /// Numbers of the products, in the order in which the sink receives them; all products if `None`.
    pub products: Option<Vec<usize>>,
    /// Entries to convert; all if `None`.
    pub entries: Option<Range<u64>>,
    /// Target size of a block in memory, as far as the source can cut ranges to that size. The sink's output may depend
    /// on it.
    pub batch_len_bytes: u64,
    /// Granularity of blocks: all except the last have a multiple of this number of entries.
    pub unit_multiple: u64,
    /// Memory that one rank fills in a round before all ranks write, when several convert together.
    pub round_len_bytes: u64,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            jobs: NonZeroUsize::MIN,
            memory_len_bytes: 1 << 30,
            products: None,
            entries: None,
            batch_len_bytes: 4 << 20,
            unit_multiple: 1,
            round_len_bytes: 64 << 20,
        }
    }
}

impl ConvertOptions {
    /// Returns the end of the range that begins at `at`, in a run of entries from `first` to `end`. Runs whose
    /// beginnings differ by a multiple of [`unit_multiple`](Self::unit_multiple) have the same ranges.
    pub(crate) fn unit_end<S: Source + ?Sized>(&self, source: &S, first: u64, at: u64, end: u64) -> u64 {
        let unit_end = source.unit_end(at, self.batch_len_bytes).clamp(at + 1, end);
        let entries = (unit_end - first).checked_next_multiple_of(self.unit_multiple.max(1));
        entries.map_or(end, |entries| first.saturating_add(entries).min(end))
    }
}

/// Figures of a finished conversion.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConversionReport {
    /// Number of entries that were passed to the sink.
    pub entries: u64,
    /// Number of blocks.
    pub units: u64,
    /// Length of all blocks in memory.
    pub block_len_bytes: u64,
    /// Wall time.
    pub elapsed_s: f64,
    /// Total time that all threads spent reading and decoding.
    pub read_s: f64,
    /// Total time that all threads spent preparing blocks.
    pub prepare_s: f64,
    /// Total time that all threads spent encoding tiles.
    pub encode_s: f64,
    /// Time spent committing blocks and tiles, which one thread does at a time.
    pub commit_s: f64,
    /// Time spent at the end on creating the objects of an output that has them, on one thread.
    pub metadata_s: f64,
    /// Total time that all ranks spent in collectives, including waiting. Some of this time is also counted in the
    /// other times.
    pub message_s: f64,
    /// Peak of the memory that was reserved from the budget.
    pub peak_memory_len_bytes: u64,
    /// Reports of the ranks; empty for a single process.
    #[serde(default)]
    pub ranks: Vec<ConversionReport>,
}

/// State shared by the threads.
struct ConversionState<Committer, Prepared, Tile, Encoded> {
    /// First entry that has not been handed out.
    next_entry: u64,
    /// Number of the next range to hand out.
    next_unit: u64,
    /// Prepared ranges that wait for earlier ones to be committed.
    prepared: InOrder<PendingBatch<Prepared>>,
    /// Tiles that wait for a thread to encode them.
    tiles: VecDeque<TileJob<Tile>>,
    /// Number of the next tile that the sink hands out.
    next_tile: u64,
    /// Encoded tiles that wait for earlier ones to be placed.
    encoded: InOrder<TileJob<Encoded>>,
    /// The sink; `None` while a thread is committing or placing.
    committer: Option<Committer>,
    /// Number and error of the first range that failed.
    failure: Option<(u64, ColumnsError)>,
    converted: ConversionReport,
}

struct PendingBatch<Prepared> {
    prepared: Prepared,
    entries: u64,
    block_len_bytes: u64,
    /// Permit held until the block is committed and the tiles completed by it are placed.
    permit: Arc<Permit>,
}

/// Tile on its way to the sink.
struct TileJob<Tile> {
    number: u64,
    /// Number of the range that completed the tile.
    unit: u64,
    tile: Tile,
    _permit: Option<Arc<Permit>>,
}

/// Next piece of work for a thread.
enum Work<Tile> {
    Encode(TileJob<Tile>),
    Read(EntryBatch),
}

/// Range of entries that one thread works on.
struct EntryBatch {
    number: u64,
    entries: Range<u64>,
    permit: Permit,
}

/// Converts the entries of a source; `sink` must have been created for the products that `options` select.
///
/// # Errors
/// If a range of entries cannot be read or prepared, the sink fails, or the run is cancelled. The sink is then dropped
/// unfinished.
pub fn convert<S: Source + ?Sized, K: Sink>(
    source: &S,
    sink: K,
    options: &ConvertOptions,
    observer: &dyn Observer,
    cancel: &CancelToken,
) -> error::Result<(ConversionReport, K::Summary)> {
    observer.event(&Event::StageStarted { stage: Stage::Read, total_bytes: None });
    Ok(convert_ranges(source, sink, options, observer, cancel)?)
}

/// Converts as [`convert`] does, within a stage that has already begun.
pub(crate) fn convert_ranges<S: Source + ?Sized, K: Sink>(
    source: &S,
    mut sink: K,
    options: &ConvertOptions,
    observer: &dyn Observer,
    cancel: &CancelToken,
) -> Result<(ConversionReport, K::Summary)> {
    let started = Instant::now();
    let all: Vec<usize> = (0..source.schema().products.len()).collect();
    let products = options.products.as_deref().unwrap_or(&all);
    let entries = options.entries.clone().unwrap_or(0..source.len_entries());
    raddle_columns::source::check_entries(&source.place(), &entries, source.len_entries())?;
    let budget = MemoryBudget::new(options.memory_len_bytes);
    let _kept = budget.acquire(sink.kept_len_bytes(), "filling and encoding a chunk of every dataset")?;
    let preparer_len_bytes = sink.preparer_len_bytes();
    let worker_len_bytes = preparer_len_bytes.saturating_add(source.reader_len_bytes(products));
    // Memory is reserved for a range of each thread, and at least as much for blocks as for compressors: fewer threads
    // that have blocks are better than many that have none.
    let per_byte = sink.prepared_per_byte().saturating_add(1);
    let range_len_bytes = longest_batch_len_bytes(source, &entries, options).saturating_mul(per_byte);
    let range_len_bytes = range_len_bytes.max(preparer_len_bytes);
    let thread_len_bytes = worker_len_bytes.saturating_add(range_len_bytes).max(1);
    let jobs = (budget.available_bytes() / thread_len_bytes).clamp(1, options.jobs.get() as u64);
    const WHAT: &str = "keeping a basket, page or chunk of every product";
    let _kept_by_workers = budget.try_acquire(jobs.saturating_mul(worker_len_bytes), WHAT)?;
    let for_ranges_len_bytes = budget.available_bytes();
    let run = Conversion {
        for_ranges_len_bytes,
        per_byte,
        source,
        products,
        start_entry: entries.start,
        end_entry: entries.end,
        options,
        budget: &budget,
        observer,
        cancel,
        shared: Mutex::new(ConversionState {
            next_entry: entries.start,
            next_unit: 0,
            prepared: InOrder::default(),
            tiles: VecDeque::new(),
            next_tile: 0,
            encoded: InOrder::default(),
            committer: None,
            failure: None,
            converted: ConversionReport::default(),
        }),
        handing_out: Mutex::new(()),
    };
    let mut preparers = (0..jobs).map(|_| sink.preparer()).collect::<Result<Vec<_>>>()?;
    run.lock().committer = Some(&mut sink);
    run.in_threads(&mut preparers, Conversion::work);
    run.hand_out_rest();
    run.in_threads(&mut preparers, Conversion::encode_tiles);
    let shared = run.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, error)) = shared.failure {
        return Err(error);
    }
    cancel.check()?;
    let mut converted = shared.converted;
    source.check_unchanged()?;
    let summary = sink.finish()?;
    converted.elapsed_s = started.elapsed().as_secs_f64();
    converted.peak_memory_len_bytes = budget.peak_bytes();
    observer.event(&Event::StageFinished { stage: Stage::Read, elapsed_s: converted.elapsed_s });
    Ok((converted, summary))
}

/// Returns the length of the longest block of the ranges of `entries`.
fn longest_batch_len_bytes<S: Source + ?Sized>(source: &S, entries: &Range<u64>, options: &ConvertOptions) -> u64 {
    let (mut at, mut longest) = (entries.start, 0);
    while at < entries.end {
        let end = options.unit_end(source, entries.start, at, entries.end);
        longest = source.batch_len_bytes(at..end).max(longest);
        at = end;
    }
    longest
}

/// One conversion, shared by all its threads.
struct Conversion<'run, S: ?Sized, K: Sink> {
    /// Memory available to all ranges together. A range that needs more is refused, because its permit would never be
    /// granted.
    for_ranges_len_bytes: u64,
    /// Memory for a byte of a block: the block that is read, and its prepared form.
    per_byte: u64,
    source: &'run S,
    products: &'run [usize],
    start_entry: u64,
    end_entry: u64,
    options: &'run ConvertOptions,
    budget: &'run MemoryBudget,
    observer: &'run dyn Observer,
    cancel: &'run CancelToken,
    shared: Mutex<SharedOf<'run, K>>,
    /// Lock that a thread holds while it waits for memory, so that ranges receive it in order: later ranges alone can
    /// never hold the memory that the next range to be committed needs.
    handing_out: Mutex<()>,
}

type SharedOf<'run, K> = ConversionState<&'run mut K, <K as Sink>::Prepared, <K as Sink>::Tile, <K as Sink>::Encoded>;

impl<'run, S: Source + ?Sized, K: Sink> Conversion<'run, S, K> {
    fn lock(&self) -> MutexGuard<'_, SharedOf<'run, K>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on one thread per preparer, including the calling thread.
    fn in_threads(&self, preparers: &mut [K::Preparer], work: fn(&Self, &mut K::Preparer)) {
        let Some((first, others)) = preparers.split_first_mut() else { return };
        std::thread::scope(|scope| {
            for preparer in others {
                let thread = std::thread::Builder::new().name("events".to_owned());
                if let Err(source) = thread.spawn_scoped(scope, || work(self, preparer)) {
                    self.fail(0, CoreError::Threads { source }.into());
                    break;
                }
            }
            work(self, first);
        });
    }

    /// Records the failure of a range. Discards everything that is waiting to be committed and frees its memory: a
    /// thread may be waiting for that memory, and ranges after a failed one are never committed.
    fn fail(&self, unit: u64, error: ColumnsError) {
        let mut shared = self.lock();
        shared.prepared.clear();
        shared.tiles.clear();
        shared.encoded.clear();
        if shared.failure.as_ref().is_none_or(|(first, _)| unit < *first) {
            shared.failure = Some((unit, error));
        }
    }

    /// Returns the next tile if there is one, otherwise the next range as soon as there is memory for it. Returns
    /// `None` if neither is left or the run has failed.
    fn next_work(&self) -> Option<Work<K::Tile>> {
        // Tiles come first, because they may hold memory that ranges need.
        if let Some(job) = self.next_tile() {
            return Some(Work::Encode(job));
        }
        let _turn = self.handing_out.lock().unwrap_or_else(PoisonError::into_inner);
        if self.cancel.is_cancelled() {
            return None;
        }
        let (number, start) = {
            let mut shared = self.lock();
            if shared.failure.is_some() {
                return None;
            }
            // Tiles may have arrived in the meantime.
            if let Some(job) = shared.tiles.pop_front() {
                return Some(Work::Encode(job));
            }
            if shared.next_entry >= self.end_entry {
                return None;
            }
            (shared.next_unit, shared.next_entry)
        };
        let end = self.options.unit_end(self.source, self.start_entry, start, self.end_entry);
        let len_bytes = self.source.batch_len_bytes(start..end).saturating_mul(self.per_byte);
        const WHAT: &str = "a range of entries";
        let acquired = match len_bytes > self.for_ranges_len_bytes {
            true => Err(CoreError::Memory {
                purpose: WHAT,
                needed_bytes: len_bytes,
                available_bytes: self.for_ranges_len_bytes,
                limit_bytes: self.budget.limit_bytes(),
            }),
            false => self.budget.acquire(len_bytes, WHAT),
        };
        let permit = match acquired {
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
        Some(Work::Read(EntryBatch { number, entries: start..end, permit }))
    }

    fn next_tile(&self) -> Option<TileJob<K::Tile>> {
        self.lock().tiles.pop_front()
    }

    /// Carries out work on one thread until no range is left.
    fn work(&self, preparer: &mut K::Preparer) {
        let mut reader = match self.source.reader(self.products) {
            Ok(reader) => reader,
            Err(error) => return self.fail(0, error),
        };
        while let Some(work) = self.next_work() {
            let done = match work {
                Work::Encode(job) => self.encode(job, preparer),
                Work::Read(unit) => self.read(unit, reader.as_mut(), preparer),
            };
            if let Err((number, error)) = done.and_then(|()| self.put_in_place()) {
                return self.fail(number, error);
            }
        }
    }

    /// Encodes the remaining tiles after all ranges are done; runs on each thread.
    fn encode_tiles(&self, preparer: &mut K::Preparer) {
        while let Some(job) = self.next_tile() {
            let done = self.encode(job, preparer).and_then(|()| self.put_in_place());
            if let Err((number, error)) = done {
                return self.fail(number, error);
            }
        }
    }

    /// Reads and prepares a range of entries.
    fn read(
        &self,
        EntryBatch { number, entries, permit }: EntryBatch,
        reader: &mut dyn RangeReader,
        preparer: &mut K::Preparer,
    ) -> Result<(), (u64, ColumnsError)> {
        let failed = |error| (number, error);
        let started = Instant::now();
        let block = reader.read(entries.clone()).map_err(failed)?;
        let (read_s, block_len_bytes) = (started.elapsed().as_secs_f64(), block.len_bytes() as u64);
        let started = Instant::now();
        let prepared = preparer.prepare(block).map_err(failed)?;
        let prepare_s = started.elapsed().as_secs_f64();
        let entries = entries.end - entries.start;
        let mut shared = self.lock();
        if shared.failure.is_some() {
            return Ok(());
        }
        shared.converted.read_s += read_s;
        shared.converted.prepare_s += prepare_s;
        shared.prepared.put(number, PendingBatch { prepared, entries, block_len_bytes, permit: Arc::new(permit) });
        drop(shared);
        self.observer.event(&Event::Advanced { stage: Stage::Read, bytes: block_len_bytes, items: entries });
        Ok(())
    }

    /// Encodes a tile.
    fn encode(&self, job: TileJob<K::Tile>, preparer: &mut K::Preparer) -> Result<(), (u64, ColumnsError)> {
        let TileJob { number, unit, tile, _permit } = job;
        let started = Instant::now();
        let tile = preparer.encode(tile).map_err(|error| (unit, error))?;
        let encode_s = started.elapsed().as_secs_f64();
        let mut shared = self.lock();
        if shared.failure.is_none() {
            shared.converted.encode_s += encode_s;
            shared.encoded.put(number, TileJob { number, unit, tile, _permit });
        }
        Ok(())
    }

    /// Commits prepared blocks and places encoded tiles that are next in order, unless another thread is doing so.
    fn put_in_place(&self) -> Result<(), (u64, ColumnsError)> {
        let mut shared = self.lock();
        let Some(committer) = shared.committer.take() else { return Ok(()) };
        loop {
            // Done under the same lock that other threads take to check for a committer, so nothing is left waiting.
            let started = Instant::now();
            if let Some((_, job)) = shared.encoded.take_next() {
                drop(shared);
                committer.place(job.tile).map_err(|error| (job.unit, error))?;
                shared = self.lock();
            } else if let Some((unit, batch)) = shared.prepared.take_next() {
                drop(shared);
                let tiles = committer.commit(batch.prepared).map_err(|error| (unit, error))?;
                shared = self.lock();
                let converted = &mut shared.converted;
                converted.units += 1;
                converted.entries += batch.entries;
                converted.block_len_bytes += batch.block_len_bytes;
                shared.queue(tiles, unit, Some(&batch.permit));
            } else {
                shared.committer = Some(committer);
                return Ok(());
            }
            shared.converted.commit_s += started.elapsed().as_secs_f64();
        }
    }

    /// Queues the tiles that are left after all ranges were committed.
    fn hand_out_rest(&self) {
        let mut shared = self.lock();
        if shared.failure.is_some() || self.cancel.is_cancelled() {
            return;
        }
        let unit = shared.next_unit;
        let rest = shared.committer.as_mut().map(|committer| committer.rest());
        match rest.transpose() {
            Ok(tiles) => shared.queue(tiles.unwrap_or_default(), unit, None),
            Err(error) => shared.failure = Some((unit, error)),
        }
    }
}

impl<Committer, Prepared, Tile, Encoded> ConversionState<Committer, Prepared, Tile, Encoded> {
    /// Queues the tiles that a range completed; after a failure, they are discarded.
    fn queue(&mut self, tiles: Vec<Tile>, unit: u64, permit: Option<&Arc<Permit>>) {
        if self.failure.is_some() {
            return;
        }
        for tile in tiles {
            self.tiles.push_back(TileJob { number: self.next_tile, unit, tile, _permit: permit.cloned() });
            self.next_tile += 1;
        }
    }
}
