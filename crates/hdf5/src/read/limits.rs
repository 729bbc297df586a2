//! Memory limits of a dataset reader, and the memory that it holds within them.

use super::grid::ChunkGrid;
use crate::error::{Hdf5Error, Result};
use crate::model::{Dataset, Layout};
use crate::source::InputFile;
use raddle_codec::Pipeline;
use raddle_core::plan::extent::values_len_bytes;

/// Usual maximum of bytes per read.
const TYPICAL_READ_LEN_BYTES: u64 = 1 << 20;

/// Number of chunks looked up before they are read, with reads of the usual length. Boxes with more chunks are filled
/// with the fill value first and read batch by batch.
const BATCH_CHUNKS: u64 = 8192;

/// Number of reads whose length a reader may hold in buffers beyond one chunk: combined reads, and rounding up.
const READS_AHEAD: u64 = 4;

/// Memory limits of a reader.
#[derive(Debug, Clone, Copy)]
pub struct ReaderLimits {
    /// Maximum length of a decoded chunk.
    pub chunk_len_bytes: u64,
    /// Maximum bytes of decoded chunks kept for the next box.
    pub kept_len_bytes: usize,
    /// Maximum bytes that are read at once, unless a chunk is longer.
    pub read_len_bytes: u64,
}

impl Default for ReaderLimits {
    /// Allows chunks up to 1 GiB (HDF5 before 2.0 allows 4 GiB; 1 MiB is usual), keeps 8 MiB and reads 1 MiB at once.
    fn default() -> Self {
        Self { chunk_len_bytes: 1 << 30, kept_len_bytes: 8 << 20, read_len_bytes: TYPICAL_READ_LEN_BYTES }
    }
}

/// Length by which a stored chunk may exceed the bound of its filters, for encoders with unusually small blocks.
const STORED_SLACK_LEN_BYTES: u64 = 64 << 10;

/// Returns the maximum accepted length of a chunk of `chunk_len_bytes` that is moved as stored, whatever its filters.
pub(super) fn longest_moved(chunk_len_bytes: u64) -> u64 {
    chunk_len_bytes.saturating_mul(2).saturating_add(STORED_SLACK_LEN_BYTES)
}

/// Returns the maximum accepted length of a stored chunk that decodes to `chunk_len_bytes`.
pub(super) fn longest_stored(pipeline: &Pipeline, chunk_len_bytes: u64) -> u64 {
    (pipeline.stored_bound_len_bytes(chunk_len_bytes as usize) as u64).saturating_add(STORED_SLACK_LEN_BYTES)
}

impl ReaderLimits {
    /// Returns the number of chunks that are looked up before they are read. It shrinks with the length of a read.
    pub(super) fn batch_chunks(&self) -> u64 {
        (BATCH_CHUNKS * self.read_len_bytes / TYPICAL_READ_LEN_BYTES).clamp(1, BATCH_CHUNKS)
    }

    /// Returns the maximum memory of a reader if no chunk is longer than a read.
    pub fn usual_len_bytes(&self) -> u64 {
        (self.kept_len_bytes as u64).saturating_add(READS_AHEAD * self.read_len_bytes)
    }

    /// Returns the maximum memory of a reader for chunks of `dataset`, none of which is stored in more than
    /// `stored_len_bytes`. Returns 0 if the dataset has no chunks, or if they are too long for these limits.
    pub fn peak_len_bytes(&self, dataset: &Dataset, pipeline: &Pipeline, stored_len_bytes: u64) -> u64 {
        let Layout::Chunked { chunk_shape, .. } = &dataset.layout else { return 0 };
        let element_len_bytes = dataset.datatype.class.len_bytes();
        let chunk = values_len_bytes(chunk_shape, element_len_bytes);
        if chunk > self.chunk_len_bytes {
            return 0;
        }
        let ahead = READS_AHEAD.saturating_mul(self.read_len_bytes);
        let stored = stored_len_bytes.min(longest_stored(pipeline, chunk)).saturating_add(ahead);
        let kept = self.kept_len_bytes as u64;
        let decoded = if chunk > kept { chunk } else { kept + chunk };
        let between = pipeline.state_len_bytes(chunk as usize) as u64;
        let is_paired = self.prefers_pairs(pipeline, chunk);
        stored.saturating_add(decoded).saturating_add(if is_paired { between.max(2 * chunk) } else { between })
    }

    /// Returns whether chunks are decoded in interleaved pairs if their places allow it. Chunks that are too long to be
    /// kept are decoded alone, which takes half the memory.
    pub(super) fn prefers_pairs(&self, pipeline: &Pipeline, chunk_len_bytes: u64) -> bool {
        chunk_len_bytes <= self.kept_len_bytes as u64 && pipeline.prefers_pairs(chunk_len_bytes as usize)
    }

    /// Checks that a decoded chunk is not longer than allowed.
    pub(super) fn check_chunk(&self, file: &InputFile, grid: &ChunkGrid<'_>) -> Result<()> {
        if grid.chunk_len_bytes <= self.chunk_len_bytes {
            return Ok(());
        }
        Err(Hdf5Error::Limit {
            path: file.path().to_path_buf(),
            what: format!("a chunk of {} bytes", grid.chunk_len_bytes),
            limit: self.chunk_len_bytes,
        })
    }

    /// Checks that a stored chunk is not longer than `limit`, to which its filters may lengthen it: otherwise the file
    /// would determine the size of the buffer.
    pub(super) fn check_stored(
        &self,
        file: &InputFile,
        grid: &ChunkGrid<'_>,
        (len_bytes, limit): (u64, u64),
    ) -> Result<()> {
        self.check_chunk(file, grid)?;
        if len_bytes <= limit {
            return Ok(());
        }
        Err(Hdf5Error::Limit {
            path: file.path().to_path_buf(),
            what: format!("a stored chunk of {len_bytes} bytes (decoded: {})", grid.chunk_len_bytes),
            limit,
        })
    }
}
