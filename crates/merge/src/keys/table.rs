//! The join of rows of one table with the index, which determines the event of every row, as runs.
//!
//! Tables are nearly sorted like the index, so most rows equal the previous one, and most others are found a few rows
//! further in the index. A block of rows in a different order is sorted before it is looked up.

use super::faults::{KeyFault, KeyFaultKind};
use super::ids::{Domain, IdTable, Ids, RunBuffers};
use super::index::{Lookup, READ_ROWS, input_end, input_of};
use super::runs::EventRun;
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::schema::{ColumnIndex, display_path};
use raddle_core::report::progress::{Event, Stage};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::ops::Range;

/// Group that gets keys.
#[derive(Debug, Clone)]
pub struct KeyTable {
    /// Path of the group.
    pub group: Vec<u8>,
    /// The column `NAME`.
    pub named: ColumnIndex,
    /// Ids of the table.
    pub ids: IdTable,
    /// First row of each input, followed by the total.
    pub starts: Vec<u64>,
}

/// Result of joining consecutive rows of a table.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct MatchedRows {
    /// Runs: the event, as the difference from the event of the previous run, and the number of rows. Small numbers are
    /// short in a message.
    runs: Vec<(i64, u64)>,
    last_event: u64,
    /// Rows that are not in the index; for the index itself, rows that repeat the ids of an earlier row.
    pub fault: Option<KeyFault>,
}

impl MatchedRows {
    fn push(&mut self, event: u64, rows: u64) {
        match self.runs.last_mut() {
            Some((_, of_run)) if self.last_event == event => *of_run += rows,
            _ => self.runs.push((event.wrapping_sub(self.last_event) as i64, rows)),
        }
        self.last_event = event;
    }

    /// Returns the runs, in the order of their rows.
    pub fn runs(&self) -> impl Iterator<Item = EventRun> + '_ {
        self.runs.iter().scan(0_u64, |event, (step, rows)| {
            *event = event.wrapping_add(*step as u64);
            Some(EventRun { event: *event, rows: *rows })
        })
    }
}

/// Settings of a join.
pub struct Join<'j> {
    /// Plan with the inputs that hold the tables.
    pub plan: &'j MergePlan,
    /// Whether rows are joined only with index rows of the same input.
    pub by_input: bool,
    /// Domain of each position of a tuple.
    pub domains: &'j [Domain],
    /// Receiver of progress reports.
    pub watch: &'j Watch<'j>,
}

impl Join<'_> {
    /// Joins `rows` of `table`.
    pub fn table(&self, lookup: &mut Lookup<'_>, table: &KeyTable, rows: Range<u64>) -> Result<MatchedRows> {
        let mut found = MatchedRows::default();
        let mut fault: Option<KeyFault> = None;
        self.each_event(lookup, table, rows, &mut |rows, ids, at, event| match event {
            Some(event) => found.push(event, rows.end - rows.start),
            None => {
                let fault = fault
                    .get_or_insert_with(|| fault_of(table, KeyFaultKind::Missing, rows.start, ids, at, self.domains));
                fault.rows += rows.end - rows.start;
            }
        })?;
        found.fault = fault;
        Ok(found)
    }

    /// Looks up `rows` of the index in the index itself. A row with the same ids as an earlier row is a fault.
    pub fn index(&self, lookup: &mut Lookup<'_>, index_table: &KeyTable, rows: Range<u64>) -> Result<MatchedRows> {
        let mut fault: Option<KeyFault> = None;
        self.each_event(lookup, index_table, rows, &mut |rows, ids, at, event| {
            for row in rows.filter(|&row| event != Some(row)) {
                let fault = fault
                    .get_or_insert_with(|| fault_of(index_table, KeyFaultKind::Repeated, row, ids, at, self.domains));
                fault.rows += 1;
            }
        })?;
        Ok(MatchedRows { fault, ..MatchedRows::default() })
    }

    fn each_event(
        &self,
        lookup: &mut Lookup<'_>,
        table: &KeyTable,
        rows: Range<u64>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let starts = self.by_input.then_some(table.starts.as_slice());
        let (mut room, mut ids) = (RunBuffers::default(), Ids::new(table.ids.width()));
        let mut row = rows.start;
        while row < rows.end {
            if self.watch.cancel.is_cancelled() {
                return Err(MergeError::Cancelled);
            }
            let input = input_of(starts, row);
            let end = (row + READ_ROWS).min(rows.end).min(input_end(starts, input, rows.end));
            table.ids.read_runs(lookup.reader(), self.plan, row..end, &mut room, &mut ids)?;
            let is_sorted = (1..ids.len()).all(|run| ids.order(run - 1, &ids, run) == Ordering::Less);
            let events = if is_sorted { Vec::new() } else { unsorted_events(lookup, input, &ids)? };
            for (run, &start) in room.starts.iter().enumerate() {
                let next = room.starts.get(run + 1).map_or(end, |&next| row + u64::from(next));
                let event = if is_sorted { lookup.row(input, &ids, run)? } else { events[run] };
                visit(row + u64::from(start)..next, &ids, run, event);
            }
            let bytes = (end - row) * table.ids.row_len_bytes();
            self.watch.observer.event(&Event::Advanced { stage: Stage::Keys, bytes, items: 0 });
            row = end;
        }
        Ok(())
    }
}

/// Creates a fault that counts no rows yet, with the ids of tuple `at`.
pub fn fault_of(
    table: &KeyTable,
    kind: KeyFaultKind,
    first_row: u64,
    ids: &Ids,
    at: usize,
    domains: &[Domain],
) -> KeyFault {
    let numbers = ids.tuple(at).into_iter().zip(domains).map(|(id, domain)| domain.number(id));
    KeyFault { group: display_path(&table.group), kind, rows: 0, first_row, ids: numbers.collect() }
}

/// Function that is called for consecutive rows with equal ids. Its arguments are the rows, the ids of such runs with
/// the number of this run, and the event.
type Visit<'v> = dyn FnMut(Range<u64>, &Ids, usize, Option<u64>) + 'v;

/// Looks up tuples, given in any order, in ascending order, and returns their events.
fn unsorted_events(lookup: &mut Lookup<'_>, input: u32, ids: &Ids) -> Result<Vec<Option<u64>>> {
    let mut events = vec![None; ids.len()];
    let mut before: Option<usize> = None;
    for at in ids.sorted() {
        let at = at as usize;
        events[at] = match before.filter(|&before| ids.order(before, ids, at) == Ordering::Equal) {
            Some(before) => events[before],
            None => lookup.row(input, ids, at)?,
        };
        before = Some(at);
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_travel() {
        let mut found = MatchedRows::default();
        let pushed = [(5, 2), (5, 1), (9, 1), (0, 3), (u64::MAX, 1), (7, 4)];
        pushed.iter().for_each(|(event, rows)| found.push(*event, *rows));
        let bytes = postcard::to_stdvec(&found).unwrap();
        let gathered: MatchedRows = postcard::from_bytes(&bytes).unwrap();
        let runs: Vec<(u64, u64)> = gathered.runs().map(|run| (run.event, run.rows)).collect();
        assert_eq!(runs, [(5, 3), (9, 1), (0, 3), (u64::MAX, 1), (7, 4)]);
        assert!(bytes.len() < 40, "{}", bytes.len());
    }
}
