//! `raddle idx write --into`: writes arrays into a box of existing time steps.

use super::write::WriteArgs;
use crate::command::print;
use crate::exit::Exit;
use crate::ranks::Ranks;
use crate::render::targets;
use raddle::Error;
use raddle::arrays::ArraySource;
use raddle_core::report::progress::Watch;
use raddle_idx::WriteReport;
use raddle_idx::inputs::{InputWrite, Inputs};
use serde::Serialize;

/// Report of a run.
#[derive(Debug, Serialize)]
struct Steps<'a> {
    steps: &'a [WriteReport],
}

impl WriteArgs {
    /// Collective. Writes the inputs into the dataset.
    pub(super) fn update(&self, inputs: &Inputs<ArraySource>, team: &Ranks, watch: &Watch<'_>) -> Result<Exit, Error> {
        let request = self.target.request(&self.running)?;
        let (default_jobs, ranks) = (team.default_jobs(), team.ranks());
        let write = InputWrite { inputs, request: &request, default_jobs, watch, ranks };
        let update = write.update_collective(&self.into)?;
        if team.leads() {
            self.running.write_report(&Steps { steps: &update.reports })?;
            if !self.running.verbosity.quiet {
                print(&targets::updated(&update))?;
            }
        }
        Ok(Exit::Done)
    }
}
