//! Functions that Python calls before and after a fork.

use crate::attached::detached;
use pyo3::prelude::*;
use raddle_hdf5::fork;

/// Waits until no other thread reads a file, and lets none start.
#[pyfunction]
pub(crate) fn before_fork(py: Python<'_>) -> PyResult<()> {
    detached(py, fork::pause)
}

/// Lets threads read files again.
#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    fork::resume();
}

/// Lets the new process read files.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    fork::resume_in_child();
}
