//! The merge that most people write first, a loop over h5py, run by an installed Python.
//!
//! It also serves as an independent check: h5py compares the values of the loop with raddle's. It is optional; if no
//! Python has h5py, the demo skips it.

use anyhow::{Context, Result};
use raddle_core::cancel::CancelToken;
use serde::Deserialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Source of the loop.
const SCRIPT: &str = include_str!("h5py_loop.py");

/// Time of the h5py loop, and the comparison of its output with that of raddle.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Loop {
    /// Time of the loop itself, without imports and comparison.
    pub elapsed_s: f64,
    /// Length of the output.
    pub len_bytes: u64,
    /// Number of datasets compared.
    pub datasets: u64,
    /// Paths whose values differ from raddle's.
    pub different: Vec<String>,
    /// Version of h5py.
    pub h5py: String,
    /// Version of HDF5 in h5py.
    pub hdf5: String,
}

/// Returns a Python that has h5py: from `RADDLE_PYTHON`, from the active virtual environment, or `python3`.
pub fn find_python() -> Option<PathBuf> {
    let named = std::env::var_os("RADDLE_PYTHON").map(PathBuf::from);
    let environment = std::env::var_os("VIRTUAL_ENV").map(|folder| Path::new(&folder).join("bin").join("python"));
    let candidates = [named, environment, Some(PathBuf::from("python3"))];
    candidates.into_iter().flatten().find(|python| has_h5py(python))
}

fn has_h5py(python: &Path) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", "import h5py, numpy"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Interval at which a running loop is polled: a fraction of the two seconds within which a signal should stop it.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Merges `inputs` into `output` with the loop and compares the result with `merged`. Returns `None` if stopped by
/// `cancel`.
///
/// # Errors
/// If Python fails; its message goes to standard error.
pub fn run(
    python: &Path,
    merged: &Path,
    output: &Path,
    inputs: &[PathBuf],
    cancel: &CancelToken,
) -> Result<Option<Loop>> {
    let files = [merged, output].into_iter().chain(inputs.iter().map(PathBuf::as_path)).map(OsStr::new);
    let mut command = Command::new(python);
    command.args(["-c", SCRIPT]).args(files).stdin(Stdio::null()).stderr(Stdio::inherit());
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("{} cannot be run", python.display()))?;
    // The loop prints its result at the end, and the result fits into a pipe.
    while child.try_wait()?.is_none() {
        if cancel.is_cancelled() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let finished = child.wait_with_output()?;
    // A signal from the terminal also ends Python.
    if cancel.is_cancelled() {
        return Ok(None);
    }
    anyhow::ensure!(finished.status.success(), "the h5py loop failed ({})", finished.status);
    serde_json::from_slice(&finished.stdout).context("the h5py loop printed something else than its result").map(Some)
}
