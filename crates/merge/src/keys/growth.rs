//! Made columns of a file that grows: they go on where they end.
//!
//! Ids of all rows are joined again, those of the file too, for new rows may repeat ids. Values of old rows are not written.
//! Invariant: a file that has grown has the values that one merge of all inputs makes; where these would differ in a row
//! that is there, the append is refused.

use super::attach::maker;
use super::made::{MadeColumn, StoredRuns};
use super::table::KeyTable;
use super::{KeyDatasets, MadeSpec};
use crate::error::{MergeError, Result};
use crate::join::{DifferenceKind, Joined};
use crate::plan::{Growable, MergePlan, NewColumn, Planner};
use crate::schema::{ABSENT, ColumnFact, ColumnIndex, Role, display_path};
use std::collections::HashSet;

/// Takes the columns that `specs` make out of what inputs are asked for: they get no rows from them, and none of them has to
/// have them.
///
/// # Errors
/// Specs that do not fit the file.
pub fn set_apart(joined: &mut Joined, specs: &[MadeSpec]) -> Result<()> {
    let makers = specs.iter().map(|spec| maker(&joined.schema, spec)).collect::<Result<Vec<_>>>()?;
    let is_made = |path: &[u8]| makers.iter().any(|makes| makes(path));
    let mut made = HashSet::new();
    for entry in &joined.schema.entries {
        let Role::Column(column) = entry.role else { continue };
        let facts = &mut joined.schema.columns[column as usize].facts;
        if is_made(&entry.path) && facts.first().is_some_and(|fact| fact.template != ABSENT) {
            let without_rows = |(input, fact): (usize, &ColumnFact)| match input {
                0 => *fact,
                _ => ColumnFact::absent(0),
            };
            *facts = facts.iter().enumerate().map(without_rows).collect();
            made.insert(display_path(&entry.path));
        }
    }
    let is_absence = |kind| kind == DifferenceKind::Missing;
    joined.differences.retain(|difference| !(is_absence(difference.kind) && made.contains(&difference.path)));
    joined.warnings.retain(|difference| !(is_absence(difference.kind) && made.contains(&difference.path)));
    Ok(())
}

/// Checks that the rows of a table that are there keep their places among events.
///
/// # Errors
/// [`MergeError::Object`] for a table to which an input adds rows of events that the file has already.
pub(super) fn check_continues(
    plan: &MergePlan,
    index: ColumnIndex,
    table: &KeyTable,
    stored: &StoredRuns,
    datasets: KeyDatasets,
) -> Result<()> {
    let Some(growth) = &plan.growth else { return Ok(()) };
    let old_rows = |column: ColumnIndex| growth.columns[column as usize].old_rows;
    let named = plan.schema.column_path(table.named);
    let has = |ending: &str| {
        let path = [named, ending.as_bytes()].concat();
        plan.schema.entries.iter().any(|entry| entry.path == path)
    };
    let refuse = |reason: &str| {
        Err(MergeError::Object {
            object: display_path(&table.group),
            reason: reason.to_owned() + "; merge all inputs again",
        })
    };
    if stored.table.descends_at.is_some() {
        let is_ascending = datasets.counts && has(".seq_cnt") || datasets.offsets && has(".offsets");
        return match is_ascending {
            true => refuse("would get rows of events behind rows of later events, so that its keys could not go on"),
            false => Ok(()),
        };
    }
    let events = old_rows(index);
    let mut rows_of_old_events = 0;
    stored.table.offsets(&stored.store, events..events + 1, |rows| rows_of_old_events = rows)?;
    match rows_of_old_events == old_rows(table.named) {
        true => Ok(()),
        false => refuse("would get rows of events that the file has already, whose numbers of rows would change"),
    }
}

/// Lets made columns that the file has go on.
///
/// # Errors
/// [`MergeError::Object`] for columns that cannot grow, and for those that are not what was written.
pub(super) fn go_on(plan: &mut MergePlan, columns: Vec<(NewColumn, MadeColumn)>) -> Result<()> {
    let options = plan.options.clone();
    for (NewColumn { entry, rows, .. }, mut made) in columns {
        let is_it = |known: &&crate::schema::Entry| known.path == entry.path;
        let Some(Role::Column(column)) = plan.schema.entries.iter().find(is_it).map(|entry| entry.role.clone()) else {
            // Without them where events did not ascend; then they do not now.
            continue;
        };
        let Some(growth) = &plan.growth else { return Ok(()) };
        let (old_rows, total) = (growth.columns[column as usize].old_rows, rows.iter().sum::<u64>());
        let Some(new_rows) = total.checked_sub(old_rows) else {
            let reason = "has more rows than its keys; run raddle verify".to_owned();
            return Err(MergeError::Object { object: display_path(&entry.path), reason });
        };
        // Rows that belong to no input come with the first that is new.
        let rows = match rows.first() == Some(&old_rows) {
            true => rows,
            false => [old_rows, new_rows].into_iter().chain(std::iter::repeat(0)).take(plan.inputs.len()).collect(),
        };
        made.starts = std::iter::once(0)
            .chain(rows.iter().scan(0, |end, rows| {
                *end += rows;
                Some(*end)
            }))
            .collect();
        let facts = &mut plan.schema.columns[column as usize].facts;
        let first = facts.first().copied();
        let with_rows = |(input, rows): (usize, &u64)| match first.filter(|_| input == 0) {
            Some(fact) => fact,
            None => ColumnFact { template: 0, ..ColumnFact::absent(*rows) },
        };
        *facts = rows.iter().enumerate().map(with_rows).collect();
        let mut planner = Planner {
            options: &options,
            tiles: std::mem::take(&mut plan.tiles.arrays),
            column_of_array: std::mem::take(&mut plan.column_of_array),
            segments: raddle_core::plan::SegmentLists::default(),
            link: crate::links::Link::No,
            growable: Growable::AsTheInputs,
        };
        let grown = planner.grown_column(column, &plan.schema.columns[column as usize], &entry.path);
        (plan.tiles.arrays, plan.column_of_array) = (planner.tiles, planner.column_of_array);
        let (planned, grown) = grown?;
        plan.columns[column as usize] = planned;
        if let Some(growth) = &mut plan.growth {
            growth.columns[column as usize] = grown;
        }
        plan.made.columns.insert(column, made);
    }
    Ok(plan.tiles.validate()?)
}
