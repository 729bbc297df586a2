//! `raddle plan`: shows what a merge would do, from metadata alone.

use super::merge::{print_needs, print_reserialized};
use super::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::{
    inputs::{InputArgs, SortArgs},
    layout::LayoutArgs,
    placing::PlacementArgs,
    running::RuntimeArgs,
    schema::SchemaArgs,
    simulation::SimulationArgs,
    stripes::StripesArgs,
};
use crate::ranks::Ranks;
use crate::render::plan::{Detail, Summary};
use crate::session::Session;
use raddle_merge::options::MergeOptions;
use raddle_merge::plan::prediction::{Sample, predict};
use raddle_merge::write::bridged;

/// Options of `raddle plan`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanArgs {
    /// Files to merge.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Order of the inputs.
    #[command(flatten)]
    pub sorting: SortArgs,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    stripes: StripesArgs,
    #[command(flatten)]
    placing: PlacementArgs,
    #[command(flatten)]
    pub(super) simulation: SimulationArgs,
    #[command(flatten)]
    pub(super) running: RuntimeArgs,

    /// Print the plan as JSON
    #[arg(long)]
    pub(super) json: bool,

    /// List every dataset, not only groups
    #[arg(long)]
    datasets: bool,
}

const EXAMPLES: &str = "\
Examples:
  raddle plan run11981/                 the files of a folder
  raddle plan 'run*/*.h5' --datasets    files that match, every dataset listed
  raddle plan @files.txt --join inner   the files of a list, only objects of all inputs
  raddle plan a.h5 b.h5 --union         datasets of distinct names in one file
  raddle plan run11981/ --json | jq .output.logical_len_bytes
  raddle plan --stat NOvA-FD --simulate ranks=1600 files=6400     what each of 1,600 ranks would do
  raddle plan run11981/ --simulate ranks=64 files=10000           the same with your files, repeated";

impl PlanArgs {
    /// Returns the options of the planned merge.
    ///
    /// # Errors
    /// If a pattern is not a valid glob.
    pub fn options(&self) -> Result<MergeOptions, Failure> {
        let mut options = MergeOptions::new("");
        self.schema.apply(&mut options)?;
        self.stripes.apply(&mut options);
        self.layout.apply(&mut options)?;
        self.placing.apply(&mut options);
        self.running.apply(&mut options);
        Ok(options)
    }
}

/// Collective. Plans and prints the plan.
pub fn run(arguments: &PlanArgs, team: &Ranks) -> Result<Exit, Failure> {
    let mut options = arguments.options()?;
    arguments.running.apply_collective(team, &mut options);
    if !arguments.simulation.simulate.is_empty() {
        // One rank simulates all others.
        return if team.leads() { super::simulate::run(arguments, &options) } else { Ok(Exit::Done) };
    }
    let inputs = team.paths_of_first(|| arguments.inputs.expand(&mut std::io::stdin().lock()))?;
    let watching = Session::start_collective(team, &arguments.running, "plan", &inputs)?;
    watching.conclude(|watch| {
        let inputs = team.paths_of_first(|| arguments.sorting.sort(inputs, &options, watch))?;
        let failed = |error| Failure::of_merge(&error, &inputs);
        let plan = raddle_merge::plan_collective(&inputs, &options, watch, team.ranks()).map_err(failed)?;
        options.selection.check_matched(team.ranks(), watch).map_err(failed)?;
        let exit = if plan.skipped.is_empty() { Exit::Done } else { Exit::InputsSkipped };
        if !team.leads() {
            return Ok(exit);
        }
        watching.note_differences(bridged(&plan));
        print_reserialized(&plan, &watching);
        print_needs(&plan, &watching);
        let predicted = predict(&plan, Sample::THOROUGH).map_err(failed)?;
        let summary = Summary::of(&plan, Some(predicted));
        arguments.running.write_report(&summary)?;
        match arguments.json {
            true => print(&crate::render::json(&summary))?,
            false => print(&summary.text(if arguments.datasets { Detail::Datasets } else { Detail::Groups }))?,
        }
        Ok(exit)
    })
}
