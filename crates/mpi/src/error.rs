//! Why this process cannot be one of several ranks.
//!
//! Not for failures of MPI itself: these end all ranks with MPI's own message, as MPI does unless told otherwise.

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
