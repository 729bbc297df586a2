//! Columns whose values raddle computes: their contents, and how a box of them is filled.
//!
//! Invariant: values depend only on the plan, not on the tile for which they are computed.

use super::DerivedSpec;
use super::runs::{RunStore, TableRuns};
use crate::error::Result;
use crate::schema::ColumnIndex;
use raddle_core::plan::extent::{BoxSource, BoxTarget, Extent, copy_box};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Computed columns of a plan.
#[derive(Debug, Default)]
pub struct DerivedColumns {
    /// Specifications; recorded in the output, so that a verification can recompute the columns.
    pub specs: Vec<DerivedSpec>,
    /// The tables that got keys.
    pub tables: Vec<KeyedTable>,
    /// Paths of groups that have datasets but lack a column of the key, escaped for display.
    pub without: Vec<String>,
    /// Patterns of groups without keys that match no group.
    pub unmatched_skips: Vec<String>,
    /// Tables whose events do not ascend: they have `NAME.seq` only.
    pub descending: Vec<super::KeyFault>,
    /// Number of datasets of the inputs that were recomputed.
    pub replaced: u64,
    pub(super) columns: HashMap<ColumnIndex, DerivedColumn>,
}

/// Table with keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyedTable {
    /// Path of the group, escaped for display.
    pub group: String,
    /// Number of rows.
    pub rows: u64,
    /// Number of events with rows.
    pub events: u64,
}

/// Computed column.
#[derive(Debug, Clone)]
pub(super) struct DerivedColumn {
    pub values: DerivedValues,
    /// First row of each input of the plan, according to the extents.
    pub starts: Vec<u64>,
    /// First row of each recorded input, followed by the total; `None` if rows belong to no input.
    pub recorded_starts: Option<Vec<u64>>,
}

/// Runs of rows that belong to the same event in a table, and the store that holds them.
#[derive(Debug, Clone)]
pub(super) struct StoredRuns {
    pub table: Arc<TableRuns>,
    pub store: Arc<RunStore>,
}

/// Contents of a computed column.
#[derive(Debug, Clone)]
pub(super) enum DerivedValues {
    /// Row numbers, in the index group.
    OwnSeq,
    /// Row numbers and ones, in the index group.
    OwnCounts,
    /// Event of each row of a table.
    Seq(StoredRuns),
    /// Events of a table and their numbers of rows.
    Counts(StoredRuns),
    /// Number of rows of a table before each event.
    Offsets(StoredRuns),
    /// The same element in all rows.
    Constant(Vec<u8>),
}

impl DerivedColumns {
    /// Creates an empty list of the columns that `specs` request; `replaced` is the number of columns that
    /// existed before.
    pub fn new(specs: Vec<DerivedSpec>, replaced: u64) -> Self {
        Self { specs, replaced, ..Self::default() }
    }

    /// Returns whether raddle computes the column.
    pub fn has(&self, column: ColumnIndex) -> bool {
        self.columns.contains_key(&column)
    }

    /// Returns the first row of each recorded input of a computed column, followed by the total; `None` if its rows
    /// belong to no input.
    pub(crate) fn recorded_starts(&self, column: ColumnIndex) -> Option<&[u64]> {
        self.columns.get(&column)?.recorded_starts.as_deref()
    }

    /// Fills a box of a computed column; the rows of `source` count within the plan's input, as for columns that are
    /// read.
    pub(crate) fn read_piece(
        &self,
        column: ColumnIndex,
        input: u32,
        dims: &[u64],
        source: &Extent,
        target: BoxTarget<'_>,
    ) -> Result<()> {
        let Some(derived) = self.columns.get(&column) else { return Ok(()) };
        let first = derived.starts.get(input as usize).copied().unwrap_or(0) + source.start[0];
        let rows = first..first + source.count[0];
        let mut shape = source.count.to_vec();
        shape[1..].copy_from_slice(&dims[1..]);
        let mut origin = source.start.to_vec();
        origin[0] = 0;
        let element_len_bytes = match &derived.values {
            DerivedValues::Constant(element) => element.len(),
            _ => size_of::<i64>(),
        };
        let mut values = Vec::with_capacity(shape.iter().product::<u64>() as usize * element_len_bytes);
        self.values(derived, rows, &mut values)?;
        let from = BoxSource { bytes: &values, shape: &shape, origin: &origin };
        Ok(copy_box(from, target, &source.count, element_len_bytes)?)
    }

    fn values(&self, derived: &DerivedColumn, rows: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        // Row numbers are below 2^63, HDF5's limit for an extent.
        let mut put = |number: u64| out.extend_from_slice(&number.to_le_bytes());
        match &derived.values {
            DerivedValues::OwnSeq => rows.for_each(put),
            DerivedValues::OwnCounts => rows.for_each(|row| {
                put(row);
                put(1);
            }),
            DerivedValues::Seq(StoredRuns { table, store }) => table.events(store, rows, |run| {
                let start = out.len();
                out.resize(start + run.rows as usize * size_of::<i64>(), 0);
                out[start..].as_chunks_mut().0.fill(run.event.to_le_bytes());
            })?,
            DerivedValues::Counts(StoredRuns { table, store }) => table.runs(store, rows, |run| {
                put(run.event);
                put(run.rows);
            })?,
            DerivedValues::Offsets(StoredRuns { table, store }) => table.offsets(store, rows, put)?,
            DerivedValues::Constant(element) => rows.for_each(|_| out.extend_from_slice(element)),
        }
        Ok(())
    }
}
