//! Reads boxes of values from a dataset; workers call it for each piece of a tile.
//!
//! A box is read in batches: the chunks that it intersects are looked up, ordered by address, read in few large reads,
//! and decoded directly to their place if a chunk is one run of the output, otherwise through a buffer. Nothing is
//! allocated per chunk. Invariant: every byte of the box is written (with a value or the fill value), and no byte
//! outside of it.

use super::batch::{Batch, BoxChunks, ChunkBuffers};
use super::counts::ReadCounts;
use super::grid::ChunkGrid;
use super::index::walk;
use super::index_reader::{DirectSource, IndexReader, NodeCache};
use super::limits::{ReaderLimits, longest_moved};
use super::unchunked::{read_compact, read_contiguous};
use super::{BoxRead, ChunkRecord, DatasetSource, MAX_RANK};
use crate::error::Result;
use crate::model::{Dataspace, Layout};
use std::ops::ControlFlow;
use std::time::Instant;

/// Location of a stored chunk, found by [`DatasetReader::stored_chunk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredChunk {
    /// Absolute file offset of the first byte.
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
            self.limits.check_stored(source.file, &grid, (chunk.len_bytes, longest_moved(grid.chunk_len_bytes)))?;
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
