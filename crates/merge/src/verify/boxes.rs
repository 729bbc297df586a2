//! Boxes in which the values of a dataset are read, if its chunks extend over many of the rows that are read at once.
//!
//! Invariant: the boxes of a dataset are disjoint and cover it.

use crate::error::Result;
use crate::plan::{MergePlan, Route};
use crate::schema::ColumnIndex;
use raddle_core::plan::ArrayPlan;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::regrouping::boxes::reading_boxes;
use raddle_hdf5::model::Layout;

/// Collective. Returns the least of the limits of all ranks, which may have different numbers of threads: boxes are
/// divided between ranks, so that every rank must cut the same ones.
pub(super) fn common_limit_len_bytes(local: u64, ranks: &dyn Communicator) -> Result<u64> {
    Ok(ranks.least_u64(local)?)
}

/// Returns the boxes in which the columns of one or two plans are read together, up to `limit_len_bytes` each. Returns
/// `None` if they are read in runs of `rows` rows.
pub(super) fn boxes(sides: &[(&MergePlan, ColumnIndex)], rows: u64, limit_len_bytes: u64) -> Option<ArrayPlan> {
    let array_of = |(plan, column): &(&MergePlan, ColumnIndex)| match plan.columns[*column as usize].route {
        Route::Encoded { array, .. } | Route::Verbatim { array } => plan.tiles.arrays.get(array as usize).cloned(),
        _ => None,
    };
    let arrays = sides.iter().map(array_of).collect::<Option<Vec<_>>>()?;
    let first = arrays.first()?;
    if arrays.iter().any(|array| array.shape != first.shape) {
        return None;
    }
    let mut chunk_shapes = Vec::new();
    for (plan, column) in sides {
        let scanned = &plan.schema.columns[*column as usize];
        if scanned.is_lifted {
            return None;
        }
        for template in &scanned.templates {
            let Layout::Chunked { chunk_shape, .. } = &template.layout else { continue };
            chunk_shapes.push(chunk_shape.as_slice());
        }
    }
    chunk_shapes.sort_unstable();
    chunk_shapes.dedup();
    if chunk_shapes.is_empty() {
        return None;
    }
    reading_boxes(first, &chunk_shapes, rows, limit_len_bytes)
}

/// Returns the plan's own array of a column that is read in boxes.
pub(super) fn array_of(plan: &MergePlan, column: ColumnIndex) -> Option<&ArrayPlan> {
    plan.tiles.arrays.get(plan.columns[column as usize].route.array()? as usize)
}
