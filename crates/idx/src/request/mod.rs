//! Requests of callers, as plain data with the names and words of the command's options.
//!
//! A request is checked when it is used, because most checks need the samples or the dataset. Invariant: each field has
//! the name of its option with `_` for `-`, and the strings that an option takes are those that serde reads.

mod fault;
mod inputs;
mod read;
mod sizes;
mod text;
mod words;
mod write;

pub use fault::RequestFault;
pub use inputs::{InputRelation, InputRequest};
pub use read::ReadRequest;
pub use sizes::{
    AxisRange, BoxSize, ParseAxisRangeError, ParseBoxSizeError, ParseShapeError, Shape, axis_named, restrict,
};
pub use words::{OutputCompression, ParseOutputCompressionError};
pub use write::{BlockLayout, Format, ImageOptions, WriteRequest};
