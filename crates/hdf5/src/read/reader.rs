//! Reads boxes of values from a dataset; workers call it for each piece of a tile.
//!
//! A box is read in batches: the chunks that it intersects are looked up, ordered by address, read in few large reads,
//! and decoded directly to their place if a chunk is one run of the output, otherwise through a buffer. Nothing is
//! allocated per chunk. Invariant: every byte of the box is written (with a value or the fill value), and no byte
//! outside of it.

use super::batch::{Batch, BoxChunks, ChunkBuffers, MAX_PAIR_LEN_BYTES};
use super::grid::ChunkGrid;
use super::index::{DirectSource, IndexReader, NodeCache, walk};
use super::unchunked::{USUAL_READ_LEN_BYTES, read_compact, read_contiguous};
use super::{BoxRead, ChunkRecord, DatasetSource, MAX_RANK};
use crate::error::{Hdf5Error, Result};
use crate::model::{Dataset, Dataspace, Layout};
use crate::source::InputFile;
use raddle_codec::Pipeline;
use std::ops::{AddAssign, ControlFlow};
use std::time::Instant;

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
        Self { chunk_len_bytes: 1 << 30, kept_len_bytes: 8 << 20, read_len_bytes: USUAL_READ_LEN_BYTES }
    }
}

/// Statistics of a read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReadCounts {
    /// Number of decoded chunks.
    pub chunks: u64,
    /// Number of chunks that were still decoded from an earlier box.
    pub kept_chunks: u64,
    /// Bytes read from the file, without index nodes.
    pub stored_len_bytes: u64,
    /// Seconds spent reading, including look-up.
    pub read_s: f64,
    /// Seconds spent decoding and copying.
    pub decode_s: f64,
}

impl AddAssign for ReadCounts {
    fn add_assign(&mut self, other: Self) {
        self.chunks += other.chunks;
        self.kept_chunks += other.kept_chunks;
        self.stored_len_bytes += other.stored_len_bytes;
        self.read_s += other.read_s;
        self.decode_s += other.decode_s;
    }
}

/// Location of a stored chunk, found by [`DatasetReader::stored_chunk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredChunk {
    /// Absolute file offset.
    pub address: u64,
    /// Length of the stored chunk.
    pub len_bytes: u64,
    /// Mask of skipped filters: if bit `i` is set, filter `i` was skipped.
    pub filter_mask: u32,
    /// Whether the chunk passed through the pipeline (see [`Layout::Chunked`]).
    pub filtered: bool,
}

/// Reader of boxes of any dataset of any file. It keeps buffers and caches between calls: use one per worker.
#[derive(Debug)]
pub struct DatasetReader {
    limits: ReaderLimits,
    nodes: NodeCache,
    batch: Batch,
    chunks: ChunkBuffers,
}

impl DatasetReader {
    /// Creates a reader with empty caches.
    pub fn new(limits: ReaderLimits) -> Self {
        Self {
            limits,
            nodes: NodeCache::default(),
            batch: Batch::default(),
            chunks: ChunkBuffers::new(limits.kept_len_bytes),
        }
    }

    /// Reads a box of `source` into `out`, with elements as stored. Elements that were never written become the fill
    /// value (zeros if it is undefined). Bytes of `out` outside the box are left unchanged.
    ///
    /// # Errors
    /// If the box does not lie in the dataset or the output, the file violates the format or contradicts itself, a
    /// chunk does not decode to exactly its length, or the layout is external or virtual.
    pub fn read_box(&mut self, source: &DatasetSource<'_>, target: &BoxRead<'_>, out: &mut [u8]) -> Result<ReadCounts> {
        target.check(source, out.len())?;
        if target.count.contains(&0) || source.dataset.dataspace == Dataspace::Null {
            return Ok(ReadCounts::default());
        }
        match &source.dataset.layout {
            Layout::Compact(values) => {
                let canonical = || source.unsupported("a compact dataset known in canonical form only");
                read_compact(source, target, values.stored().ok_or_else(canonical)?, out)
            }
            Layout::Contiguous { address: None, .. } => source.fill(target, out).map(|()| ReadCounts::default()),
            Layout::Contiguous { address: Some(address), len_bytes } => {
                let buffer = (&mut self.chunks.stored, self.limits.read_len_bytes);
                read_contiguous(source, target, (*address, *len_bytes), buffer, out)
            }
            Layout::Chunked { .. } => self.read_chunked(source, target, out),
            Layout::External { .. } | Layout::Virtual => {
                Err(source.unsupported("values that lie in other files (external or virtual layout)"))
            }
        }
    }

    /// Appends the stored bytes of the chunk at `origin` to `out`; returns `None` if it was never written.
    ///
    /// # Errors
    /// As for [`DatasetReader::read_box`]; also if the dataset is not chunked or no chunk begins at `origin`.
    pub fn stored_chunk(
        &mut self,
        source: &DatasetSource<'_>,
        origin: &[u64],
        out: &mut Vec<u8>,
    ) -> Result<Option<StoredChunk>> {
        let outside = || source.outside(origin, &[1; MAX_RANK][..origin.len().min(MAX_RANK)]);
        let grid = ChunkGrid::of(source.file, source.dataset)?.ok_or_else(outside)?;
        let on_grid = origin.len() == grid.rank()
            && (0..grid.rank())
                .all(|axis| origin[axis] < grid.dims[axis] && origin[axis].is_multiple_of(grid.chunk_shape[axis]));
        let range = on_grid.then(|| grid.range_of_box(origin, &[1; MAX_RANK])).flatten().ok_or_else(outside)?;
        let mut found = None;
        let mut index = DirectSource(source.file);
        let mut reader = IndexReader { source: &mut index, nodes: &mut self.nodes, encoding: source.encoding };
        // The range has one chunk, so the walk yields at most one.
        let _ = walk(&mut reader, &grid, &range, &mut |record| {
            let filtered = grid.is_filtered(record.origin);
            let ChunkRecord { address, len_bytes, filter_mask, .. } = *record;
            found = Some(StoredChunk { address, len_bytes, filter_mask, filtered });
            ControlFlow::Break(())
        })?;
        if let Some(chunk) = &found {
            self.limits.check_stored(source.file, &grid, chunk.len_bytes)?;
            let at = out.len();
            out.resize(at + chunk.len_bytes as usize, 0);
            source.file.read_exact_at(chunk.address, &mut out[at..], "chunk")?;
        }
        Ok(found)
    }

    fn read_chunked(&mut self, source: &DatasetSource<'_>, target: &BoxRead<'_>, out: &mut [u8]) -> Result<ReadCounts> {
        let started = Instant::now();
        let Some(grid) = ChunkGrid::of(source.file, source.dataset)? else { return Ok(ReadCounts::default()) };
        self.limits.check_chunk(source.file, &grid)?;
        let Some(range) = grid.range_of_box(target.start, target.count) else { return Ok(ReadCounts::default()) };
        let Self { limits, nodes, batch, chunks } = self;
        batch.clear();
        let mut counts = ReadCounts::default();
        let box_chunks = BoxChunks::new(source, target, &grid, limits);
        // Fill first only if chunks are missing, or if there are too many to look up before reading.
        let expected = range.count(grid.rank());
        let batch_chunks = limits.batch_chunks();
        let streaming = expected > batch_chunks;
        if streaming {
            source.fill(target, out)?;
        }
        let mut failure = None;
        let mut index = DirectSource(source.file);
        let mut reader = IndexReader { source: &mut index, nodes, encoding: source.encoding };
        let _ = walk(&mut reader, &grid, &range, &mut |record| {
            batch.push(record);
            if (batch.chunks.len() as u64) < batch_chunks || !streaming {
                return ControlFlow::Continue(());
            }
            match chunks.read_batch(&box_chunks, batch, out, &mut counts) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        if let Some(error) = failure {
            return Err(error);
        }
        if !streaming && (batch.chunks.len() as u64) < expected {
            source.fill(target, out)?;
        }
        chunks.read_batch(&box_chunks, batch, out, &mut counts)?;
        counts.read_s = started.elapsed().as_secs_f64() - counts.decode_s;
        Ok(counts)
    }
}

/// Returns the maximum accepted length of a stored chunk that decodes to `chunk_len_bytes`; no filter produces longer
/// ones.
fn longest_stored(chunk_len_bytes: u64) -> u64 {
    chunk_len_bytes.saturating_mul(2).saturating_add(1 << 16)
}

impl ReaderLimits {
    /// Returns the number of chunks looked up before they are read; their list shrinks with the reads.
    fn batch_chunks(&self) -> u64 {
        (BATCH_CHUNKS * self.read_len_bytes / USUAL_READ_LEN_BYTES).clamp(1, BATCH_CHUNKS)
    }

    /// Returns the maximum memory that a reader holds if no chunk is longer than a read.
    pub fn usual_len_bytes(&self) -> u64 {
        (self.kept_len_bytes as u64).saturating_add(READS_AHEAD * self.read_len_bytes)
    }

    /// Returns the maximum memory that a reader holds for chunks of `dataset`, if no chunk is stored in more than
    /// `stored_len_bytes`. Returns 0 if the dataset has no chunks, or if they are too long for these limits.
    pub fn held_len_bytes(&self, dataset: &Dataset, pipeline: &Pipeline, stored_len_bytes: u64) -> u64 {
        let Layout::Chunked { chunk_shape, .. } = &dataset.layout else { return 0 };
        let element_len_bytes = dataset.datatype.class.len_bytes();
        let chunk = chunk_shape.iter().fold(element_len_bytes, |product, &count| product.saturating_mul(count));
        if chunk > self.chunk_len_bytes {
            return 0;
        }
        let ahead = READS_AHEAD.saturating_mul(self.read_len_bytes);
        let stored = stored_len_bytes.min(longest_stored(chunk)).saturating_add(ahead);
        let kept = self.kept_len_bytes as u64;
        let decoded = if chunk > kept { chunk } else { kept + chunk };
        let prefers_pairs = chunk <= MAX_PAIR_LEN_BYTES as u64 && pipeline.prefers_pairs(chunk as usize);
        let between = pipeline.state_len_bytes(chunk as usize) as u64;
        stored.saturating_add(decoded).saturating_add(if prefers_pairs { between.max(2 * chunk) } else { between })
    }

    fn check_chunk(&self, file: &InputFile, grid: &ChunkGrid<'_>) -> Result<()> {
        if grid.chunk_len_bytes <= self.chunk_len_bytes {
            return Ok(());
        }
        Err(Hdf5Error::Limit {
            path: file.path().to_path_buf(),
            what: format!("a chunk of {} bytes", grid.chunk_len_bytes),
            limit: self.chunk_len_bytes,
        })
    }

    /// Checks that a stored chunk is not longer than any filter would make it: otherwise the file would determine the
    /// size of the buffer.
    pub(super) fn check_stored(&self, file: &InputFile, grid: &ChunkGrid<'_>, len_bytes: u64) -> Result<()> {
        self.check_chunk(file, grid)?;
        let limit = longest_stored(grid.chunk_len_bytes);
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
