//! `raddle events merge`: concatenates files with the same layout.

use crate::command::print;
use crate::exit::Exit;
use crate::options::inputs::StandardInputArgs;
use crate::options::running::RuntimeArgs;
use crate::options::size::Size;
use crate::ranks::Ranks;
use crate::render::events;
use crate::session::Session;
use raddle::Error;
use raddle::options::Inputs;
use raddle::options::compression::EVENTS_HELP;
use raddle::options::inputs::refuse_folders_of_other_events;
use raddle::options::output::refuse_replacing;
use raddle_events::EventsMergeRequest;
use raddle_events::formats::EventCompression;
use std::path::PathBuf;

/// Options of `raddle events merge`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    /// Files to merge.
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    standard_input: StandardInputArgs,

    /// File to write; it appears under this name only when it is complete
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: PathBuf,

    /// Replace the output if it exists
    #[arg(short, long, help_heading = "Output")]
    force: bool,

    #[arg(short = 'c', long, value_name = "HOW", help = EVENTS_HELP, default_value_t = EventCompression::default(), help_heading = "Layout")]
    compress: EventCompression,

    /// Length of an HDF5 chunk before compression [default: 1MiB, less for thousands of datasets]
    #[arg(long, value_name = "SIZE", help_heading = "Layout")]
    chunk: Option<Size>,

    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle events merge job*.pds -o all.pds
      records are copied as stored
  raddle events merge job*.h5 -o all.h5
      in the layout of the first; chunks are rewritten, but data compressed in
      HEP-CCE's form is copied as stored

Every input must have the same products. ROOT files cannot be merged: convert them.";

/// Collective. Merges the inputs and reports.
pub fn run(arguments: &MergeArgs, team: &Ranks) -> Result<Exit, Error> {
    let MergeArgs { output, force, compress, chunk, running, .. } = arguments;
    let inputs = team.paths_of_first(|| {
        refuse_replacing(output, &arguments.inputs.list_files())?;
        refuse_folders_of_other_events(&arguments.inputs.inputs)?;
        arguments.standard_input.expand(&arguments.inputs)
    })?;
    let session = Session::start_collective(team, &running.verbosity, "events merge", inputs.iter().chain([output]))?;
    session.conclude(|watch| {
        let request = EventsMergeRequest {
            inputs,
            output: output.clone(),
            force: *force,
            compress: Some(*compress),
            chunk: *chunk,
            resources: running.resources(team.default_jobs()),
        };
        let merged = request.run(watch, team.ranks()).map_err(|error| Error::of_written_events(&error, output))?;
        if let Some(written) = merged.filter(|_| team.leads()) {
            running.write_report(&written)?;
            if !running.verbosity.quiet {
                print(&events::written(&written))?;
            }
        }
        Ok(Exit::Done)
    })
}
