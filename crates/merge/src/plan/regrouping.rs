//! Choice of the datasets whose tiles are assembled in groups, because the chunks of the inputs extend over many tiles.
//!
//! Invariant: a pure function of the plan; all ranks choose the same.

use crate::plan::memory::ReaderMemory;
use crate::plan::{MergePlan, Route};
use crate::schema::Column;
use raddle_core::plan::ArrayPlan;
use raddle_core::plan::extent::Coordinates;
use raddle_core::regrouping::blocks::block_shape;
use raddle_core::regrouping::{Chunks, Regrouping, choose};
use raddle_hdf5::model::{Dataset, Layout};
use std::sync::Arc;

/// Length of a run of values in an unchunked dataset from which a tile reads it directly.
const LONG_RUN_LEN_BYTES: u64 = 64 << 10;

/// Returns the regrouping of each array of `plan`, if its tiles are regrouped.
pub(crate) fn regroupings(plan: &MergePlan) -> Vec<Option<Regrouping>> {
    let reader_len_bytes = ReaderMemory::of_tiles(plan).len_bytes;
    let of_array = |(array, &index): (&ArrayPlan, &u32)| {
        let (planned, column) = (&plan.columns[index as usize], &plan.schema.columns[index as usize]);
        if !matches!(planned.route, Route::Encoded { .. } | Route::Raw { .. }) || plan.made.has(index) {
            return None;
        }
        let template = template(column)?;
        let shape = source_chunk_shape(array, column, template)?;
        // A worker has a tile, its stored form, a reader and a block.
        let block_len_bytes = block_len_bytes(array, &shape);
        let of_worker = array.tile_len_bytes().saturating_mul(2).saturating_add(reader_len_bytes + block_len_bytes);
        let left = plan.options.memory_limit_bytes.saturating_sub(of_worker);
        let are_whole = !template.filters.is_empty();
        let found = choose(array, Chunks { shape: &shape, are_whole }, left / 2)?;
        (found.len_bytes(array) <= left).then_some(found)
    };
    plan.tiles.arrays.iter().zip(&plan.column_of_array).map(of_array).collect()
}

/// Returns the length of a block of `array`, whose inputs have chunks of `chunk_shape`.
pub(crate) fn block_len_bytes(array: &ArrayPlan, chunk_shape: &[u64]) -> u64 {
    let shape = block_shape(&array.shape, chunk_shape, array.element_len_bytes);
    shape.iter().fold(array.element_len_bytes, |len, &count| len.saturating_mul(count))
}

/// Returns the template of most rows of a column whose values can be read in any box with the same cost.
fn template(column: &Column) -> Option<&Dataset> {
    let rearranges = |conversion: &crate::rules::Conversion| {
        conversion.of_inputs.iter().any(|one| one.gather.is_some() || one.pick.is_some())
    };
    if column.is_lifted || column.conversion.as_deref().is_some_and(rearranges) {
        return None;
    }
    let mut rows = vec![0_u64; column.templates.len()];
    for fact in column.facts.iter() {
        if let Some(rows) = rows.get_mut(fact.template as usize) {
            *rows = rows.saturating_add(fact.rows);
        }
    }
    let most = (0..rows.len()).max_by_key(|&at| rows[at])?;
    let template = column.templates.get(most).map(Arc::as_ref)?;
    (!template.layout.is_through_library()).then_some(template)
}

/// Returns the chunk shape of a dataset. For a dataset without chunks these are its rows, if tiles would read them in
/// short runs.
fn source_chunk_shape(array: &ArrayPlan, column: &Column, template: &Dataset) -> Option<Coordinates> {
    match &template.layout {
        Layout::Chunked { chunk_shape, .. } => {
            let clip = |(&chunk, &len): (&u64, &u64)| chunk.min(len).max(1);
            Some(chunk_shape.iter().zip(&array.shape).map(clip).collect())
        }
        Layout::Contiguous { .. } => {
            let axes = array.shape.len();
            // The last axes that a tile covers as a whole form one run, with the next axis.
            let whole = (0..axes).rev().take_while(|&axis| axis > 0 && array.tile_shape[axis] >= array.shape[axis]);
            let first = axes.saturating_sub(whole.count() + 1);
            let run = array.tile_shape[first..].iter().fold(array.element_len_bytes, |len, &n| len.saturating_mul(n));
            let is_short = run < LONG_RUN_LEN_BYTES && first > 0 && first > column.axis;
            let row = |axis| if axis < first { 1 } else { array.shape[axis] };
            is_short.then(|| (0..axes).map(row).collect())
        }
        _ => None,
    }
}
