//! The interface of a format that arrays are written to.

use super::{Description, TargetCheck, WrittenLayout};
use crate::compare::ComparedArrays;
use crate::dataset::header::Header;
use crate::dataset::sample::SampleType;
use crate::error::{IdxError, Result};
use crate::read::dataset::Readers;
use crate::request::{RequestFault, WriteRequest};
use crate::write::exchange::BoxData;
use crate::write::options::{WriteOptions, WriteReport};
use crate::write::writer::BlockSource;
use raddle_core::ranks::communicator::Communicator;
use raddle_core::report::progress::Watch;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// Samples to be written: their number along each axis, and the fields that they form.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldSet {
    /// Number of samples along each axis, x first.
    pub counts: Vec<u64>,
    /// Name and type of the samples of each field.
    pub fields: Vec<(String, SampleType)>,
    /// First and last time step; `None` without time steps.
    pub steps: Option<(u64, u64)>,
}

/// A format that arrays are written to.
pub trait ArrayTarget: Debug + Send + Sync {
    /// Returns the name of the format in requests, which is also the ending of outputs that have it by default.
    fn name(&self) -> &'static str;

    /// Returns the name of the format in messages.
    fn title(&self) -> &'static str;

    /// Returns the names of programs that read the format, for use as the object of a sentence.
    fn readers(&self) -> &'static str;

    /// Returns the names of the options that only this format has, each with whether `request` names it.
    fn options(&self, request: &WriteRequest) -> Vec<(&'static str, bool)>;

    /// Returns whether the file or folder at `path` has this format.
    fn is_stored_at(&self, path: &Path) -> bool;

    /// Returns the folder that contains the samples of an output at `path`.
    fn samples_folder(&self, path: &Path) -> PathBuf;

    /// Begins writing `fields`. Options of other formats were refused before. Nothing is written yet.
    ///
    /// # Errors
    /// If the request does not fit the fields, or a dataset to continue cannot be read or differs.
    fn begin(&self, request: &WriteRequest, fields: &FieldSet, options: WriteOptions) -> Result<Box<dyn TargetWriter>>;

    /// Opens an output for reading.
    ///
    /// # Errors
    /// If it cannot be read or is refused.
    fn open(&self, path: &Path) -> Result<Box<dyn StoredArrays>>;

    /// Sets the options that the request does not name to the layout of a dataset whose samples are all copied.
    fn adopt_layout(&self, _request: &mut WriteRequest, _header: &Header) {}

    /// Returns the header of datasets that are written to find the fastest options.
    ///
    /// # Errors
    /// If the request does not fit the fields, or the format has no such options.
    fn header_of_trials(&self, _request: &WriteRequest, _fields: &FieldSet) -> Result<Header> {
        let fault = RequestFault::NotTuned { output: self.title() };
        Err(IdxError::Request { option: "tune", fault })
    }
}

/// An output in progress.
pub trait TargetWriter: Debug + Send {
    /// Collective. Writes the time step `step`, or the only one, by `ranks` that hold any number of boxes each.
    ///
    /// # Errors
    /// If boxes or arrays do not fit, or files cannot be written; on every rank.
    fn write_collective(
        &mut self,
        step: Option<u64>,
        patches: Vec<BoxData<'_>>,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<WriteReport>;

    /// Returns whether the blocks of the output contain the same samples as those of `source`.
    fn has_blocks_of(&self, _source: &BlockSource<'_>) -> bool {
        false
    }

    /// Collective. Writes a time step from the blocks of `source`, for which [`TargetWriter::has_blocks_of`] is true.
    ///
    /// # Errors
    /// As for [`TargetWriter::write_collective`].
    fn rewrite_collective(
        &mut self,
        step: Option<u64>,
        _source: &BlockSource<'_>,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<WriteReport> {
        self.write_collective(step, Vec::new(), watch, ranks)
    }

    /// Collective. Publishes what appears only at the end, and returns the layout that was written. `report` is the
    /// report of the last time step, to which the time is added.
    ///
    /// # Errors
    /// If the output cannot be published; on every rank.
    fn finish_collective(
        self: Box<Self>,
        report: Option<&mut WriteReport>,
        ranks: &dyn Communicator,
    ) -> Result<WrittenLayout>;
}

/// An output opened for reading.
pub trait StoredArrays: ComparedArrays {
    /// Returns the description of the output.
    ///
    /// # Errors
    /// If its metadata cannot be read.
    fn describe(&self) -> Result<Description>;

    /// Reads and decodes everything that is stored. Faults are in the result.
    ///
    /// # Errors
    /// If the run is cancelled, or memory is short.
    fn check(&self, readers: &Readers<'_>) -> Result<TargetCheck>;
}
