//! HEP events between file formats: many entries of named products in, the same entries in another layout out.
//!
//! A [`Source`] hands out ranges of entries as [`Block`]s (structures of arrays), a [`Sink`] takes them; [`convert`] stands
//! between the two, with a pool of threads and one memory budget, and [`convert_among`] with ranks. The unit of work is a range
//! of entries, not an event.
//!
//! - [`pds`]: the packed data stream of the reference framework (Bashyal et al. 2024), both ways.
//! - [`root`]: trees and RNTuples of ROOT files, by a reader of our own; RNTuples, written.
//! - [`hdf5`]: columns, and the framework's layouts in its form and in one that can be read, both ways.
//! - [`generated`]: events made here, and events of another source repeated from memory. [`held`]: columns in memory.
//! - [`decoded`], [`serialized`] and [`joined`]: another source's blobs as columns, or serialised otherwise; several
//!   sources as one. [`readable`]: what of a damaged source is left.
//! - [`open`]: a file of whatever format. [`collect`]: entries read into memory; [`baskets`]: what stores them, decompressed.
//! - [`sinks`]: nothing, a text, columns in memory, a comparison with another source. [`awkward`]: how awkward-array names
//!   columns.
//!
//! Nothing here knows MPI or a terminal. Invariants: what a sink writes depends on the source and the options
//! alone, not on threads; no bytes of a file make a reader panic, or allocate memory that the file could not fill.
#![forbid(unsafe_code)]

pub mod among;
pub mod awkward;
pub mod baskets;
pub mod block;
mod bytes;
pub mod collect;
mod compressed;
pub mod convert;
pub mod decoded;
pub mod error;
pub mod generated;
pub mod hdf5;
pub mod held;
mod input;
pub mod joined;
pub mod open;
mod output;
pub mod pds;
pub mod readable;
pub mod recoded;
pub mod root;
pub mod schema;
pub mod serialized;
pub mod sink;
pub mod sinks;
pub mod source;

pub use among::convert_among;
pub use baskets::{Basket, Baskets, collect_baskets};
pub use block::{Block, Buffer, Column};
pub use collect::collect;
pub use convert::{ConvertOptions, Converted, convert};
pub use decoded::Decoded;
pub use error::{EventsError, Fault, Place, Result};
pub use held::Held;
pub use joined::{Differing, Joined};
pub use schema::{BufferKind, Field, Form, Number, Product, ProductGlobs, Schema, Serialization};
pub use serialized::Serialized;
pub use sink::{NoTile, Prepare, SharedSink, Sink};
pub use source::{EventId, Reader, Source};
