//! Why this process cannot be one of several ranks.
//!
//! Not for failures of MPI itself: these end all ranks with MPI's own message, as MPI does unless told otherwise.

use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T, E = MpiError> = std::result::Result<T, E>;

/// An error of joining the other ranks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// The feature `mpi` is off.
    #[error("{launcher} started several ranks, but this raddle was built without MPI")]
    NotBuilt {
        /// Who started them.
        launcher: &'static str,
    },
    /// MPI was initialised before: by whoever uses this crate.
    #[error("MPI was initialised before")]
    Initialised,
    /// MPI does not bear other threads in the process.
    #[error("the MPI library does not support processes with several threads (MPI_THREAD_FUNNELED)")]
    NoThreads,
    /// A hint that MPI-IO cannot be given.
    #[error("{key:?} is no hint for this MPI: keys have 1 to {} bytes, values up to {}", limits.0, limits.1)]
    Hint {
        /// Its key.
        key: String,
        /// Longest key and value.
        limits: (usize, usize),
    },
    /// No parallel libhdf5 that ranks of this MPI can write with.
    #[error("{}: {why}", library.as_deref().map_or("a parallel libhdf5".into(), Path::to_string_lossy))]
    Hdf5 {
        /// The library that was asked for; else any of the usual names.
        library: Option<PathBuf>,
        /// What is wrong with it.
        why: String,
    },
    /// A call of an MPI that was loaded failed.
    #[error("MPI: {operation} failed: {detail}")]
    Call {
        /// What was being done.
        operation: &'static str,
        /// What MPI says.
        detail: String,
    },
    /// Every process was alone in its MPI world: the launcher is another MPI's.
    #[error("{launcher} started {started} ranks, but the MPI that raddle was built with sees {found}")]
    OtherLauncher {
        /// Who started them.
        launcher: &'static str,
        /// Ranks that it started.
        started: usize,
        /// Ranks in the world.
        found: usize,
    },
}
