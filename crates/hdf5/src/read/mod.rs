//! Raw data without libhdf5: chunk indexes of every kind, and boxes of values decoded straight to where they belong.
//!
//! [`for_each_chunk`] walks a chunk index lazily, [`check_chunks`] proves that the chunks of a dataset are sound,
//! [`DatasetReader`] reads boxes. Values come out as stored (file-local types: see [`crate::logical`]). Virtual and
//! external layouts are not read here: they lead to other files.
//!
//! Invariant: no index entry is believed. Every address is checked against the file, every walk ends (nodes must lie
//! in strictly rising order, so that neither a cycle nor a shared node is visited twice), and what is allocated is
//! bounded by the file's length or by [`ReaderLimits`].

mod array_blocks;
mod array_order;
mod batch;
mod boxes;
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

pub use boxes::{BoxRead, DatasetSource};
pub use check::{ChunkSummary, check_chunks, check_listed};
pub use index::for_each_chunk;
pub use raddle_core::extent::MAX_RANK;
pub use reader::{DatasetReader, ReadCounts, ReaderLimits, StoredChunk};

use crate::native::Encoding;

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
