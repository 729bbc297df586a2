//! Scans of open files, for Python: takes conditions as JSON and returns bytes.

use crate::errors;
use crate::file::File;
use crate::request::read;
use crate::run::watched;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyList;
use raddle::text::json;
use raddle::{Context, Error, IndexRequest};
use raddle_core::engine::default_jobs;
use raddle_query::index::Beside;
use raddle_query::{Expression, Index, Scan, Table};
use std::path::PathBuf;
use std::sync::Arc;

/// Statistics of a file.
#[pyclass(frozen, module = "raddle._core")]
pub struct QueryIndex(Arc<Index>);

/// Returns the state of the index at `path`, or of that beside the file, and the index if it can be used: `missing`,
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
        None => Index::beside(file),
        Some(path) => Index::read(&path).map(|index| match index.is_of(&file.identity()) {
            true => Beside::Usable(index),
            false => Beside::Stale,
        }),
    };
    Ok(match found.map_err(|error| errors::of_error(py, &Error::of_query(&error)))? {
        Beside::Missing => ("missing", None),
        Beside::Stale => ("stale", None),
        Beside::Usable(index) => ("usable", Some(QueryIndex(Arc::new(index)))),
    })
}

/// Scans a table. `what` is `explain`, `count`, `read` or `read_numbered`; the last element of the result is an explanation as JSON.
/// Before it, `count` has the number of rows, and the others the numbers of rows, if requested, and the bytes of each column.
#[pyfunction]
#[pyo3(signature = (file, what, table, condition, columns, index=None, threads=None))]
#[allow(clippy::too_many_arguments)]
pub fn scan<'py>(
    py: Python<'py>,
    file: &Bound<'py, File>,
    what: &str,
    table: &str,
    condition: Option<&str>,
    columns: Vec<String>,
    index: Option<&QueryIndex>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let condition: Option<Expression> = condition
        .map(serde_json::from_str)
        .transpose()
        .map_err(|error| errors::usage(py, &format!("invalid condition: {error}")))?;
    let index = index.map(|index| Arc::clone(&index.0));
    let (file, threads) = (file.get().open_file(), threads.unwrap_or_else(default_jobs));
    let failed = |error| Error::of_query(&error);
    let is_numbered = what == "read_numbered";
    let scan = || -> Result<Scan<'_>, Error> {
        let scan = Table::of(file, table).and_then(|table| Scan::new(table, condition.as_ref(), &columns));
        let scan = scan.map_err(failed)?;
        let scan = if is_numbered { scan.numbered() } else { scan };
        Ok(match &index {
            Some(index) => scan.with_index(index),
            None => scan,
        })
    };
    match what {
        "explain" => {
            let scan = scan().map_err(|error| errors::of_error(py, &error))?;
            Ok((json(&scan.explain()),).into_pyobject(py)?.into_any())
        }
        "count" => {
            let (count, explanation) = watched(py, None, |watch| scan()?.count(threads, watch.cancel).map_err(failed))?;
            Ok((count, json(&explanation)).into_pyobject(py)?.into_any())
        }
        _ => {
            let (found, explanation) = watched(py, None, |watch| scan()?.read(threads, watch.cancel).map_err(failed))?;
            let columns = PyList::new(py, found.columns.into_iter().map(|column| column.into_pyarray(py)))?;
            Ok((found.rows.into_pyarray(py), columns, json(&explanation)).into_pyobject(py)?.into_any())
        }
    }
}

/// Returns a condition as text.
#[pyfunction]
pub fn condition_text(py: Python<'_>, condition: &str) -> PyResult<String> {
    let parsed: Result<Expression, _> = serde_json::from_str(condition);
    parsed.map(|condition| condition.to_string()).map_err(|error| errors::usage(py, &error.to_string()))
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
