//! Selections that are one box: cut along axis 0 into units whose bytes are one run of the buffer each.

use super::{AxisSelection, Request};
use crate::error::Result;
use crate::model::Layout;
use crate::read::{BoxRead, DatasetReader, DatasetSource, MAX_RANK, ReadCounts};
use raddle_core::extent::Coordinates;

/// Decoded bytes of a unit: long enough that taking it (a lock) costs nothing, short enough to spread the last ones.
pub(super) const UNIT_LEN_BYTES: u64 = 512 * 1024;

/// A box and its bytes.
pub(super) struct DirectUnit<'a> {
    source: DatasetSource<'a>,
    start: Coordinates,
    count: Coordinates,
    out: &'a mut [u8],
}

impl DirectUnit<'_> {
    pub fn read(self, reader: &mut DatasetReader) -> Result<ReadCounts> {
        let origin = [0; MAX_RANK];
        let target = BoxRead {
            start: &self.start,
            count: &self.count,
            out_shape: &self.count,
            out_origin: &origin[..self.count.len()],
        };
        reader.read_box(&self.source, &target, self.out)
    }
}

/// Blocks of axis `axis` that should not be cut: chunks, or single elements.
pub(super) fn block_len(source: &DatasetSource<'_>, axis: usize) -> u64 {
    match &source.dataset.layout {
        Layout::Chunked { chunk_shape, .. } => chunk_shape.get(axis).copied().unwrap_or(1).max(1),
        _ => 1,
    }
}

/// Whether the selection is one box that axis 0 cuts well.
pub(super) fn is_direct(request: &Request<'_>) -> bool {
    let runs: Option<Vec<(u64, u64)>> = request.axes.iter().map(AxisSelection::as_run).collect();
    let Some(runs) = runs else { return false };
    let blocks = |axis: usize| {
        let (block, (start, count)) = (block_len(&request.source, axis), runs[axis]);
        (start + count).div_ceil(block) - start / block
    };
    let chunked = matches!(request.source.dataset.layout, Layout::Chunked { .. });
    let one_row_of_chunks = chunked && blocks(0) == 1 && (1..runs.len()).any(|axis| blocks(axis) > 1);
    !(one_row_of_chunks && request.out.len() as u64 > 2 * UNIT_LEN_BYTES)
}

/// Cuts a request for which [`is_direct`] holds.
pub(super) fn split<'a>(request: Request<'a>, units: &mut Vec<DirectUnit<'a>>) {
    let Request { source, axes, mut out } = request;
    let (mut start, mut count) = (Coordinates::new(), Coordinates::new());
    for run in axes.iter().filter_map(AxisSelection::as_run) {
        start.push(run.0);
        count.push(run.1);
    }
    if count.is_empty() {
        units.push(DirectUnit { source, start, count, out });
        return;
    }
    let row_len_bytes = out.len() as u64 / count[0];
    let block = block_len(&source, 0);
    let rows_per_unit = (UNIT_LEN_BYTES / row_len_bytes.max(1) / block).max(1).saturating_mul(block);
    let end = start[0] + count[0];
    while start[0] < end {
        // Up to a boundary between chunks.
        let next = (start[0] / block).saturating_mul(block).saturating_add(rows_per_unit).min(end);
        count[0] = next - start[0];
        let (mine, rest) = std::mem::take(&mut out).split_at_mut((count[0] * row_len_bytes) as usize);
        units.push(DirectUnit { source, start: start.clone(), count: count.clone(), out: mine });
        out = rest;
        start[0] = next;
    }
}
