//! Look-ups in an index: each reads the block that may contain a tuple, and searches it near the position of the
//! previous tuple.
//!
//! The index is built elsewhere. Invariant: a thread keeps a bounded number of blocks, whatever the number of runs.

use super::{BLOCK_ROWS, Index, Storage};
use crate::error::Result;
use crate::keys::ids::Ids;
use crate::plan::MergePlan;
use crate::write::values::ColumnReader;
use std::cmp::Ordering;

/// Maximum number of blocks that one thread keeps, each of a different run: 16 MiB with keys of three ids.
const CURSORS: usize = 128;

/// State with which one thread looks up rows.
pub struct Lookup<'p> {
    plan: &'p MergePlan,
    index: &'p Index,
    reader: ColumnReader<'p>,
    raw: Vec<u8>,
    cursors: Vec<Cursor>,
    next_cursor: usize,
}

/// Block of a run, in memory.
struct Cursor {
    run: usize,
    block: usize,
    ids: Ids,
    /// Row of each tuple; empty if rows are consecutive from `first_row`.
    rows: Vec<u64>,
    first_row: u64,
    at: usize,
}

impl<'p> Lookup<'p> {
    /// Creates the state for one thread.
    pub fn new(plan: &'p MergePlan, index: &'p Index, reader: ColumnReader<'p>) -> Self {
        Self { plan, index, reader, raw: Vec::new(), cursors: Vec::new(), next_cursor: 0 }
    }

    /// Returns the reader of columns.
    pub fn reader(&mut self) -> &mut ColumnReader<'p> {
        &mut self.reader
    }

    /// Returns the first row with tuple `at` of `ids`, among those of `input`.
    pub fn row(&mut self, input: u32, ids: &Ids, at: usize) -> Result<Option<u64>> {
        let index = self.index;
        // Tables follow the order of the index, so most tuples are in the same block as the previous one.
        if index.is_disjoint
            && let Some(cursor) = self.cursors.iter_mut().find(|cursor| cursor.covers(index, input, ids, at))
        {
            return Ok(cursor.search(ids, at));
        }
        let mut found: Option<u64> = None;
        let candidates: Vec<usize> = index.candidates(input, ids, at).collect();
        for run in candidates {
            if let Some(row) = self.row_in(run, ids, at)? {
                found = Some(found.map_or(row, |known| known.min(row)));
            }
        }
        Ok(found)
    }

    /// Returns the first row in `run`.
    fn row_in(&mut self, run: usize, ids: &Ids, at: usize) -> Result<Option<u64>> {
        let firsts = &self.index.runs[run].firsts;
        // The first tuple that is not less lies in the last block that begins below it, or at the beginning of the next
        // block.
        let (mut low, mut high) = (0, firsts.len());
        while low < high {
            let middle = low.midpoint(high);
            if firsts.order(middle, ids, at) == Ordering::Less { low = middle + 1 } else { high = middle }
        }
        let begins_next = low < firsts.len() && firsts.order(low, ids, at) == Ordering::Equal;
        if !(begins_next && self.index.repeated.is_none())
            && let Some(row) = self.cursor(run, low.saturating_sub(1))?.search(ids, at)
        {
            return Ok(Some(row));
        }
        if begins_next { Ok(self.cursor(run, low)?.search(ids, at)) } else { Ok(None) }
    }

    /// Returns the cursor of a run, positioned on `block`.
    fn cursor(&mut self, run: usize, block: usize) -> Result<&mut Cursor> {
        if let Some(known) = self.cursors.iter().position(|cursor| cursor.run == run && cursor.block == block) {
            return Ok(&mut self.cursors[known]);
        }
        let place = match self.cursors.iter().position(|cursor| cursor.run == run) {
            Some(place) => place,
            None if self.cursors.len() < CURSORS => {
                let ids = Ids::new(self.index.greatest.tuple_len());
                self.cursors.push(Cursor { run, block, ids, rows: Vec::new(), first_row: 0, at: 0 });
                self.cursors.len() - 1
            }
            None => {
                self.next_cursor = (self.next_cursor + 1) % CURSORS;
                self.next_cursor
            }
        };
        let of_run = &self.index.runs[run];
        let start = of_run.places.start + (block * BLOCK_ROWS) as u64;
        let places = start..(start + BLOCK_ROWS as u64).min(of_run.places.end);
        let cursor = &mut self.cursors[place];
        // Until the block is read, the cursor must not match any run.
        (cursor.run, cursor.block, cursor.at, cursor.first_row) = (usize::MAX, block, 0, places.start);
        cursor.rows.clear();
        match &self.index.storage {
            Storage::Columns => {
                self.index.table.read(&mut self.reader, self.plan, places, &mut self.raw, &mut cursor.ids)?;
            }
            Storage::Resident(all) => {
                cursor.ids.clear();
                (places.start as usize..places.end as usize).for_each(|place| cursor.ids.push(all, place));
            }
            Storage::Sorted(scratch) => {
                let words = self.index.greatest.tuple_len() + 1;
                let entry_len_bytes = 8 * words as u64;
                self.raw.resize(((places.end - places.start) * entry_len_bytes) as usize, 0);
                scratch.read(places.start * entry_len_bytes, &mut self.raw)?;
                cursor.ids.clear();
                for entry in self.raw.as_chunks::<8>().0.chunks_exact(words) {
                    let entry: Vec<u64> = entry.iter().map(|word| u64::from_le_bytes(*word)).collect();
                    cursor.ids.push_tuple(&entry[..words - 1]);
                    cursor.rows.push(entry[words - 1]);
                }
            }
        }
        cursor.run = run;
        Ok(cursor)
    }
}

impl Cursor {
    /// Returns whether this block contains a tuple if it exists.
    fn covers(&self, index: &Index, input: u32, ids: &Ids, at: usize) -> bool {
        let Some(run) = index.runs.get(self.run) else { return false };
        if run.input != input || self.ids.is_empty() || self.ids.order(self.ids.len() - 1, ids, at) == Ordering::Less {
            return false;
        }
        match self.ids.order(0, ids, at) {
            Ordering::Less => true,
            Ordering::Equal => self.block == 0 || index.repeated.is_none(),
            Ordering::Greater => false,
        }
    }

    /// Returns the row of a tuple in this block.
    fn search(&mut self, ids: &Ids, at: usize) -> Option<u64> {
        /// Number of tuples that are compared one by one before a binary search, because a table skips few events.
        const NEAR: usize = 8;
        let len = self.ids.len();
        let is_less = |place: usize| self.ids.order(place, ids, at) == Ordering::Less;
        let (mut low, mut high) =
            if self.at < len && is_less(self.at) { (self.at + 1, len) } else { (0, self.at.min(len)) };
        let near = (low + NEAR).min(high);
        if low > 0 {
            while low < near && is_less(low) {
                low += 1;
            }
            if low < near {
                high = low;
            }
        }
        while low < high {
            let middle = low.midpoint(high);
            if is_less(middle) { low = middle + 1 } else { high = middle }
        }
        self.at = low;
        let found = low < len && self.ids.order(low, ids, at) == Ordering::Equal;
        found.then(|| self.rows.get(low).copied().unwrap_or(self.first_row + low as u64))
    }
}
