//! `raddle keys events`: shows the sizes of events.

use crate::command::print;
use crate::exit::Exit;
use crate::options::keys::KeyedFileArgs;
use crate::options::running::RuntimeArgs;
use crate::render::keys;
use crate::session::Session;
use raddle::Error;
use raddle_merge::keys::sizes::event_sizes;
use raddle_merge::options::MergeOptions;

/// Options of `raddle keys events`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct EventsArgs {
    #[command(flatten)]
    keyed: KeyedFileArgs,

    /// Print the sizes as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle keys events all.h5
      minimum, median and maximum size of an event, a histogram, the tables
  raddle keys events all.h5 --json | jq .empty_events

A size is the bytes of an event's rows in all groups with keys, before compression. Variable-length values count as the \
references stored in the dataset. Only keys and metadata are read.";

/// Computes the sizes and prints them.
pub fn run(arguments: &EventsArgs) -> Result<Exit, Error> {
    let mut options = MergeOptions::new("");
    arguments.running.apply(&mut options);
    let session = Session::start(&arguments.running.verbosity, "keys events", [&arguments.keyed.file])?;
    session.conclude(|watch| {
        let sizes = event_sizes(&arguments.keyed.file, &arguments.keyed.key, &options, watch)
            .map_err(|error| Error::of_merge(&error, std::slice::from_ref(&arguments.keyed.file)))?;
        arguments.running.write_report(&sizes)?;
        print(&if arguments.json { crate::render::json(&sizes) } else { keys::sizes(&sizes) })?;
        Ok(Exit::Done)
    })
}
