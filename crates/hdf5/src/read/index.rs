//! Chunk index traversal: dispatch by kind of index.
//!
//! Each kind of index has a separate module with a function `walk`. This module does not depend on their formats.

use super::grid::{ChunkGrid, ChunkRange};
use super::index_reader::{IndexReader, NodeCache, Visit};
use super::{ChunkRecord, Encoding, MAX_RANK, btree1, btree2, extensible_array, fixed_array};
use crate::error::Result;
use crate::model::{ChunkIndex, Dataset};
use crate::source::MetadataView;
use std::ops::{ControlFlow, Range};

/// Calls `visit` for each allocated chunk of `dataset` in the order of the index. With `rows`, visits only chunks that
/// hold rows in that range of the first dimension, and reads only the index nodes that lead to them.
///
/// Chunks entirely beyond the extent are not visited. A dataset that is not chunked has no chunks. Fails if the index
/// violates the format or points outside of the file; overlaps of chunks are checked by [`super::check_chunks`].
pub fn for_each_chunk(
    view: &mut MetadataView<'_>,
    encoding: Encoding,
    dataset: &Dataset,
    rows: Option<Range<u64>>,
    visit: &mut dyn FnMut(&ChunkRecord<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let Some(grid) = ChunkGrid::of(view.file(), dataset)? else { return Ok(()) };
    let Some(range) = grid.range_of_rows(rows.unwrap_or(0..u64::MAX)) else { return Ok(()) };
    let mut nodes = NodeCache::default();
    walk(&mut IndexReader { source: view, nodes: &mut nodes, encoding }, &grid, &range, visit).map(drop)
}

/// Calls `visit` for each allocated chunk of `range`.
pub(super) fn walk(
    reader: &mut IndexReader<'_>,
    grid: &ChunkGrid<'_>,
    range: &ChunkRange,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>> {
    reader.check_encoding()?;
    match *grid.index {
        ChunkIndex::None => Ok(ControlFlow::Continue(())),
        ChunkIndex::BtreeV1 { address } => btree1::walk(reader, address, grid, range, visit),
        ChunkIndex::Single { address, len_bytes, filter_mask } => {
            let len_bytes = len_bytes.unwrap_or(grid.chunk_len_bytes);
            if range.first[..grid.rank()].iter().any(|&first| first > 0) {
                return Ok(ControlFlow::Continue(()));
            }
            let origin = &[0; MAX_RANK][..grid.rank()];
            reader.check_chunk(address, len_bytes)?;
            Ok(visit(&ChunkRecord { origin, address, len_bytes, filter_mask }))
        }
        ChunkIndex::Implicit { address } => fixed_array::walk_implicit(reader, address, grid, range, visit),
        ChunkIndex::FixedArray { address } => fixed_array::walk(reader, address, grid, range, visit),
        ChunkIndex::ExtensibleArray { address } => extensible_array::walk(reader, address, grid, range, visit),
        ChunkIndex::BtreeV2 { address } => btree2::walk(reader, address, grid, range, visit),
        ChunkIndex::ThroughLibrary => {
            Err(reader.unsupported(0, "a chunk index that only libhdf5 knows (child reader)".to_owned()))
        }
    }
}
