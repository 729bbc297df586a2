//! Outputs whose datasets ranks write together, rows by rows: a library's own way of writing, to compare the engine's with.
//!
//! Not for tiles that the engine places (see [`crate::engine::SharedFiles`]): here a library filters values and finds
//! places for them.

use crate::engine::SharedIo;
use std::fmt::Debug;
use std::io::Result;
use std::path::Path;

/// Rows of a dataset, in the dataset's own datatype.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The first of them; with none, anything.
    pub start: u64,
    /// How many.
    pub count: u64,
    /// Their values.
    pub bytes: &'a [u8],
}

/// Opens outputs whose datasets ranks write together.
pub trait SharedDatasets: Debug {
    /// Collective. Opens the file at `path`, which is there with all its objects.
    fn open(&self, path: &Path) -> Result<Box<dyn DatasetSink + '_>>;
}

/// An output whose datasets ranks write together.
pub trait DatasetSink: Debug {
    /// Collective. Writes the rows of this rank, which may be none, to the dataset at the path `object`; the rows of all
    /// ranks are disjoint. Where one rank fails, all do.
    fn write_rows(&self, object: &[u8], rows: Rows<'_>) -> Result<()>;

    /// What is written through, for the report.
    fn describe(&self) -> SharedIo;

    /// Collective. Closes the output. Without it the output is worth nothing.
    fn finish(self: Box<Self>) -> Result<()>;
}
