//! Scans of open files, for Python: takes conditions as JSON and returns bytes.

use crate::errors;
use crate::file::File;
use crate::request::read;
use crate::run::watched;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use raddle::text::json;
use raddle::{Context, Error, IndexRequest};
use raddle_core::cancel::CancelToken;
use raddle_core::engine::default_jobs;
use raddle_hdf5::fork::ReadGuard;
use raddle_hdf5::number::NumberType;
use raddle_query::events::SearchContext;
use raddle_query::index::FoundIndex;
use raddle_query::statistics::Limits;
use raddle_query::{Aggregate, AggregateKind, Expression, FoundEvents, Index, QueryError, Search, Sum, Table};
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Statistics of a file.
#[pyclass(frozen, module = "raddle._core")]
pub struct QueryIndex(Arc<Index>);

/// Returns the state of the index at `path`, or of the file's usual index, and the index if it can be used: `missing`,
/// `stale` or `usable`.
#[pyfunction]
#[pyo3(signature = (file, path=None))]
pub fn index_of(
    py: Python<'_>,
    file: &Bound<'_, File>,
    path: Option<PathBuf>,
) -> PyResult<(&'static str, Option<QueryIndex>)> {
    let file = file.get().open_file();
    let found = match path {
        None => Index::find(file),
        Some(path) => Index::read(&path).map(|index| match index.is_of(&file.identity()) {
            true => FoundIndex::Usable(index),
            false => FoundIndex::Stale,
        }),
    };
    Ok(match found.map_err(|error| errors::of_error(py, &Error::of_query(&error)))? {
        FoundIndex::Missing => ("missing", None),
        FoundIndex::Stale => ("stale", None),
        FoundIndex::Usable(index) => ("usable", Some(QueryIndex(Arc::new(index)))),
    })
}

/// Search request from Python.
#[derive(Deserialize)]
struct Request {
    #[serde(flatten)]
    search: Search,
    /// Number of threads; `None` for the cores available to this process.
    threads: Option<usize>,
}

/// Events that were found for searches of several ranges of rows.
#[pyclass(frozen, module = "raddle._core")]
pub struct QueryEvents(Arc<FoundEvents>);

/// Returns the type of the values of each of some columns in scans, and whether NaN stands for a missing value. `None`
/// is the stored type.
///
/// `values` is `stored`, `decoded`, or `None` without a choice. A column whose values cannot be determined is an error;
/// if `is_lenient`, it has the stored type.
#[pyfunction]
pub fn value_types(
    py: Python<'_>,
    file: &Bound<'_, File>,
    columns: (String, Vec<String>),
    values: Option<&str>,
    is_lenient: bool,
) -> PyResult<Vec<(Option<String>, bool)>> {
    let failed = |error: QueryError| errors::of_error(py, &Error::of_query(&error));
    let values = values.map(str::parse).transpose().map_err(failed)?;
    let (table, columns) = columns;
    let table = Table::of(file.get().open_file(), &table).map_err(failed)?.with_values(values);
    let types = columns.iter().map(|column| match table.value_type(column) {
        Err(QueryError::Packed { .. } | QueryError::Undecodable { .. }) if is_lenient => Ok((None, false)),
        found => found.map(|found| (found.computed.map(numpy_type), found.is_nullable)).map_err(failed),
    });
    types.collect()
}

/// Returns a type in numpy's notation, such as `<f4`.
fn numpy_type(number: NumberType) -> String {
    let (kind, is_big_endian) = match number {
        NumberType::Integer { signed: true, is_big_endian, .. } => ('i', is_big_endian),
        NumberType::Integer { is_big_endian, .. } => ('u', is_big_endian),
        NumberType::Float { is_big_endian, .. } => ('f', is_big_endian),
    };
    format!("{}{kind}{}", if is_big_endian { '>' } else { '<' }, number.len_bytes())
}

/// Finds the events to which the rows of a search, in JSON, must belong.
#[pyfunction]
#[pyo3(signature = (file, search, index=None))]
pub fn find_events(
    py: Python<'_>,
    file: &Bound<'_, File>,
    search: &str,
    index: Option<&QueryIndex>,
) -> PyResult<QueryEvents> {
    let request: Request = serde_json::from_str(search).map_err(|error| errors::usage(py, &error.to_string()))?;
    let (file, index) = (file.get().open_file(), index.map(|index| Arc::clone(&index.0)));
    let threads = request.threads.unwrap_or_else(default_jobs);
    let found =
        searched(py, |cancel| request.search.find_events(file, index.as_deref(), SearchContext { threads, cancel }));
    Ok(QueryEvents(Arc::new(found?)))
}

/// Runs `work`, which reads a file that other threads use too, on another thread; signals stop it.
fn searched<T: Send>(py: Python<'_>, work: impl FnOnce(&CancelToken) -> Result<T, QueryError> + Send) -> PyResult<T> {
    watched(py, None, |watch| {
        let _reading = ReadGuard::new();
        work(watch.cancel).map_err(|error| Error::of_query(&error))
    })
}

/// Carries out a search, in JSON, in a file. `events` are those of [`find_events`]; without them, they are found.
///
/// `what` is `limits` or `sum`, which return the aggregate of the only column ([`aggregated`]), or `explain`, `count`
/// or `read`, whose last element is an explanation in JSON. Before it, `count` returns the number of rows, and `read`
/// the numbers of rows, if they are requested, and the bytes of each column.
#[pyfunction]
#[pyo3(signature = (file, what, search, index=None, events=None))]
pub fn scan<'py>(
    py: Python<'py>,
    file: &Bound<'py, File>,
    what: &str,
    search: &str,
    index: Option<&QueryIndex>,
    events: Option<&QueryEvents>,
) -> PyResult<Bound<'py, PyAny>> {
    let request: Request = serde_json::from_str(search).map_err(|error| errors::usage(py, &error.to_string()))?;
    let (file, index) = (file.get().open_file(), index.map(|index| Arc::clone(&index.0)));
    let (search, index, threads) = (request.search, index.as_deref(), request.threads.unwrap_or_else(default_jobs));
    let events = events.map(|events| Arc::clone(&events.0));
    let scan = |cancel: &CancelToken| search.scan(file, index, events.as_deref(), SearchContext { threads, cancel });
    match what {
        "explain" => {
            let explained = searched(py, |cancel| Ok(scan(cancel)?.explain()));
            Ok((json(&explained?),).into_pyobject(py)?.into_any())
        }
        "count" => {
            let counted = searched(py, |cancel| scan(cancel)?.count(threads, cancel));
            let (count, explanation) = counted?;
            Ok((count, json(&explanation)).into_pyobject(py)?.into_any())
        }
        "limits" | "sum" => {
            let wanted = if what == "sum" { AggregateKind::Sum } else { AggregateKind::Limits };
            let found = searched(py, |cancel| scan(cancel)?.aggregate(wanted, threads, cancel));
            aggregated(py, &found?)
        }
        _ => {
            let read = searched(py, |cancel| scan(cancel)?.read(threads, cancel));
            let (found, explanation) = read?;
            let columns = PyList::new(py, found.columns.into_iter().map(|column| column.into_pyarray(py)))?;
            Ok((found.rows.into_pyarray(py), columns, json(&explanation)).into_pyobject(py)?.into_any())
        }
    }
}

/// Returns an aggregate: the number of rows, the number of NaN, the smallest and the largest number (None without any),
/// the sum as the bytes of an integer (for floats, in units of 2^-1074), and the infinity or NaN that the sum is, or
/// None.
fn aggregated<'py>(py: Python<'py>, aggregate: &Aggregate) -> PyResult<Bound<'py, PyAny>> {
    let nothing = || py.None().into_bound(py);
    let (nans, min, max) = match aggregate.limits {
        Limits::Integers { min, max } => (0, min.into_pyobject(py)?.into_any(), max.into_pyobject(py)?.into_any()),
        // -0 becomes 0, because which of them is found depends on the order.
        Limits::Floats { min, max, nans } if min <= max => {
            (nans, (min + 0.0).into_pyobject(py)?.into_any(), (max + 0.0).into_pyobject(py)?.into_any())
        }
        Limits::Floats { nans, .. } => (nans, nothing(), nothing()),
        Limits::Empty | Limits::Strings { .. } => (0, nothing(), nothing()),
    };
    let (sum, infinity) = match &aggregate.sum {
        Sum::Integers(sum) => (sum.to_le_bytes().to_vec(), None),
        Sum::Floats(sum) => (sum.to_le_bytes(), sum.infinity()),
    };
    Ok((aggregate.count, nans, min, max, PyBytes::new(py, &sum), infinity).into_pyobject(py)?.into_any())
}

/// Returns a condition as text.
#[pyfunction]
pub fn condition_text(py: Python<'_>, condition: &str) -> PyResult<String> {
    let parsed: Result<Expression, _> = serde_json::from_str(condition);
    parsed.map(|condition| condition.to_string()).map_err(|error| errors::usage(py, &error.to_string()))
}

/// Parses a condition; returns it in JSON.
#[pyfunction]
pub fn condition_of(py: Python<'_>, text: &str) -> PyResult<String> {
    let parsed: Result<Expression, QueryError> = text.parse();
    parsed.map(|condition| json(&condition)).map_err(|error| errors::usage(py, &error.to_string()))
}

/// Writes the index of a file; `options` are keywords of [`IndexRequest`].
#[pyfunction]
#[pyo3(signature = (file, output, options, progress=None))]
pub fn write_index(
    py: Python<'_>,
    file: PathBuf,
    output: Option<PathBuf>,
    options: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |watch| {
        let request = IndexRequest { file, output, ..read(options, &["output"])? };
        Ok(json(&request.run(&Context::new(*watch))?))
    })
}
