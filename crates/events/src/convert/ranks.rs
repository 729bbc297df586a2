//! Conversion across ranks: in each round every rank reads and prepares a run of entries, then all ranks write their
//! runs to the output together.
//!
//! The run that a rank receives depends on its speed in the previous round. The output does not depend on this: like
//! the output of a single process, it depends only on the ranges of entries and their order. Invariants: every entry
//! belongs to exactly one run of one round, and runs are in rank order; every step that can fail on one rank is
//! followed by an agreement of all ranks.

use crate::convert::{ConversionReport, ConvertOptions, convert, convert_ranges};
use crate::error;
use raddle_columns::block::Block;
use raddle_columns::error::Result;
use raddle_columns::sink::{NoTile, Prepare, SharedSink, Sink};
use raddle_columns::source::Source;
use raddle_core::cancel::CancelToken;
use raddle_core::parallel;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::ranks::timed::TimedCommunicator;
use raddle_core::report::progress::{Event, Observer, Stage};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Minimum share of a slow rank, relative to the share of the fastest, so that the slow rank can show that it has
/// become faster.
const MIN_SHARE: f64 = 0.125;

/// Collective. Converts as [`convert`] does, with the work shared across ranks. All ranks must have begun `sink`, and
/// all must have the same source and options, except for the number of threads.
///
/// # Errors
/// As for [`convert`]; ranks that did not fail themselves return an error if another rank did.
pub fn convert_collective<S: Source + ?Sized, K: SharedSink + Sync>(
    source: &S,
    sink: K,
    options: &ConvertOptions,
    observer: &dyn Observer,
    cancel: &CancelToken,
    ranks: &dyn Communicator,
) -> error::Result<(ConversionReport, K::Summary)> {
    match ranks.size() {
        1 => convert(source, sink, options, observer, cancel),
        _ => {
            let ranks = &TimedCommunicator::new(ranks);
            Ok(Rounds { source, options, observer, cancel, ranks }.convert(sink)?)
        }
    }
}

struct Rounds<'a, S: ?Sized> {
    source: &'a S,
    options: &'a ConvertOptions,
    observer: &'a dyn Observer,
    cancel: &'a CancelToken,
    ranks: &'a TimedCommunicator<'a>,
}

impl<S: Source + ?Sized> Rounds<'_, S> {
    fn convert<K: SharedSink + Sync>(&self, mut sink: K) -> Result<(ConversionReport, K::Summary)> {
        let Self { source, options, .. } = self;
        let ranks: &dyn Communicator = self.ranks;
        let started = Instant::now();
        self.observer.event(&Event::StageStarted { stage: Stage::Read, total_bytes: None });
        let entries = options.entries.clone().unwrap_or(0..source.len_entries());
        raddle_columns::source::check_entries(&source.place(), &entries, source.len_entries())?;
        // A prepared run is held while the remaining ranges are still being read, and a second copy on its way to other
        // ranks. Small inputs are split so that every rank has work.
        let part_len_bytes = source.batch_len_bytes(entries.clone()).div_ceil(ranks.size() as u64);
        let longest = options.round_len_bytes.min(options.memory_len_bytes / 8).min(part_len_bytes).max(1);
        let mut assigner = Assigner {
            longest_len_bytes: ranks.least_u64(longest)?,
            shares: vec![1.0; ranks.size()],
            end_entry: entries.end,
        };
        let (mut converted, mut at) = (ConversionReport::default(), entries.start);
        while at < entries.end {
            let runs = assigner.assign(*source, options, at);
            let local_run = runs[ranks.rank()].clone();
            let begun = Instant::now();
            let prepared =
                ranks.agree("read and prepare events", self.prepare(&sink, local_run.clone(), &mut converted))?;
            assigner.note(begun.elapsed().as_secs_f64(), source.batch_len_bytes(local_run), ranks)?;
            let begun = Instant::now();
            let tiles = sink.commit_collective(prepared, ranks)?;
            converted.commit_s += begun.elapsed().as_secs_f64();
            self.encode_and_place(&mut sink, tiles, &mut converted)?;
            at = runs.last().map_or(entries.end, |run| run.end);
        }
        let tiles = sink.rest_collective(ranks)?;
        self.encode_and_place(&mut sink, tiles, &mut converted)?;
        ranks.agree("look at the inputs again", source.check_unchanged())?;
        let summary = sink.finish_collective(ranks)?;
        converted.elapsed_s = started.elapsed().as_secs_f64();
        converted.message_s = self.ranks.elapsed_s();
        Ok((self.of_all(&converted)?, summary))
    }

    /// Reads and prepares this rank's run.
    fn prepare<K: SharedSink + Sync>(
        &self,
        sink: &K,
        run: Range<u64>,
        converted: &mut ConversionReport,
    ) -> Result<Vec<K::Prepared>> {
        if run.is_empty() {
            return Ok(Vec::new());
        }
        let run_len_bytes = self.source.batch_len_bytes(run.clone());
        let gather = Gather { sink, run_len_bytes, prepared: Vec::new() };
        let options = ConvertOptions { entries: Some(run), ..self.options.clone() };
        let (of_run, prepared) = convert_ranges(self.source, gather, &options, self.observer, self.cancel)?;
        converted.entries += of_run.entries;
        converted.units += of_run.units;
        converted.block_len_bytes += of_run.block_len_bytes;
        converted.read_s += of_run.read_s;
        converted.prepare_s += of_run.prepare_s;
        converted.peak_memory_len_bytes = converted.peak_memory_len_bytes.max(of_run.peak_memory_len_bytes);
        Ok(prepared)
    }

    fn encode_and_place<K: SharedSink>(
        &self,
        sink: &mut K,
        tiles: Vec<K::Tile>,
        converted: &mut ConversionReport,
    ) -> Result<()> {
        let begun = Instant::now();
        let preparers = (0..self.options.jobs.get()).map(|_| sink.preparer()).collect::<Result<Vec<_>>>();
        let encoded = preparers.and_then(|preparers| encode_all(tiles, preparers, self.cancel));
        converted.encode_s += begun.elapsed().as_secs_f64();
        let encoded = self.ranks.agree("encode", encoded)?;
        let begun = Instant::now();
        sink.place_collective(encoded, self.ranks)?;
        converted.commit_s += begun.elapsed().as_secs_f64();
        Ok(())
    }

    /// Collective. Sums the figures of all ranks; for wall time and memory, takes the maximum.
    fn of_all(&self, local: &ConversionReport) -> Result<ConversionReport> {
        let ranks = self.ranks.all_gather_values("what ranks did", local)?;
        let sum = |count: fn(&ConversionReport) -> u64| ranks.iter().map(count).sum();
        let sum_s = |seconds: fn(&ConversionReport) -> f64| ranks.iter().map(seconds).sum();
        Ok(ConversionReport {
            entries: sum(|rank| rank.entries),
            units: sum(|rank| rank.units),
            block_len_bytes: sum(|rank| rank.block_len_bytes),
            elapsed_s: ranks.iter().map(|rank| rank.elapsed_s).fold(0.0, f64::max),
            read_s: sum_s(|rank| rank.read_s),
            prepare_s: sum_s(|rank| rank.prepare_s),
            encode_s: sum_s(|rank| rank.encode_s),
            commit_s: sum_s(|rank| rank.commit_s),
            metadata_s: 0.0,
            message_s: sum_s(|rank| rank.message_s),
            peak_memory_len_bytes: ranks.iter().map(|rank| rank.peak_memory_len_bytes).max().unwrap_or(0),
            ranks,
        })
    }
}

/// Encodes tiles with one thread per preparer and returns the results in the order of the tiles.
fn encode_all<P: Prepare>(tiles: Vec<P::Tile>, preparers: Vec<P>, cancel: &CancelToken) -> Result<Vec<P::Encoded>> {
    let threads = preparers.len();
    let preparers = Mutex::new(preparers);
    let tiles: Vec<Mutex<Option<P::Tile>>> = tiles.into_iter().map(|tile| Mutex::new(Some(tile))).collect();
    let preparer = || preparers.lock().unwrap_or_else(PoisonError::into_inner).pop();
    // A thread has a preparer, and each tile is encoded once.
    let encode = |preparer: &mut Option<P>, tile: &Mutex<Option<P::Tile>>| {
        let tile = tile.lock().unwrap_or_else(PoisonError::into_inner).take();
        preparer.as_mut().zip(tile).map(|(preparer, tile)| preparer.encode(tile)).transpose()
    };
    let encoded = parallel::map(&tiles, threads, cancel, preparer, encode)?;
    Ok(encoded.into_iter().flatten().collect())
}

/// Distributor of runs of entries to ranks.
struct Assigner {
    longest_len_bytes: u64,
    /// Share of each rank, relative to the longest run.
    shares: Vec<f64>,
    end_entry: u64,
}

impl Assigner {
    /// Returns the run of each rank, beginning at `start`, until no entries are left. Runs end where ranges end.
    fn assign<S: Source + ?Sized>(&self, source: &S, options: &ConvertOptions, start: u64) -> Vec<Range<u64>> {
        let mut at = start;
        let run = |share: &f64| {
            let (begin, target) = (at, (self.longest_len_bytes as f64 * share) as u64);
            while at < self.end_entry {
                let end = options.unit_end(source, begin, at, self.end_entry);
                if at > begin && source.batch_len_bytes(begin..end) > target {
                    break;
                }
                at = end;
            }
            begin..at
        };
        self.shares.iter().map(run).collect()
    }

    /// Collective. Records how long this rank's run took.
    fn note(&mut self, elapsed_s: f64, len_bytes: u64, ranks: &dyn Communicator) -> Result<()> {
        let rate = if len_bytes == 0 { 0.0 } else { len_bytes as f64 / elapsed_s.max(1e-6) };
        let rates = ranks.all_gather_u64(rate.to_bits())?;
        let rates: Vec<f64> = rates.into_iter().map(f64::from_bits).collect();
        let fastest = rates.iter().copied().fold(0.0, f64::max);
        for (share, rate) in self.shares.iter_mut().zip(&rates) {
            // A rank without work keeps its share.
            if fastest > 0.0 && *rate > 0.0 {
                *share = (rate / fastest).max(MIN_SHARE);
            }
        }
        Ok(())
    }
}

/// Sink that collects the blocks prepared for another sink.
struct Gather<'sink, K: Sink> {
    sink: &'sink K,
    run_len_bytes: u64,
    prepared: Vec<K::Prepared>,
}

/// Preparer that delegates to the preparer of another sink.
struct GatherPreparer<P>(P);

impl<K: Sink + Sync> Sink for Gather<'_, K> {
    type Preparer = GatherPreparer<K::Preparer>;
    type Prepared = K::Prepared;
    type Tile = NoTile;
    type Encoded = NoTile;
    type Summary = Vec<K::Prepared>;

    fn preparer(&self) -> Result<Self::Preparer> {
        self.sink.preparer().map(GatherPreparer)
    }

    fn kept_len_bytes(&self) -> u64 {
        self.sink.kept_len_bytes().saturating_add(self.run_len_bytes.saturating_mul(2))
    }

    fn commit(&mut self, prepared: K::Prepared) -> Result<Vec<NoTile>> {
        self.prepared.push(prepared);
        Ok(Vec::new())
    }

    fn place(&mut self, encoded: NoTile) -> Result<()> {
        match encoded {}
    }

    fn finish(self) -> Result<Vec<K::Prepared>> {
        Ok(self.prepared)
    }
}

impl<P: Prepare> Prepare for GatherPreparer<P> {
    type Prepared = P::Prepared;
    type Tile = NoTile;
    type Encoded = NoTile;

    fn prepare(&mut self, block: Block) -> Result<P::Prepared> {
        self.0.prepare(block)
    }

    fn encode(&mut self, tile: NoTile) -> Result<NoTile> {
        match tile {}
    }
}
