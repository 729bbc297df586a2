//! Reads raw data without libhdf5: all kinds of chunk indexes, and boxes of values decoded directly to their
//! destination.
//!
//! [`for_each_chunk`] walks a chunk index lazily, [`check_chunks`] verifies the chunks of a dataset, and
//! [`DatasetReader`] reads boxes. Values are returned as stored (for file-local types, see [`crate::logical`]). Virtual
//! and external layouts, which refer to other files, are not read here.
//!
//! Invariant: index entries are not trusted. Every address is checked against the file, every walk ends (nodes must be
//! in strictly rising order, so that cycles and shared nodes are not visited twice), and allocations are bounded by the
//! file's length or by [`ReaderLimits`].

mod array_blocks;
mod array_order;
mod batch;
mod boxes;
mod btree1;
mod btree2;
mod check;
mod counts;
mod extensible_array;
mod fixed_array;
mod grid;
mod index;
mod index_reader;
mod kept;
mod limits;
mod reader;
mod stride;
mod unchunked;

pub use boxes::{BoxRead, DatasetSource};
pub use check::{ChunkSummary, check_chunks, check_listed};
pub use counts::ReadCounts;
pub use index::for_each_chunk;
pub use limits::ReaderLimits;
pub use raddle_core::plan::extent::MAX_RANK;
pub use reader::{DatasetReader, StoredChunk};
pub(crate) use unchunked::MAX_GAP_LEN_BYTES;

use crate::native::Encoding;

/// One allocated chunk, as recorded in its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkRecord<'a> {
    /// First element per dimension, a multiple of the chunk shape.
    pub origin: &'a [u64],
    /// Absolute file offset of the first byte.
    pub address: u64,
    /// Length of the stored chunk.
    pub len_bytes: u64,
    /// Mask of skipped filters: if bit `i` is set, filter `i` was skipped when the chunk was written.
    pub filter_mask: u32,
}
