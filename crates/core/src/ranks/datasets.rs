//! Outputs whose datasets all ranks write collectively, by rows, through a library: a baseline to compare the engine
//! with.
//!
//! Unlike [`crate::engine::SharedFiles`], which takes tiles that the engine has placed, the library itself filters
//! values and allocates space for them.

use crate::engine::SharedIo;
use std::fmt::Debug;
use std::io::Result;
use std::path::Path;

/// Rows of a dataset, in the datatype of the dataset.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Index of the first row; ignored if `count` is 0.
    pub start: u64,
    /// Number of rows.
    pub count: u64,
    /// Values of the rows.
    pub bytes: &'a [u8],
}

/// Opener of outputs whose datasets ranks write collectively.
pub trait SharedDatasets: Debug {
    /// Collective. Opens the existing file at `path`, which already contains all its objects. If one rank fails, all
    /// do.
    fn open(&self, path: &Path) -> Result<Box<dyn DatasetSink + '_>>;
}

/// An output whose datasets are written collectively.
pub trait DatasetSink: Debug {
    /// Collective. Writes this rank's rows, possibly none, to the dataset at path `object`; the rows of all ranks are
    /// disjoint. If one rank fails, either all ranks fail, or the others remain inside the call and have to be
    /// aborted.
    fn write_rows(&self, object: &[u8], rows: Rows<'_>) -> Result<()>;

    /// Describes the interface in use, for the report.
    fn describe(&self) -> SharedIo;

    /// Collective. Closes the output, which is invalid otherwise. If one rank fails, all do.
    fn finish(self: Box<Self>) -> Result<()>;
}
