//! `raddle keys check`: are the keys of a file in order?

use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::running::RunningArgs;
use crate::render::keys;
use crate::watching::Watching;
use raddle_merge::options::MergeOptions;
use std::path::PathBuf;

/// Options of `raddle keys check`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// File to check
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Key of the index group
    #[arg(short = 'd', long, value_name = "DATASET", default_value = "/spill/evt.seq")]
    key: String,

    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    running: RunningArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle keys check all.h5
  raddle keys check all.h5 -d /events/id.seq

Exit code 0: in order, 8: not in order.";

/// Checks and prints the outcome.
pub fn run(arguments: &CheckArgs) -> Result<Exit, Failure> {
    let mut options = MergeOptions::new("");
    arguments.running.apply(&mut options);
    let watching = Watching::start(&arguments.running, "keys check", [&arguments.file])?;
    watching.conclude(|watch| {
        let report = raddle_merge::keys::check::check(&arguments.file, &arguments.key, &options, watch)
            .map_err(|error| Failure::of_merge(&error, std::slice::from_ref(&arguments.file)))?;
        arguments.running.write_report(&report)?;
        if arguments.json {
            print(&crate::render::json(&report))?;
        } else if !arguments.running.telling.quiet || !report.faults.is_empty() {
            print(&keys::checked(&report))?;
        }
        Ok(if report.faults.is_empty() { Exit::Done } else { Exit::Mismatch })
    })
}
