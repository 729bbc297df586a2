//! The join of one table with the index: the event of every row, as runs.
//!
//! Tables are nearly sorted like the index, so most rows are equal to the one above and most others are found a few
//! rows further in the index. A block of rows in another order is sorted before it is looked up.

use super::faults::{KeyFault, KeyFaultKind};
use super::ids::{Domain, IdTable, Ids};
use super::index::{Lookup, READ_ROWS, Repeated, input_end, input_of};
use super::runs::{RunStore, RunWriter, TableRuns};
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::schema::{ColumnIndex, display_path};
use raddle_core::progress::{Event, Stage};
use std::cmp::Ordering;

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
    each_event(lookup, plan, table, by_input, watch, &mut |row, ids, at, event| match event {
        Some(event) => writer.push(event),
        None => {
            let fault = missing.get_or_insert_with(|| fault_of(table, KeyFaultKind::Missing, row, ids, at, domains));
            fault.rows += 1;
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
    each_event(lookup, plan, table, by_input, watch, &mut |row, _, _, event| {
        if event != Some(row) {
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

/// What is called for each row: row, ids and place in them, event.
type Visit<'v> = dyn FnMut(u64, &Ids, usize, Option<u64>) -> Result<()> + 'v;

fn each_event(
    lookup: &mut Lookup<'_>,
    plan: &MergePlan,
    table: &KeyTable,
    by_input: bool,
    watch: &Watch<'_>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let starts = by_input.then_some(table.starts.as_slice());
    let (mut raw, mut ids) = (Vec::new(), Ids::new(table.ids.width()));
    let mut row = 0;
    while row < table.ids.rows {
        if watch.cancel.is_cancelled() {
            return Err(MergeError::Cancelled);
        }
        let input = input_of(starts, row);
        let end = (row + READ_ROWS).min(table.ids.rows).min(input_end(starts, input, table.ids.rows));
        table.ids.read(lookup.reader(), plan, row..end, &mut raw, &mut ids)?;
        let is_sorted = (1..ids.len()).all(|at| ids.order(at - 1, &ids, at) != Ordering::Greater);
        if is_sorted {
            let mut event = None;
            for at in 0..ids.len() {
                if at == 0 || ids.order(at - 1, &ids, at) != Ordering::Equal {
                    event = lookup.row(input, &ids, at)?;
                }
                visit(row + at as u64, &ids, at, event)?;
            }
        } else {
            for (at, event) in unsorted_events(lookup, input, &ids)?.into_iter().enumerate() {
                visit(row + at as u64, &ids, at, event)?;
            }
        }
        let bytes = (end - row) * table.ids.row_len_bytes();
        watch.observer.event(&Event::Advanced { stage: Stage::Keys, bytes, items: 0 });
        row = end;
    }
    Ok(())
}

/// Events of rows in any order, looked up in the order of their ids.
fn unsorted_events(lookup: &mut Lookup<'_>, input: u32, ids: &Ids) -> Result<Vec<Option<u64>>> {
    let mut events = vec![None; ids.len()];
    let mut before: Option<usize> = None;
    for at in ids.sorted(0..ids.len()) {
        let at = at as usize;
        events[at] = match before.filter(|&before| ids.order(before, ids, at) == Ordering::Equal) {
            Some(before) => events[before],
            None => lookup.row(input, ids, at)?,
        };
        before = Some(at);
    }
    Ok(events)
}
