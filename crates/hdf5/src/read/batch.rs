//! Reading of the chunks that intersect a box: they are ordered by address, read in few large reads, and decoded to
//! their places.
//!
//! Invariant: every chunk decodes to exactly its length or is refused, and no two chunks of a batch overlap in the
//! file.

use super::counts::ReadCounts;
use super::grid::{ChunkGrid, index_address};
use super::kept::{ChunkKey, KeptChunks};
use super::limits::{ReaderLimits, longest_stored};
use super::stride::{BoxOffset, Runs};
use super::unchunked::{FileBlock, MAX_GAP_LEN_BYTES};
use super::{BoxRead, ChunkRecord, DatasetSource, MAX_RANK};
use crate::error::{Hdf5Error, Result};
use raddle_codec::{CodecError, DecodeState};
use raddle_core::plan::extent::{BoxSource, BoxTarget, copy_box};
use std::ops::Range;
use std::time::Instant;

/// Size of a huge page, which costs one page fault instead of 512.
const PAGE_LEN_BYTES: usize = 2 << 20;

/// Chunks that were looked up but not yet read.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub chunks: Vec<PendingChunk>,
    /// Origins of the chunks, one number per dimension each.
    origins: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PendingChunk {
    address: u64,
    len_bytes: u64,
    filter_mask: u32,
    /// Index of the chunk's origin in the batch.
    origin: u32,
    /// Offset of the chunk in the read buffer.
    at: usize,
    /// Whether the chunk was already copied.
    done: bool,
}

#[derive(Debug)]
pub(super) struct ChunkBuffers {
    decode: DecodeState,
    /// Stored bytes of a group of chunks.
    pub stored: Vec<u8>,
    /// Buffer for one decoded chunk.
    scratch: Vec<u8>,
    kept: KeptChunks,
}

impl Batch {
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.origins.clear();
    }

    pub fn push(&mut self, record: &ChunkRecord<'_>) {
        self.origins.extend_from_slice(record.origin);
        self.chunks.push(PendingChunk {
            address: record.address,
            len_bytes: record.len_bytes,
            filter_mask: record.filter_mask,
            origin: self.chunks.len() as u32,
            at: 0,
            done: false,
        });
    }
}

/// Chunks of one dataset that are read for one box.
pub(super) struct BoxChunks<'a> {
    source: &'a DatasetSource<'a>,
    target: &'a BoxRead<'a>,
    grid: &'a ChunkGrid<'a>,
    limits: &'a ReaderLimits,
    element_len_bytes: u64,
    /// Whether a whole chunk is one contiguous run of the output.
    one_run: bool,
}

/// The part of a chunk that lies in the box.
struct ChunkPart {
    /// Start of the part, in dataset coordinates.
    start: [u64; MAX_RANK],
    count: [u64; MAX_RANK],
}

/// Part of a chunk that lies in the box.
#[derive(Clone, Copy)]
struct Share {
    /// Whether the whole chunk lies in the box, and none of it beyond the extent.
    whole: bool,
    /// Whether the box contains everything of the chunk that lies in the extent, in which case no other tile needs the
    /// chunk.
    last_use: bool,
}

impl<'a> BoxChunks<'a> {
    pub fn new(
        source: &'a DatasetSource<'a>,
        target: &'a BoxRead<'a>,
        grid: &'a ChunkGrid<'a>,
        limits: &'a ReaderLimits,
    ) -> Self {
        // Row-major: after the first axis along which a chunk has more than one element, it must be as wide as the
        // output.
        let wide = grid.chunk_shape.iter().position(|&count| count > 1).unwrap_or(grid.rank());
        let one_run = (wide + 1..grid.rank()).all(|axis| grid.chunk_shape[axis] == target.out_shape[axis]);
        let element_len_bytes = source.dataset.datatype.class.len_bytes();
        Self { source, target, grid, limits, element_len_bytes, one_run }
    }

    /// Determines how much of a chunk lies in the box. It is called for every chunk, and is therefore separate from
    /// [`BoxChunks::part`], which fills arrays.
    fn share(&self, origin: &[u64]) -> Share {
        let mut share = Share { whole: true, last_use: true };
        for (axis, &low) in origin.iter().enumerate() {
            let high = low.saturating_add(self.grid.chunk_shape[axis]);
            let valid = high.min(self.grid.dims[axis]);
            let end = self.target.start[axis] + self.target.count[axis];
            share.last_use &= self.target.start[axis] <= low && valid <= end;
            share.whole &= valid == high;
        }
        share.whole &= share.last_use;
        share
    }

    fn part(&self, origin: &[u64]) -> ChunkPart {
        let mut part = ChunkPart { start: [0; MAX_RANK], count: [0; MAX_RANK] };
        for (axis, &low) in origin.iter().enumerate() {
            let valid = low.saturating_add(self.grid.chunk_shape[axis]).min(self.grid.dims[axis]);
            let start = low.max(self.target.start[axis]);
            part.start[axis] = start;
            part.count[axis] = valid.min(self.target.start[axis] + self.target.count[axis]) - start;
        }
        part
    }

    /// Copies the part of a decoded chunk that lies in the box.
    fn copy(&self, origin: &[u64], chunk: &[u8], out: &mut [u8]) -> Result<()> {
        let rank = origin.len();
        let part = self.part(origin);
        let (in_chunk, in_out) = self.origins_of(&part, origin);
        let source = BoxSource { bytes: chunk, shape: self.grid.chunk_shape, origin: &in_chunk[..rank] };
        let target = BoxTarget { bytes: out, shape: self.target.out_shape, origin: &in_out[..rank] };
        copy_box(source, target, &part.count[..rank], self.element_len_bytes as usize)
            .map_err(|_| self.source.outside(&part.start[..rank], &part.count[..rank]))
    }

    /// Returns the first element of a part in its chunk and in the output.
    fn origins_of(&self, part: &ChunkPart, origin: &[u64]) -> ([u64; MAX_RANK], [u64; MAX_RANK]) {
        let (mut in_chunk, mut in_out) = ([0; MAX_RANK], [0; MAX_RANK]);
        for (axis, &low) in origin.iter().enumerate() {
            in_chunk[axis] = part.start[axis] - low;
            in_out[axis] = part.start[axis] - self.target.start[axis] + self.target.out_origin[axis];
        }
        (in_chunk, in_out)
    }

    /// Reads the part of an unfiltered chunk that lies in the box, through `buffer`. Returns the number of bytes read,
    /// or `None` without reading if reading the whole chunk costs no more.
    fn read_part(
        &self,
        chunk: &PendingChunk,
        origin: &[u64],
        buffer: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<Option<u64>> {
        let chunk_len_bytes = self.grid.chunk_len_bytes;
        // A further read separates the chunk from its neighbours.
        let limit = chunk_len_bytes.saturating_sub(MAX_GAP_LEN_BYTES);
        if limit < self.element_len_bytes || self.grid.is_filtered(origin) {
            return Ok(None);
        }
        self.check_unfiltered(chunk)?;
        let rank = origin.len();
        let part = self.part(origin);
        let (in_chunk, in_out) = self.origins_of(&part, origin);
        let from = BoxOffset { shape: self.grid.chunk_shape, origin: &in_chunk[..rank] };
        let to = BoxOffset { shape: self.target.out_shape, origin: &in_out[..rank] };
        let runs = Runs::new(&part.count[..rank], from, to, self.element_len_bytes);
        if runs.cost_len_bytes(MAX_GAP_LEN_BYTES) > limit {
            return Ok(None);
        }
        let block = FileBlock { file: self.source.file, address: chunk.address, what: "chunk" };
        block.file.check_range(block.address, chunk_len_bytes, block.what)?;
        block.read_runs(runs, (buffer, self.limits.read_len_bytes), out).map(Some)
    }

    /// Checks that a chunk without filters is stored in its length.
    fn check_unfiltered(&self, chunk: &PendingChunk) -> Result<()> {
        if chunk.len_bytes == self.grid.chunk_len_bytes {
            return Ok(());
        }
        let lengths = CodecError::RawLength {
            expected_len_bytes: self.grid.chunk_len_bytes as usize,
            actual_len_bytes: chunk.len_bytes as usize,
        };
        Err(self.decode_error(chunk, lengths))
    }

    /// Returns the place in the output of a whole chunk that is one run.
    fn run(&self, origin: &[u64]) -> Range<usize> {
        let mut element = 0;
        for (axis, &low) in origin.iter().enumerate() {
            element =
                element * self.target.out_shape[axis] + low - self.target.start[axis] + self.target.out_origin[axis];
        }
        let at = (element * self.element_len_bytes) as usize;
        at..at + self.grid.chunk_len_bytes as usize
    }

    /// Returns whether chunks are decoded in interleaved pairs if their places allow it.
    fn prefers_pairs(&self) -> bool {
        self.limits.prefers_pairs(self.source.pipeline, self.grid.chunk_len_bytes)
    }

    /// Returns whether the chunk is decoded directly to its place.
    fn is_direct(&self, origin: &[u64]) -> bool {
        self.one_run && self.grid.is_filtered(origin) && self.share(origin).whole
    }

    fn decode_error(&self, chunk: &PendingChunk, source: CodecError) -> Hdf5Error {
        let path = self.source.file.path().to_path_buf();
        Hdf5Error::Chunk { path, address: chunk.address, len_bytes: chunk.len_bytes, source }
    }

    fn key(&self, address: u64) -> ChunkKey {
        ChunkKey { file: self.source.file.identity(), index_address: index_address(self.grid.index), address }
    }
}

impl ChunkBuffers {
    /// Creates empty buffers that keep up to `kept_len_bytes` of decoded chunks.
    pub fn new(kept_len_bytes: usize) -> Self {
        Self {
            decode: DecodeState::default(),
            stored: Vec::new(),
            scratch: Vec::new(),
            kept: KeptChunks::new(kept_len_bytes),
        }
    }

    /// Reads, decodes and places the chunks of `batch`, then empties it.
    pub fn read_batch(
        &mut self,
        box_chunks: &BoxChunks<'_>,
        batch: &mut Batch,
        out: &mut [u8],
        counts: &mut ReadCounts,
    ) -> Result<()> {
        let rank = box_chunks.grid.rank();
        let Batch { chunks, origins } = batch;
        if !chunks.is_sorted_by_key(|chunk| chunk.address) {
            chunks.sort_unstable_by_key(|chunk| chunk.address);
        }
        let longest_len_bytes = longest_stored(box_chunks.source.pipeline, box_chunks.grid.chunk_len_bytes);
        let mut end_before = 0;
        for chunk in chunks.iter_mut() {
            if chunk.address < end_before {
                return Err(Hdf5Error::Malformed {
                    path: box_chunks.source.file.path().to_path_buf(),
                    address: chunk.address,
                    what: "two chunks of one dataset overlap".to_owned(),
                });
            }
            end_before = chunk.address + chunk.len_bytes;
            box_chunks.limits.check_stored(
                box_chunks.source.file,
                box_chunks.grid,
                (chunk.len_bytes, longest_len_bytes),
            )?;
            let origin = &origins[chunk.origin as usize * rank..][..rank];
            let share = box_chunks.share(origin);
            if !share.whole
                && let Some(len_bytes) = box_chunks.read_part(chunk, origin, &mut self.stored, out)?
            {
                chunk.done = true;
                counts.chunks += 1;
                counts.stored_len_bytes += len_bytes;
                continue;
            }
            // Only chunks that several boxes need are kept.
            if share.last_use {
                continue;
            }
            if let Some(decoded) = self.kept.get(&box_chunks.key(chunk.address)) {
                box_chunks.copy(origin, decoded, out)?;
                chunk.done = true;
                counts.kept_chunks += 1;
            }
        }
        let mut left = chunks.as_mut_slice();
        while !left.is_empty() {
            let group = self.read_group(box_chunks, left, counts)?;
            let started = Instant::now();
            let (now, later) = left.split_at_mut(group);
            let origin_of = |chunk: &PendingChunk| &origins[chunk.origin as usize * rank..][..rank];
            let mut waiting = now.iter().filter(|chunk| !chunk.done).peekable();
            while let Some(chunk) = waiting.next() {
                if let Some(&next) = waiting.peek()
                    && self.place_two(box_chunks, [chunk, next], [chunk, next].map(origin_of), out)?
                {
                    counts.chunks += 2;
                    waiting.next();
                    continue;
                }
                self.place(box_chunks, chunk, origin_of(chunk), out)?;
                counts.chunks += 1;
            }
            counts.decode_s += started.elapsed().as_secs_f64();
            left = later;
        }
        batch.clear();
        Ok(())
    }

    /// Reads the first of `chunks`, and combines chunks that are close to each other into one read. The limit of a read
    /// applies, or twice this limit if chunks are decoded in pairs, but at least one chunk is read. Returns the number
    /// of chunks read.
    fn read_group(
        &mut self,
        box_chunks: &BoxChunks<'_>,
        chunks: &mut [PendingChunk],
        counts: &mut ReadCounts,
    ) -> Result<usize> {
        let file = box_chunks.source.file;
        let read_len_bytes = box_chunks.limits.read_len_bytes;
        let limit_len_bytes = if box_chunks.prefers_pairs() { 2 * read_len_bytes } else { read_len_bytes };
        let mut filled = 0_usize;
        let mut next = 0;
        while next < chunks.len() {
            if chunks[next].done {
                next += 1;
                continue;
            }
            let first = chunks[next].address;
            let mut end = first;
            let mut behind = next;
            while behind < chunks.len() {
                let chunk = &chunks[behind];
                let chunk_end = chunk.address + chunk.len_bytes;
                let near = behind == next || chunk.address - end <= MAX_GAP_LEN_BYTES;
                let fits = filled as u64 + (chunk_end - first) <= limit_len_bytes || (filled == 0 && behind == next);
                if chunk.done || !near || !fits {
                    break;
                }
                end = chunk_end;
                behind += 1;
            }
            if behind == next {
                break;
            }
            let len = (end - first) as usize;
            lengthen(&mut self.stored, filled + len, read_len_bytes);
            file.read_exact_at(first, &mut self.stored[filled..filled + len], "chunk")?;
            counts.stored_len_bytes += len as u64;
            for chunk in &mut chunks[next..behind] {
                chunk.at = filled + (chunk.address - first) as usize;
            }
            filled += len;
            next = behind;
        }
        Ok(next)
    }

    /// Decodes two chunks, interleaved, from the read buffer to their places. Returns false without decoding if
    /// interleaving does not apply.
    fn place_two(
        &mut self,
        box_chunks: &BoxChunks<'_>,
        chunks: [&PendingChunk; 2],
        origins: [&[u64]; 2],
        out: &mut [u8],
    ) -> Result<bool> {
        let pipeline = box_chunks.source.pipeline;
        if !box_chunks.prefers_pairs()
            || chunks.iter().any(|chunk| chunk.filter_mask != 0)
            || !origins.iter().all(|origin| box_chunks.is_direct(origin))
        {
            return Ok(false);
        }
        let Ok(places) = out.get_disjoint_mut(origins.map(|origin| box_chunks.run(origin))) else { return Ok(false) };
        let stored = chunks.map(|chunk| &self.stored[chunk.at..chunk.at + chunk.len_bytes as usize]);
        let decoded = pipeline.decode_pair(&mut self.decode, stored, places);
        for (chunk, decoded) in chunks.into_iter().zip(decoded) {
            decoded.map_err(|source| box_chunks.decode_error(chunk, source))?;
        }
        Ok(true)
    }

    /// Decodes one chunk from the read buffer to its place.
    fn place(
        &mut self,
        box_chunks: &BoxChunks<'_>,
        chunk: &PendingChunk,
        origin: &[u64],
        out: &mut [u8],
    ) -> Result<()> {
        let grid = box_chunks.grid;
        let stored = &self.stored[chunk.at..chunk.at + chunk.len_bytes as usize];
        let share = box_chunks.share(origin);
        let chunk_len = grid.chunk_len_bytes as usize;
        let decode_error = |source| box_chunks.decode_error(chunk, source);
        if !grid.is_filtered(origin) {
            box_chunks.check_unfiltered(chunk)?;
            return box_chunks.copy(origin, stored, out);
        }
        let pipeline = box_chunks.source.pipeline;
        if share.whole && box_chunks.one_run {
            let run = &mut out[box_chunks.run(origin)];
            return pipeline.decode(&mut self.decode, stored, chunk.filter_mask, run).map_err(decode_error);
        }
        // The size of the decoding buffer comes from the file, so the stored length is checked against it first.
        pipeline.check_stored(stored.len(), chunk.filter_mask, chunk_len).map_err(decode_error)?;
        if self.kept.is_alone(chunk_len) {
            // One buffer serves all chunks of this length: two would double the reader's memory.
            let mut decoded = self.kept.buffer(std::mem::take(&mut self.scratch), chunk_len);
            pipeline.decode(&mut self.decode, stored, chunk.filter_mask, &mut decoded).map_err(decode_error)?;
            box_chunks.copy(origin, &decoded, out)?;
            match share.last_use {
                true => self.scratch = decoded,
                false => self.kept.keep(box_chunks.key(chunk.address), decoded),
            }
            return Ok(());
        }
        if share.last_use {
            lengthen(&mut self.scratch, chunk_len, box_chunks.limits.read_len_bytes);
            let scratch = &mut self.scratch[..chunk_len];
            pipeline.decode(&mut self.decode, stored, chunk.filter_mask, scratch).map_err(decode_error)?;
            return box_chunks.copy(origin, scratch, out);
        }
        let mut decoded = self.kept.buffer(Vec::new(), chunk_len);
        pipeline.decode(&mut self.decode, stored, chunk.filter_mask, &mut decoded).map_err(decode_error)?;
        box_chunks.copy(origin, &decoded, out)?;
        self.kept.keep(box_chunks.key(chunk.address), decoded);
        Ok(())
    }
}

/// Grows a buffer to at least `len_bytes`, with extra capacity for later chunks: at most two reads.
fn lengthen(buffer: &mut Vec<u8>, len_bytes: usize, read_len_bytes: u64) {
    if buffer.len() < len_bytes {
        let page_len_bytes = PAGE_LEN_BYTES.min(2 * read_len_bytes as usize).max(1);
        let room_len_bytes = if len_bytes < page_len_bytes / 8 {
            len_bytes.next_power_of_two()
        } else {
            len_bytes.next_multiple_of(page_len_bytes)
        };
        buffer.reserve_exact(room_len_bytes - buffer.len());
        buffer.resize(len_bytes, 0);
    }
}
