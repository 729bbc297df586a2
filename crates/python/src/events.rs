//! Files of events: opened and read as arrays of columns, written from arrays, converted, merged and inspected.
//!
//! Keyword arguments arrive as JSON and become the library's requests. Arrays are passed flat, in the order of each
//! product's form, together with awkward-array's description of the form.

use crate::attached::detached;
use crate::errors;
use crate::ranks::among;
use crate::request;
use crate::run::watched;
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use raddle::Error;
use raddle::options::ListingOptions;
use raddle::options::inputs::refuse_folders_of_other_events;
use raddle::options::output::refuse_replacing;
use raddle::text::json;
use raddle::tuned::events::with_profile;
use raddle_columns::awkward::AwkwardForm;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::report::progress::Watch;
use raddle_events::formats::{OmittedProduct, WriteOptions};
use raddle_events::request::{OpenedInputs, Resources, Selection};
use raddle_events::{
    Basket, Baskets, Block, Buffer, Column, ColumnsError, ConvertOptions, ConvertRequest, EventId, EventsError,
    EventsMergeRequest, InspectRequest, MemorySource, Schema, Source, WriteRequest, collect, collect_baskets,
};
use raddle_merge::error::MergeError;
use raddle_merge::inputs::{DuplicatePolicy, InputOrder, InputSpec, expand};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Keywords of a call that lists its inputs.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ListedInputs<T> {
    #[serde(flatten)]
    listing: ListingOptions,
    #[serde(flatten)]
    request: T,
}

impl<T> ListedInputs<T> {
    /// Returns the files that `names` stand for. None of the lists may be the `output`.
    fn expand(&self, names: &[PathBuf], output: &Path) -> Result<Vec<PathBuf>, Error> {
        refuse_replacing(output, &self.listing.list_files(names))?;
        refuse_folders_of_other_events(names)?;
        self.listing.expand(names)
    }
}

/// Keywords of a call that may take options of its output from a profile.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ProfiledOutput<T> {
    profile: Option<String>,
    #[serde(flatten)]
    request: T,
}

impl<T> ProfiledOutput<T> {
    /// Returns the options of an output, with those that are not given taken from the profile.
    fn options(&self, options: WriteOptions, output: &Path) -> Result<WriteOptions, Error> {
        match &self.profile {
            // Every text names a profile: `auto`, or a path.
            Some(profile) => with_profile(options, &profile.parse().unwrap_or_else(|never| match never {}), output),
            None => Ok(options),
        }
    }
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
    left_out: &'source [OmittedProduct],
}

/// Events of one file, or of several concatenated files.
#[pyclass(frozen)]
pub struct Events {
    source: Box<dyn Source>,
    left_out: Vec<OmittedProduct>,
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
    fn new(py: Python<'_>, paths: Vec<PathBuf>, options: &str) -> PyResult<Self> {
        let selection: Selection = request::read(options, &[]).map_err(|error| errors::of_error(py, &error))?;
        let paths = expanded(py, paths)?;
        let opened = detached(py, || selection.open(&paths, &WriteOptions::default()))?;
        let OpenedInputs { source, left_out, .. } = opened.map_err(|error| errors::of_events(py, &error))?;
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

    /// Returns the arrays of some products in the requested order. If no product is requested, also returns the ids of
    /// the entries, if there are any.
    fn read<'py>(
        &self,
        py: Python<'py>,
        products: Vec<usize>,
        entries: (u64, u64),
        options: &str,
    ) -> PyResult<(Option<Ids<'py>>, Vec<Vec<Array<'py>>>)> {
        let with_ids = products.is_empty();
        let block = self.reading(py, options, |source, options, watch| {
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
        options: &str,
    ) -> PyResult<Vec<Vec<BasketRun<'py>>>> {
        let of_products = self.reading(py, options, |source, options, watch| {
            collect_baskets(source, &products, entries.0..entries.1, options, watch.observer, watch.cancel)
        })?;
        Ok(of_products.into_iter().map(|runs| runs.into_iter().map(|run| run_of(py, run)).collect()).collect())
    }
}

impl Events {
    /// Reads with threads and memory given as keywords.
    fn reading<T: Send>(
        &self,
        py: Python<'_>,
        options: &str,
        read: impl FnOnce(&dyn Source, &ConvertOptions, &Watch<'_>) -> raddle_events::Result<T> + Send,
    ) -> PyResult<T> {
        watched(py, None, |watch| {
            let resources: Resources = request::read(options, &[])?;
            let source = self.source.as_ref();
            // A file that was written anew is not damaged.
            let read = read(source, &resources.options(1), watch).or_else(|error| {
                source.check_unchanged()?;
                Err(error)
            });
            read.map_err(|error| Error::of_events(&error, None))
        })
    }
}

/// Expands paths, folders and globs to absolute paths, keeping order and duplicates.
fn expanded(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Vec<PathBuf>> {
    refuse_folders_of_other_events(&paths).map_err(|error| errors::of_error(py, &error))?;
    let specs: Vec<InputSpec> = paths.into_iter().map(InputSpec::Path).collect();
    let failed = |error: MergeError| match error {
        MergeError::Input { path, source } => {
            errors::of_events(py, &ColumnsError::Io { path, operation: "open", source }.into())
        }
        error => errors::of_error(py, &Error::of_merge(&error, &[])),
    };
    let found = expand(&specs, InputOrder::Given, DuplicatePolicy::Keep).map_err(failed)?;
    let absolute = |path: PathBuf| {
        std::path::absolute(&path).map_err(|source| {
            errors::of_events(py, &ColumnsError::Io { path, operation: "find the folder of", source }.into())
        })
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
pub enum ColumnArray<'py> {
    /// Offsets.
    Offsets(PyReadonlyArray1<'py, u64>),
    /// Values as bytes.
    Values(PyReadonlyArray1<'py, u8>),
}

/// Arrays of run, subrun and event numbers to be written.
type EventIds<'py> = (PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u64>);

/// Writes entries from memory; `schema` is JSON.
#[pyfunction]
#[pyo3(signature = (output, options, schema, entries, columns, ids=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they are the arguments of a Python function")]
pub fn events_write(
    py: Python<'_>,
    output: PathBuf,
    options: &str,
    schema: &str,
    entries: u64,
    columns: Vec<Vec<ColumnArray<'_>>>,
    ids: Option<EventIds<'_>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let schema: Schema = serde_json::from_str(schema).map_err(|error| errors::usage(py, &error.to_string()))?;
    let copied = |array: ColumnArray<'_>| {
        Ok::<_, numpy::AsSliceError>(match array {
            ColumnArray::Offsets(offsets) => Buffer::Offsets(offsets.as_slice()?.to_vec()),
            ColumnArray::Values(bytes) => Buffer::Values(bytes.as_slice()?.to_vec()),
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
        let call: ProfiledOutput<WriteRequest> = request::read(options, &["output"])?;
        let write = call.options(call.request.write, &output)?;
        let request = WriteRequest { output, write, ..call.request };
        let failed = |error: EventsError| Error::of_written_events(&error, &request.output);
        let block = Block { entries: 0..entries, ids, columns };
        let source = MemorySource::new(schema, block).map_err(|error| failed(error.into()))?;
        request.run(&source, watch, &SingleProcess).map(|written| json(&written)).map_err(failed)
    })
}

/// Converts events, together with the ranks of a communicator if one is given.
#[pyfunction]
#[pyo3(signature = (inputs, output, options, progress=None, communicator=None))]
pub fn events_convert(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    output: PathBuf,
    options: &str,
    progress: Option<Py<PyAny>>,
    communicator: Option<Py<PyAny>>,
) -> PyResult<String> {
    let work = |watch: &Watch<'_>, ranks: &dyn Communicator| {
        let request = request::read(options, &["inputs", "output"]).and_then(
            |call: ProfiledOutput<ListedInputs<ConvertRequest>>| {
                let inputs = call.request.expand(&inputs, &output)?;
                let write = call.options(call.request.request.write, &output)?;
                Ok(ConvertRequest { inputs, output, write, ..call.request.request })
            },
        );
        let request = ranks.agree("list the inputs", request)?;
        let written = request.run(watch, ranks);
        written.map(|written| json(&written)).map_err(|error| Error::of_written_events(&error, &request.output))
    };
    match communicator {
        None => watched(py, progress, |watch| work(watch, &SingleProcess)),
        Some(communicator) => among(py, communicator, work),
    }
}

/// Merges files of events.
#[pyfunction]
#[pyo3(signature = (inputs, output, options, progress=None))]
pub fn events_merge(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    output: PathBuf,
    options: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |watch| {
        let call: ListedInputs<EventsMergeRequest> = request::read(options, &["inputs", "output"])?;
        let request = EventsMergeRequest { inputs: call.expand(&inputs, &output)?, output, ..call.request };
        let written = request.run(watch, &SingleProcess);
        written.map(|written| json(&written)).map_err(|error| Error::of_written_events(&error, &request.output))
    })
}

/// Describes the contents of a file.
#[pyfunction]
#[pyo3(signature = (file, options, progress=None))]
pub fn events_inspect(py: Python<'_>, file: PathBuf, options: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    watched(py, progress, |watch| {
        let request = InspectRequest { file, ..request::read(options, &["file"])? };
        let inspection = request.run(watch).map_err(|error| Error::of_events(&error, None))?;
        Ok(json(&inspection))
    })
}
