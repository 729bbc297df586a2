//! A dataset that grows: pieces are put behind each other and cut into chunks.
//!
//! Not for encoding or placing chunks. Invariant: all chunks but the last are full, and their bytes depend on the pieces'
//! order alone.

use super::series::{Piece, Series};

/// What there is of a dataset.
#[derive(Debug)]
pub(super) struct Growing {
    /// Elements of a chunk.
    pub chunk_len: u64,
    pub element_len_bytes: usize,
    /// Elements that came.
    pub len: u64,
    /// The last offset that came.
    pub base: u64,
    /// Of the chunk that is being filled.
    pub tail: Vec<u8>,
    /// Whether it must have chunks, however short it is.
    is_extensible: bool,
    pub chunks: Vec<StoredChunk>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StoredChunk {
    pub address: u64,
    pub len_bytes: u64,
    pub filter_mask: u32,
}

/// How the elements of a dataset are stored.
#[derive(Debug, Clone, Copy)]
pub(super) enum Storage {
    /// There are none.
    Nowhere,
    /// As they are.
    Run { address: u64 },
    /// In chunks of so many.
    Chunks { chunk_len: u64 },
}

impl Growing {
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

    /// Where its elements are, when all are placed.
    pub fn storage(&self) -> Storage {
        match (self.len, self.chunks.as_slice()) {
            (0, _) if !self.is_extensible => Storage::Nowhere,
            (len, [only]) if self.is_short() && only.len_bytes == len * self.element_len_bytes as u64 => {
                Storage::Run { address: only.address }
            }
            (0, _) => Storage::Chunks { chunk_len: self.chunk_len },
            // A dataset of one chunk has none that is longer than it.
            (len, _) => Storage::Chunks { chunk_len: self.chunk_len.min(len) },
        }
    }

    /// Whether all elements are less than a chunk, and may lie in the file as they are.
    pub fn is_short(&self) -> bool {
        self.len < self.chunk_len && !self.is_extensible
    }

    /// Appends a piece; chunks that are full go to `full`.
    pub fn push(&mut self, piece: Piece, full: &mut Vec<Vec<u8>>) {
        match piece {
            Piece::Values(bytes) => self.append(&bytes, full),
            Piece::Ends(ends) => self.append_ends(&ends, full),
            Piece::Offsets(offsets) => self.append_ends(offsets.get(1..).unwrap_or_default(), full),
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
        self.tail.extend_from_slice(bytes);
    }

    /// The chunk that is not full: as it is if it is the only one, else filled up with zeros.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        let chunk = std::mem::take(&mut self.tail);
        (!chunk.is_empty()).then(|| self.filled_up(chunk))
    }

    /// The last chunk, which is not full, as it is encoded.
    pub fn filled_up(&self, mut chunk: Vec<u8>) -> Vec<u8> {
        if self.len > self.chunk_len {
            chunk.resize(self.chunk_len_bytes(), 0);
        }
        chunk
    }
}
