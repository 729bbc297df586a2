//! `raddle keys check`: checks the keys of a file.

use crate::command::print;
use crate::exit::Exit;
use crate::options::keys::KeyedFileArgs;
use crate::options::running::RuntimeArgs;
use crate::render::keys;
use crate::session::Session;
use raddle::Error;
use raddle_merge::options::MergeOptions;

/// Options of `raddle keys check`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    #[command(flatten)]
    keyed: KeyedFileArgs,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle keys check all.h5
  raddle keys check all.h5 -d /events/id.seq

Exit code 0: in order, 8: not in order.";

/// Checks and prints the result.
pub fn run(arguments: &CheckArgs) -> Result<Exit, Error> {
    let mut options = MergeOptions::new("");
    arguments.running.apply(&mut options);
    let session = Session::start(&arguments.running.verbosity, "keys check", [&arguments.keyed.file])?;
    session.conclude(|watch| {
        let report = raddle_merge::keys::check::check(&arguments.keyed.file, &arguments.keyed.key, &options, watch)
            .map_err(|error| Error::of_merge(&error, std::slice::from_ref(&arguments.keyed.file)))?;
        arguments.running.write_report(&report)?;
        if arguments.json {
            print(&crate::render::json(&report))?;
        } else if !arguments.running.verbosity.quiet || !report.faults.is_empty() {
            print(&keys::checked(&report))?;
        }
        Ok(if report.faults.is_empty() { Exit::Done } else { Exit::Mismatch })
    })
}
