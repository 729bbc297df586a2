//! MPI for raddle: the only crate that links an MPI library, through rsmpi, and that only with the feature `mpi`.
//!
//! [`launcher`] tells, without MPI, whether `mpirun` or `srun` started this process among others. [`World`] is the ranks
//! that were started together: a [`raddle_core::communicator::Communicator`], files that they write together
//! ([`raddle_core::engine::SharedFiles`], MPI-IO), and an end that all come to. Not for what
//! ranks do together, which is written over that trait and tested with threads as ranks.
//!
//! Without the feature there is a [`World`] that nobody can join, so that nothing above has to know.

#[cfg(not(feature = "mpi"))]
mod absent;
#[cfg(feature = "mpi")]
mod communicator;
pub mod error;
#[cfg(feature = "mpi")]
mod ffi;
#[cfg(feature = "mpi")]
mod file;
pub mod launcher;
#[cfg(feature = "mpi")]
mod world;

#[cfg(not(feature = "mpi"))]
pub use absent::World;
#[cfg(feature = "mpi")]
pub use communicator::MpiCommunicator;
pub use error::{MpiError, Result};
#[cfg(feature = "mpi")]
pub use file::MpiFiles;
#[cfg(feature = "mpi")]
pub use world::World;
