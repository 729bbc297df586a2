//! The join of all tables with the index, shared by threads and ranks.
//!
//! The rows of all tables are concatenated and cut into stretches of equal length, whatever the tables' sizes. A window
//! consists of one stretch for each thread of all ranks. Each rank joins its stretches and then sends the result to the
//! others in messages of bounded length, while its threads continue with the next window. In the end, every rank has
//! the runs of all rows, in their order. The index is not shared. Each rank reads all of it, because it has only one
//! row per event, whereas tables have one per track or hit. Invariant: the result does not depend on how rows are cut
//! or distributed.

use super::KeyFault;
use super::index::{Index, Lookup};
use super::runs::{RunStore, RunWriter, TableRuns};
use super::table::{Join, KeyTable, MatchedRows};
use crate::error::{MergeError, Result};
use crate::write::ranks::gather_in_steps;
use crate::write::values::ColumnReader;
use raddle_core::CoreError;
use raddle_core::parallel::ordered::OrderedQueue;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::{Event, Stage};
use raddle_hdf5::source::InputPool;
use std::ops::Range;

/// Operation named in errors of other ranks.
pub const JOIN: &str = "join the keys";

/// Maximum memory of a joining thread: a column reader (12 MiB), blocks of the index (16 MiB), the ids of one read, the
/// runs of a stretch (one per row in the worst case), and the messages of stretches that wait to be sent.
const JOIN_LEN_BYTES: u64 = 40 << 20;

/// Minimum and maximum number of rows of a stretch. Chunks that two stretches share are decoded twice.
const STRETCH_ROWS: (u64, u64) = (1 << 14, 1 << 18);
/// Number of stretches per thread, unless limited by [`STRETCH_ROWS`]: enough for all threads to finish at about the
/// same time.
const STRETCHES_PER_THREAD: u64 = 16;
/// Number of rows whose join takes as long as finding a table's columns.
const TABLE_COST_ROWS: u64 = 1 << 12;
/// Maximum number of stretches of a thread that are being joined or wait to be sent.
const STRETCHES_AHEAD: usize = 2;
/// Length of the messages in transit at once, of all ranks together.
const MESSAGE_LEN_BYTES: u64 = 8 << 20;

/// Rows of several tables, concatenated and divided into equal stretches.
#[derive(Debug)]
struct TableStretches {
    /// Number of rows of each table.
    rows: Vec<u64>,
    /// Beginning of each table, followed by the end of the last. The cost of opening a table counts as additional rows.
    starts: Vec<u64>,
    len: u64,
}

impl TableStretches {
    /// Cuts tables with these numbers of rows for a number of threads.
    fn new(rows: Vec<u64>, threads: u64) -> Self {
        let mut starts = vec![0];
        for rows in &rows {
            let len = if *rows > 0 { rows + TABLE_COST_ROWS } else { 0 };
            starts.push(starts[starts.len() - 1] + len);
        }
        let (least, most) = STRETCH_ROWS;
        let even = starts[rows.len()] / STRETCHES_PER_THREAD.saturating_mul(threads).max(1);
        Self { rows, starts, len: even.clamp(least, most) }
    }

    fn count(&self) -> u64 {
        self.starts[self.rows.len()].div_ceil(self.len)
    }

    /// Returns the tables in stretch `number` of the rows, in order, with the rows of each.
    fn pieces(&self, number: u64) -> impl Iterator<Item = (usize, Range<u64>)> + '_ {
        let (start, end) = (number * self.len, (number + 1) * self.len);
        let first = self.starts.partition_point(|&table| table <= start).saturating_sub(1);
        let tables = (first..self.rows.len()).take_while(move |&table| self.starts[table] < end);
        let rows = move |table: usize| {
            let (begin, rows) = (self.starts[table], self.rows[table]);
            (table, start.saturating_sub(begin)..(end - begin).min(rows))
        };
        tables.map(rows).filter(|(_, rows)| rows.start < rows.end)
    }
}

/// Assignment of stretches to ranks.
struct Windows {
    /// First stretch of each rank in a window, followed by the length of a window.
    shares: Vec<u64>,
    stretches: u64,
}

impl Windows {
    /// Assigns stretches to ranks with these numbers of threads.
    fn new(threads: &[u64], stretches: u64) -> Self {
        let shares = std::iter::once(0).chain(threads.iter().scan(0, |sum, threads| {
            *sum += threads;
            Some(*sum)
        }));
        Self { shares: shares.collect(), stretches }
    }

    fn len(&self) -> u64 {
        self.shares[self.shares.len() - 1].max(1)
    }

    fn count(&self) -> u64 {
        self.stretches.div_ceil(self.len())
    }

    /// Returns the stretches that `rank` joins in a window.
    fn of(&self, rank: usize, window: u64) -> Range<u64> {
        let place = |share: u64| (window * self.len() + share).min(self.stretches);
        place(self.shares[rank])..place(self.shares[rank + 1])
    }
}

/// Collective. Joins all `tables`, the first of which is the index itself and is only looked up if `with_index`.
/// Returns the events of all tables, and the faults.
pub fn join_collective(
    join: &Join<'_>,
    tables: &[KeyTable],
    with_index: bool,
    index: &Index,
    pool: &InputPool,
    store: &RunStore,
    ranks: &dyn Communicator,
) -> Result<(Vec<TableRuns>, Vec<KeyFault>)> {
    let options = &join.plan.options;
    let in_memory = (options.memory_limit_bytes / JOIN_LEN_BYTES).max(1) as usize;
    let threads = options.jobs.clamp(1, in_memory);
    let all_threads = ranks.all_gather_u64(threads as u64)?;
    let rows =
        tables.iter().enumerate().map(|(number, table)| if number > 0 || with_index { table.ids.rows } else { 0 });
    let stretches = TableStretches::new(rows.collect(), all_threads.iter().sum());
    let windows = Windows::new(&all_threads, stretches.count());
    let local_stretches: Vec<u64> = (0..windows.count()).flat_map(|window| windows.of(ranks.rank(), window)).collect();

    let ahead = OrderedQueue::new(local_stretches.len(), STRETCHES_AHEAD * threads);
    let work = || {
        let mut lookup = Lookup::new(join.plan, index, ColumnReader::new(join.plan, pool));
        while let Some(place) = ahead.next() {
            let pieces = stretches.pieces(local_stretches[place]).map(|(number, rows)| match number {
                0 => join.index(&mut lookup, &tables[0], rows),
                number => join.table(&mut lookup, &tables[number], rows),
            });
            ahead.put(place, pieces.collect::<Result<Vec<MatchedRows>>>().map(|found| to_bytes(&found)));
        }
    };
    let mut joined = JoinedTables::new(tables.len(), store);
    ahead.run(threads, work, || {
        let mut places = 0..local_stretches.len();
        // Error on this rank since the last agreement of the ranks.
        let mut gathered = Ok(());
        for window in 0..windows.count() {
            let local = windows.of(ranks.rank(), window);
            let found = gathered.and_then(|()| local.map(|_| take(&ahead, places.next())).collect::<Result<Vec<_>>>());
            let found = ranks.agree(JOIN, found)?.concat();
            gathered = Ok(());
            gather_in_steps(ranks, &found, MESSAGE_LEN_BYTES, |rank, message| {
                let pieces = windows.of(rank, window).flat_map(|stretch| stretches.pieces(stretch));
                if gathered.is_ok() {
                    gathered = joined.receive(rank, pieces, message, &|number, rows| {
                        if rank != ranks.rank() {
                            let bytes = rows * tables[number].ids.row_len_bytes();
                            join.watch.observer.event(&Event::Advanced { stage: Stage::Keys, bytes, items: 0 });
                        }
                    });
                }
            })?;
        }
        ranks.agree(JOIN, gathered)
    })?;
    ranks.agree(JOIN, joined.finish())
}

/// Returns the result of the next stretch of this rank.
fn take(ahead: &OrderedQueue<Result<Vec<u8>>>, place: Option<usize>) -> Result<Vec<u8>> {
    let left = || Err(MergeError::Core(CoreError::RankLeft { operation: JOIN }));
    place.and_then(|place| ahead.take(place)).unwrap_or_else(left)
}

/// Encodes results, which cannot fail, because their sequences have known lengths.
fn to_bytes(found: &[MatchedRows]) -> Vec<u8> {
    found.iter().flat_map(|found| postcard::to_stdvec(found).unwrap_or_default()).collect()
}

/// Results of tables, assembled in the order of tables and rows.
struct JoinedTables<'s> {
    store: &'s RunStore,
    tables: usize,
    done: Vec<TableRuns>,
    /// Writer of the current table, which follows the finished ones.
    writer: RunWriter<'s>,
    faults: Vec<Option<KeyFault>>,
}

impl<'s> JoinedTables<'s> {
    fn new(tables: usize, store: &'s RunStore) -> Self {
        let faults = std::iter::repeat_with(|| None).take(tables).collect();
        Self { store, tables, done: Vec::with_capacity(tables), writer: RunWriter::new(store), faults }
    }

    /// Adds the results that `rank` sent about `pieces`; `each` is called with the table and the number of rows.
    fn receive(
        &mut self,
        rank: usize,
        pieces: impl Iterator<Item = (usize, Range<u64>)>,
        mut message: &[u8],
        each: &dyn Fn(usize, u64),
    ) -> Result<()> {
        let nonsense = || CoreError::MessageContent { operation: JOIN, rank };
        for (number, rows) in pieces {
            let (found, rest) = postcard::take_from_bytes::<MatchedRows>(message).map_err(|_| nonsense())?;
            message = rest;
            self.begin(number)?;
            for run in found.runs() {
                self.writer.push(run.event, run.rows)?;
            }
            match (&mut self.faults[number], found.fault) {
                (Some(known), Some(fault)) => known.rows += fault.rows,
                (known, fault) => *known = known.take().or(fault),
            }
            each(number, rows.end - rows.start);
        }
        if message.is_empty() { Ok(()) } else { Err(nonsense().into()) }
    }

    /// Finishes the tables before `number`.
    fn begin(&mut self, number: usize) -> Result<()> {
        while self.done.len() < number {
            let done = std::mem::replace(&mut self.writer, RunWriter::new(self.store)).finish()?;
            self.done.push(done);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(Vec<TableRuns>, Vec<KeyFault>)> {
        self.begin(self.tables)?;
        Ok((self.done, self.faults.into_iter().flatten().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_row_is_in_one_stretch_of_one_rank(
            rows in prop::collection::vec(prop_oneof![Just(0), 1_u64..100, 1_u64..2_000_000], 0..40),
            threads in prop::collection::vec(1_u64..9, 1..6),
        ) {
            let stretches = TableStretches::new(rows.clone(), threads.iter().sum());
            let windows = Windows::new(&threads, stretches.count());
            let mut next: Vec<u64> = vec![0; rows.len()];
            let (mut last, mut loads) = (0, vec![0; threads.len()]);
            for window in 0..windows.count() {
                for (rank, load) in loads.iter_mut().enumerate() {
                    for stretch in windows.of(rank, window) {
                        let mut len = 0;
                        for (table, piece) in stretches.pieces(stretch) {
                            prop_assert!(table >= last, "in the order of tables");
                            prop_assert_eq!(piece.start, next[table], "and of their rows");
                            prop_assert!(piece.end > piece.start);
                            (last, next[table]) = (table, piece.end);
                            len += piece.end - piece.start;
                        }
                        prop_assert!(len <= stretches.len);
                        *load += 1;
                    }
                }
            }
            prop_assert_eq!(next, rows);
            // Each rank has a share in proportion to its threads, except in the last window.
            for (load, threads) in loads.iter().zip(&threads) {
                prop_assert!(windows.count() * threads - load <= *threads);
            }
        }
    }
}
