//! ROOT files: trees and RNTuples as sources, RNTuples as sinks, without ROOT and without dictionaries.
//!
//! Sources of the formats: ROOT's own `TFile`, `TKey`, `TBasket` and `TBufferFile` classes. All numbers are big-endian.
//! From bytes to columns: [`file`] finds keys, `compression` decodes their blocks, `streamer` reads the
//! descriptions of classes that every file contains, `object` reads metadata with them, `tree` locates baskets,
//! `basket` cuts them into entries, `layout` determines the meaning of an entry's bytes, and `walk` turns them
//! into columns.
//!
//! RNTuples are written too: `container` creates the file around them, `compress` its compressed blocks.
//!
//! `whole` puts objects together that were split into branches: `assembly` plans it, `pieces` cuts entries apart, `front` frames
//! objects.
//!
//! Invariant: a branch that `layout` does not understand can still be read, as the bytes of its entries.

mod apart;
mod assembly;
mod basket;
mod blob;
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

pub use apart::Apart;
pub use blob::BlobDecoder;
pub(crate) use blob::NO_OBJECT;
pub use compress::RootCodec;
pub use file::{RootFile, TreeName};
pub use layout::Unreadable;
pub use ntuple::{
    CLUSTER_LEN_BYTES, EncodedCluster, NTUPLE_NAME, NtupleOptions, NtuplePreparer, NtupleSink, NtupleSource,
    NtupleSummary, renamed,
};
pub use source::{RootOptions, TreeSource, Unread, WhyUnread};
pub(crate) use type_name::is_collection;
pub use whole::WholeTree;
