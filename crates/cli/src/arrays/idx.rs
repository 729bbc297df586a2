//! Fields of IDX datasets as arrays, complete or restricted to a box.

use super::{ArraySource, Values};
use crate::command::idx::place::{Along, limit, open};
use crate::exit::Exit;
use crate::failure::Failure;
use raddle_core::cancel::CancelToken;
use raddle_core::engine::default_jobs;
use raddle_core::output::folder_of;
use raddle_idx::dataset::bitmask::MAX_RANK;
use raddle_idx::dataset::sample::SampleType;
use raddle_idx::{Dataset, Query, Readers, SampleBox};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Header keys that relate samples to physical coordinates. Other keys describe the files themselves.
const KEYS_OF_SPACE: [&str; 3] = ["axis", "physic_box", "logic_to_physic"];

/// Part of a dataset to read.
#[derive(Debug, Clone, Copy)]
pub struct IdxPart<'a> {
    /// Names of the fields; empty for all.
    pub fields: &'a [String],
    /// Time step; `None` for all.
    pub step: Option<u64>,
    /// Ranges of samples along axes.
    pub along: &'a [Along],
    /// Whether missing blocks are read as the default value.
    pub missing_as_default: bool,
}

/// A dataset as a source of arrays.
#[derive(Debug)]
pub struct IdxSource {
    /// Number of samples per axis, x first.
    pub counts: Vec<u64>,
    /// Name and sample type of each field.
    pub fields: Vec<(String, SampleType)>,
    /// Time steps.
    pub steps: Vec<Option<u64>>,
    /// Header keys that remain valid for the selected part.
    pub others: Vec<(String, String)>,
    /// Arrays of each time step and field, field by field.
    pub arrays: Vec<ArraySource>,
    /// The dataset and the numbers of the fields, if all samples are read at their coordinates.
    pub whole: Option<WholeFields>,
}

/// Fields that are copied whole.
#[derive(Debug, Clone)]
pub struct WholeFields {
    /// Dataset that holds the fields.
    pub dataset: Arc<Dataset>,
    /// Numbers of the fields.
    pub fields: Vec<usize>,
}

/// A field at a time step.
#[derive(Debug)]
pub(super) struct IdxValues {
    dataset: Arc<Dataset>,
    query: Query,
}

impl IdxSource {
    /// Opens the `.idx` file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, or does not have the selected fields, step or samples.
    pub fn open(path: &Path, part: &IdxPart<'_>) -> Result<Self, Failure> {
        let dataset = Arc::new(open(path)?);
        let header = dataset.header();
        let of_idx = |error| Failure::of_idx(&error);
        let refused = |what: String| Failure::new(Exit::InputRefused, &format!("{}: {what}", path.display()));
        let mut region = SampleBox { start: header.start, end: header.end };
        limit("--crop", part.along, header.rank, (&mut region.start, &mut region.end))?;
        let number = |name: &String| {
            let names = || header.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join(", ");
            header.field_index(name).ok_or_else(|| refused(format!("no field {name}; it has {}", names())))
        };
        let numbers: Vec<usize> = match part.fields {
            [] => (0..header.fields.len()).collect(),
            names => names.iter().map(number).collect::<Result<_, _>>()?,
        };
        let steps = match part.step {
            Some(step) => vec![Some(step)],
            None => dataset.steps().map_err(of_idx)?,
        };
        if steps.is_empty() {
            return Err(refused("no time step exists".to_owned()));
        }
        let counts = region.counts()[..header.rank].to_vec();
        let mut arrays = Vec::with_capacity(steps.len() * numbers.len());
        for time in &steps {
            for field in &numbers {
                let (start, end) = (region.start, region.end);
                let missing_as_default = part.missing_as_default;
                let query = Query { time: *time, start, end, missing_as_default, ..dataset.whole(*field) };
                dataset.grid(&query).map_err(of_idx)?;
                let of = &header.fields[*field];
                let components = (of.sample.count > 1).then_some(of.sample.count as u64);
                arrays.push(ArraySource {
                    path: path.to_path_buf(),
                    name: of.name.clone(),
                    dataset: None,
                    shape: counts.iter().rev().copied().chain(components).collect(),
                    number: of.sample.number,
                    stored_as: None,
                    values: Values::Idx(Box::new(IdxValues { dataset: Arc::clone(&dataset), query })),
                });
            }
        }
        let fields = numbers.iter().map(|field| &header.fields[*field]);
        let fields = fields.map(|field| (field.name.clone(), field.sample)).collect();
        // The coordinates of a box differ from those of the dataset.
        let holds = |key: &str| key == "axis" || (part.along.is_empty() && header.start == [0; MAX_RANK]);
        let others = header.others.iter().filter(|(key, _)| KEYS_OF_SPACE.contains(&key.as_str()) && holds(key));
        let others = others.cloned().collect();
        let is_whole = part.along.is_empty() && header.start == [0; MAX_RANK];
        let whole = is_whole.then(|| WholeFields { dataset: Arc::clone(&dataset), fields: numbers.clone() });
        Ok(Self { counts, fields, steps, others, arrays, whole })
    }
}

impl IdxValues {
    /// Fills `out` with rows of the slowest axis; returns that the values are not big-endian.
    pub(super) fn read(&self, rows: Range<u64>, out: &mut [u8]) -> Result<bool, Failure> {
        let (mut query, axis) = (self.query, self.dataset.header().rank - 1);
        (query.start[axis], query.end[axis]) = (self.query.start[axis] + rows.start, self.query.start[axis] + rows.end);
        let readers = Readers { jobs: default_jobs(), cancel: &CancelToken::new() };
        self.dataset.read_into_by(&query, out, &readers).map_err(|error| Failure::of_idx(&error))?;
        Ok(false)
    }
}

impl ArraySource {
    /// Whether writing the dataset at `output` would replace this source.
    pub fn is_of_output(&self, output: &Path) -> bool {
        let Values::Idx(values) = &self.values else { return false };
        let source = values.dataset.path();
        let placed = |path: &Path| Some(folder_of(path).canonicalize().ok()?.join(path.file_name()?));
        let (Some(source), Some(output)) = (placed(source), placed(output)) else { return false };
        let first = values.dataset.header().files.path(0, "");
        let blocks = first.components().next().map(Component::as_os_str).map(PathBuf::from).unwrap_or_default();
        source == output || folder_of(&source).join(blocks) == output.with_extension("")
    }
}
