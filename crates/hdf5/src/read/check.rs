//! Consistency check of a dataset's chunks, with summary statistics.

use super::for_each_chunk;
use crate::child::ListedChunk;
use crate::error::{Hdf5Error, Result};
use crate::model::Dataset;
use crate::native::Encoding;
use crate::source::{InputFile, MetadataView};
use std::ops::ControlFlow;

/// Statistics of a dataset's chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkSummary {
    /// Number of allocated chunks.
    pub count: u64,
    /// Stored length of all chunks.
    pub stored_len_bytes: u64,
    /// Length of the shortest stored chunk; 0 without chunks.
    pub min_len_bytes: u64,
    /// Length of the longest stored chunk.
    pub max_len_bytes: u64,
    /// Number of chunks by the number of significant bits in their stored length (bin 10: 512 to 1023 bytes).
    pub len_histogram: [u64; 65],
    /// Number of chunks for which at least one filter was skipped.
    pub masked_count: u64,
}

impl Default for ChunkSummary {
    fn default() -> Self {
        Self {
            count: 0,
            stored_len_bytes: 0,
            min_len_bytes: 0,
            max_len_bytes: 0,
            len_histogram: [0; 65],
            masked_count: 0,
        }
    }
}

/// Statistics and ranges of the chunks seen so far.
#[derive(Default)]
struct SeenChunks {
    summary: ChunkSummary,
    /// Stored ranges. Adjacent ones are merged, so chunks written one after the other take one entry. The index takes
    /// at least eight bytes of the file for each chunk, so this stays below twice the file's length.
    ranges: Vec<(u64, u64)>,
}

impl SeenChunks {
    fn add(&mut self, address: u64, len_bytes: u64, filter_mask: u32) {
        let summary = &mut self.summary;
        summary.min_len_bytes = if summary.count == 0 { len_bytes } else { summary.min_len_bytes.min(len_bytes) };
        summary.max_len_bytes = summary.max_len_bytes.max(len_bytes);
        summary.count += 1;
        summary.stored_len_bytes = summary.stored_len_bytes.saturating_add(len_bytes);
        summary.len_histogram[(u64::BITS - len_bytes.leading_zeros()) as usize] += 1;
        summary.masked_count += u64::from(filter_mask != 0);
        match self.ranges.last_mut() {
            Some((_, end)) if *end == address => *end += len_bytes,
            _ => self.ranges.push((address, address + len_bytes)),
        }
    }

    /// Returns the statistics, or an error if two chunks overlap.
    fn finish(mut self, file: &InputFile) -> Result<ChunkSummary> {
        self.ranges.sort_unstable();
        match self.ranges.windows(2).find(|pair| pair[0].1 > pair[1].0) {
            None => Ok(self.summary),
            Some(pair) => Err(Hdf5Error::Malformed {
                path: file.path().to_path_buf(),
                address: pair[1].0,
                what: "two chunks of one dataset overlap".to_owned(),
            }),
        }
    }
}

/// Like [`check_chunks`], for chunks listed by libhdf5, whose index is [`crate::model::ChunkIndex::ThroughLibrary`].
pub fn check_listed(file: &InputFile, chunks: &[ListedChunk]) -> Result<ChunkSummary> {
    let mut seen = SeenChunks::default();
    for chunk in chunks {
        file.check_range(chunk.address, chunk.len_bytes, "chunk")?;
        seen.add(chunk.address, chunk.len_bytes, chunk.filter_mask);
    }
    seen.finish(file)
}

/// Walks the whole chunk index and checks that every chunk lies in the file after the superblock and on the chunk grid,
/// occurs once, and overlaps no other chunk. A dataset without chunks passes.
pub fn check_chunks(view: &mut MetadataView<'_>, encoding: Encoding, dataset: &Dataset) -> Result<ChunkSummary> {
    let mut seen = SeenChunks::default();
    for_each_chunk(view, encoding, dataset, None, &mut |chunk| {
        seen.add(chunk.address, chunk.len_bytes, chunk.filter_mask);
        ControlFlow::Continue(())
    })?;
    seen.finish(view.file())
}
