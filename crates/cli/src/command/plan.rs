//! `raddle plan`: what a merge would do, from metadata alone.

use super::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::{inputs::InputArgs, layout::LayoutArgs, running::RunningArgs, schema::SchemaArgs};
use crate::render::plan::{Detail, Summary};
use crate::watching::Watching;
use raddle_merge::options::MergeOptions;
use raddle_merge::prediction::{THOROUGH_SAMPLE_LEN_BYTES, predict};

/// Options of `raddle plan`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanArgs {
    /// Which files.
    #[command(flatten)]
    pub inputs: InputArgs,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    running: RunningArgs,

    /// Print the plan as JSON
    #[arg(long)]
    json: bool,

    /// List every dataset, not only groups
    #[arg(long)]
    datasets: bool,
}

const EXAMPLES: &str = "\
Examples:
  raddle plan run11981/                 the files of a folder
  raddle plan 'run*/*.h5' --datasets    files that match, every dataset listed
  raddle plan @files.txt --join inner   the files of a list, only what all have
  raddle plan run11981/ --json | jq .output.logical_len_bytes";

impl PlanArgs {
    /// The options of the merge that is planned.
    ///
    /// # Errors
    /// If a pattern is none.
    pub fn options(&self) -> Result<MergeOptions, Failure> {
        let mut options = MergeOptions::new("");
        self.schema.apply(&mut options)?;
        self.layout.apply(&mut options);
        self.running.apply(&mut options);
        Ok(options)
    }
}

/// Plans and prints the plan.
pub fn run(arguments: &PlanArgs) -> Result<Exit, Failure> {
    let inputs = arguments.inputs.expand(&mut std::io::stdin().lock())?;
    let options = arguments.options()?;
    let watching = Watching::start(&arguments.running, "plan")?;
    watching.conclude(|watch| {
        let inputs = arguments.inputs.listing.sort(inputs, &options, watch)?;
        let plan =
            raddle_merge::plan::plan(&inputs, &options, watch).map_err(|error| Failure::of_merge(&error, &inputs))?;
        let predicted =
            predict(&plan, THOROUGH_SAMPLE_LEN_BYTES).map_err(|error| Failure::of_merge(&error, &inputs))?;
        let summary = Summary::of(&plan, Some(predicted));
        arguments.running.write_report(&summary)?;
        match arguments.json {
            true => print(&crate::render::json(&summary))?,
            false => print(&summary.text(if arguments.datasets { Detail::Datasets } else { Detail::Groups }))?,
        }
        Ok(if plan.skipped.is_empty() { Exit::Done } else { Exit::InputsSkipped })
    })
}
