//! Splits selections that form one box into units along axis 0, each of which is one run of the buffer.

use super::{AxisSelection, Request};
use crate::error::Result;
use crate::model::Layout;
use crate::read::{BoxRead, DatasetReader, DatasetSource, MAX_RANK, ReadCounts};
use raddle_core::plan::extent::Coordinates;

/// Target size of a unit in decoded bytes: large enough that taking one (a lock) costs nothing, small enough to balance
/// the end of a read.
pub(super) const UNIT_LEN_BYTES: u64 = 512 * 1024;

/// Maximum total length of two chunks that form one unit because interleaved decoding is faster.
const MAX_CHUNK_LEN_BYTES: u64 = 4 << 20;

/// A box and its bytes.
pub(super) struct DirectUnit<'a> {
    source: DatasetSource<'a>,
    start: Coordinates,
    count: Coordinates,
    out: &'a mut [u8],
}

impl DirectUnit<'_> {
    /// Returns the length of its values.
    pub fn len_bytes(&self) -> usize {
        self.out.len()
    }

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

/// Returns the length of blocks along `axis` that should not be split: chunks, or single elements.
pub(super) fn block_len(source: &DatasetSource<'_>, axis: usize) -> u64 {
    match &source.dataset.layout {
        Layout::Chunked { chunk_shape, .. } => chunk_shape.get(axis).copied().unwrap_or(1).max(1),
        _ => 1,
    }
}

/// Returns whether the selection is one box that can be split well along axis 0.
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

/// Splits a request for which [`is_direct`] holds.
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
    let chunk_len_bytes = row_len_bytes.saturating_mul(block);
    let are_decoded_in_turn =
        chunk_len_bytes <= MAX_CHUNK_LEN_BYTES && source.pipeline.prefers_pairs(chunk_len_bytes as usize);
    let min_blocks = if are_decoded_in_turn { 2 } else { 1 };
    let blocks_per_unit = (UNIT_LEN_BYTES / chunk_len_bytes.max(1)).max(min_blocks);
    let rows_per_unit = blocks_per_unit.saturating_mul(block);
    let end = start[0] + count[0];
    while start[0] < end {
        // End at a boundary between chunks.
        let next = (start[0] / block).saturating_mul(block).saturating_add(rows_per_unit).min(end);
        count[0] = next - start[0];
        let (mine, rest) = std::mem::take(&mut out).split_at_mut((count[0] * row_len_bytes) as usize);
        units.push(DirectUnit { source, start: start.clone(), count: count.clone(), out: mine });
        out = rest;
        start[0] = next;
    }
}

/// Cuts each of the last `count` units in two at a chunk boundary if possible, so that the last units are short and
/// there is one for each thread.
pub(super) fn halve_last(units: &mut Vec<DirectUnit<'_>>, count: usize) {
    let last = units.split_off(units.len().saturating_sub(count));
    for mut unit in last {
        let (start, rows) = (unit.start.first().copied().unwrap_or(0), unit.count.first().copied().unwrap_or(0));
        let first_rows = (start + rows / 2).next_multiple_of(block_len(&unit.source, 0)) - start;
        if rows == 0 || first_rows >= rows {
            units.push(unit);
            continue;
        }
        let row_len_bytes = unit.out.len() / rows as usize;
        let (front, back) = std::mem::take(&mut unit.out).split_at_mut(first_rows as usize * row_len_bytes);
        let mut second =
            DirectUnit { source: unit.source, start: unit.start.clone(), count: unit.count.clone(), out: back };
        (unit.out, unit.count[0]) = (front, first_rows);
        (second.start[0], second.count[0]) = (start + first_rows, rows - first_rows);
        units.extend([unit, second]);
    }
}
