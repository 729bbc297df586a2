//! Boxes of values out of a dataset: what a worker calls for each piece of a tile.
//!
//! A box is read in batches: the chunks that it meets are looked up, ordered by address, read in few large reads and
//! decoded: straight to their place where a chunk is one run of the output, else through a buffer. Nothing is allocated
//! per chunk. Invariant: every byte of the box is written (a value or the fill value), none outside of it.

use super::batch::{Batch, BoxChunks, ChunkBuffers, LONGEST_OF_TWO_LEN_BYTES};
use super::grid::ChunkGrid;
use super::index::{DirectSource, IndexReader, NodeCache, walk};
use super::unchunked::{read_compact, read_contiguous};
use super::{BoxRead, ChunkRecord, DatasetSource, MAX_RANK};
use crate::error::{Hdf5Error, Result};
use crate::model::{Dataset, Dataspace, Layout};
use crate::source::InputFile;
use raddle_codec::Pipeline;
use std::ops::{AddAssign, ControlFlow};
use std::time::Instant;

/// Chunks looked up before they are read. Boxes with more chunks are filled first and read batch by batch.
const BATCH_CHUNKS: usize = 8192;

/// What the buffer for stored chunks may hold beyond one chunk: reads of several, and its rounding up.
const READ_AHEAD_LEN_BYTES: u64 = 4 << 20;

/// What a reader may hold.
#[derive(Debug, Clone, Copy)]
pub struct ReaderLimits {
    /// Longest decoded chunk.
    pub chunk_len_bytes: u64,
    /// Decoded chunks kept for the next box.
    pub kept_len_bytes: usize,
}

impl Default for ReaderLimits {
    /// Chunks up to 1 GiB (HDF5 before 2.0 allows 4 GiB; the usual is 1 MiB), 8 MiB kept.
    fn default() -> Self {
        Self { chunk_len_bytes: 1 << 30, kept_len_bytes: 8 << 20 }
    }
}

/// What a read did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReadCounts {
    /// Chunks decoded.
    pub chunks: u64,
    /// Chunks that were still decoded from the box before.
    pub kept_chunks: u64,
    /// Bytes read from the file, without index nodes.
    pub stored_len_bytes: u64,
    /// Seconds spent reading, look-up included.
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

/// A chunk as stored, found by [`DatasetReader::stored_chunk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredChunk {
    /// Absolute file offset.
    pub address: u64,
    /// Stored length.
    pub len_bytes: u64,
    /// Bit `i` set: filter `i` was skipped.
    pub filter_mask: u32,
    /// Whether the chunk passed the pipeline at all (see [`Layout::Chunked`]).
    pub filtered: bool,
}

/// Reads boxes of any dataset of any file. Holds buffers and caches between calls: one per worker.
#[derive(Debug)]
pub struct DatasetReader {
    limits: ReaderLimits,
    nodes: NodeCache,
    batch: Batch,
    chunks: ChunkBuffers,
}

impl DatasetReader {
    /// A reader with empty caches.
    pub fn new(limits: ReaderLimits) -> Self {
        Self {
            limits,
            nodes: NodeCache::default(),
            batch: Batch::default(),
            chunks: ChunkBuffers::new(limits.kept_len_bytes),
        }
    }

    /// Reads a box of `source` into `out`, elements as stored; what was never written becomes the fill value (zeros
    /// where that is undefined). Bytes of `out` outside the box stay as they are.
    ///
    /// # Errors
    /// If the box does not lie in the dataset or the output, the file contradicts the format or itself, a chunk does
    /// not decode to exactly its length, or the layout is external or virtual.
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
                read_contiguous(source, target, (*address, *len_bytes), &mut self.chunks.stored, out)
            }
            Layout::Chunked { .. } => self.read_chunked(source, target, out),
            Layout::External { .. } | Layout::Virtual => {
                Err(source.unsupported("values that lie in other files (external or virtual layout)"))
            }
        }
    }

    /// Appends the stored bytes of the chunk at `origin` to `out`; `None` where it was never written.
    ///
    /// # Errors
    /// As [`DatasetReader::read_box`]; also if the dataset is not chunked or `origin` is no chunk's.
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
        // One chunk is looked for, so the walk yields at most one.
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
        // Fill first only where chunks are missing, or where there are too many to know before reading.
        let expected = range.count(grid.rank());
        let streaming = expected > BATCH_CHUNKS as u64;
        if streaming {
            source.fill(target, out)?;
        }
        let mut failure = None;
        let mut index = DirectSource(source.file);
        let mut reader = IndexReader { source: &mut index, nodes, encoding: source.encoding };
        let _ = walk(&mut reader, &grid, &range, &mut |record| {
            batch.push(record);
            if batch.chunks.len() < BATCH_CHUNKS || !streaming {
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

/// Length of a stored chunk beyond which no filter makes one of `chunk_len_bytes`.
fn longest_stored(chunk_len_bytes: u64) -> u64 {
    chunk_len_bytes.saturating_mul(2).saturating_add(1 << 16)
}

impl ReaderLimits {
    /// Most memory that a reader comes to hold for chunks of `dataset`, of which no more than `stored_len_bytes` is stored in one
    /// chunk; 0 for one without chunks, and for one whose chunks are too long for these limits.
    pub fn held_len_bytes(&self, dataset: &Dataset, pipeline: &Pipeline, stored_len_bytes: u64) -> u64 {
        let Layout::Chunked { chunk_shape, .. } = &dataset.layout else { return 0 };
        let element_len_bytes = dataset.datatype.class.len_bytes();
        let chunk = chunk_shape.iter().fold(element_len_bytes, |product, &count| product.saturating_mul(count));
        if chunk > self.chunk_len_bytes {
            return 0;
        }
        let stored = stored_len_bytes.min(longest_stored(chunk)).saturating_add(READ_AHEAD_LEN_BYTES);
        let kept = self.kept_len_bytes as u64;
        let decoded = if chunk > kept { chunk } else { kept + chunk };
        let is_for_two = chunk <= LONGEST_OF_TWO_LEN_BYTES as u64 && pipeline.is_for_two(chunk as usize);
        let between = pipeline.state_len_bytes(chunk as usize) as u64;
        stored.saturating_add(decoded).saturating_add(if is_for_two { between.max(2 * chunk) } else { between })
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

    /// Fails where a chunk is stored longer than any filter makes it: a buffer of that length would be the file's
    /// choice, not ours.
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
