//! A dataset that grows as pieces are appended and is cut into chunks.
//!
//! Encoding and placing chunks is done elsewhere. Invariant: all chunks except the last are full, and their bytes
//! depend only on the order of the pieces.

use super::series::{Series, SeriesPiece};

/// State of a growing dataset.
#[derive(Debug)]
pub(super) struct ChunkBuilder {
    /// Number of elements in a chunk.
    pub chunk_len: u64,
    pub element_len_bytes: usize,
    /// Number of elements appended so far.
    pub len: u64,
    /// Last offset appended so far.
    pub base: u64,
    /// Bytes of the chunk that is being filled.
    pub tail: Vec<u8>,
    /// Whether the dataset must be chunked even if it is short.
    is_extensible: bool,
    pub chunks: Vec<StoredChunk>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StoredChunk {
    pub address: u64,
    pub len_bytes: u64,
    pub filter_mask: u32,
}

/// Storage of the elements of a dataset.
#[derive(Debug, Clone, Copy)]
pub(super) enum Storage {
    /// No elements are stored.
    Nowhere,
    /// Elements are stored contiguously, without filters.
    Run { address: u64 },
    /// Elements are stored in chunks of `chunk_len` elements.
    Chunks { chunk_len: u64 },
}

impl ChunkBuilder {
    pub fn new(series: &Series, chunk_len_bytes: u64, is_extensible: bool) -> Self {
        let element_len_bytes = series.number.len_bytes();
        let mut growing = Self {
            chunk_len: (chunk_len_bytes / element_len_bytes as u64).max(1),
            element_len_bytes,
            len: 0,
            base: 0,
            tail: Vec::new(),
            is_extensible,
            chunks: Vec::new(),
        };
        if series.starts_with_zero {
            growing.tail.resize(element_len_bytes, 0);
            growing.len = 1;
        }
        growing
    }

    pub fn chunk_len_bytes(&self) -> usize {
        self.chunk_len as usize * self.element_len_bytes
    }

    /// Returns the storage of the elements, once all of them are placed.
    pub fn storage(&self) -> Storage {
        match (self.len, self.chunks.as_slice()) {
            (0, _) if !self.is_extensible => Storage::Nowhere,
            (len, [only]) if self.is_short() && only.len_bytes == len * self.element_len_bytes as u64 => {
                Storage::Run { address: only.address }
            }
            (0, _) => Storage::Chunks { chunk_len: self.chunk_len },
            // The chunk length must not exceed the length of the dataset.
            (len, _) => Storage::Chunks { chunk_len: self.chunk_len.min(len) },
        }
    }

    /// Returns whether the elements fill less than one chunk and may be stored contiguously.
    pub fn is_short(&self) -> bool {
        self.len < self.chunk_len && !self.is_extensible
    }

    /// Appends a piece; full chunks are added to `full`.
    pub fn push(&mut self, piece: SeriesPiece, full: &mut Vec<Vec<u8>>) {
        match piece {
            SeriesPiece::Values(bytes) => self.append(&bytes, full),
            SeriesPiece::Ends(ends) => self.append_ends(&ends, full),
            SeriesPiece::Offsets(offsets) => self.append_ends(offsets.get(1..).unwrap_or_default(), full),
        }
    }

    fn append_ends(&mut self, ends: &[u64], full: &mut Vec<Vec<u8>>) {
        let base = self.base;
        let mut bytes = Vec::with_capacity(size_of_val(ends));
        for end in ends {
            self.base = base.wrapping_add(*end);
            bytes.extend_from_slice(&self.base.to_le_bytes());
        }
        self.append(&bytes, full);
    }

    fn append(&mut self, mut bytes: &[u8], full: &mut Vec<Vec<u8>>) {
        let chunk_len_bytes = self.chunk_len_bytes();
        self.len += (bytes.len() / self.element_len_bytes) as u64;
        while self.tail.len() + bytes.len() >= chunk_len_bytes {
            let (now, later) = bytes.split_at(chunk_len_bytes - self.tail.len());
            let mut chunk = std::mem::take(&mut self.tail);
            chunk.extend_from_slice(now);
            full.push(chunk);
            bytes = later;
        }
        // All at once, because chunks that grow in turns would leave holes between them.
        self.tail.reserve_exact(chunk_len_bytes - self.tail.len());
        self.tail.extend_from_slice(bytes);
    }

    /// Returns the last, incomplete chunk: unchanged if it is the only one, otherwise padded with zeros.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        let chunk = std::mem::take(&mut self.tail);
        (!chunk.is_empty()).then(|| self.filled_up(chunk))
    }

    /// Pads the last, incomplete chunk for encoding.
    pub fn filled_up(&self, mut chunk: Vec<u8>) -> Vec<u8> {
        if self.len > self.chunk_len {
            chunk.resize(self.chunk_len_bytes(), 0);
        }
        chunk
    }
}
