//! Reasons why this process cannot be one of several ranks.
//!
//! Failures of MPI itself are not covered: these end all ranks with MPI's own message, which is MPI's default.

use std::path::{Path, PathBuf};

/// Result with [`MpiError`] as its default error.
pub type Result<T, E = MpiError> = std::result::Result<T, E>;

/// Error of joining the other ranks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// The feature `mpi` is disabled.
    #[error("{launcher} started several ranks, but this raddle was built without MPI")]
    NotBuilt {
        /// Launcher that started the ranks.
        launcher: &'static str,
    },
    /// MPI was already initialised by the user of this crate.
    #[error("MPI was already initialised")]
    Initialised,
    /// MPI does not support other threads in the process.
    #[error("the MPI library does not support processes with several threads (MPI_THREAD_FUNNELED)")]
    NoThreads,
    /// A hint that cannot be passed to MPI-IO.
    #[error("{key:?} is not a valid hint for this MPI: keys have 1 to {} bytes, values up to {}", limits.0, limits.1)]
    Hint {
        /// Key of the hint.
        key: String,
        /// Maximum lengths of key and value.
        limits: (usize, usize),
    },
    /// There is no parallel libhdf5 with which ranks of this MPI can write.
    #[error("{}: {why}", library.as_deref().map_or("a parallel libhdf5".into(), Path::to_string_lossy))]
    Hdf5 {
        /// The requested library; `None` means any of the usual names.
        library: Option<PathBuf>,
        /// Reason why the library cannot be used.
        why: String,
    },
    /// Every process was alone in its MPI world: the launcher belongs to a different MPI.
    #[error("{launcher} started {started} ranks, but the MPI that raddle was built with sees {found}")]
    OtherLauncher {
        /// Launcher that started the ranks.
        launcher: &'static str,
        /// Number of ranks that it started.
        started: usize,
        /// Number of ranks in the world.
        found: usize,
    },
}
