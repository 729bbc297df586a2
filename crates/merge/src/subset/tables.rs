//! Restricts tables to some of their rows: the events that a selection (`raddle select`) keeps.
//!
//! The rows are determined before the merge, from the values of its only input. Invariant: all datasets of a
//! table are restricted to the same rows.

use crate::error::{MergeError, Result};
use crate::keys::{DerivedSpec, KeyDatasets};
use crate::plan::Dimensions;
use crate::rules::Trim;
use crate::rules::settling::DeclaredRule;
use crate::schema::parent_path;
use crate::schema::{Column, InputExtent, Role, Schema, SchemaEntry, display_path, is_named};
use crate::subset::cut::{check_references, check_rules};
use raddle_core::plan::{Segment, Segments};
use raddle_core::pooled_file::FileIdentity;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Rows of tables to which the output is restricted.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TableSelection {
    /// State of the file in which the rows were found, if it must not have changed.
    pub input: Option<FileIdentity>,
    /// Conditions that the rows satisfy, as text for the record of the merge.
    pub conditions: Vec<String>,
    /// Values that the conditions compare, if they were chosen, for the record of the merge.
    pub values: Option<String>,
    /// Tables by the path of their group.
    pub tables: BTreeMap<Vec<u8>, SelectedRows>,
    /// Number of events to which these rows belong.
    pub events: SelectedEvents,
}

/// Number of selected events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SelectedEvents {
    /// Number of events that are selected.
    #[serde(rename = "selected_events")]
    pub selected: u64,
    /// Number of events in the input.
    #[serde(rename = "input_events")]
    pub of: u64,
}

/// Rows of a table.
#[derive(Clone, PartialEq, Eq)]
pub struct SelectedRows {
    /// Number of rows in the input. Other datasets of the group are not part of the table.
    pub of: u64,
    /// Runs of rows that the output has. The columns of the table share them.
    pub runs: Segments,
}

// The rows follow from the conditions and the input, and there may be millions of runs.
impl fmt::Debug for TableSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSelection").field("conditions", &self.conditions).finish_non_exhaustive()
    }
}

impl TableSelection {
    /// Returns the number of runs of rows, of all tables together.
    pub fn run_count(&self) -> u64 {
        self.tables.values().map(|rows| rows.runs.len() as u64).sum()
    }

    /// Returns the memory that the runs take.
    pub fn len_bytes(&self) -> u64 {
        self.run_count() * size_of::<Segment>() as u64
    }

    /// Returns the selected rows of the table to which a dataset of one input belongs.
    fn rows_of(&self, entry: &SchemaEntry, column: &Column) -> Option<&SelectedRows> {
        let selected = self.tables.get(parent_path(&entry.path))?;
        (column.axis == 0 && column.rows() == selected.of).then_some(selected)
    }
}

/// Restricts the columns of the selected tables.
///
/// # Errors
/// [`MergeError::Object`] for a dataset whose rows are not simply those of one input, and for datasets of which only
/// some would lose elements of their common dimension; also for values that refer to rows by their position.
pub(crate) fn cut(
    schema: &mut Schema,
    declared: &[DeclaredRule],
    derived: &[DerivedSpec],
    selection: &TableSelection,
) -> Result<()> {
    let mut paths = BTreeSet::new();
    for at in 0..schema.entries.len() {
        let entry = &schema.entries[at];
        let Role::Column(index) = entry.role else { continue };
        if selection.tables.contains_key(parent_path(&entry.path)) && is_stale_key(&entry.path, derived) {
            let reason =
                "is a partition key that the file does not record, and would be wrong; leave it out with --exclude";
            return Err(MergeError::Object { object: display_path(&entry.path), reason: reason.to_owned() });
        }
        let column = &mut schema.columns[index as usize];
        let Some(selected) = selection.rows_of(entry, column) else { continue };
        if column.runs.is_some() || column.boxes.is_some() || column.is_lifted || column.facts.len() != 1 {
            let reason = "does not have its rows in the order of its input, which cannot be selected".to_owned();
            return Err(MergeError::Object { object: display_path(&entry.path), reason });
        }
        take(column, &selected.runs);
        paths.insert(entry.path.clone());
    }
    let is_selected = |name: &str| paths.iter().any(|path| is_named(path, name));
    check_references(schema, is_selected, |entry| paths.contains(&entry.path))?;
    check_rules(schema, declared, &paths)?;
    check_scales(schema, &paths)
}

/// Returns whether a dataset has the name of a partition key, which counts rows of the whole file, and is not
/// recomputed.
fn is_stale_key(path: &[u8], derived: &[DerivedSpec]) -> bool {
    let has_name = KeyDatasets::default().endings().any(|ending| path.ends_with(ending.as_bytes()));
    has_name && !derived.iter().any(|spec| spec.makes(path))
}

/// Restricts a column of one input to these runs of rows.
fn take(column: &mut Column, runs: &Segments) {
    let stored_rows = column.facts[0].rows;
    column.runs = Some(runs.clone());
    column.trims = Some([Some(Trim { leading: 0, stored_rows })].into());
    column.facts = column.facts.iter().map(|fact| InputExtent { rows: runs.row_count(), ..*fact }).collect();
}

/// Refuses datasets that share a dimension scale although only some of them are restricted.
fn check_scales(schema: &Schema, restricted: &BTreeSet<Vec<u8>>) -> Result<()> {
    let dimensions = Dimensions::of(schema);
    let is_column = |entry: &&SchemaEntry| matches!(entry.role, Role::Column(_));
    let datasets: BTreeSet<&[u8]> =
        schema.entries.iter().filter(is_column).map(|entry| entry.path.as_slice()).collect();
    for entry in &schema.entries {
        let Role::Column(_) = entry.role else { continue };
        let is_restricted = restricted.contains(&entry.path);
        for (axis, names) in dimensions.names(entry, schema.rank(entry)).iter().enumerate() {
            let differs = |scale: &&Vec<u8>| {
                datasets.contains(scale.as_slice()) && restricted.contains(*scale) != (is_restricted && axis == 0)
            };
            if let Some(scale) = names.iter().find(differs) {
                return Err(MergeError::Object {
                    object: display_path(&entry.path),
                    reason: format!(
                        "has the dimension {}, of which only a part would be selected; leave one out with --exclude",
                        display_path(scale)
                    ),
                });
            }
        }
    }
    Ok(())
}
