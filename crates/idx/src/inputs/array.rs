//! Arrays that are read by rows, and the fields and time steps that they form.

use crate::dataset::region::SampleBox;
use crate::dataset::sample::{Number, SampleType};
use crate::error::IdxError;
use crate::read::dataset::Dataset;
use raddle_core::ranks::communicator::AgreedError;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// An array of numbers that is read by rows. A row consists of all values with the same index on the slowest axis.
pub trait RowArray {
    /// Error of reading.
    type Error: From<IdxError> + AgreedError;

    /// Returns the path of the file.
    fn path(&self) -> &Path;

    /// Returns the place of the array as the user names it.
    fn place(&self) -> String;

    /// Returns the name of the array.
    fn name(&self) -> &str;

    /// Returns the number of values along each axis, slowest first.
    fn shape(&self) -> &[u64];

    /// Returns the type in which the values are read.
    fn number(&self) -> Number;

    /// Returns the length of a row in bytes.
    fn row_len_bytes(&self) -> u64;

    /// Returns the number of bytes that a read buffers per row.
    fn buffered_row_len_bytes(&self) -> u64;

    /// Reads rows, little-endian.
    ///
    /// # Errors
    /// If they cannot be read, or memory cannot be allocated.
    fn read_rows(&self, rows: Range<u64>) -> Result<Vec<u8>, Self::Error>;

    /// Returns whether writing `output`, whose contents are stored in `folder`, would replace the file of this array,
    /// or any file of the dataset that it is part of.
    fn is_of_output(&self, output: &Path, folder: &Path) -> bool;
}

/// Fields that are copied whole from an IDX dataset.
#[derive(Debug, Clone)]
pub struct WholeFields {
    /// Dataset that holds the fields.
    pub dataset: Arc<Dataset>,
    /// Numbers of the fields.
    pub fields: Vec<usize>,
    /// Whether missing blocks are read as the default value.
    pub missing_as_default: bool,
}

/// Fields and time steps that inputs form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputLayout {
    /// Number of samples along each axis, x first.
    pub counts: Vec<u64>,
    /// Name and sample type of each field.
    pub fields: Vec<(String, SampleType)>,
    /// Time steps that are written or compared together, with the range of arrays of each.
    pub steps: Vec<(Option<u64>, Range<usize>)>,
}

impl InputLayout {
    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.counts.last().copied().unwrap_or(0)
    }

    /// Returns the box of a range of rows.
    pub fn region(&self, rows: &Range<u64>) -> SampleBox {
        let (mut start, mut counts) = (vec![0; self.counts.len()], self.counts.clone());
        if let (Some(start), Some(count)) = (start.last_mut(), counts.last_mut()) {
            (*start, *count) = (rows.start, rows.end - rows.start);
        }
        SampleBox::new(&start, &counts)
    }

    /// Returns the first and last time step; `None` without time steps.
    pub(crate) fn step_range(&self) -> Option<(u64, u64)> {
        let numbers = || self.steps.iter().filter_map(|(step, _)| *step);
        numbers().min().zip(numbers().max())
    }
}

/// Opened inputs.
#[derive(Debug)]
pub struct Inputs<A> {
    /// Fields and time steps.
    pub layout: InputLayout,
    /// Arrays, one per field or per time step.
    pub arrays: Vec<A>,
    /// Additional keys for the header of a dataset to write.
    pub others: Vec<(String, String)>,
    /// Whether the inputs are an IDX dataset, which numbers its time steps.
    pub is_dataset: bool,
    /// Blocks of an IDX dataset, if all of its samples are copied unchanged.
    pub whole: Option<WholeFields>,
}

impl<A: RowArray> Inputs<A> {
    /// Returns the number of bytes needed to read a row of a time step: its fields are read one at a time, and one of
    /// them may be converted.
    pub fn buffered_row_len_bytes(&self) -> u64 {
        let row_len_bytes = self.layout.steps.first().map_or(0, |(_, arrays)| {
            self.arrays[arrays.clone()].iter().map(RowArray::row_len_bytes).fold(0, u64::saturating_add)
        });
        let more = |array: &A| array.buffered_row_len_bytes().saturating_sub(array.row_len_bytes());
        row_len_bytes.saturating_add(self.arrays.iter().map(more).max().unwrap_or(0))
    }
}
