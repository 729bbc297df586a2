//! The `raddle` command inside an interpreter.

use crate::attached::detached;
use pyo3::prelude::*;
use raddle_hdf5::child::{READER_ARGUMENT, ReaderCommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs the command and returns its exit code. The first argument is the program's name.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    detached(py, || raddle_cli::run(arguments).code())
}

/// Sets the command line that starts this program as a reader of one file.
#[pyfunction]
pub fn declare_reader(executable: PathBuf, arguments: Vec<OsString>) {
    ReaderCommand { executable, arguments }.declare_own();
}

/// Returns the argument that makes `main` read one file for the parent process.
#[pyfunction]
pub fn reader_argument() -> &'static str {
    READER_ARGUMENT
}
