//! Datasets that are stored without chunks: their maximum size, and those that the inputs store without chunks.

use crate::schema::Column;
use raddle_hdf5::model::{Dataset, Layout};

/// Datasets up to this size that the inputs store unchunked are written whole by libhdf5, which costs less than a chunk
/// index.
pub(super) const MAX_DIRECT_BYTES: u64 = 4096;
/// Largest compact dataset: HDF5 limits object header messages to 64 KiB, and a part of that is needed for the message
/// itself.
pub(super) const MAX_COMPACT_BYTES: u64 = 64_000;

/// Returns whether a dataset is stored unchunked unless it must be extendible.
pub(super) fn is_stored_whole(column: &Column) -> bool {
    let row_len_bytes = column
        .model()
        .dataspace
        .dims()
        .iter()
        .enumerate()
        .filter(|(axis, _)| *axis != column.axis)
        .fold(column.model().datatype.class.len_bytes(), |product, (_, &dim)| product.saturating_mul(dim));
    let limit = match column.model().layout {
        Layout::Compact(_) => MAX_COMPACT_BYTES,
        _ => MAX_DIRECT_BYTES,
    };
    let is_unchunked = column.templates.iter().all(|template| chunk_shape_of(template).is_none());
    is_unchunked && (1..=limit).contains(&row_len_bytes.saturating_mul(column.rows()))
}

/// Returns the shape of the chunks of a dataset; `None` if it is not chunked.
pub(super) fn chunk_shape_of(dataset: &Dataset) -> Option<&[u64]> {
    match &dataset.layout {
        Layout::Chunked { chunk_shape, .. } => Some(chunk_shape),
        _ => None,
    }
}
