//! Decoded chunks kept for the next box: an input chunk that straddles two tiles is decoded once.
//!
//! Invariant: the kept bytes stay within the limit, but for one chunk that alone exceeds it.

use raddle_core::handle::FileIdentity;
use std::collections::{HashMap, VecDeque};

/// What a kept chunk is known by: the file, the dataset's index and the chunk's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ChunkKey {
    pub file: FileIdentity,
    pub index_address: u64,
    pub address: u64,
}

/// The chunks; the one kept first leaves first.
#[derive(Debug)]
pub(super) struct KeptChunks {
    limit_bytes: usize,
    held_bytes: usize,
    chunks: HashMap<ChunkKey, Vec<u8>>,
    order: VecDeque<ChunkKey>,
}

impl KeptChunks {
    pub fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, held_bytes: 0, chunks: HashMap::new(), order: VecDeque::new() }
    }

    /// The decoded chunk, if it is kept.
    pub fn get(&self, key: &ChunkKey) -> Option<&[u8]> {
        self.chunks.get(key).map(Vec::as_slice)
    }

    /// Whether a chunk of `len` bytes is kept alone.
    pub fn is_alone(&self, len: usize) -> bool {
        len > self.limit_bytes
    }

    /// A buffer of `len` bytes of unspecified content, out of `spare` or a chunk that has to leave where possible.
    pub fn buffer(&mut self, spare: Vec<u8>, len: usize) -> Vec<u8> {
        let mut buffer = spare;
        while self.held_bytes.saturating_add(len) > self.limit_bytes
            && let Some(oldest) = self.order.pop_front()
        {
            let left = self.chunks.remove(&oldest).unwrap_or_default();
            self.held_bytes -= left.len();
            // The longest will do, and the others are given back before it grows.
            if left.len() > buffer.len() {
                buffer = left;
            }
        }
        buffer.resize(len, 0);
        buffer
    }

    /// Keeps a chunk that is not kept yet, decoded into a buffer of [`KeptChunks::buffer`].
    pub fn keep(&mut self, key: ChunkKey, bytes: Vec<u8>) {
        self.held_bytes += bytes.len();
        if let Some(before) = self.chunks.insert(key, bytes) {
            self.held_bytes -= before.len();
        } else {
            self.order.push_back(key);
        }
    }
}
