//! Reads trees and RNTuples of ROOT files into columns, and writes RNTuples, without ROOT and without dictionaries.
//!
//! ```
//! use raddle_root::columns::{Buffer, Source};
//! use raddle_root::{RootFile, RootOptions, TreeSource};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samples/split.root"));
//! let file = RootFile::open(path)?;
//! let tree = TreeSource::open(file, "events", RootOptions::default())?;
//! let branch = tree.schema().position("n").ok_or("no branch n")?;
//! let block = tree.reader(&[branch])?.read(1..4)?;
//! let numbers: Vec<u8> = [1i32, 2, 3].into_iter().flat_map(i32::to_le_bytes).collect();
//! assert_eq!(block.columns[0].buffers, [Buffer::Values(numbers)]);
//! # Ok(())
//! # }
//! ```
//!
//! [`RootFile`] lists trees and RNTuples. [`TreeSource`] reads a tree branch by branch, [`WholeTree`] reassembles
//! objects that ROOT split into branches, and [`NtupleSource`] reads an RNTuple. All are sources of [`columns`]: any
//! range of entries can be read, by any number of threads. [`NtupleSink`] writes an RNTuple. A branch whose contents
//! are unknown is read as the bytes of its entries.
//!
//! Sources of the formats: ROOT's own `TFile`, `TKey`, `TBasket` and `TBufferFile` classes, and its specification of
//! RNTuples. All numbers of trees are big-endian. From bytes to columns: `file` finds keys, `compression` decodes their
//! blocks, `streamer` reads the descriptions of classes that every file contains, `object` reads metadata with them,
//! `tree` locates baskets, `basket` cuts them into entries, `layout` determines the meaning of an entry's bytes, and
//! `walk` turns them into columns. In the other direction, `container` creates the file around an RNTuple, and
//! `compress` its compressed blocks. `whole` reassembles objects: `assembly` plans this, `pieces` cuts entries apart,
//! `front` frames objects.
//!
//! Invariant: no input bytes make a reader panic, or allocate more memory than the file could fill.
#![forbid(unsafe_code)]

mod apart;
mod assembly;
mod basket;
mod blob;
mod buffers;
mod compress;
mod compression;
mod container;
mod counted;
mod double32;
mod file;
mod front;
mod ids;
mod item;
mod key;
mod layout;
mod leaf;
mod ntuple;
mod object;
mod object_header;
mod pieces;
mod plain;
mod references;
mod source;
mod streamer;
mod tree;
mod type_name;
mod walk;
mod whole;
mod written_infos;
mod xz;

pub use apart::{ReassemblyError, SplitReason};
pub use blob::BlobDecoder;
pub use compress::RootCodec;
pub use file::{RootFile, TreeName, is_root_file};
pub use layout::Unreadable;
pub use ntuple::{
    CLUSTER_LEN_BYTES, EncodedCluster, NTUPLE_NAME, NtupleOptions, NtuplePreparer, NtupleSink, NtupleSource,
    NtupleSummary, renamed,
};
pub use raddle_columns as columns;
pub use source::{RootOptions, TreeSource, UnreadBranch, UnreadReason};
pub use type_name::is_collection;
pub use whole::WholeTree;
