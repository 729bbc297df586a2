//! MPI for raddle: the only crate that links an MPI library, through rsmpi, and that only with the feature `mpi`.
//! [`ChosenMpi`] is one that is loaded, to be measured, with or without the feature.
//!
//! [`launcher`] tells, without MPI, whether `mpirun` or `srun` started this process among others. [`World`] is the ranks
//! that were started together: a [`raddle_core::communicator::Communicator`], files that they write together
//! ([`raddle_core::engine::SharedFiles`], MPI-IO), datasets that they write together through a parallel libhdf5 that is
//! loaded while raddle runs ([`raddle_core::datasets::SharedDatasets`]), and an end that all come to. Not for what ranks do
//! together, which is written over that trait and tested with threads as ranks.
//!
//! Without the feature there is a [`World`] that nobody can join, so that nothing above has to know.

#[cfg(not(feature = "mpi"))]
mod absent;
mod chosen;
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
pub use chosen::{ChosenFile, ChosenMpi};
#[cfg(feature = "mpi")]
pub use collective::ParallelHdf5;
#[cfg(feature = "mpi")]
pub use communicator::MpiCommunicator;
pub use error::{MpiError, Result};
#[cfg(feature = "mpi")]
pub use file::MpiFiles;
#[cfg(feature = "mpi")]
pub use world::World;
