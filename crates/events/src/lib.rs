//! Conversion of HEP events between file formats: entries of named products are read in one layout and written in
//! another.
//!
//! [`raddle_columns`] defines the columns, sources and sinks. A [`Source`] provides ranges of entries as [`Block`]s
//! (structures of arrays), and a [`Sink`] consumes them. [`convert()`] connects the two with a pool of threads and one
//! memory budget, [`convert_collective`] with ranks. The unit of work is a range of entries, not an event.
//!
//! - [`pds`]: the packed data stream of the reference framework (Bashyal et al. 2024), read and written.
//! - [`raddle_root`]: trees and RNTuples of ROOT files, read without ROOT; RNTuples are also written.
//! - [`packed`]: trees of whole events of the reference framework, read.
//! - [`hdf5`]: columns, and the layouts of the reference framework, both as it stores them and in a readable form; all
//!   read and written.
//! - [`sources::generated`]: generated events, and events of another source repeated from memory. [`sources::memory`]:
//!   columns in memory.
//! - [`sources::decoding`]: blobs of another source as columns. [`sources::serializing`]: blobs in another
//!   serialisation. [`sources::concat`]: several sources as one. [`sources::readable`]: the products of a damaged
//!   source that can still be read.
//! - [`collect`]: reading of entries into memory. [`sources::baskets`]: decompressed baskets.
//! - [`formats`]: the registry of formats; opening and writing of files in any of them. [`request`]: what the command
//!   does (convert, merge, inspect, write), as plain data.
//! - [`sinks`]: sinks that write nothing or text, keep columns in memory, or compare with another source.
//!
//! This crate does not depend on MPI or a terminal. Invariants: the output of a sink depends only on the source and the
//! options, not on threads; no input bytes make a reader panic, or allocate more memory than the file could fill.
#![forbid(unsafe_code)]

pub mod convert;
pub mod error;
pub mod formats;
pub mod hdf5;
pub mod packed;
pub mod pds;
pub mod request;
pub mod sinks;
pub mod sources;

pub use convert::ranks::convert_collective;
pub use convert::{ConversionReport, ConvertOptions, convert};
pub use error::{EventsError, Result};
pub use raddle_columns::{
    Basket, Baskets, Block, Buffer, BufferKind, Column, ColumnsError, EventId, Field, Form, Location, NoTile, Number,
    Prepare, Product, ProductGlobs, RangeReader, Schema, Serialization, SharedSink, Sink, Source, UnlocatedError,
};
pub use request::{BenchRequest, ConvertRequest, EventsMergeRequest, InspectRequest, WriteRequest};
pub use sources::baskets::collect_baskets;
pub use sources::collect::collect;
pub use sources::concat::{ConcatSource, MismatchPolicy};
pub use sources::decoding::DecodingSource;
pub use sources::memory::MemorySource;
pub use sources::serializing::SerializingSource;
