//! HDF5 metadata read from the bytes of a file, in safe Rust and without libhdf5's lock.
//!
//! For object headers, groups, attributes and the messages in them, in every format version up to HDF5 2.x. Not for
//! chunk indexes and raw data ([`crate::read`]), and not for what only libhdf5 knows: such objects come back as
//! [`ObjectKind::Unreadable`](crate::model::ObjectKind::Unreadable) with `unsupported` set, such files as
//! [`Hdf5Error::Unsupported`](crate::Hdf5Error::Unsupported), for the [`child`](crate::child) reader to take over.
//!
//! Invariants, whatever the bytes: no panic; no recursion deeper than a stated cap; the work done and the memory held
//! are bounded by a multiple of the file's length (see [`ReadLimits`]); every error names the file and the address.

mod attributes;
mod btree_v2;
pub mod checksum;
pub mod cursor;
#[cfg(test)]
mod damage;
pub mod dataspace;
pub mod datatype;
mod fill;
mod filters;
mod forms;
mod fractal_heap;
mod layout;
mod links;
mod object;
mod object_header;
mod reader;
mod shared;
mod stencil;
pub mod superblock;
mod symbol_table;
mod walk;

pub use attributes::stored_attribute_names;
pub use cursor::{Cursor, Defect, Encoding};
pub use forms::Forms;
pub use object::read_object;
pub use superblock::Superblock;
pub use walk::{read_outline, read_tree, read_tree_through};

/// What a reader of metadata accepts before it refuses the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Objects in one file.
    pub objects: u64,
    /// Links in one file.
    pub links: u64,
    /// Groups inside groups.
    pub depth: u64,
    /// Bytes of metadata that may be read beyond four times the file's length. Each structure is read once or twice;
    /// what needs more points at the same bytes again and again.
    pub work_len_bytes: u64,
    /// Bytes of the file that are kept in memory while its metadata is read.
    pub cache_len_bytes: u64,
}

impl Default for ReadLimits {
    /// Room for the widest files known (NOvA: 16,000 datasets in 1,000 groups) a thousand times over.
    fn default() -> Self {
        Self { objects: 16 << 20, links: 32 << 20, depth: 100_000, work_len_bytes: 64 << 20, cache_len_bytes: 64 << 20 }
    }
}
