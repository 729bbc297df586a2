//! Checks that HDF5 can count the rows of each dataset and the bytes of all datasets.
//!
//! libhdf5 counts elements and bytes in signed 64-bit integers, although dimensions are unsigned. Invariant: after
//! [`check`], neither the rows of a column nor the bytes of all columns exceed [`MAX`].

use super::{MergePlan, PlannedInput};
use crate::error::{MergeError, Result};
use crate::schema::{Column, ColumnIndex, Schema, display_path};
use raddle_core::CoreError;

/// Largest number of the signed type in which libhdf5 counts (`hssize_t`): 2⁶³ - 1.
const MAX: u64 = i64::MAX as u64;

/// Returns an error that names dataset and input if the inputs of `schema` have more rows or bytes than can be counted.
pub(super) fn check(schema: &Schema, inputs: &[PlannedInput]) -> Result<()> {
    let mut all = 0_u128;
    for (index, column) in (0..).zip(&schema.columns) {
        let rows = column.rows();
        if rows > MAX {
            let needed = column.facts.iter().map(|fact| u128::from(fact.rows)).sum();
            return Err(oversized(schema, inputs, index, "rows", needed));
        }
        let len_bytes = row_len_bytes(column).saturating_mul(rows.into());
        all = all.saturating_add(len_bytes);
        if len_bytes > MAX.into() {
            return Err(oversized(schema, inputs, index, "bytes", len_bytes));
        }
        if all > MAX.into() {
            return Err(oversized(schema, inputs, largest(schema), "bytes with all other datasets", all));
        }
    }
    Ok(())
}

/// Converts the engine's refusal of an array into an error that names the dataset. Whole chunks may exceed the limit
/// even if the values do not.
pub(super) fn explain(plan: &MergePlan, error: CoreError) -> MergeError {
    match error {
        CoreError::Plan { array, fault: raddle_core::error::PlanFault::Overflow } => {
            let column = plan.column_of_array.get(array).copied().unwrap_or_default();
            let chunks = plan.tiles.arrays.iter();
            let needed = chunks.map(|array| u128::from(array.tile_count()) * u128::from(array.tile_len_bytes())).sum();
            oversized(&plan.schema, &plan.inputs, column, "bytes in whole chunks", needed)
        }
        error => error.into(),
    }
}

/// Returns the number of bytes of a row. The product of a file's dimensions may exceed 64 bits.
fn row_len_bytes(column: &Column) -> u128 {
    let model = column.model();
    let dims = model.dataspace.dims().iter().skip(1).map(|&dim| u128::from(dim));
    dims.fold(model.datatype.class.len_bytes().into(), u128::saturating_mul)
}

fn largest(schema: &Schema) -> ColumnIndex {
    let lens = schema.columns.iter().map(|column| row_len_bytes(column).saturating_mul(column.rows().into()));
    (0..).zip(lens).max_by_key(|(_, len_bytes)| *len_bytes).map_or(0, |(index, _)| index)
}

fn oversized(
    schema: &Schema,
    inputs: &[PlannedInput],
    column: ColumnIndex,
    what: &'static str,
    needed: u128,
) -> MergeError {
    let facts = schema.columns[column as usize].facts.iter().enumerate();
    let (input, rows) = facts.max_by_key(|(_, fact)| fact.rows).map_or((0, 0), |(input, fact)| (input, fact.rows));
    MergeError::Oversized {
        object: display_path(schema.column_path(column)),
        input: inputs.get(input).map(|input| input.path.clone()).unwrap_or_default(),
        rows,
        what,
        needed,
        limit: MAX,
    }
}
