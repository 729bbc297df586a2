//! Raw data without libhdf5: chunk indexes of every kind, and boxes of values decoded straight to where they belong.
//!
//! [`for_each_chunk`] walks a chunk index lazily, [`check_chunks`] proves that the chunks of a dataset are sound,
//! [`DatasetReader`] reads boxes. Values come out as stored (file-local types: see [`crate::logical`]). Virtual and
//! external layouts are not read here: they lead to other files.
//!
//! Invariant: no index entry is believed. Every address is checked against the file, every walk ends (nodes must lie
//! in strictly rising order, so that neither a cycle nor a shared node is visited twice), and what is allocated is
//! bounded by the file's length or by [`ReaderLimits`].

mod array_order;
mod btree1;
mod btree2;
mod check;
mod extensible_array;
mod fixed_array;
mod grid;
mod index;
mod kept;
mod reader;
mod stride;
mod unchunked;

pub use check::{ChunkSummary, check_chunks};
pub use index::for_each_chunk;
pub use reader::{BoxRead, DatasetReader, DatasetSource, ReadCounts, ReaderLimits, StoredChunk};

use crate::model::FileTree;

/// Largest rank that HDF5 allows (`H5S_MAX_RANK`).
pub const MAX_RANK: usize = 32;

/// How addresses and lengths are stored inside one file: what index structures need from the superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSizes {
    /// Absolute file offset that stored addresses count from: the length of the user block.
    pub base_address: u64,
    /// Size of stored addresses: 2, 4 or 8 bytes.
    pub address_len_bytes: u8,
    /// Size of stored lengths: 2, 4 or 8 bytes.
    pub length_len_bytes: u8,
}

impl FileSizes {
    /// The sizes that `tree`'s superblock states.
    pub fn of(tree: &FileTree) -> Self {
        Self {
            base_address: tree.userblock_len_bytes,
            address_len_bytes: tree.address_len_bytes,
            length_len_bytes: tree.length_len_bytes,
        }
    }
}

/// One allocated chunk, as its index tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkRecord<'a> {
    /// First element, per dimension: multiples of the chunk shape.
    pub origin: &'a [u64],
    /// Absolute file offset.
    pub address: u64,
    /// Stored length.
    pub len_bytes: u64,
    /// Bit `i` set: filter `i` was skipped when the chunk was written.
    pub filter_mask: u32,
}
