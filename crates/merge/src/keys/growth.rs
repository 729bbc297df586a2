//! Extends computed columns (partition keys, first values) when rows are appended to a file.
//!
//! The ids of all rows are joined again, because new rows may repeat ids of the file. Only values of new rows are
//! written. Invariant: after an append the columns equal those of one merge of all inputs. An append that would change
//! the value of an existing row is refused.

use super::derived::{DerivedColumn, StoredRuns};
use super::groups::maker;
use super::table::KeyTable;
use super::{DerivedSpec, KeyDatasets};
use crate::error::{MergeError, Result};
use crate::plan::{Growable, MergePlan, NewColumn, Planner};
use crate::schema::join::{DifferenceKind, JoinResult};
use crate::schema::{ABSENT, ColumnIndex, InputExtent, Role, display_path};
use std::collections::HashSet;

/// Excludes from the join the columns that `specs` compute: inputs need not have them and contribute no rows to them.
///
/// # Errors
/// If the specs do not fit the file.
pub fn set_apart(joined: &mut JoinResult, specs: &[DerivedSpec]) -> Result<()> {
    let makers = specs.iter().map(|spec| maker(&joined.schema, spec)).collect::<Result<Vec<_>>>()?;
    let is_derived = |path: &[u8]| makers.iter().any(|makes| makes(path));
    let mut derived_paths = HashSet::new();
    for entry in &joined.schema.entries {
        let Role::Column(column) = entry.role else { continue };
        let facts = &mut joined.schema.columns[column as usize].facts;
        if is_derived(&entry.path) && facts.first().is_some_and(|fact| fact.template != ABSENT) {
            let without_rows = |(input, fact): (usize, &InputExtent)| match input {
                0 => *fact,
                _ => InputExtent::absent(0),
            };
            *facts = facts.iter().enumerate().map(without_rows).collect();
            derived_paths.insert(display_path(&entry.path));
        }
    }
    let is_absence = |kind| kind == DifferenceKind::Missing;
    joined.differences.retain(|difference| !(is_absence(difference.kind) && derived_paths.contains(&difference.path)));
    joined.warnings.retain(|difference| !(is_absence(difference.kind) && derived_paths.contains(&difference.path)));
    Ok(())
}

/// Checks that appending leaves the keys of existing rows unchanged.
///
/// # Errors
/// [`MergeError::Object`] for a table to which an input adds rows of existing events.
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
            true => refuse("would get rows of events after rows of later events, so its keys cannot be extended"),
            false => Ok(()),
        };
    }
    let events = old_rows(index);
    let mut rows_of_old_events = 0;
    stored.table.offsets(&stored.store, events..events + 1, |rows| rows_of_old_events = rows)?;
    match rows_of_old_events == old_rows(table.named) {
        true => Ok(()),
        false => refuse("would get rows of existing events, whose row counts would change"),
    }
}

/// Plans the new rows of the computed columns that the file has.
///
/// # Errors
/// [`MergeError::Object`] for columns that cannot grow or do not match the record of the file.
pub(super) fn go_on(plan: &mut MergePlan, columns: Vec<(NewColumn, DerivedColumn)>) -> Result<()> {
    let mut options = plan.options.clone();
    options.compress = options.compress.of_computed();
    for (NewColumn { entry, rows, .. }, mut derived) in columns {
        let is_it = |known: &&crate::schema::SchemaEntry| known.path == entry.path;
        let Some(Role::Column(column)) = plan.schema.entries.iter().find(is_it).map(|entry| entry.role.clone()) else {
            // The dataset was not written because events did not ascend, and they still do not.
            continue;
        };
        let Some(growth) = &plan.growth else { return Ok(()) };
        let (old_rows, total) = (growth.columns[column as usize].old_rows, rows.iter().sum::<u64>());
        let Some(new_rows) = total.checked_sub(old_rows) else {
            let reason = "has more rows than its keys; run raddle verify".to_owned();
            return Err(MergeError::Object { object: display_path(&entry.path), reason });
        };
        // Rows that belong to no single input are attributed to the first new one.
        let rows = match rows.first() == Some(&old_rows) {
            true => rows,
            false => [old_rows, new_rows].into_iter().chain(std::iter::repeat(0)).take(plan.inputs.len()).collect(),
        };
        derived.starts = std::iter::once(0)
            .chain(rows.iter().scan(0, |end, rows| {
                *end += rows;
                Some(*end)
            }))
            .collect();
        let facts = &mut plan.schema.columns[column as usize].facts;
        let first = facts.first().copied();
        let with_rows = |(input, rows): (usize, &u64)| match first.filter(|_| input == 0) {
            Some(fact) => fact,
            None => InputExtent { template: 0, ..InputExtent::absent(*rows) },
        };
        *facts = rows.iter().enumerate().map(with_rows).collect();
        let mut planner = Planner {
            options: &options,
            tiles: std::mem::take(&mut plan.tiles.arrays),
            column_of_array: std::mem::take(&mut plan.column_of_array),
            segments: raddle_core::plan::SegmentLists::default(),
            link: crate::options::Link::No,
            growable: Growable::AsTheInputs,
        };
        let grown = planner.grown_column(column, &plan.schema.columns[column as usize], &entry.path);
        (plan.tiles.arrays, plan.column_of_array) = (planner.tiles, planner.column_of_array);
        let (planned, grown) = grown?;
        plan.columns[column as usize] = planned;
        if let Some(growth) = &mut plan.growth {
            growth.columns[column as usize] = grown;
        }
        plan.derived.columns.insert(column, derived);
    }
    Ok(plan.tiles.validate()?)
}
