//! World of a raddle that was built without MPI, which cannot be joined.

use crate::error::{MpiError, Result};
use crate::launcher::LauncherInfo;
use raddle_core::engine::SharedFiles;
use raddle_core::ranks::communicator::Communicator;
use raddle_core::ranks::datasets::SharedDatasets;
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

/// The ranks of the run. In this build without MPI there are none, so that no value can exist.
#[derive(Debug)]
pub struct World(Infallible);

impl World {
    /// Fails, because raddle was built without MPI.
    ///
    /// # Errors
    /// Always returns [`MpiError::NotBuilt`].
    pub fn join(launched: &LauncherInfo) -> Result<Self> {
        Err(MpiError::NotBuilt { launcher: launched.launcher })
    }

    /// Returns the communicator of the ranks.
    pub fn communicator(&self) -> &dyn Communicator {
        match self.0 {}
    }

    /// Returns the files that the ranks write collectively.
    ///
    /// # Errors
    /// Never returns, because this build contains no MPI.
    pub fn files(&self, _hints: &[(String, String)]) -> Result<Box<dyn SharedFiles + '_>> {
        match self.0 {}
    }

    /// Returns the datasets that the ranks write collectively.
    ///
    /// # Errors
    /// Never returns, because this build contains no MPI.
    pub fn datasets(&self, _library: Option<&Path>) -> Result<Box<dyn SharedDatasets + '_>> {
        match self.0 {}
    }

    /// Collective. Gathers the final messages of all ranks.
    pub fn end(
        &self,
        _farewell: &[u8],
        _patience: Option<Duration>,
        _code: u8,
        _give_up: impl FnOnce(),
    ) -> Vec<Vec<u8>> {
        match self.0 {}
    }

    /// Collective. Closes the world.
    pub fn close(self) {
        match self.0 {}
    }
}
