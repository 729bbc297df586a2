//! HEP events between file formats: many entries of named products in, the same entries in another layout out.
//!
//! A [`Source`] hands out ranges of entries as [`Block`]s (structures of arrays), a [`Sink`] takes them; [`convert`] stands
//! between the two, with a pool of threads and one memory budget. The unit of work is a range of entries, not an event.
//!
//! - [`pds`]: the packed data stream of the reference framework (paper 003), both ways.
//! - [`root`]: trees of ROOT files, by a reader of our own.
//! - [`generated`]: events made here, and events of another source repeated from memory.
//! - [`sinks`]: nothing, a text, a comparison with another source.
//!
//! Nothing here knows HDF5, MPI or a terminal. Invariants: what a sink writes depends on the source and the options
//! alone, not on threads; no bytes of a file make a reader panic, or allocate memory that the file could not fill.
#![forbid(unsafe_code)]

pub mod block;
mod bytes;
pub mod convert;
pub mod error;
pub mod generated;
mod input;
mod output;
pub mod pds;
pub mod root;
pub mod schema;
pub mod sink;
pub mod sinks;
pub mod source;

pub use block::{Block, Buffer, Column};
pub use convert::{ConvertOptions, Converted, convert};
pub use error::{EventsError, Fault, Place, Result};
pub use schema::{BufferKind, Field, Form, Number, Product, Schema, Serialization};
pub use sink::{Prepare, Sink};
pub use source::{EventId, Reader, Source};
