//! `raddle events convert`: writes events in another layout.

use crate::command::print;
use crate::exit::Exit;
use crate::options::events::{EventLayoutArgs, SelectionArgs};
use crate::options::inputs::StandardInputArgs;
use crate::options::running::RuntimeArgs;
use crate::ranks::Ranks;
use crate::render::events;
use crate::session::Session;
use raddle::Error;
use raddle::options::Inputs;
use raddle::options::inputs::refuse_folders_of_other_events;
use raddle::options::output::refuse_replacing;
use raddle_events::ConvertRequest;
use raddle_events::request::EntryRange;
use std::path::PathBuf;

/// Options of `raddle events convert`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ConvertArgs {
    /// Files to convert.
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    standard_input: StandardInputArgs,

    #[command(flatten)]
    selection: SelectionArgs,

    /// Range of events, counted from 0 over all inputs: 0..1000, or 1000.. for the rest
    #[arg(long, value_name = "A..B", default_value = "..", hide_default_value = true, help_heading = "Inputs")]
    entries: EntryRange,

    /// Leave out products that cannot be read; reads everything twice, and the run then ends with exit code 4
    #[arg(long, help_heading = "Inputs")]
    skip_bad: bool,

    /// File to write; it appears under this name only when it is complete
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: PathBuf,

    /// Replace the output if it exists
    #[arg(short, long, help_heading = "Output")]
    force: bool,

    #[command(flatten)]
    layout: EventLayoutArgs,

    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle events convert run1.root -o run1.h5
      a flat array for each leaf, for analysis and GPUs
  raddle events convert *.root -o all.h5 --products 'Muon_*' --products 'nMuon'
  raddle events convert run1.root -o run1.h5 --layout batch --batch 100
  raddle events convert run1.pds -o run1.h5 --layout event \\
    --compat cce --codec lz4
  raddle events convert run1.h5 -o run1.pds --layout pds
  raddle events convert run1.root -o new.root --layout rntuple --codec lz4
  mpirun -n 4 raddle events convert *.root -o all.h5
      ranks share the work; the bytes are the same

Inputs may be ROOT files (trees, RNTuples), packed data streams and HDF5 files of any of these layouts. Neither ROOT nor \
dictionaries are needed. The output's bytes do not depend on the number of threads and ranks.";

/// Collective. Converts the inputs.
pub fn run(arguments: &ConvertArgs, team: &Ranks) -> Result<Exit, Error> {
    let ConvertArgs { selection, entries, skip_bad, output, force, layout, running, .. } = arguments;
    let inputs = team.paths_of_first(|| {
        refuse_replacing(output, &arguments.inputs.list_files())?;
        refuse_folders_of_other_events(&arguments.inputs.inputs)?;
        arguments.standard_input.expand(&arguments.inputs)
    })?;
    let session = Session::start_collective(team, &running.verbosity, "events convert", inputs.iter().chain([output]))?;
    session.conclude(|watch| {
        let request = ConvertRequest {
            inputs,
            output: output.clone(),
            force: *force,
            entries: *entries,
            skip_bad: *skip_bad,
            selection: selection.selection(),
            // Every rank reads the profile: the output is on a file system that all of them see anyway.
            write: team.agree("read the profile", layout.options(output))?,
            resources: running.resources(team.default_jobs()),
        };
        let written = request.run(watch, team.ranks()).map_err(|error| Error::of_written_events(&error, output))?;
        if team.leads() {
            running.write_report(&written)?;
            if !running.verbosity.quiet {
                print(&events::written(&written))?;
            }
        }
        Ok(if written.left_out.is_empty() { Exit::Done } else { Exit::InputsSkipped })
    })
}
