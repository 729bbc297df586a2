//! The `raddle` command inside an interpreter.

use crate::attached::detached;
use crate::errors;
use pyo3::prelude::*;
use raddle::text::json;
use raddle_cli::doctor::{Report, Section, add_sections};
use raddle_cli::ranks::Ranks;
use raddle_hdf5::child::OwnProgram;
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs the command and returns its exit code. The first argument is the program's name.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    detached(py, || raddle_cli::run(arguments).code())
}

/// Adds sections, given as JSON, to the reports of `raddle doctor` that [`main`] prints.
#[pyfunction]
pub fn declare_sections(py: Python<'_>, sections: &str) -> PyResult<()> {
    add_sections(read_sections(py, sections)?);
    Ok(())
}

/// Returns the report of `raddle doctor` about a folder, with further sections given as JSON, as JSON and as text.
#[pyfunction]
pub fn doctor(py: Python<'_>, folder: PathBuf, sections: &str) -> PyResult<(String, String)> {
    let others = read_sections(py, sections)?;
    let report = detached(py, || Report::of(&folder, &Ranks::alone(), &others))?;
    Ok((json(&report), raddle_cli::render::doctor::text(&report)))
}

fn read_sections(py: Python<'_>, sections: &str) -> PyResult<Vec<Section>> {
    serde_json::from_str(sections).map_err(|error| errors::internal(py, &error.to_string()))
}

/// Sets the command line that starts the command again; the arguments of the command follow it.
#[pyfunction]
pub fn declare_program(executable: PathBuf, arguments: Vec<OsString>) {
    OwnProgram { executable, arguments }.declare();
}
