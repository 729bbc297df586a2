//! Decoded chunks kept for the next box, so that an input chunk that straddles two tiles is decoded once.
//!
//! Invariant: the kept bytes stay within the limit, except for a single chunk that alone exceeds it.

use raddle_core::pooled_file::FileIdentity;
use std::collections::{HashMap, VecDeque};

/// Key of a kept chunk: the file, the address of the dataset's index and the address of the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ChunkKey {
    pub file: FileIdentity,
    pub index_address: u64,
    pub address: u64,
}

/// Decoded chunks, evicted in the order in which they were added.
#[derive(Debug)]
pub(super) struct KeptChunks {
    limit_bytes: usize,
    kept_bytes: usize,
    chunks: HashMap<ChunkKey, Vec<u8>>,
    order: VecDeque<ChunkKey>,
}

impl KeptChunks {
    pub fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, kept_bytes: 0, chunks: HashMap::new(), order: VecDeque::new() }
    }

    /// Returns the decoded chunk if it is kept.
    pub fn get(&self, key: &ChunkKey) -> Option<&[u8]> {
        self.chunks.get(key).map(Vec::as_slice)
    }

    /// Returns whether a chunk of `len` bytes exceeds the limit, in which case it can only be kept alone.
    pub fn is_alone(&self, len: usize) -> bool {
        len > self.limit_bytes
    }

    /// Returns a buffer of `len` bytes of unspecified content, reusing `spare` or an evicted chunk if possible.
    pub fn buffer(&mut self, spare: Vec<u8>, len: usize) -> Vec<u8> {
        let mut buffer = spare;
        while self.kept_bytes.saturating_add(len) > self.limit_bytes
            && let Some(oldest) = self.order.pop_front()
        {
            let left = self.chunks.remove(&oldest).unwrap_or_default();
            self.kept_bytes -= left.len();
            // The longest buffer is reused, and the others are freed before it grows.
            if left.len() > buffer.len() {
                buffer = left;
            }
        }
        buffer.resize(len, 0);
        buffer
    }

    /// Keeps a new chunk that was decoded into a buffer from [`KeptChunks::buffer`].
    pub fn keep(&mut self, key: ChunkKey, bytes: Vec<u8>) {
        self.kept_bytes += bytes.len();
        if let Some(before) = self.chunks.insert(key, bytes) {
            self.kept_bytes -= before.len();
        } else {
            self.order.push_back(key);
        }
    }
}
