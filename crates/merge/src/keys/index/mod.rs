//! Where an event stands in the index group: the row of a tuple of ids, found by search in sorted runs.
//!
//! The ids of the index are read once. Where they ascend they are a run, known by the first tuple of every few thousand
//! rows; a look-up reads one such block. Ids in no order are sorted block by block into runs of their own, in a scratch
//! file. So memory is bounded whatever the number of events, and tables that follow the index read it in step.
//! Invariant: a look-up gives the first row that has the tuple, whatever the order of rows.

mod lookup;

pub use lookup::Lookup;

use super::ids::{IdTable, Ids};
use super::scratch::Scratch;
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::values::ColumnReader;
use std::cmp::Ordering;
use std::ops::Range;

/// Rows read at once.
pub const READ_ROWS: u64 = 1 << 16;
/// Rows of a block that is known by its first tuple: as many as a look-up reads.
const BLOCK_ROWS: usize = 4096;
/// Runs from which on an index counts as unordered, beside one per input and one per [`READ_ROWS`] rows.
const FEW_RUNS: usize = 64;
/// Share of the memory budget for an index that is kept decoded.
const RESIDENT_SHARE: u64 = 16;
/// Share of the memory budget for sorting.
const SORT_SHARE: u64 = 8;

/// The ids of the index group.
pub struct Index {
    runs: Vec<Run>,
    /// For each run the greatest last tuple of itself and the runs before it, of the same input.
    greatest: Ids,
    storage: Storage,
    /// No tuple can be in two runs.
    is_disjoint: bool,
    /// Rows whose tuple an earlier row of the same run has, and the first of them.
    pub repeated: Option<Repeated>,
    table: IdTable,
}

/// Rows with ids that other rows have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated {
    /// How many rows.
    pub count: u64,
    /// The first of them.
    pub row: u64,
}

/// Ascending tuples: of rows that follow each other, or of sorted ones.
struct Run {
    /// The input that holds the rows; 0 where inputs are not told apart.
    input: u32,
    /// Rows, or places in the scratch file.
    places: Range<u64>,
    /// First tuple of each block.
    firsts: Ids,
    last: Vec<u64>,
}

enum Storage {
    /// Read again where needed; the place is the row.
    Columns,
    /// All in memory; the place is the row.
    Resident(Ids),
    /// Sorted: at each place the ids and the row.
    Sorted(Scratch),
}

impl Index {
    /// Reads the ids of `table`. With `starts` (first row of each input, and the total) inputs are told apart.
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
        let most_runs = FEW_RUNS + inputs + (table.rows / READ_ROWS) as usize;
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
            if build.runs.len() > most_runs {
                return Self::build_sorted(plan, table, starts, width, reader, watch);
            }
            row = end;
        }
        build.end_run(row);
        let storage = if is_resident { Storage::Resident(resident) } else { Storage::Columns };
        Ok(build.finish(storage, table))
    }

    /// Sorts blocks of rows into runs.
    fn build_sorted<'p>(
        plan: &'p MergePlan,
        table: IdTable,
        starts: Option<&[u64]>,
        width: usize,
        reader: &mut ColumnReader<'p>,
        watch: &Watch<'_>,
    ) -> Result<Self> {
        // A row takes its ids, its place in the order and the encoded form of both.
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
            // What was noted is a place in sorted order.
            if let Some(repeated) = build.repeated.as_mut().filter(|_| !was_repeated) {
                repeated.row = row + u64::from(order[(repeated.row - row) as usize]);
            }
            row = end;
        }
        Ok(build.finish(Storage::Sorted(scratch), table))
    }

    /// Whether each tuple is in one run at most, so that [`Index::repeated`] says all about repetition.
    pub fn is_disjoint(&self) -> bool {
        self.is_disjoint
    }

    /// Runs that may hold a tuple: those that begin at or before it and do not end before it.
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

/// Number of the input that holds `row`; 0 where inputs are not told apart.
pub fn input_of(starts: Option<&[u64]>, row: u64) -> u32 {
    starts.map_or(0, |starts| starts.partition_point(|&start| start <= row).saturating_sub(1) as u32)
}

/// First row behind those of `input`.
pub fn input_end(starts: Option<&[u64]>, input: u32, rows: u64) -> u64 {
    starts.and_then(|starts| starts.get(input as usize + 1)).copied().unwrap_or(rows)
}

/// An index being built from tuples in the order of places.
struct Build<'s> {
    starts: Option<&'s [u64]>,
    width: usize,
    input: u32,
    runs: Vec<Run>,
    begin: u64,
    firsts: Ids,
    last: Ids,
    repeated: Option<Repeated>,
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
                        self.repeated.get_or_insert(Repeated { count: 0, row: place }).count += 1;
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
            self.runs.push(Run { input: self.input, places: self.begin..end, firsts, last });
        }
        self.begin = end;
        self.last.clear();
    }

    fn finish(mut self, storage: Storage, table: IdTable) -> Index {
        let key = |run: &Run| (run.input, run.firsts.tuple(0), run.places.start);
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
