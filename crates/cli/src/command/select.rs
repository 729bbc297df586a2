//! `raddle select`: writes the events of a file that satisfy conditions.

use super::merge::OutputCommand;
use crate::exit::Exit;
use crate::options::io::IoArgs;
use crate::options::printing::PrintArgs;
use crate::options::running::VerbosityArgs;
use crate::ranks::Ranks;
use raddle::{Error, SelectRequest};

/// Options of `raddle select`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SelectArgs {
    #[command(flatten)]
    request: SelectRequest,
    #[command(flatten)]
    printing: PrintArgs,
    #[command(flatten)]
    io: IoArgs,
    #[command(flatten)]
    verbosity: VerbosityArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle select all.h5 --where 'rec.slc: calE > 2' -o skim.h5
      events with a slice of more than 2, with their rows in all tables
  raddle select all.h5 -o skim.h5 \\
    --where 'rec.slc: calE > 2' --where 'rec.trk: 50 < len <= 500'
      events that have both
  raddle select all.h5 --where 'spill: run == 11981' --exclude /maps -o run.h5
      one run, without a table
  raddle verify skim.h5 --against all.h5
      selects again and compares

The file needs partition keys (raddle keys add), which the output gets again. A dataset belongs to the table of its \
group if it has as many rows as the key; other datasets, and groups without keys, are copied whole. An index next to the file (raddle index) makes searching faster.";

/// Collective. Selects events and writes their rows.
pub fn run(arguments: &SelectArgs, team: &Ranks) -> Result<Exit, Error> {
    let SelectArgs { request, printing, io, verbosity } = arguments;
    let io = io.open(team, false, request.preview.preview.is_some() || request.indexing.index)?;
    let output = OutputCommand { path: &request.output.output, printing: *printing, io, verbosity, command: "select" };
    output.write(team, vec![request.file.clone()], |_, context| request.plan(context))
}
