//! IDX datasets: samples in memory in, a dataset out, and boxes of datasets as arrays.
//!
//! Options are those of `raddle idx`, parsed by the same parser. Axes are in numpy's order here, the slowest first.

use crate::attached::detached;
use crate::errors;
use crate::line::parse;
use crate::ranks::among;
use crate::run::watched;
use clap::Parser;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use raddle_cli::command::idx::place::{PlaceArgs, open};
use raddle_cli::command::idx::read::shape as shape_of;
use raddle_cli::command::idx::target::{Output, TargetArgs};
use raddle_cli::exit::Exit;
use raddle_cli::failure::Failure;
use raddle_cli::options::running::RunningArgs;
use raddle_cli::render::idx::Info;
use raddle_cli::render::{json, zarr};
use raddle_core::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::engine::default_jobs;
use raddle_core::progress::Watch;
use raddle_idx::sample::SampleType;
use raddle_idx::zarr::{Images, is_zarr};
use raddle_idx::{IdxError, Patch, SampleBox};
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of writing.
#[derive(Debug, Parser)]
#[command(name = "raddle.idx.write", disable_help_flag = true)]
struct WriteLine {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    running: RunningArgs,
}

/// Options of reading.
#[derive(Debug, Parser)]
#[command(name = "raddle.idx.read", disable_help_flag = true)]
struct ReadLine {
    #[command(flatten)]
    place: PlaceArgs,
}

/// A box of samples: its first, its counts, one contiguous array per field.
type HeldBox<'py> = (Vec<u64>, Vec<u64>, Vec<PyReadonlyArray1<'py, u8>>);

/// What is to be written by all ranks.
struct Dataset {
    arguments: Vec<OsString>,
    /// Samples per axis.
    shape: Vec<u64>,
    fields: Vec<(String, String)>,
    step: Option<u64>,
}

/// Writes boxes of samples, those of this rank where there are several, as (a step of) a dataset.
#[pyfunction]
#[pyo3(signature = (arguments, shape, fields, boxes, step=None, communicator=None))]
pub fn idx_write(
    py: Python<'_>,
    arguments: Vec<OsString>,
    shape: Vec<u64>,
    fields: Vec<(String, String)>,
    boxes: Vec<HeldBox<'_>>,
    step: Option<u64>,
    communicator: Option<Py<PyAny>>,
) -> PyResult<String> {
    let dataset = Dataset { arguments, shape, fields, step };
    let mut patches = Vec::new();
    for (start, counts, arrays) in &boxes {
        let contiguous = |array| PyReadonlyArray1::as_slice(array).map(Cow::Borrowed);
        let arrays: Result<Vec<_>, _> = arrays.iter().map(contiguous).collect();
        let arrays = arrays.map_err(|_| errors::usage(py, "an array is not contiguous"))?;
        patches.push(Patch { region: SampleBox::new(&reversed(start), &reversed(counts)), arrays });
    }
    match communicator {
        None => watched(py, None, |watch| dataset.write(patches, watch, &SingleProcess)),
        Some(communicator) => among(py, communicator, |watch, ranks| dataset.write(patches, watch, ranks)),
    }
}

impl Dataset {
    /// Collective.
    fn write(&self, patches: Vec<Patch<'_>>, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<String, Failure> {
        let made = self.output(ranks.size());
        let agreed =
            ranks.agree("describe the dataset", made.as_ref().map_err(|failure| failure.message()).map(|_| ()));
        let failed = |error| Failure::of_idx(&error);
        let mut output = made?;
        agreed.map_err(|error| failed(IdxError::Core(error)))?;
        let mut report = output.write_among(self.step, patches, watch, ranks).map_err(failed)?;
        output.finish(Some(&mut report), ranks).map_err(failed)?;
        Ok(json(&report))
    }

    fn output(&self, ranks: usize) -> Result<Output, Failure> {
        let sample = |(name, sample): &(String, String)| {
            let sample: SampleType = sample.parse().map_err(|_| {
                Failure::new(Exit::InputRefused, &format!("field {name}: samples of type {sample} cannot be written"))
            })?;
            Ok((name.clone(), sample))
        };
        let fields = self.fields.iter().map(sample).collect::<Result<Vec<_>, Failure>>()?;
        let WriteLine { target, running } = parse(&self.arguments)?;
        let jobs = (default_jobs() / ranks).max(1);
        let options = target.options(&running, jobs, self.shape.len())?;
        target.begin(&reversed(&self.shape), &fields, self.step.map(|step| (step, step)), options)
    }
}

/// The same axes in the other order.
fn reversed(axes: &[u64]) -> Vec<u64> {
    axes.iter().rev().copied().collect()
}

/// What a dataset or an OME-Zarr folder holds, as `raddle idx info --json`.
#[pyfunction]
pub fn idx_info(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let info = detached(py, || {
        if is_zarr(&path) {
            let images = Images::open(&path).map_err(|error| Failure::of_idx(&error))?;
            return Ok(json(&zarr::Info::of(&path, &images)));
        }
        let dataset = open(&path)?;
        let steps = dataset.steps().map_err(|error| Failure::of_idx(&error))?;
        Ok::<_, Failure>(json(&Info::of(&dataset, &steps)))
    })?;
    info.map_err(|failure| errors::of_failure(py, &failure))
}

/// The bytes of what is named by options of `raddle idx read`, its shape, and the type of its numbers.
#[pyfunction]
pub fn idx_read(
    py: Python<'_>,
    path: PathBuf,
    arguments: Vec<OsString>,
) -> PyResult<(Bound<'_, PyArray1<u8>>, Vec<u64>, String)> {
    let read = detached(py, || {
        let ReadLine { place } = parse(&arguments)?;
        let dataset = open(&path)?;
        let query = place.query(&dataset)?;
        let shape = shape_of(&dataset, &query)?;
        let sample = dataset.header().fields[query.field].sample;
        let bytes = dataset.read(&query).map_err(|error| Failure::of_idx(&error))?;
        Ok::<_, Failure>((bytes, shape, SampleType { count: 1, ..sample }.to_string()))
    })?;
    let (bytes, shape, number) = read.map_err(|failure| errors::of_failure(py, &failure))?;
    Ok((bytes.into_pyarray(py), shape, number))
}
