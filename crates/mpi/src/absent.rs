//! The world of a raddle without MPI, which nobody can join.

use crate::error::{MpiError, Result};
use crate::launcher::Launched;
use raddle_core::communicator::Communicator;
use raddle_core::engine::SharedFiles;
use std::convert::Infallible;
use std::time::Duration;

/// The ranks that were started together: none in this build, which has no MPI.
#[derive(Debug)]
pub struct World(Infallible);

impl World {
    /// Refuses: raddle was built without MPI.
    ///
    /// # Errors
    /// Always.
    pub fn join(launched: &Launched) -> Result<Self> {
        Err(MpiError::NotBuilt { launcher: launched.launcher })
    }

    /// The ranks.
    pub fn communicator(&self) -> &dyn Communicator {
        match self.0 {}
    }

    /// Files that the ranks write together.
    ///
    /// # Errors
    /// Never: there is no such world.
    pub fn files(&self, _hints: &[(String, String)]) -> Result<Box<dyn SharedFiles + '_>> {
        match self.0 {}
    }

    /// Collective. The last words of all ranks.
    pub fn end(
        &self,
        _farewell: &[u8],
        _patience: Option<Duration>,
        _code: u8,
        _give_up: impl FnOnce(),
    ) -> Vec<Vec<u8>> {
        match self.0 {}
    }

    /// Collective. Ends the world.
    pub fn close(self) {
        match self.0 {}
    }
}
