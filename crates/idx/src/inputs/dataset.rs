//! Fields of IDX datasets as input arrays, complete or restricted to a box.

use super::array::{RowArray, WholeFields};
use crate::dataset::bitmask::MAX_RANK;
use crate::dataset::region::SampleBox;
use crate::dataset::sample::{Number, SampleType};
use crate::error::{IdxError, Result};
use crate::read::dataset::{Dataset, Query, Readers, zeros};
use crate::request::{InputRequest, restrict};
use crate::targets::open_dataset;
use raddle_core::cancel::CancelToken;
use raddle_core::engine::default_jobs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Header keys that relate samples to physical coordinates. Other keys describe the files themselves.
const KEYS_OF_SPACE: [&str; 3] = ["axis", "physic_box", "logic_to_physic"];

/// A dataset as a source of arrays.
#[derive(Debug)]
pub struct DatasetInput {
    /// Number of samples along each axis, x first.
    pub counts: Vec<u64>,
    /// Name and sample type of each field.
    pub fields: Vec<(String, SampleType)>,
    /// Time steps.
    pub steps: Vec<Option<u64>>,
    /// Header keys that remain valid for the selected part.
    pub others: Vec<(String, String)>,
    /// Arrays of each time step and field, field by field.
    pub arrays: Vec<FieldArray>,
    /// The dataset and the numbers of the fields, if all samples are read at their coordinates.
    pub whole: Option<WholeFields>,
}

/// A field at a time step.
#[derive(Debug, Clone)]
pub struct FieldArray {
    dataset: Arc<Dataset>,
    query: Query,
    /// Shape, slowest axis first, components last.
    shape: Vec<u64>,
}

impl DatasetInput {
    /// Opens the part of the dataset at `path` that a request selects.
    ///
    /// # Errors
    /// If it cannot be read, or does not have the selected fields, step or samples.
    pub fn open(path: &Path, request: &InputRequest) -> Result<Self> {
        let dataset = Arc::new(open_dataset(path)?);
        let header = dataset.header();
        let mut region = SampleBox { start: header.start, end: header.end };
        restrict(&mut region, "crop", &request.crop, header.rank)?;
        let numbers: Vec<usize> = match request.field.as_slice() {
            [] => (0..header.fields.len()).collect(),
            names => names.iter().map(|name| dataset.field_named(name)).collect::<Result<_>>()?,
        };
        let steps = match request.step {
            Some(step) => vec![Some(step)],
            None => dataset.steps()?,
        };
        if steps.is_empty() {
            let (place, reason) = (path.display().to_string(), "no time step exists".to_owned());
            return Err(IdxError::Input { place, reason });
        }
        let mut arrays = Vec::with_capacity(steps.len() * numbers.len());
        for time in &steps {
            for field in &numbers {
                let SampleBox { start, end } = region;
                let missing_as_default = request.missing_as_default;
                let query = Query { time: *time, start, end, missing_as_default, ..dataset.whole(*field) };
                dataset.grid(&query)?;
                arrays.push(FieldArray { dataset: Arc::clone(&dataset), query, shape: dataset.shape(&query) });
            }
        }
        let fields = numbers.iter().map(|field| &header.fields[*field]);
        let fields = fields.map(|field| (field.name.clone(), field.sample)).collect();
        // The coordinates of a box differ from those of the dataset.
        let is_whole = request.crop.is_empty() && header.start == [0; MAX_RANK];
        let holds = |key: &str| key == "axis" || is_whole;
        let others = header.others.iter().filter(|(key, _)| KEYS_OF_SPACE.contains(&key.as_str()) && holds(key));
        let (others, missing_as_default) = (others.cloned().collect(), request.missing_as_default);
        let whole = || WholeFields { dataset: Arc::clone(&dataset), fields: numbers.clone(), missing_as_default };
        let (counts, whole) = (region.counts()[..header.rank].to_vec(), is_whole.then(whole));
        Ok(Self { counts, fields, steps, others, arrays, whole })
    }
}

impl FieldArray {
    /// Fills `out` with rows of the slowest axis.
    ///
    /// # Errors
    /// If a block cannot be read, or `out` has a different length.
    pub fn read_rows_into(&self, rows: Range<u64>, out: &mut [u8]) -> Result<()> {
        let (mut query, axis) = (self.query, self.dataset.header().rank - 1);
        (query.start[axis], query.end[axis]) = (self.query.start[axis] + rows.start, self.query.start[axis] + rows.end);
        let readers = Readers { jobs: default_jobs(), cancel: &CancelToken::new() };
        self.dataset.read_into_by(&query, out, &readers)
    }
}

impl RowArray for FieldArray {
    type Error = IdxError;

    fn path(&self) -> &Path {
        self.dataset.path()
    }

    fn place(&self) -> String {
        self.path().display().to_string()
    }

    fn name(&self) -> &str {
        &self.dataset.header().fields[self.query.field].name
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn number(&self) -> Number {
        self.dataset.header().fields[self.query.field].sample.number
    }

    fn row_len_bytes(&self) -> u64 {
        let values = self.shape[1..].iter().fold(1, |all: u64, count| all.saturating_mul(*count));
        values.saturating_mul(self.number().len_bytes() as u64)
    }

    fn buffered_row_len_bytes(&self) -> u64 {
        self.row_len_bytes()
    }

    fn read_rows(&self, rows: Range<u64>) -> Result<Vec<u8>> {
        let mut out = zeros(self.row_len_bytes().saturating_mul(rows.end - rows.start))?;
        self.read_rows_into(rows, &mut out)?;
        Ok(out)
    }

    fn is_of_output(&self, output: &Path, folder: &Path) -> bool {
        let is_same = |path: &Path| output.canonicalize().is_ok_and(|output| path.canonicalize().ok() == Some(output));
        self.dataset.owns(output) || is_same(self.path()) || self.dataset.has_blocks_in(folder)
    }
}
