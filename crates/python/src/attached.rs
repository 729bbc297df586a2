//! Work without the interpreter's lock; signals are still handled and panics become errors.

use crate::errors;
use pyo3::prelude::*;
use raddle_hdf5::fork::ReadGuard;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Executes `work` without the interpreter's lock; a panic in it becomes an internal error of raddle.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    // After a panic, no state of `work` is used again.
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).map_err(|panic| {
        let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
        errors::internal(py, &said.unwrap_or_else(|| "unknown cause".to_owned()))
    })
}

/// Executes `work`, which reads a file that other threads use too, without the interpreter's lock: a fork waits until
/// it has ended.
pub fn reading<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    detached(py, || {
        let _reading = ReadGuard::new();
        work()
    })
}

/// Runs the handlers of signals that have arrived. If one of them raises an exception, stores it in `raised`, unless
/// that already holds one, and returns false.
pub fn no_signal(raised: &mut Option<PyErr>) -> bool {
    match Python::attach(|py| py.check_signals()) {
        Ok(()) => true,
        Err(error) => {
            raised.get_or_insert(error);
            false
        }
    }
}
