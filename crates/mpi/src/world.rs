//! The ranks that were started together, from joining them to an end that all come to.
//!
//! Invariant: no rank waits for ever for one that failed. A rank that goes its own way, with an error that the others
//! have not agreed on or a panic, comes to [`World::end`] too early, waits there for so long, and then ends all.

use crate::communicator::MpiCommunicator;
use crate::error::{MpiError, Result};
use crate::file::MpiFiles;
use crate::launcher::Launched;
use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator as _;
use raddle_core::communicator::Communicator;
use raddle_core::engine::SharedFiles;
use std::time::Duration;

/// The ranks that were started together. Only the thread that joined may use it.
pub struct World {
    ranks: MpiCommunicator,
    /// For the end alone, so that it meets no collective that others are still in.
    ending: MpiCommunicator,
    all: SimpleCommunicator,
    /// Finalises MPI when it is dropped, after the communicators.
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
    /// If MPI was initialised before, or sees other ranks than the launcher says.
    pub fn join(launched: &Launched) -> Result<Self> {
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
        Ok(Self { ranks, ending, all, _universe: universe })
    }

    /// The ranks.
    pub fn communicator(&self) -> &dyn Communicator {
        &self.ranks
    }

    /// Files that the ranks write together through MPI-IO, with these hints.
    ///
    /// # Errors
    /// If a hint is longer than MPI takes.
    pub fn files(&self, hints: &[(String, String)]) -> Result<Box<dyn SharedFiles + '_>> {
        Ok(Box::new(MpiFiles::new(&self.ranks, hints)?))
    }

    /// Collective. Gathers the last words of all ranks; then [`World::close`]. A rank that failed has `patience`: if the
    /// others do not come in that time, because they wait for it elsewhere, it calls `give_up` and ends all of them with
    /// the exit code `code`.
    pub fn end(&self, farewell: &[u8], patience: Option<Duration>, code: u8, give_up: impl FnOnce()) -> Vec<Vec<u8>> {
        if let Some(patience) = patience
            && !self.ending.meet_within(patience)
        {
            give_up();
            self.all.abort(i32::from(code));
        }
        if patience.is_none() {
            // Ranks that are well wait for all: one that is not ends them.
            self.ending.barrier().unwrap_or_default();
        }
        self.ending.all_gather_bytes(farewell).unwrap_or_default()
    }

    /// Collective. Finalises MPI when all ranks have come: what one does before, a launcher cannot interrupt because
    /// another has ended already.
    pub fn close(self) {
        self.ending.barrier().unwrap_or_default();
    }
}
