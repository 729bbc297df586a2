//! IDX datasets: written from samples in memory, and read as boxes.
//!
//! Options are those of `raddle idx`, parsed by the same parser. Axes are in numpy's order, slowest first.

use crate::attached::detached;
use crate::errors;
use crate::line::parse;
use crate::ranks::among;
use crate::run::watched;
use clap::Parser;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use raddle::Error as Failure;
use raddle::exit::Exit;
use raddle_cli::command::idx::place::{PlaceArgs, ThreadsArgs, open};
use raddle_cli::command::idx::read::shape as shape_of;
use raddle_cli::command::idx::target::{Output, TargetArgs};
use raddle_cli::options::running::RuntimeArgs;
use raddle_cli::render::idx::Info;
use raddle_cli::render::{json, zarr};
use raddle_core::engine::default_jobs;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::report::progress::Watch;
use raddle_idx::dataset::sample::SampleType;
use raddle_idx::zarr::{Images, is_zarr};
use raddle_idx::{BoxData, Query, Readers, SampleBox};
use std::borrow::Cow;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Options of writing.
#[derive(Debug, Parser)]
#[command(name = "raddle.idx.write", disable_help_flag = true)]
struct WriteLine {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    running: RuntimeArgs,
}

/// Options of reading.
#[derive(Debug, Parser)]
#[command(name = "raddle.idx.read", disable_help_flag = true)]
struct ReadLine {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    threads: ThreadsArgs,
}

/// A box of samples: its first sample, its counts, and one contiguous array per field.
type HeldBox<'py> = (Vec<u64>, Vec<u64>, Vec<PyReadonlyArray1<'py, u8>>);

/// A dataset to be written by all ranks.
struct Dataset {
    arguments: Vec<OsString>,
    /// Number of samples per axis.
    shape: Vec<u64>,
    fields: Vec<(String, String)>,
    step: Option<u64>,
}

/// Writes boxes of samples as a dataset or a step of one. With several ranks, each writes its own boxes.
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
        patches.push(BoxData { region: SampleBox::new(&reversed(start), &reversed(counts)), arrays });
    }
    match communicator {
        None => watched(py, None, |watch| dataset.write(patches, watch, &SingleProcess)),
        Some(communicator) => among(py, communicator, |watch, ranks| dataset.write(patches, watch, ranks)),
    }
}

impl Dataset {
    /// Collective. Writes the dataset.
    fn write(&self, patches: Vec<BoxData<'_>>, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<String, Failure> {
        let mut output = ranks.agree("describe the dataset", self.output(ranks.size()))?;
        let failed = |error| Failure::of_idx(&error);
        let mut report = output.write_collective(self.step, patches, watch, ranks).map_err(failed)?;
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
        let target = target.with_profile()?;
        let jobs = (default_jobs() / ranks).max(1);
        let options = target.options(&running, jobs, self.shape.len())?;
        target.begin(&reversed(&self.shape), &fields, self.step.map(|step| (step, step)), options)
    }
}

/// Reverses the order of axes.
fn reversed(axes: &[u64]) -> Vec<u64> {
    axes.iter().rev().copied().collect()
}

/// Describes the contents of a dataset or an OME-Zarr folder, like `raddle idx info --json`.
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
    info.map_err(|failure| errors::of_error(py, &failure))
}

/// Bytes of samples, their shape, and the type of the numbers.
type Samples = (Vec<u8>, Vec<u64>, String);

/// Reads the samples selected by options of `raddle idx read`. If there are several ranks, each selects its own box and
/// all read together.
#[pyfunction]
#[pyo3(signature = (path, arguments, communicator=None))]
pub fn idx_read(
    py: Python<'_>,
    path: PathBuf,
    arguments: Vec<OsString>,
    communicator: Option<Py<PyAny>>,
) -> PyResult<(Bound<'_, PyArray1<u8>>, Vec<u64>, String)> {
    let (bytes, shape, number) = match communicator {
        None => watched(py, None, |watch| read(&path, &arguments, watch, None))?,
        Some(communicator) => among(py, communicator, |watch, ranks| read(&path, &arguments, watch, Some(ranks)))?,
    };
    Ok((bytes.into_pyarray(py), shape, number))
}

/// Reads the selected samples. Collective if there are ranks.
fn read(
    path: &Path,
    arguments: &[OsString],
    watch: &Watch<'_>,
    ranks: Option<&dyn Communicator>,
) -> Result<Samples, Failure> {
    let opened = described(path, arguments, ranks.map(Communicator::size));
    let (dataset, query, jobs) = match ranks {
        Some(ranks) => ranks.agree("open the dataset", opened)?,
        None => opened?,
    };
    let readers = Readers { jobs, cancel: watch.cancel };
    let bytes = match ranks {
        Some(ranks) => dataset.read_collective(&query, &readers, ranks),
        None => dataset.read_by(&query, &readers),
    };
    let bytes = bytes.map_err(|error| Failure::of_idx(&error))?;
    let sample = dataset.header().fields[query.field].sample;
    Ok((bytes, shape_of(&dataset, &query), SampleType { count: 1, ..sample }.to_string()))
}

/// Describes the parts to be read by this process, or by each of several ranks.
fn described(
    path: &Path,
    arguments: &[OsString],
    ranks: Option<usize>,
) -> Result<(raddle_idx::Dataset, Query, usize), Failure> {
    let ReadLine { place, threads } = parse(arguments)?;
    let dataset = open(path)?;
    let query = if ranks.is_some() { place.part(&dataset)? } else { place.query(&dataset)? };
    let jobs = threads.jobs.map_or((default_jobs() / ranks.unwrap_or(1)).max(1), NonZeroUsize::get);
    Ok((dataset, query, jobs))
}
