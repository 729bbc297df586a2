//! Columns of entries in memory, and the interfaces of the file formats that store them.
//!
//! An entry is one event, or one row of a table. All entries of a source have the same products, and a [`Form`]
//! describes the values of each: numbers, strings, records, and lists of any depth. A [`Block`] holds the columns of
//! consecutive entries as values and offsets, as awkward-array and Arrow do.
//!
//! - [`block`], [`schema`], [`event_id`]: columns and what they hold. [`awkward`]: names of columns in awkward-array.
//! - [`source`] and [`sink`]: the interfaces of readers and writers of a format. [`baskets`]: compressed parts of
//!   columns, decompressed but not interpreted.
//! - [`input`], [`bytes`] and [`output`]: bounded reading of files and of structures in them, and files that appear
//!   when they are complete.
//! - [`error`]: errors, and the place where each occurred.
//!
//! This crate knows no file format. Invariant: a block that passes [`Block::check`] can be indexed without further
//! checks.
#![forbid(unsafe_code)]

pub mod awkward;
pub mod baskets;
pub mod block;
pub mod bytes;
pub mod error;
pub mod event_id;
pub mod input;
pub mod output;
pub mod schema;
pub mod sink;
pub mod source;

pub use baskets::{Basket, Baskets};
pub use block::{Block, Buffer, Column};
pub use error::{ColumnsError, Location, Result, Shape, UnlocatedError};
pub use event_id::EventId;
pub use schema::{BufferKind, Field, Form, Number, Product, ProductGlobs, Schema, Serialization};
pub use sink::{NoTile, Prepare, SharedSink, Sink};
pub use source::{RangeReader, Source};
