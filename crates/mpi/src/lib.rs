//! MPI for raddle: the only crate that links an MPI library, through rsmpi, and only with the feature `mpi`.
//!
//! [`launcher`] detects, without MPI, whether `mpirun` or `srun` started this process as one of several. [`World`]
//! represents the ranks of the run: a [`raddle_core::ranks::communicator::Communicator`], files that they write
//! collectively ([`raddle_core::engine::SharedFiles`], MPI-IO), datasets that they write collectively through a
//! parallel libhdf5 loaded at run time ([`raddle_core::ranks::datasets::SharedDatasets`]), and a common end. The
//! algorithms of ranks are elsewhere; they are written against that trait and tested with threads as ranks.
//!
//! Without the feature there is a [`World`] that cannot be joined, so that no code above depends on the feature.

#[cfg(not(feature = "mpi"))]
mod absent;
#[cfg(feature = "mpi")]
mod collective;
#[cfg(feature = "mpi")]
mod communicator;
pub mod error;
#[cfg(feature = "mpi")]
mod ffi;
#[cfg(feature = "mpi")]
mod file;
#[cfg(feature = "mpi")]
mod hdf5;
pub mod launcher;
#[cfg(feature = "mpi")]
mod world;

#[cfg(not(feature = "mpi"))]
pub use absent::World;
#[cfg(feature = "mpi")]
pub use collective::ParallelHdf5;
#[cfg(feature = "mpi")]
pub use communicator::MpiCommunicator;
pub use error::{MpiError, Result};
#[cfg(feature = "mpi")]
pub use file::MpiFiles;
#[cfg(feature = "mpi")]
pub use world::World;

/// Returns the MPI library with which raddle is linked, in its own words; `None` without the feature `mpi`. MPI need
/// not be initialised.
pub fn library() -> Option<String> {
    #[cfg(feature = "mpi")]
    {
        let text = ::mpi::environment::library_version().unwrap_or_default();
        // Open MPI counts the zero byte at the end.
        Some(text.trim_end_matches(|last: char| last == '\0' || last.is_whitespace()).to_owned())
    }
    #[cfg(not(feature = "mpi"))]
    None
}
