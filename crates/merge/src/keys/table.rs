//! The join of one table with the index: the event of every row, as runs.
//!
//! Tables are nearly sorted like the index, so most rows are equal to the one above and most others are found a few
//! rows further in the index. A block of rows in another order is sorted before it is looked up.

use super::faults::{KeyFault, KeyFaultKind};
use super::ids::{Domain, IdTable, Ids, RunRoom};
use super::index::{Lookup, READ_ROWS, Repeated, input_end, input_of};
use super::runs::{RunStore, RunWriter, TableRuns};
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::schema::{ColumnIndex, display_path};
use raddle_core::progress::{Event, Stage};
use std::cmp::Ordering;
use std::ops::Range;

/// A group that gets keys.
#[derive(Debug, Clone)]
pub struct KeyTable {
    /// Path of the group.
    pub group: Vec<u8>,
    /// The column `NAME`.
    pub named: ColumnIndex,
    /// Its ids.
    pub ids: IdTable,
    /// First row of each input, and the total.
    pub starts: Vec<u64>,
}

/// The events of a table, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Joined {
    /// Events of all rows; of some, where ids are missing.
    pub runs: TableRuns,
    /// Rows with ids that the index does not have.
    pub missing: Option<KeyFault>,
}

/// Joins `table`. With `by_input` its rows belong to index rows of the same input.
pub fn join(
    lookup: &mut Lookup<'_>,
    plan: &MergePlan,
    table: &KeyTable,
    by_input: bool,
    domains: &[Domain],
    store: &RunStore,
    watch: &Watch<'_>,
) -> Result<Joined> {
    let mut writer = RunWriter::new(store);
    let mut missing: Option<KeyFault> = None;
    each_event(lookup, plan, table, by_input, watch, &mut |rows, ids, at, event| match event {
        Some(event) => writer.push(event, rows.end - rows.start),
        None => {
            let kind = KeyFaultKind::Missing;
            let fault = missing.get_or_insert_with(|| fault_of(table, kind, rows.start, ids, at, domains));
            fault.rows += rows.end - rows.start;
            Ok(())
        }
    })?;
    Ok(Joined { runs: writer.finish()?, missing })
}

/// Looks the rows of the index up in itself: those whose ids an earlier row has.
pub fn repeated(
    lookup: &mut Lookup<'_>,
    plan: &MergePlan,
    table: &KeyTable,
    by_input: bool,
    watch: &Watch<'_>,
) -> Result<Option<Repeated>> {
    let mut found: Option<Repeated> = None;
    each_event(lookup, plan, table, by_input, watch, &mut |rows, _, _, event| {
        for row in rows.filter(|&row| event != Some(row)) {
            found.get_or_insert(Repeated { count: 0, row }).count += 1;
        }
        Ok(())
    })?;
    Ok(found)
}

/// A fault of no row yet, with the ids of tuple `at`.
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

/// What is called for rows of equal ids that follow each other: rows, ids of such runs and number of this one, event.
type Visit<'v> = dyn FnMut(Range<u64>, &Ids, usize, Option<u64>) -> Result<()> + 'v;

fn each_event(
    lookup: &mut Lookup<'_>,
    plan: &MergePlan,
    table: &KeyTable,
    by_input: bool,
    watch: &Watch<'_>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let starts = by_input.then_some(table.starts.as_slice());
    let (mut room, mut ids) = (RunRoom::default(), Ids::new(table.ids.width()));
    let mut row = 0;
    while row < table.ids.rows {
        if watch.cancel.is_cancelled() {
            return Err(MergeError::Cancelled);
        }
        let input = input_of(starts, row);
        let end = (row + READ_ROWS).min(table.ids.rows).min(input_end(starts, input, table.ids.rows));
        table.ids.read_runs(lookup.reader(), plan, row..end, &mut room, &mut ids)?;
        let is_sorted = (1..ids.len()).all(|run| ids.order(run - 1, &ids, run) == Ordering::Less);
        let events = if is_sorted { Vec::new() } else { unsorted_events(lookup, input, &ids)? };
        for (run, &start) in room.starts.iter().enumerate() {
            let next = room.starts.get(run + 1).map_or(end, |&next| row + u64::from(next));
            let event = if is_sorted { lookup.row(input, &ids, run)? } else { events[run] };
            visit(row + u64::from(start)..next, &ids, run, event)?;
        }
        let bytes = (end - row) * table.ids.row_len_bytes();
        watch.observer.event(&Event::Advanced { stage: Stage::Keys, bytes, items: 0 });
        row = end;
    }
    Ok(())
}

/// Events of tuples in any order, looked up in their own.
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
