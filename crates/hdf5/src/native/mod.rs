//! Reads HDF5 metadata from the bytes of a file, in safe Rust and without libhdf5's lock.
//!
//! Covers object headers, groups, attributes and their messages, in every format version up to HDF5 2.x. Chunk indexes
//! and raw data are read by [`crate::read`]. Objects that only libhdf5 supports are returned as
//! [`ObjectKind::Unreadable`](crate::model::ObjectKind::Unreadable) with `unsupported` set, and such files as
//! [`Hdf5Error::Unsupported`](crate::Hdf5Error::Unsupported), so that the [`child`](crate::child) reader can take over.
//!
//! Invariants for arbitrary bytes: no panic; no recursion deeper than a stated limit; work and memory are bounded by a
//! multiple of the file's length (see [`ReadLimits`]); every error names the file and the address.

mod attributes;
pub(crate) mod btree_v2;
pub mod checksum;
pub mod cursor;
#[cfg(test)]
mod damage;
pub mod dataspace;
pub mod datatype;
mod fill;
mod filters;
mod fractal_heap;
mod header_template;
mod kind;
mod layout;
mod links;
mod object;
mod object_header;
mod object_reader;
mod reader;
mod shared;
mod stored_link;
pub mod superblock;
mod symbol_table;
mod templates;
mod walk;

pub use attributes::stored_attribute_names;
pub use cursor::{Cursor, Defect, Encoding};
pub use object::read_object;
pub use superblock::Superblock;
pub use templates::HeaderTemplateCache;
pub use walk::{read_outline, read_tree, read_tree_through};

/// Limits beyond which a metadata reader refuses a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Maximum number of objects in a file.
    pub objects: u64,
    /// Maximum number of links in a file.
    pub links: u64,
    /// Maximum nesting depth of groups.
    pub depth: u64,
    /// Length of metadata that may be read in addition to four times the file's length. Each structure is read once or
    /// twice; files that need more contain structures that point to the same bytes repeatedly.
    pub work_len_bytes: u64,
    /// Maximum bytes of the file that are cached while its metadata is read.
    pub cache_len_bytes: u64,
}

impl Default for ReadLimits {
    /// Allows files a thousand times wider than the widest known (NOvA: 16,000 datasets in 1,000 groups).
    fn default() -> Self {
        Self { objects: 16 << 20, links: 32 << 20, depth: 100_000, work_len_bytes: 64 << 20, cache_len_bytes: 64 << 20 }
    }
}
