//! Files of events: opened and read as arrays of columns, written from arrays, converted, merged and inspected.
//!
//! Options are those of `raddle events`, parsed by the same parser. Arrays are passed flat, in the order of each
//! product's form, together with awkward-array's description of the form.

use crate::attached::detached;
use crate::errors;
use crate::line::parse;
use crate::ranks::among;
use crate::run::watched;
use clap::Parser;
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use raddle::Error as Failure;
use raddle_cli::command::events::convert::ConvertArgs;
use raddle_cli::command::events::inspect::InspectArgs;
use raddle_cli::command::events::merge::MergeArgs;
use raddle_cli::command::events::output::{LeftOut, convert_options, open_all, write};
use raddle_cli::options::events::{EventLayoutArgs, SelectionArgs};
use raddle_cli::options::running::RuntimeArgs;
use raddle_cli::render::json;
use raddle_core::engine::default_jobs;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::report::progress::Watch;
use raddle_events::model::awkward::AwkwardForm;
use raddle_events::{
    Basket, Baskets, Block, Buffer, Column, ConvertOptions, EventId, EventsError, MemorySource, Schema, Source,
    collect, collect_baskets,
};
use raddle_merge::error::MergeError;
use raddle_merge::inputs::{DuplicatePolicy, InputOrder, InputSpec, expand};
use serde::Serialize;
use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;

/// Options of the command that apply to opening.
#[derive(Debug, Parser)]
#[command(name = "raddle.events.open", disable_help_flag = true)]
struct OpenLine {
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    layout: EventLayoutArgs,
}

/// Options of the command that apply to reading.
#[derive(Debug, Parser)]
#[command(name = "raddle.events.Events", disable_help_flag = true)]
struct ReadLine {
    #[command(flatten)]
    running: RuntimeArgs,
}

/// Options of the command that apply to writing.
#[derive(Debug, Parser)]
#[command(name = "raddle.events.write", disable_help_flag = true)]
struct WriteLine {
    #[arg(short, long)]
    output: PathBuf,
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    layout: EventLayoutArgs,
    #[command(flatten)]
    running: RuntimeArgs,
}

#[derive(Debug, Parser)]
#[command(name = "raddle.events.convert", disable_help_flag = true)]
struct ConvertLine {
    #[command(flatten)]
    convert: ConvertArgs,
}

#[derive(Debug, Parser)]
#[command(name = "raddle.events.merge", disable_help_flag = true)]
struct MergeLine {
    #[command(flatten)]
    merge: MergeArgs,
}

#[derive(Debug, Parser)]
#[command(name = "raddle.events.inspect", disable_help_flag = true)]
struct InspectLine {
    #[command(flatten)]
    inspect: InspectArgs,
}

/// Contents of an open file.
#[derive(Debug, Serialize)]
struct Description<'source> {
    events: u64,
    /// Schema with names, classes and forms.
    schema: &'source Schema,
    /// Description of each form.
    types: Vec<String>,
    /// Form of all products, as one record of awkward-array.
    form: String,
    /// Keys of the arrays of each product.
    buffers: Vec<Vec<String>>,
    /// Products that some files lack or have in a different form.
    left_out: &'source [LeftOut],
}

/// Events of one file, or of several concatenated files.
#[pyclass(frozen)]
pub struct Events {
    source: Box<dyn Source>,
    left_out: Vec<LeftOut>,
    paths: Vec<PathBuf>,
}

/// Array of a column: offsets, or values as bytes.
#[derive(IntoPyObject)]
enum Array<'py> {
    Offsets(Bound<'py, numpy::PyArray1<u64>>),
    Values(Bound<'py, numpy::PyArray1<u8>>),
}

/// Arrays of run, subrun and event numbers.
type Ids<'py> = (Bound<'py, numpy::PyArray1<u32>>, Bound<'py, numpy::PyArray1<u32>>, Bound<'py, numpy::PyArray1<u64>>);

/// Position of a basket in a run: its entries, bytes, and offsets unless all its entries have the same length.
type BasketPlace = ((u64, u64), (usize, usize), Option<(usize, usize)>);

/// Consecutive baskets, with the bytes and offsets of all.
type BasketRun<'py> = (Vec<BasketPlace>, Bound<'py, numpy::PyArray1<u8>>, Bound<'py, numpy::PyArray1<u32>>);

#[pymethods]
impl Events {
    /// Opens files. Their paths are made absolute, so that other readers and processes can find them.
    #[new]
    fn new(py: Python<'_>, paths: Vec<PathBuf>, arguments: Vec<OsString>) -> PyResult<Self> {
        let OpenLine { selection, layout } = parse(&arguments).map_err(|failure| errors::of_error(py, &failure))?;
        let paths = expanded(py, paths)?;
        let opened = detached(py, || open_all(&paths, &selection, &layout))?;
        let (source, left_out) = opened.map_err(|error| errors::of_events(py, &error))?;
        Ok(Self { source, left_out, paths })
    }

    /// Returns the files that are read.
    fn paths(&self) -> Vec<OsString> {
        self.paths.iter().map(|path| path.clone().into_os_string()).collect()
    }

    /// Describes the contents as JSON.
    fn describe(&self) -> String {
        let schema = self.source.schema();
        let AwkwardForm { form, buffers } = AwkwardForm::of(schema);
        let types = schema.products.iter().map(|product| product.form.to_string()).collect();
        json(&Description { events: self.source.len_entries(), schema, types, form, buffers, left_out: &self.left_out })
    }

    /// Returns the arrays of some products in the requested order; also the ids of entries, if there are any and no
    /// product is requested.
    fn read<'py>(
        &self,
        py: Python<'py>,
        products: Vec<usize>,
        entries: (u64, u64),
        arguments: Vec<OsString>,
    ) -> PyResult<(Option<Ids<'py>>, Vec<Vec<Array<'py>>>)> {
        let with_ids = products.is_empty();
        let block = self.reading(py, &arguments, |source, options, watch| {
            collect(source, &products, entries.0..entries.1, with_ids, options, watch.observer, watch.cancel)
        })?;
        let ids = (!block.ids.is_empty()).then(|| {
            let of = |id: fn(&EventId) -> u32| block.ids.iter().map(id).collect::<Vec<_>>().into_pyarray(py);
            let events: Vec<u64> = block.ids.iter().map(|id| id.event).collect();
            (of(|id| id.run), of(|id| id.lumi), events.into_pyarray(py))
        });
        let array = |buffer| match buffer {
            Buffer::Offsets(offsets) => Array::Offsets(offsets.into_pyarray(py)),
            Buffer::Values(bytes) => Array::Values(bytes.into_pyarray(py)),
        };
        let columns = block.columns.into_iter().map(|column| column.buffers.into_iter().map(array).collect());
        Ok((ids, columns.collect()))
    }

    /// Returns, for each of some products, the baskets that contain any of some entries.
    fn baskets<'py>(
        &self,
        py: Python<'py>,
        products: Vec<usize>,
        entries: (u64, u64),
        arguments: Vec<OsString>,
    ) -> PyResult<Vec<Vec<BasketRun<'py>>>> {
        let of_products = self.reading(py, &arguments, |source, options, watch| {
            collect_baskets(source, &products, entries.0..entries.1, options, watch.observer, watch.cancel)
        })?;
        Ok(of_products.into_iter().map(|runs| runs.into_iter().map(|run| run_of(py, run)).collect()).collect())
    }
}

impl Events {
    /// Reads with the options given as command-line arguments.
    fn reading<T: Send>(
        &self,
        py: Python<'_>,
        arguments: &[OsString],
        read: impl FnOnce(&dyn Source, &ConvertOptions, &Watch<'_>) -> raddle_events::Result<T> + Send,
    ) -> PyResult<T> {
        watched(py, None, |watch| {
            let ReadLine { running } = parse(arguments)?;
            read(self.source.as_ref(), &convert_options(&running, default_jobs()), watch)
                .map_err(|error| Failure::of_events(&error, None))
        })
    }
}

/// Expands paths, folders and globs to absolute paths, keeping order and duplicates.
fn expanded(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Vec<PathBuf>> {
    let specs: Vec<InputSpec> = paths.into_iter().map(InputSpec::Path).collect();
    let failed = |error: MergeError| match error {
        MergeError::Input { path, source } => {
            errors::of_events(py, &EventsError::Io { path, operation: "open", source })
        }
        error => errors::of_error(py, &Failure::of_merge(&error, &[])),
    };
    let found = expand(&specs, InputOrder::Given, DuplicatePolicy::Keep).map_err(failed)?;
    let absolute = |path: PathBuf| {
        std::path::absolute(&path)
            .map_err(|source| errors::of_events(py, &EventsError::Io { path, operation: "find the folder of", source }))
    };
    found.into_iter().map(absolute).collect()
}

/// Converts baskets for Python.
fn run_of(py: Python<'_>, Baskets { baskets, bytes, offsets }: Baskets) -> BasketRun<'_> {
    let pair = |range: Range<usize>| (range.start, range.end);
    let places = baskets
        .into_iter()
        .map(|Basket { entries, bytes, offsets }| ((entries.start, entries.end), pair(bytes), offsets.map(pair)));
    (places.collect(), bytes.into_pyarray(py), offsets.into_pyarray(py))
}

/// Array of a column to be written.
#[derive(FromPyObject)]
pub enum Given<'py> {
    /// Offsets.
    Offsets(PyReadonlyArray1<'py, u64>),
    /// Values as bytes.
    Values(PyReadonlyArray1<'py, u8>),
}

/// Arrays of run, subrun and event numbers to be written.
type GivenIds<'py> = (PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u64>);

/// Writes entries from memory; `schema` is JSON.
#[pyfunction]
#[pyo3(signature = (arguments, schema, entries, columns, ids=None, progress=None))]
pub fn events_write(
    py: Python<'_>,
    arguments: Vec<OsString>,
    schema: &str,
    entries: u64,
    columns: Vec<Vec<Given<'_>>>,
    ids: Option<GivenIds<'_>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let schema: Schema = serde_json::from_str(schema).map_err(|error| errors::usage(py, &error.to_string()))?;
    let copied = |given: Given<'_>| {
        Ok::<_, numpy::AsSliceError>(match given {
            Given::Offsets(offsets) => Buffer::Offsets(offsets.as_slice()?.to_vec()),
            Given::Values(bytes) => Buffer::Values(bytes.as_slice()?.to_vec()),
        })
    };
    let column =
        |arrays: Vec<_>| arrays.into_iter().map(copied).collect::<Result<_, _>>().map(|buffers| Column { buffers });
    let columns: Result<Vec<_>, _> = columns.into_iter().map(column).collect();
    let columns = columns.map_err(|_| errors::usage(py, "an array is not contiguous"))?;
    let ids = match &ids {
        None => Vec::new(),
        Some((runs, lumis, events)) => {
            let rows = runs.as_array().into_iter().zip(lumis.as_array()).zip(events.as_array());
            rows.map(|((run, lumi), event)| EventId { run: *run, lumi: *lumi, event: *event }).collect()
        }
    };
    watched(py, progress, |watch| {
        let WriteLine { output, force, layout, running } = parse(&arguments)?;
        raddle_merge::check_output(&output, &[], force).map_err(|error| Failure::of_merge(&error, &[]))?;
        let block = Block { entries: 0..entries, ids, columns };
        let held = MemorySource::new(schema, block).map_err(|error| Failure::of_events(&error, Some(&output)))?;
        write(&held, &output, force, &layout, convert_options(&running, default_jobs()), watch, &SingleProcess)
            .map(|written| json(&written))
    })
}

/// Converts events, together with the ranks of a communicator if one is given; `arguments` are those of `raddle events
/// convert`.
#[pyfunction]
#[pyo3(signature = (arguments, progress=None, communicator=None))]
pub fn events_convert(
    py: Python<'_>,
    arguments: Vec<OsString>,
    progress: Option<Py<PyAny>>,
    communicator: Option<Py<PyAny>>,
) -> PyResult<String> {
    let work = |watch: &Watch<'_>, ranks: &dyn Communicator| {
        let parsed = parse(&arguments).and_then(|ConvertLine { convert }| {
            let inputs = convert.inputs.expand()?;
            Ok((convert, inputs))
        });
        let (convert, inputs) = ranks.agree("list the inputs", parsed)?;
        let cores = (default_jobs() / ranks.size()).max(1);
        convert.convert(&inputs, watch, ranks, cores).map(|written| json(&written))
    };
    match communicator {
        None => watched(py, progress, |watch| work(watch, &SingleProcess)),
        Some(communicator) => among(py, communicator, work),
    }
}

/// Merges files of events; `arguments` are those of `raddle events merge`.
#[pyfunction]
#[pyo3(signature = (arguments, progress=None))]
pub fn events_merge(py: Python<'_>, arguments: Vec<OsString>, progress: Option<Py<PyAny>>) -> PyResult<String> {
    watched(py, progress, |watch| {
        let MergeLine { merge } = parse(&arguments)?;
        let inputs = merge.inputs.expand()?;
        merge.merge(&inputs, watch, &SingleProcess, default_jobs()).map(|written| json(&written))
    })
}

/// Describes the contents of a file; `arguments` are those of `raddle events inspect`.
#[pyfunction]
#[pyo3(signature = (arguments, progress=None))]
pub fn events_inspect(py: Python<'_>, arguments: Vec<OsString>, progress: Option<Py<PyAny>>) -> PyResult<String> {
    watched(py, progress, |watch| {
        let InspectLine { inspect } = parse(&arguments)?;
        inspect.inspect(watch).map(|inspection| json(&inspection))
    })
}
