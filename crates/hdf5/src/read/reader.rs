//! Boxes of values out of a dataset: what a worker calls for each piece of a tile.
//!
//! A box is read in batches: the chunks that it meets are looked up, ordered by address, read in few large reads and
//! decoded: straight to their place where a chunk is one run of the output, else through a buffer. Nothing is allocated
//! per chunk. Invariant: every byte of the box is written (a value or the fill value), none outside of it.

use super::grid::{ChunkGrid, index_address};
use super::index::{DirectSource, IndexReader, NodeCache, walk};
use super::kept::{ChunkKey, KeptChunks};
use super::stride::{Place, copy_box, fill_box};
use super::unchunked::{MAX_GAP_LEN_BYTES, MAX_READ_LEN_BYTES, read_compact, read_contiguous};
use super::{ChunkRecord, Encoding, MAX_RANK};
use crate::error::{Hdf5Error, Result};
use crate::model::{Dataset, Dataspace, Layout};
use crate::source::InputFile;
use raddle_codec::{DecodeState, Pipeline};
use std::ops::{AddAssign, ControlFlow};
use std::time::Instant;

/// Chunks looked up before they are read. Boxes with more chunks are filled first and read batch by batch.
const BATCH_CHUNKS: usize = 8192;

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

/// A dataset in its file.
#[derive(Debug, Clone, Copy)]
pub struct DatasetSource<'a> {
    /// The file.
    pub file: &'a InputFile,
    /// How it stores addresses.
    pub encoding: Encoding,
    /// The dataset's facts.
    pub dataset: &'a Dataset,
    /// Its filter pipeline.
    pub pipeline: &'a Pipeline,
}

/// A box of a dataset and where its elements go. One number per dimension in each slice, in elements; a scalar has none.
#[derive(Debug, Clone, Copy)]
pub struct BoxRead<'a> {
    /// First element of the box.
    pub start: &'a [u64],
    /// Size of the box.
    pub count: &'a [u64],
    /// Shape of the row-major output array.
    pub out_shape: &'a [u64],
    /// Where the box starts in the output array.
    pub out_origin: &'a [u64],
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

/// Chunks looked up and not yet read.
#[derive(Debug, Default)]
struct Batch {
    chunks: Vec<Pending>,
    /// Origins, rank numbers per chunk.
    origins: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    address: u64,
    len_bytes: u64,
    filter_mask: u32,
    /// Which of the batch's origins is this chunk's.
    origin: u32,
    /// Where in the read buffer it lies.
    at: usize,
    /// Already copied.
    done: bool,
}

#[derive(Debug)]
struct ChunkBuffers {
    decode: DecodeState,
    /// Stored bytes of a group of chunks.
    stored: Vec<u8>,
    /// One decoded chunk.
    scratch: Vec<u8>,
    kept: KeptChunks,
}

impl DatasetReader {
    /// A reader with empty caches.
    pub fn new(limits: ReaderLimits) -> Self {
        Self {
            limits,
            nodes: NodeCache::default(),
            batch: Batch::default(),
            chunks: ChunkBuffers {
                decode: DecodeState::default(),
                stored: Vec::new(),
                scratch: Vec::new(),
                kept: KeptChunks::new(limits.kept_len_bytes),
            },
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

impl ReaderLimits {
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
    fn check_stored(&self, file: &InputFile, grid: &ChunkGrid<'_>, len_bytes: u64) -> Result<()> {
        self.check_chunk(file, grid)?;
        let limit = grid.chunk_len_bytes.saturating_mul(2).saturating_add(1 << 16);
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

impl DatasetSource<'_> {
    /// Length of all values.
    pub(super) fn value_len_bytes(&self) -> Result<u64> {
        let elements = self.dataset.dataspace.element_count();
        elements.and_then(|count| count.checked_mul(self.dataset.datatype.class.len_bytes())).ok_or_else(|| {
            Hdf5Error::Malformed {
                path: self.file.path().to_path_buf(),
                address: 0,
                what: format!("extent {:?} overflows 64 bits", self.dataset.dataspace.dims()),
            }
        })
    }

    fn fill(&self, target: &BoxRead<'_>, out: &mut [u8]) -> Result<()> {
        let fill = &self.dataset.fill;
        let element_len = self.dataset.datatype.class.len_bytes();
        let pattern = match fill.value.as_ref().filter(|_| !fill.undefined) {
            None => None,
            Some(value) => {
                let canonical = || self.unsupported("a fill value known in canonical form only");
                Some(value.stored().ok_or_else(canonical)?)
            }
        };
        // All zeros fill at memset's speed.
        let pattern = pattern.filter(|pattern| pattern.iter().any(|&byte| byte != 0));
        if let Some(pattern) = pattern
            && pattern.len() as u64 != element_len
        {
            return Err(Hdf5Error::Malformed {
                path: self.file.path().to_path_buf(),
                address: 0,
                what: format!("fill value of {} bytes for elements of {element_len}", pattern.len()),
            });
        }
        fill_box(target.count, element_len, pattern, out, target.place());
        Ok(())
    }

    fn unsupported(&self, what: &str) -> Hdf5Error {
        Hdf5Error::Unsupported { path: self.file.path().to_path_buf(), address: 0, what: what.to_owned() }
    }

    fn outside(&self, start: &[u64], count: &[u64]) -> Hdf5Error {
        Hdf5Error::BoxOutside {
            path: self.file.path().to_path_buf(),
            start: start.to_vec(),
            count: count.to_vec(),
            dims: self.dataset.dataspace.dims().to_vec(),
        }
    }
}

impl<'a> BoxRead<'a> {
    pub(super) fn place(&self) -> Place<'a> {
        Place { shape: self.out_shape, origin: self.out_origin }
    }

    fn check(&self, source: &DatasetSource<'_>, out_len: usize) -> Result<()> {
        let dims = source.dataset.dataspace.dims();
        let rank = dims.len();
        let lies_in = |start: &[u64], shape: &[u64]| {
            start.len() == rank
                && shape.len() == rank
                && (0..rank).all(|axis| start[axis].checked_add(self.count[axis]).is_some_and(|end| end <= shape[axis]))
        };
        let needed = self
            .out_shape
            .iter()
            .try_fold(source.dataset.datatype.class.len_bytes(), |product, &count| product.checked_mul(count));
        let fits = rank <= MAX_RANK
            && self.count.len() == rank
            && lies_in(self.start, dims)
            && lies_in(self.out_origin, self.out_shape)
            && (needed == Some(out_len as u64) || source.dataset.dataspace == Dataspace::Null);
        if fits { Ok(()) } else { Err(source.outside(self.start, self.count)) }
    }
}

impl Batch {
    fn clear(&mut self) {
        self.chunks.clear();
        self.origins.clear();
    }

    fn push(&mut self, record: &ChunkRecord<'_>) {
        self.origins.extend_from_slice(record.origin);
        self.chunks.push(Pending {
            address: record.address,
            len_bytes: record.len_bytes,
            filter_mask: record.filter_mask,
            origin: self.chunks.len() as u32,
            at: 0,
            done: false,
        });
    }
}

/// The chunks of one dataset against one box.
struct BoxChunks<'a> {
    source: &'a DatasetSource<'a>,
    target: &'a BoxRead<'a>,
    grid: &'a ChunkGrid<'a>,
    limits: &'a ReaderLimits,
    element_len_bytes: u64,
    /// Whether a whole chunk is one run of the output.
    one_run: bool,
}

/// The part of a chunk that lies in the box.
struct Part {
    /// Start, in the dataset.
    start: [u64; MAX_RANK],
    count: [u64; MAX_RANK],
}

/// How much of a chunk lies in the box.
#[derive(Clone, Copy)]
struct Share {
    /// All of the chunk, nothing of it beyond the extent.
    whole: bool,
    /// All of the chunk that lies in the extent: no other tile needs it.
    last_use: bool,
}

impl<'a> BoxChunks<'a> {
    fn new(
        source: &'a DatasetSource<'a>,
        target: &'a BoxRead<'a>,
        grid: &'a ChunkGrid<'a>,
        limits: &'a ReaderLimits,
    ) -> Self {
        // Row-major: behind the first axis along which a chunk has more than one element, it must be as wide as the
        // output.
        let wide = grid.chunk_shape.iter().position(|&count| count > 1).unwrap_or(grid.rank());
        let one_run = (wide + 1..grid.rank()).all(|axis| grid.chunk_shape[axis] == target.out_shape[axis]);
        let element_len_bytes = source.dataset.datatype.class.len_bytes();
        Self { source, target, grid, limits, element_len_bytes, one_run }
    }

    /// Asked for every chunk, so kept apart from [`BoxChunks::part`], which fills arrays.
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

    fn part(&self, origin: &[u64]) -> Part {
        let mut part = Part { start: [0; MAX_RANK], count: [0; MAX_RANK] };
        for (axis, &low) in origin.iter().enumerate() {
            let valid = low.saturating_add(self.grid.chunk_shape[axis]).min(self.grid.dims[axis]);
            let start = low.max(self.target.start[axis]);
            part.start[axis] = start;
            part.count[axis] = valid.min(self.target.start[axis] + self.target.count[axis]) - start;
        }
        part
    }

    /// Copies a decoded chunk's part of the box.
    fn copy(&self, origin: &[u64], chunk: &[u8], out: &mut [u8]) {
        let rank = origin.len();
        let part = self.part(origin);
        let (mut in_chunk, mut in_out) = ([0; MAX_RANK], [0; MAX_RANK]);
        for axis in 0..rank {
            in_chunk[axis] = part.start[axis] - origin[axis];
            in_out[axis] = part.start[axis] - self.target.start[axis] + self.target.out_origin[axis];
        }
        copy_box(
            &part.count[..rank],
            self.element_len_bytes,
            (chunk, Place { shape: self.grid.chunk_shape, origin: &in_chunk[..rank] }),
            (out, Place { shape: self.target.out_shape, origin: &in_out[..rank] }),
        );
    }

    /// Where a whole chunk that is one run lies in the output.
    fn run<'o>(&self, origin: &[u64], out: &'o mut [u8]) -> &'o mut [u8] {
        let mut element = 0;
        for (axis, &low) in origin.iter().enumerate() {
            element =
                element * self.target.out_shape[axis] + low - self.target.start[axis] + self.target.out_origin[axis];
        }
        let at = (element * self.element_len_bytes) as usize;
        &mut out[at..at + self.grid.chunk_len_bytes as usize]
    }

    fn key(&self, address: u64) -> ChunkKey {
        ChunkKey { file: self.source.file.identity(), index_address: index_address(self.grid.index), address }
    }
}

impl ChunkBuffers {
    /// Reads, decodes and places the chunks of `batch`, and empties it.
    fn read_batch(
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
            box_chunks.limits.check_stored(box_chunks.source.file, box_chunks.grid, chunk.len_bytes)?;
            let origin = &origins[chunk.origin as usize * rank..][..rank];
            // Only chunks that several boxes need are kept.
            if box_chunks.share(origin).last_use {
                continue;
            }
            if let Some(decoded) = self.kept.get(&box_chunks.key(chunk.address)) {
                box_chunks.copy(origin, decoded, out);
                chunk.done = true;
                counts.kept_chunks += 1;
            }
        }
        let mut left = chunks.as_mut_slice();
        while !left.is_empty() {
            let group = self.read_group(box_chunks.source.file, left, counts)?;
            let started = Instant::now();
            let (now, later) = left.split_at_mut(group);
            for chunk in now.iter().filter(|chunk| !chunk.done) {
                let origin = &origins[chunk.origin as usize * rank..][..rank];
                self.place(box_chunks, chunk, origin, out)?;
                counts.chunks += 1;
            }
            counts.decode_s += started.elapsed().as_secs_f64();
            left = later;
        }
        batch.clear();
        Ok(())
    }

    /// Reads the first chunks of `chunks`, up to [`MAX_READ_LEN_BYTES`] (at least one), close ones with one read;
    /// returns how many.
    fn read_group(&mut self, file: &InputFile, chunks: &mut [Pending], counts: &mut ReadCounts) -> Result<usize> {
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
                let fits = filled as u64 + (chunk_end - first) <= MAX_READ_LEN_BYTES || (filled == 0 && behind == next);
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
            if self.stored.len() < filled + len {
                self.stored.resize(filled + len, 0);
            }
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

    /// Decodes one chunk from the read buffer to its place.
    fn place(&mut self, box_chunks: &BoxChunks<'_>, chunk: &Pending, origin: &[u64], out: &mut [u8]) -> Result<()> {
        let grid = box_chunks.grid;
        let stored = &self.stored[chunk.at..chunk.at + chunk.len_bytes as usize];
        let share = box_chunks.share(origin);
        let chunk_len = grid.chunk_len_bytes as usize;
        let decode_error = |source| Hdf5Error::Chunk {
            path: box_chunks.source.file.path().to_path_buf(),
            address: chunk.address,
            len_bytes: chunk.len_bytes,
            source,
        };
        if !grid.is_filtered(origin) {
            if stored.len() != chunk_len {
                return Err(decode_error(raddle_codec::CodecError::RawLength {
                    expected_len_bytes: chunk_len,
                    actual_len_bytes: stored.len(),
                }));
            }
            box_chunks.copy(origin, stored, out);
            return Ok(());
        }
        let pipeline = box_chunks.source.pipeline;
        if share.whole && box_chunks.one_run {
            let run = box_chunks.run(origin, out);
            return pipeline.decode(&mut self.decode, stored, chunk.filter_mask, run).map_err(decode_error);
        }
        if share.last_use {
            self.scratch.resize(chunk_len, 0);
            pipeline.decode(&mut self.decode, stored, chunk.filter_mask, &mut self.scratch).map_err(decode_error)?;
            box_chunks.copy(origin, &self.scratch, out);
            return Ok(());
        }
        let mut decoded = self.kept.buffer(chunk_len);
        pipeline.decode(&mut self.decode, stored, chunk.filter_mask, &mut decoded).map_err(decode_error)?;
        box_chunks.copy(origin, &decoded, out);
        self.kept.keep(box_chunks.key(chunk.address), decoded);
        Ok(())
    }
}
