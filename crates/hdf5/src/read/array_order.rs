//! Chunk order and element forms of the array-like indexes (implicit, fixed array, extensible array).
//!
//! Chunks are numbered row-major over the grid of the *maximum* extent; for an extensible array the unlimited dimension
//! comes first, whatever its position in the dataset. Invariant: numbers and coordinates convert both ways.

use super::grid::{ChunkGrid, ChunkRange, index_address};
use super::index_reader::{IndexReader, Visit, uint};
use super::{ChunkRecord, MAX_RANK};
use crate::error::Result;
use std::ops::{ControlFlow, Range};

/// Above this number of separate runs of chunk numbers, they are walked as one run with a filter: a step over an
/// element costs about 2 ns, a search for the next run about 30 ns, and sparse arrays have few allocated blocks to step
/// over.
const MAX_RUNS: u64 = 65_536;

/// Chunk numbering of one dataset.
pub(super) struct ArrayOrder {
    rank: usize,
    /// Dataset dimension at each position of the order.
    axes: [usize; MAX_RANK],
    /// Number of chunks at each position; the first number is not needed and may be unlimited.
    counts: [u64; MAX_RANK],
    /// Difference in chunk number per step at each position.
    down: [u64; MAX_RANK],
}

impl ArrayOrder {
    /// Creates the order over `grid`'s maximum extent. With `unlimited_first`, its only unlimited dimension comes
    /// first.
    pub fn new(reader: &IndexReader<'_>, grid: &ChunkGrid<'_>, unlimited_first: bool) -> Result<Self> {
        let rank = grid.rank();
        let refuse = || {
            reader.malformed(
                index_address(grid.index),
                format!("maximum extent {:?} does not suit this kind of chunk index", grid.max_dims),
            )
        };
        let mut order = Self { rank, axes: [0; MAX_RANK], counts: [0; MAX_RANK], down: [1; MAX_RANK] };
        let mut unlimited = (0..rank).filter(|&axis| grid.max_dims[axis] == u64::MAX);
        let first = unlimited.next();
        if unlimited.next().is_some() || first.is_some() != unlimited_first {
            return Err(refuse());
        }
        let leading = first.unwrap_or(0);
        let axes = std::iter::once(leading).chain((0..rank).filter(|&axis| axis != leading));
        for (position, axis) in axes.enumerate() {
            if grid.max_dims[axis] < grid.dims[axis] {
                return Err(refuse());
            }
            order.axes[position] = axis;
            order.counts[position] = grid.max_dims[axis].div_ceil(grid.chunk_shape[axis]);
        }
        for position in (0..rank - 1).rev() {
            order.down[position] =
                order.down[position + 1].checked_mul(order.counts[position + 1]).ok_or_else(refuse)?;
        }
        Ok(order)
    }

    /// Returns the coordinates of chunk `number`, in chunks per dataset dimension.
    pub fn coordinates(&self, mut number: u64) -> [u64; MAX_RANK] {
        let mut scaled = [0; MAX_RANK];
        for position in 0..self.rank {
            let down = self.down[position].max(1);
            scaled[self.axes[position]] = number / down;
            number %= down;
        }
        scaled
    }

    /// Calls `visit` with runs of chunk numbers that together cover all chunks of `range`; the runs may include other
    /// chunks.
    pub fn for_each_run(
        &self,
        range: &ChunkRange,
        mut visit: impl FnMut(Range<u64>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let (first, end) =
            (|position: usize| range.first[self.axes[position]], |position: usize| range.end[self.axes[position]]);
        // Positions after `split` are covered completely, so the steps at `split` form one run.
        let mut split = self.rank - 1;
        while split > 0 && first(split) == 0 && end(split) == self.counts[split] {
            split -= 1;
        }
        let outer = (0..split).fold(1_u64, |runs, position| runs.saturating_mul(end(position) - first(position)));
        let number = |at: &dyn Fn(usize) -> u64| {
            (0..self.rank)
                .fold(0_u64, |sum, position| sum.saturating_add(at(position).saturating_mul(self.down[position])))
        };
        if outer > MAX_RUNS {
            return visit(number(&first)..number(&|position| end(position) - 1).saturating_add(1));
        }
        for run in 0..outer {
            let mut rest = run;
            let mut at = [0; MAX_RANK];
            for position in (0..split).rev() {
                let count = end(position) - first(position);
                at[position] = first(position) + rest % count;
                rest /= count;
            }
            let with_split = |coordinate: u64| {
                number(&|position| match position.cmp(&split) {
                    std::cmp::Ordering::Less => at[position],
                    std::cmp::Ordering::Equal => coordinate,
                    std::cmp::Ordering::Greater => 0,
                })
            };
            if visit(with_split(first(split))..with_split(end(split)))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Form of the elements of a fixed or extensible array, identified by the number of its client: 0 stands for an
/// address, 1 for address, stored size and filter mask.
#[derive(Debug, Clone, Copy)]
pub(super) struct ElementForm {
    pub len_bytes: usize,
    filtered: bool,
}

impl ElementForm {
    /// Returns the form that a header states, checked against the dataset's pipeline.
    pub fn new(
        reader: &IndexReader<'_>,
        grid: &ChunkGrid<'_>,
        client: u8,
        len_bytes: usize,
        address: u64,
        what: &str,
    ) -> Result<Self> {
        let address_len = reader.encoding.address_len();
        let fits = match client {
            0 => !grid.filtered && len_bytes == address_len,
            // The stored size takes 1 to 8 bytes, the mask 4.
            1 => grid.filtered && (address_len + 5..=address_len + 12).contains(&len_bytes),
            _ => false,
        };
        if fits {
            return Ok(Self { len_bytes, filtered: client == 1 });
        }
        Err(reader.malformed(
            address,
            format!("{what}: client {client} with elements of {len_bytes} bytes does not suit the dataset"),
        ))
    }
}

/// Adapter that passes the elements of an array-like index to a visitor as chunks.
pub(super) struct Elements<'a, 'v> {
    pub grid: &'a ChunkGrid<'a>,
    pub range: &'a ChunkRange,
    pub order: &'a ArrayOrder,
    pub visit: &'a mut Visit<'v>,
}

impl Elements<'_, '_> {
    /// Visits the elements `bytes`, the first of which has chunk number `first`.
    pub fn visit(
        &mut self,
        reader: &IndexReader<'_>,
        form: ElementForm,
        first: u64,
        bytes: &[u8],
    ) -> Result<ControlFlow<()>> {
        let address_len = reader.encoding.address_len();
        for (number, element) in (first..).zip(bytes.chunks_exact(form.len_bytes)) {
            let Some(address) = reader.address(element, 0) else { continue };
            let (len_bytes, filter_mask) = if form.filtered {
                let size_len = form.len_bytes - address_len - 4;
                (uint(element, address_len, size_len), uint(element, address_len + size_len, 4) as u32)
            } else {
                (self.grid.chunk_len_bytes, 0)
            };
            if self.chunk(reader, number, address, len_bytes, filter_mask)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Visits chunk `number` if it is in the range.
    pub fn chunk(
        &mut self,
        reader: &IndexReader<'_>,
        number: u64,
        address: u64,
        len_bytes: u64,
        filter_mask: u32,
    ) -> Result<ControlFlow<()>> {
        let rank = self.grid.rank();
        let mut origin = self.order.coordinates(number);
        if !self.range.contains(&origin[..rank]) {
            return Ok(ControlFlow::Continue(()));
        }
        for (coordinate, shape) in origin.iter_mut().zip(self.grid.chunk_shape) {
            *coordinate *= shape;
        }
        reader.check_chunk(address, len_bytes)?;
        Ok((self.visit)(&ChunkRecord { origin: &origin[..rank], address, len_bytes, filter_mask }))
    }
}
