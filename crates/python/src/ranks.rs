//! A Python communicator, as in mpi4py, adapted to core's communicator.
//!
//! Invariants: every collective of core is one of Python's, whatever else fails, so no rank waits for one that has
//! given up; the first exception raised is kept for the caller and cancels the work.

use crate::attached::detached;
use crate::errors;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use raddle::Error;
use raddle_core::cancel::CancelToken;
use raddle_core::error::{CoreError, Result};
use raddle_core::ranks::communicator::{Communicator, Rank};
use raddle_core::report::progress::{Silent, Watch};
use std::sync::{Mutex, PoisonError};

/// Ranks of a communicator that has `Get_rank`, `Get_size`, and `allgather` and `alltoall` of objects.
#[derive(Debug)]
pub struct PythonRanks<'a> {
    communicator: Py<PyAny>,
    rank: Rank,
    size: usize,
    cancel: &'a CancelToken,
    raised: Mutex<Option<PyErr>>,
}

impl<'a> PythonRanks<'a> {
    /// Queries the number of this rank and the number of ranks. Exceptions and signals cancel `cancel`.
    pub fn new(py: Python<'_>, communicator: Py<PyAny>, cancel: &'a CancelToken) -> PyResult<Self> {
        let rank = communicator.call_method0(py, "Get_rank")?.extract(py)?;
        let size = communicator.call_method0(py, "Get_size")?.extract(py)?;
        Ok(Self { communicator, rank, size, cancel, raised: Mutex::default() })
    }

    /// Returns the first exception.
    pub fn into_raised(self) -> Option<PyErr> {
        self.raised.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, error: PyErr) {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.cancel.cancel();
    }

    /// Calls a Python collective that returns one `bytes` per rank.
    fn collective<'py, A: pyo3::call::PyCallArgs<'py>>(
        &self,
        py: Python<'py>,
        name: &'static str,
        arguments: A,
    ) -> Result<Vec<Vec<u8>>> {
        let called = self.communicator.bind(py).call_method1(name, arguments);
        let received = called.and_then(|all| {
            let all: Vec<Bound<'_, PyBytes>> = all.extract()?;
            Ok(all.iter().map(|bytes| bytes.as_bytes().to_vec()).collect::<Vec<_>>())
        });
        // Checked after the collective, because the others take part in it as well.
        if let Err(error) = py.check_signals() {
            self.keep(error);
        }
        let received = received.map_err(|error| {
            let message = error.to_string();
            self.keep(error);
            CoreError::RankFailed { operation: name, rank: self.rank, message }
        })?;
        match received.len() == self.size {
            true => Ok(received),
            false => Err(CoreError::MessageCount { operation: name, got: received.len(), size: self.size }),
        }
    }
}

/// Runs `work` together with the ranks of a communicator, on the calling thread, as MPI requires. Signals are checked
/// whenever ranks synchronise.
///
/// # Errors
/// If the work fails, or one of its collective calls.
pub fn among<T: Send>(
    py: Python<'_>,
    communicator: Py<PyAny>,
    work: impl FnOnce(&Watch<'_>, &dyn Communicator) -> std::result::Result<T, Error> + Send,
) -> PyResult<T> {
    let cancel = CancelToken::new();
    let ranks = PythonRanks::new(py, communicator, &cancel)?;
    let done = detached(py, || work(&Watch { observer: &Silent, cancel: &cancel }, &ranks))?;
    match ranks.into_raised() {
        Some(raised) => Err(raised),
        None => done.map_err(|failure| errors::of_error(py, &failure)),
    }
}

impl Communicator for PythonRanks<'_> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn barrier(&self) -> Result<()> {
        self.all_gather_bytes(&[]).map(drop)
    }

    fn all_gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>> {
        Python::attach(|py| self.collective(py, "allgather", (PyBytes::new(py, send),)))
    }

    fn exchange_bytes(&self, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        if send.len() != self.size {
            return Err(CoreError::MessageCount { operation: "exchange_bytes", got: send.len(), size: self.size });
        }
        Python::attach(|py| {
            let messages: Vec<_> = send.into_iter().map(|message| PyBytes::new(py, &message)).collect();
            self.collective(py, "alltoall", (messages,))
        })
    }
}
