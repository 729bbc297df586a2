//! IDX datasets: written from samples in memory, and read as boxes.
//!
//! Options are the requests of `raddle_idx`, as JSON. Axes are in numpy's order, slowest first.

use crate::attached::detached;
use crate::errors;
use crate::ranks::among;
use crate::request;
use crate::run::watched;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use raddle::Error;
use raddle::exit::Exit;
use raddle::text::json;
use raddle::tuned::idx::complete_from_profile;
use raddle_core::engine::jobs_per_rank;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::report::progress::Watch;
use raddle_idx::dataset::sample::SampleType;
use raddle_idx::request::{ReadRequest, WriteRequest};
use raddle_idx::targets::{FieldSet, TargetWriter, begin, describe, open_dataset};
use raddle_idx::{BoxData, Query, Readers, SampleBox};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Options of writing.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct WriteOptions {
    #[serde(flatten)]
    request: WriteRequest,
    /// Profile for options that are not given.
    profile: Option<String>,
}

/// A box of samples: its first sample, its counts, and one contiguous array per field.
type HeldBox<'py> = (Vec<u64>, Vec<u64>, Vec<PyReadonlyArray1<'py, u8>>);

/// A dataset to be written by all ranks.
struct Dataset {
    path: PathBuf,
    /// [`WriteOptions`] as JSON.
    options: String,
    /// Number of samples per axis.
    shape: Vec<u64>,
    fields: Vec<(String, String)>,
    step: Option<u64>,
}

/// Writes boxes of samples as a dataset or a step of one. With several ranks, each writes its own boxes.
#[pyfunction]
#[pyo3(signature = (path, options, shape, fields, boxes, step=None, communicator=None))]
#[expect(clippy::too_many_arguments, reason = "the arguments of a call from Python, with the interpreter")]
pub fn idx_write(
    py: Python<'_>,
    path: PathBuf,
    options: String,
    shape: Vec<u64>,
    fields: Vec<(String, String)>,
    boxes: Vec<HeldBox<'_>>,
    step: Option<u64>,
    communicator: Option<Py<PyAny>>,
) -> PyResult<String> {
    let dataset = Dataset { path, options, shape, fields, step };
    let mut patches = Vec::new();
    for (start, counts, arrays) in &boxes {
        let contiguous = |array| PyReadonlyArray1::as_slice(array).map(Cow::Borrowed);
        let arrays: Result<Vec<_>, _> = arrays.iter().map(contiguous).collect();
        let arrays = arrays.map_err(|_| errors::usage(py, "an array is not contiguous"))?;
        patches.push(BoxData { region: SampleBox::new(&reversed(start), &reversed(counts)), arrays });
    }
    match communicator {
        None => watched(py, None, |watch| dataset.write(patches, watch, &SingleProcess)),
        Some(communicator) => among(py, communicator, |watch, ranks| dataset.write(patches, watch, ranks)),
    }
}

impl Dataset {
    /// Collective. Writes the dataset.
    fn write(&self, patches: Vec<BoxData<'_>>, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<String, Error> {
        let mut output = ranks.agree("describe the dataset", self.output(ranks.size()))?;
        let mut report = output.write_collective(self.step, patches, watch, ranks)?;
        output.finish_collective(Some(&mut report), ranks)?;
        Ok(json(&report))
    }

    fn output(&self, ranks: usize) -> Result<Box<dyn TargetWriter>, Error> {
        let sample = |(name, sample): &(String, String)| {
            let sample: SampleType = sample.parse().map_err(|_| {
                Error::new(Exit::InputRefused, &format!("field {name}: samples of type {sample} cannot be written"))
            })?;
            Ok((name.clone(), sample))
        };
        let fields = self.fields.iter().map(sample).collect::<Result<Vec<_>, Error>>()?;
        let WriteOptions { mut request, profile } = request::read(&self.options, &[])?;
        request.output.clone_from(&self.path);
        if let Some(Ok(choice)) = profile.map(|profile| profile.parse()) {
            complete_from_profile(&mut request, &choice)?;
        }
        let fields = FieldSet { counts: reversed(&self.shape), fields, steps: self.step.map(|step| (step, step)) };
        let writer_options = request.options(jobs_per_rank(ranks).get(), self.shape.len())?;
        Ok(begin(&request, &fields, writer_options)?)
    }
}

/// Reverses the order of axes.
fn reversed(axes: &[u64]) -> Vec<u64> {
    axes.iter().rev().copied().collect()
}

/// Describes the contents of a dataset or an OME-Zarr folder, like `raddle idx info --json`.
#[pyfunction]
pub fn idx_info(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let description = detached(py, || describe(&path).map(|description| json(&description)))?;
    description.map_err(|error| errors::of_error(py, &error.into()))
}

/// Bytes of samples, their shape, and the type of the numbers.
type Samples = (Vec<u8>, Vec<u64>, String);

/// Reads the samples selected by a [`ReadRequest`] as JSON. If there are several ranks, each selects its own box and
/// all read together.
#[pyfunction]
#[pyo3(signature = (path, options, communicator=None))]
pub fn idx_read(
    py: Python<'_>,
    path: PathBuf,
    options: String,
    communicator: Option<Py<PyAny>>,
) -> PyResult<(Bound<'_, PyArray1<u8>>, Vec<u64>, String)> {
    let (bytes, shape, number) = match communicator {
        None => watched(py, None, |watch| read(&path, &options, watch, None))?,
        Some(communicator) => among(py, communicator, |watch, ranks| read(&path, &options, watch, Some(ranks)))?,
    };
    Ok((bytes.into_pyarray(py), shape, number))
}

/// Reads the selected samples. Collective if there are ranks.
fn read(path: &Path, options: &str, watch: &Watch<'_>, ranks: Option<&dyn Communicator>) -> Result<Samples, Error> {
    let opened = described(path, options, ranks.map(Communicator::size));
    let (dataset, query, jobs) = match ranks {
        Some(ranks) => ranks.agree("open the dataset", opened)?,
        None => opened?,
    };
    let readers = Readers { jobs, cancel: watch.cancel };
    let bytes = match ranks {
        Some(ranks) => dataset.read_collective(&query, &readers, ranks),
        None => dataset.read_by(&query, &readers),
    };
    let sample = dataset.header().fields[query.field].sample;
    Ok((bytes?, dataset.shape(&query), SampleType { count: 1, ..sample }.to_string()))
}

/// Describes the parts to be read by this process, or by each of several ranks.
fn described(path: &Path, options: &str, ranks: Option<usize>) -> Result<(raddle_idx::Dataset, Query, usize), Error> {
    let request: ReadRequest = request::read(options, &[])?;
    let dataset = open_dataset(path)?;
    let query = if ranks.is_some() { request.part(&dataset)? } else { request.query(&dataset)? };
    let jobs = request.jobs.unwrap_or_else(|| jobs_per_rank(ranks.unwrap_or(1))).get();
    Ok((dataset, query, jobs))
}
