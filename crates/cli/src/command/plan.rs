//! `raddle plan`: shows what a merge would do, from metadata alone.

mod simulate;

use super::print;
use crate::exit::Exit;
use crate::options::inputs::StandardInputArgs;
use crate::options::running::VerbosityArgs;
use crate::options::simulation::SimulationArgs;
use crate::ranks::Ranks;
use crate::render::plan::{Detail, text};
use crate::session::Session;
use raddle::Error;
use raddle::PlanRequest;
use raddle::merge::layout_warnings;
use raddle_merge::write::bridged;

/// Options of `raddle plan`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanArgs {
    #[command(flatten)]
    request: PlanRequest,
    #[command(flatten)]
    standard_input: StandardInputArgs,
    #[command(flatten)]
    simulation: SimulationArgs,
    #[command(flatten)]
    verbosity: VerbosityArgs,

    /// Print the plan as JSON
    #[arg(long)]
    json: bool,

    /// List every dataset, not only groups
    #[arg(long)]
    datasets: bool,
}

const EXAMPLES: &str = "\
Examples:
  raddle plan run11981/
      the files of a folder
  raddle plan 'run*/*.h5' --datasets
      files that match, every dataset listed
  raddle plan @files.txt --join inner
      the files of a list, only objects of all inputs
  raddle plan a.h5 b.h5 --union
      datasets of distinct names in one file
  raddle plan run11981/ --json | jq .output.logical_len_bytes
  raddle plan --stat NOvA-FD --simulate ranks=1600 files=6400
      what each of 1,600 ranks would do
  raddle plan run11981/ --simulate ranks=64 files=10000
      the same with your files, repeated";

/// Collective. Plans and prints the plan.
pub fn run(arguments: &PlanArgs, team: &Ranks) -> Result<Exit, Error> {
    let PlanArgs { request, standard_input, simulation, verbosity, json, datasets } = arguments;
    if !simulation.simulate.is_empty() {
        // One rank simulates all others.
        return if team.leads() { simulate::run(arguments, team) } else { Ok(Exit::Done) };
    }
    // Checked before the inputs are listed, which may take time.
    request.options(team.default_jobs())?;
    let files = team.paths_of_first(|| standard_input.expand(&request.inputs))?;
    let session = Session::start_collective(team, verbosity, "plan", &files)?;
    session.run(team, |context| {
        let planned = request.plan_files(files, context)?;
        let exit = if planned.plan().skipped.is_empty() { Exit::Done } else { Exit::InputsSkipped };
        if !team.leads() {
            return Ok(exit);
        }
        session.note_differences(bridged(planned.plan()));
        layout_warnings(planned.plan()).iter().for_each(|warning| session.warn(warning));
        let summary = planned.summary()?;
        verbosity.write_report(&summary)?;
        match json {
            true => print(&crate::render::json(&summary))?,
            false => print(&text(&summary, if *datasets { Detail::Datasets } else { Detail::of(&summary) }))?,
        }
        Ok(exit)
    })
}
