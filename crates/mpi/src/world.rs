//! The ranks of the run, from joining them to a common end.
//!
//! Invariant: no rank waits forever for one that failed. A rank that leaves the common path, through a panic or an
//! error that the others have not agreed on, calls [`World::end`] too early, waits there for a limited time, and then
//! ends all ranks.

use crate::collective::ParallelHdf5;
use crate::communicator::MpiCommunicator;
use crate::error::{MpiError, Result};
use crate::file::MpiFiles;
use crate::launcher::LauncherInfo;
use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator as _;
use raddle_core::engine::SharedFiles;
use raddle_core::ranks::communicator::Communicator;
use raddle_core::ranks::datasets::SharedDatasets;
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

/// The ranks of the run. Only the thread that joined may use it.
pub struct World {
    ranks: MpiCommunicator,
    /// Separate communicator for the end, so that it does not interfere with a collective that others are still in.
    ending: MpiCommunicator,
    all: SimpleCommunicator,
    /// Whether a libhdf5 call has failed. MPI is then not finalised, because that would shut down libhdf5 in an
    /// inconsistent state.
    is_unsound: Cell<bool>,
    /// Guard that finalises MPI when it is dropped, after the communicators.
    _universe: Universe,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("ranks", &self.ranks).finish_non_exhaustive()
    }
}

impl World {
    /// Collective. Initialises MPI and joins the ranks that the launcher started.
    ///
    /// # Errors
    /// If MPI was already initialised, or finds a different number of ranks than the launcher states.
    pub fn join(launched: &LauncherInfo) -> Result<Self> {
        let (universe, threading) = mpi::initialize_with_threading(Threading::Funneled).ok_or(MpiError::Initialised)?;
        if threading < Threading::Funneled {
            return Err(MpiError::NoThreads);
        }
        let all = universe.world();
        let found = all.size() as usize;
        if let Some(started) = launched.size.filter(|started| *started != found) {
            return Err(MpiError::OtherLauncher { launcher: launched.launcher, started, found });
        }
        let (ranks, ending) = (MpiCommunicator::among(&all), MpiCommunicator::among(&all));
        Ok(Self { ranks, ending, all, is_unsound: Cell::new(false), _universe: universe })
    }

    /// Returns the communicator of the ranks.
    pub fn communicator(&self) -> &dyn Communicator {
        &self.ranks
    }

    /// Returns the files that the ranks write collectively through MPI-IO, with these hints.
    ///
    /// # Errors
    /// If a hint is longer than MPI allows.
    pub fn files(&self, hints: &[(String, String)]) -> Result<Box<dyn SharedFiles + '_>> {
        Ok(Box::new(MpiFiles::new(&self.ranks, hints)?))
    }

    /// Returns the datasets that the ranks write collectively, through the parallel libhdf5 at `library` or one of a
    /// usual name.
    ///
    /// # Errors
    /// [`MpiError::Hdf5`] if there is none.
    pub fn datasets(&self, library: Option<&Path>) -> Result<Box<dyn SharedDatasets + '_>> {
        Ok(Box::new(ParallelHdf5::load(&self.ranks, &self.is_unsound, library)?))
    }

    /// Collective. Gathers the final messages of all ranks; call [`World::close`] afterwards. A rank that failed waits
    /// for `patience`: if the others do not arrive in that time, because they wait for it elsewhere, it calls `give_up`
    /// and ends all of them with the exit code `code`.
    pub fn end(&self, farewell: &[u8], patience: Option<Duration>, code: u8, give_up: impl FnOnce()) -> Vec<Vec<u8>> {
        if let Some(patience) = patience
            && !self.ending.meet_within(patience)
        {
            give_up();
            self.all.abort(i32::from(code));
        }
        if patience.is_none() {
            // Ranks that have not failed wait for all; one that has failed ends them.
            self.ending.barrier().unwrap_or_default();
        }
        self.ending.all_gather_bytes(farewell).unwrap_or_default()
    }

    /// Collective. Finalises MPI once all ranks have arrived, so that a launcher cannot interrupt a rank's earlier work
    /// because another has already ended. After a failed write of a parallel libhdf5, MPI is not finalised: it would
    /// shut down that library, which would try the write again and crash. The process, which has failed, then ends
    /// without finalising MPI.
    pub fn close(self) {
        self.ending.barrier().unwrap_or_default();
        if self.is_unsound.get() {
            std::mem::forget(self);
        }
    }
}
