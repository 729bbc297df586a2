//! Grid of chunks over a dataset: pure geometry, without a file.
//!
//! Invariant: a [`ChunkGrid`] has 1 to [`MAX_RANK`] dimensions, no zero in its chunk shape, and a chunk length that
//! fits 64 bits; a [`ChunkRange`] lies inside the extent.

use super::MAX_RANK;
use crate::error::{Hdf5Error, Result};
use crate::model::{ChunkIndex, Dataset, Layout};
use crate::source::InputFile;

/// Extent and chunk shape of a chunked dataset.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkGrid<'a> {
    /// Current size per dimension, in elements.
    pub dims: &'a [u64],
    /// Maximum size per dimension; `u64::MAX` means unlimited.
    pub max_dims: &'a [u64],
    /// Chunk shape in elements.
    pub chunk_shape: &'a [u64],
    /// Length of a decoded chunk.
    pub chunk_len_bytes: u64,
    /// Chunk index.
    pub index: &'a ChunkIndex,
    /// Whether chunks that extend beyond the dataset are stored without filters.
    pub partial_chunks_unfiltered: bool,
    /// Whether chunks pass through a filter pipeline, which determines the form of index entries.
    pub filtered: bool,
}

/// Chunks that intersect a box: first and end chunk number per dimension.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkRange {
    pub first: [u64; MAX_RANK],
    pub end: [u64; MAX_RANK],
}

impl<'a> ChunkGrid<'a> {
    /// Returns the grid of `dataset`, or `None` if it is not chunked.
    pub fn of(file: &InputFile, dataset: &'a Dataset) -> Result<Option<Self>> {
        let Layout::Chunked { chunk_shape, index, partial_chunks_unfiltered } = &dataset.layout else {
            return Ok(None);
        };
        let malformed = |what: String| Hdf5Error::Malformed {
            path: file.path().to_path_buf(),
            address: index_address(index),
            what,
        };
        let crate::model::Dataspace::Simple { dims, max_dims } = &dataset.dataspace else {
            return Err(malformed("chunked layout on a dataspace that is not an array".to_owned()));
        };
        if chunk_shape.len() != dims.len() || max_dims.len() != dims.len() || dims.is_empty() || dims.len() > MAX_RANK {
            return Err(malformed(format!(
                "chunks of rank {} on a dataspace of rank {} (1 to {MAX_RANK} allowed)",
                chunk_shape.len(),
                dims.len()
            )));
        }
        let chunk_len_bytes = chunk_shape
            .iter()
            .try_fold(dataset.datatype.class.len_bytes(), |product, &count| product.checked_mul(count))
            .filter(|&len| len > 0)
            .ok_or_else(|| malformed(format!("chunk shape {chunk_shape:?} is empty or overflows 64 bits")))?;
        Ok(Some(Self {
            dims,
            max_dims,
            chunk_shape,
            chunk_len_bytes,
            index,
            partial_chunks_unfiltered: *partial_chunks_unfiltered,
            filtered: !dataset.filters.is_empty(),
        }))
    }

    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Returns the chunks that intersect the box, which must lie inside the extent, or `None` if it is empty.
    pub fn range_of_box(&self, start: &[u64], count: &[u64]) -> Option<ChunkRange> {
        let mut range = ChunkRange { first: [0; MAX_RANK], end: [0; MAX_RANK] };
        for axis in 0..self.rank() {
            if count[axis] == 0 {
                return None;
            }
            range.first[axis] = start[axis] / self.chunk_shape[axis];
            range.end[axis] = (start[axis] + count[axis] - 1) / self.chunk_shape[axis] + 1;
        }
        Some(range)
    }

    /// Returns the chunks that intersect rows `rows` of the first dimension, or `None` if there are none.
    pub fn range_of_rows(&self, rows: std::ops::Range<u64>) -> Option<ChunkRange> {
        let (start, end) = (rows.start.min(self.dims[0]), rows.end.min(self.dims[0]));
        let mut starts = [0; MAX_RANK];
        starts[0] = start;
        let mut counts = [0; MAX_RANK];
        counts[..self.rank()].copy_from_slice(self.dims);
        counts[0] = end.saturating_sub(start);
        self.range_of_box(&starts, &counts)
    }

    /// Returns whether the chunk at `origin` extends beyond the dataset.
    pub fn is_partial(&self, origin: &[u64]) -> bool {
        (0..self.rank()).any(|axis| origin[axis].saturating_add(self.chunk_shape[axis]) > self.dims[axis])
    }

    /// Returns whether the chunk at `origin` passed through the filters.
    pub fn is_filtered(&self, origin: &[u64]) -> bool {
        self.filtered && !(self.partial_chunks_unfiltered && self.is_partial(origin))
    }
}

impl ChunkRange {
    /// Returns whether the range contains the chunk with coordinates `scaled`.
    pub fn contains(&self, scaled: &[u64]) -> bool {
        scaled.iter().enumerate().all(|(axis, &number)| number >= self.first[axis] && number < self.end[axis])
    }

    /// Returns the number of chunks, saturating.
    pub fn count(&self, rank: usize) -> u64 {
        (0..rank).fold(1_u64, |product, axis| product.saturating_mul(self.end[axis] - self.first[axis]))
    }

    /// Returns whether the range contains no chunk between `low` (inclusive) and `high` (exclusive; `None` means the
    /// end) in row-major order. False does not imply that it contains one.
    pub fn misses(&self, low: &[u64], high: Option<&[u64]>) -> bool {
        let rank = low.len();
        // In row-major order, every chunk of the range lies between its first and last corner.
        let beyond = low.iter().zip(&self.end).map(|(&low, &end)| low.cmp(&(end - 1))).find(|order| order.is_ne());
        let before = high.is_some_and(|high| high <= &self.first[..rank]);
        before || beyond == Some(std::cmp::Ordering::Greater)
    }
}

/// Returns the address that errors about an index refer to.
pub(super) fn index_address(index: &ChunkIndex) -> u64 {
    match *index {
        ChunkIndex::BtreeV1 { address }
        | ChunkIndex::Single { address, .. }
        | ChunkIndex::Implicit { address }
        | ChunkIndex::FixedArray { address }
        | ChunkIndex::ExtensibleArray { address }
        | ChunkIndex::BtreeV2 { address } => address,
        _ => 0,
    }
}
