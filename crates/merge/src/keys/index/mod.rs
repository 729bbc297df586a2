//! Index of events: finds the row of the index group with a tuple of ids by a search in sorted runs.
//!
//! The ids of the index are read once. Consecutive rows with ascending ids form a run, of which only the first tuple of
//! every few thousand rows is kept; a look-up reads one such block. If ids are unordered, blocks of rows are sorted
//! into runs in a scratch file. Memory is therefore bounded for any number of events, and tables in the order of the
//! index read it sequentially. Invariant: a look-up returns the first row with the tuple, whatever the order of rows.

mod lookup;

pub use lookup::Lookup;

use super::ids::{IdTable, Ids};
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::write::values::ColumnReader;
use raddle_core::output::scratch::Scratch;
use std::cmp::Ordering;
use std::ops::Range;

/// Number of rows that are read at once.
pub const READ_ROWS: u64 = 1 << 16;
/// Number of rows in a block. A look-up reads one block; only its first tuple is kept in memory.
const BLOCK_ROWS: usize = 4096;
/// Number of runs from which an index counts as unordered, in addition to one per input and one per [`READ_ROWS`] rows.
const FEW_RUNS: usize = 64;
/// Divisor of the memory budget: an index that fits the quotient is kept decoded.
const RESIDENT_SHARE: u64 = 16;
/// Divisor of the memory budget: sorting uses the quotient.
const SORT_SHARE: u64 = 8;

/// Ids of the index group.
pub struct Index {
    runs: Vec<SortedRun>,
    /// For each run, the greatest last tuple of this and all earlier runs of the same input.
    greatest: Ids,
    storage: Storage,
    /// Whether no tuple can be in two runs.
    is_disjoint: bool,
    /// Rows with the same tuple as an earlier row of the same run.
    pub repeated: Option<RepeatedRows>,
    table: IdTable,
}

/// Rows with ids that other rows have, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatedRows {
    /// Number of rows with repeated ids.
    pub count: u64,
    /// First row with repeated ids.
    pub row: u64,
}

/// Ascending tuples, of consecutive or of sorted rows.
struct SortedRun {
    /// Input that holds the rows; 0 if inputs are not distinguished.
    input: u32,
    /// Rows, or positions in the scratch file.
    places: Range<u64>,
    /// First tuple of each block.
    firsts: Ids,
    last: Vec<u64>,
}

enum Storage {
    /// Ids are read again when needed; positions are rows.
    Columns,
    /// All ids are in memory; positions are rows.
    Resident(Ids),
    /// Ids are sorted; each position holds ids and the row.
    Sorted(Scratch),
}

impl Index {
    /// Reads the ids of `table`. With `starts` (first row of each input, followed by the total), inputs are
    /// distinguished.
    pub fn build<'p>(
        plan: &'p MergePlan,
        table: IdTable,
        starts: Option<&[u64]>,
        width: usize,
        reader: &mut ColumnReader<'p>,
        watch: &Watch<'_>,
    ) -> Result<Self> {
        let limit_bytes = plan.options.memory_limit_bytes / RESIDENT_SHARE;
        let is_resident = table.rows.saturating_mul(8 * width as u64) <= limit_bytes;
        let inputs = starts.map_or(1, <[u64]>::len);
        let max_runs = FEW_RUNS + inputs + (table.rows / READ_ROWS) as usize;
        let mut build = Build::new(width, starts);
        let mut resident = Ids::new(width);
        if is_resident {
            resident.reserve(table.rows as usize);
        }
        let (mut raw, mut ids) = (Vec::new(), Ids::new(width));
        let mut row = 0;
        while row < table.rows {
            if watch.cancel.is_cancelled() {
                return Err(MergeError::Cancelled);
            }
            let end = (row + READ_ROWS).min(table.rows);
            table.read(reader, plan, row..end, &mut raw, &mut ids)?;
            build.add(row, &ids);
            if is_resident {
                resident.append(&ids);
            }
            if build.runs.len() > max_runs {
                return Self::build_sorted(plan, table, starts, width, reader, watch);
            }
            row = end;
        }
        build.end_run(row);
        let storage = if is_resident { Storage::Resident(resident) } else { Storage::Columns };
        Ok(build.finish(storage, table))
    }

    /// Builds the index by sorting blocks of rows into runs.
    fn build_sorted<'p>(
        plan: &'p MergePlan,
        table: IdTable,
        starts: Option<&[u64]>,
        width: usize,
        reader: &mut ColumnReader<'p>,
        watch: &Watch<'_>,
    ) -> Result<Self> {
        // A row needs memory for its ids, its position in the order, and the encoded form of both.
        let row_len_bytes = table.row_len_bytes() + 8 * width as u64 + 16;
        let most = (plan.options.memory_limit_bytes / SORT_SHARE / row_len_bytes).clamp(READ_ROWS, 1 << 24);
        let mut scratch = Scratch::create(&plan.options.output)?;
        let mut build = Build::new(width, None);
        let (mut raw, mut ids, mut encoded) = (Vec::new(), Ids::new(width), Vec::new());
        let mut row = 0;
        while row < table.rows {
            if watch.cancel.is_cancelled() {
                return Err(MergeError::Cancelled);
            }
            let input = input_of(starts, row);
            let end = (row + most).min(table.rows).min(input_end(starts, input, table.rows));
            table.read(reader, plan, row..end, &mut raw, &mut ids)?;
            encoded.clear();
            let mut sorted = Ids::new(width);
            let order = ids.sorted();
            for &at in &order {
                sorted.push(&ids, at as usize);
                for id in ids.tuple(at as usize) {
                    encoded.extend_from_slice(&id.to_le_bytes());
                }
                encoded.extend_from_slice(&(row + u64::from(at)).to_le_bytes());
            }
            scratch.append(&encoded)?;
            build.input = input;
            let was_repeated = build.repeated.is_some();
            build.add(row, &sorted);
            build.end_run(end);
            // The recorded position is one in sorted order.
            if let Some(repeated) = build.repeated.as_mut().filter(|_| !was_repeated) {
                repeated.row = row + u64::from(order[(repeated.row - row) as usize]);
            }
            row = end;
        }
        Ok(build.finish(Storage::Sorted(scratch), table))
    }

    /// Returns whether each tuple is in at most one run, in which case [`Index::repeated`] covers all repetitions.
    pub fn is_disjoint(&self) -> bool {
        self.is_disjoint
    }

    /// Returns the runs that may contain a tuple: those that begin at or before it and do not end before it.
    fn candidates(&self, input: u32, ids: &Ids, at: usize) -> impl Iterator<Item = usize> + '_ {
        let tuple = ids.tuple(at);
        let begins = self.runs.partition_point(|run| {
            run.input < input || (run.input == input && !is_greater(&run.firsts.tuple(0), &tuple))
        });
        (0..begins)
            .rev()
            .map_while({
                let tuple = tuple.clone();
                move |run| {
                    let reaches = self.runs[run].input == input && !is_greater(&tuple, &self.greatest.tuple(run));
                    reaches.then_some(run)
                }
            })
            .filter(move |run| !is_greater(&tuple, &self.runs[*run].last))
    }
}

fn is_greater(left: &[u64], right: &[u64]) -> bool {
    left > right
}

/// Returns the number of the input that holds `row`; 0 if inputs are not distinguished.
pub fn input_of(starts: Option<&[u64]>, row: u64) -> u32 {
    starts.map_or(0, |starts| starts.partition_point(|&start| start <= row).saturating_sub(1) as u32)
}

/// Returns the first row after those of `input`.
pub fn input_end(starts: Option<&[u64]>, input: u32, rows: u64) -> u64 {
    starts.and_then(|starts| starts.get(input as usize + 1)).copied().unwrap_or(rows)
}

/// Index under construction, from tuples in the order of positions.
struct Build<'s> {
    starts: Option<&'s [u64]>,
    width: usize,
    input: u32,
    runs: Vec<SortedRun>,
    begin: u64,
    firsts: Ids,
    last: Ids,
    repeated: Option<RepeatedRows>,
}

impl<'s> Build<'s> {
    fn new(width: usize, starts: Option<&'s [u64]>) -> Self {
        let (firsts, last) = (Ids::new(width), Ids::new(width));
        Self { starts, width, input: 0, runs: Vec::new(), begin: 0, firsts, last, repeated: None }
    }

    fn add(&mut self, first_place: u64, ids: &Ids) {
        for at in 0..ids.len() {
            let place = first_place + at as u64;
            let mut breaks = false;
            if self.starts.is_some() && place == input_end(self.starts, self.input, u64::MAX) {
                breaks = true;
            }
            if !self.last.is_empty() {
                match self.last.order(0, ids, at) {
                    Ordering::Less => {}
                    Ordering::Equal if !breaks => {
                        self.repeated.get_or_insert(RepeatedRows { count: 0, row: place }).count += 1;
                    }
                    _ => breaks = true,
                }
            }
            if breaks {
                self.end_run(place);
                self.input = input_of(self.starts, place);
            } else if self.last.is_empty() && self.starts.is_some() {
                self.input = input_of(self.starts, place);
            }
            if ((place - self.begin) as usize).is_multiple_of(BLOCK_ROWS) {
                self.firsts.push(ids, at);
            }
            self.last.clear();
            self.last.push(ids, at);
        }
    }

    fn end_run(&mut self, end: u64) {
        if end > self.begin {
            let firsts = std::mem::replace(&mut self.firsts, Ids::new(self.width));
            let last = self.last.tuple(0);
            self.runs.push(SortedRun { input: self.input, places: self.begin..end, firsts, last });
        }
        self.begin = end;
        self.last.clear();
    }

    fn finish(mut self, storage: Storage, table: IdTable) -> Index {
        let key = |run: &SortedRun| (run.input, run.firsts.tuple(0), run.places.start);
        self.runs.sort_by_cached_key(key);
        let mut greatest = Ids::new(self.width);
        let mut is_disjoint = true;
        for (number, run) in self.runs.iter().enumerate() {
            let before = number.checked_sub(1).filter(|&before| self.runs[before].input == run.input);
            let reach = before.map(|before| greatest.tuple(before));
            is_disjoint &= reach.as_ref().is_none_or(|reach| is_greater(&run.firsts.tuple(0), reach));
            greatest.push_tuple(&reach.filter(|reach| is_greater(reach, &run.last)).unwrap_or(run.last.clone()));
        }
        Index { runs: self.runs, greatest, storage, is_disjoint, repeated: self.repeated, table }
    }
}
