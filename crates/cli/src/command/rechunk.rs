//! `raddle rechunk`: rewrites a file with a new layout, as a merge of a single input.

use super::merge::Output;
use crate::exit::Exit;
use crate::options::io::IoArgs;
use crate::options::printing::PrintArgs;
use crate::options::running::VerbosityArgs;
use crate::ranks::Ranks;
use raddle::Error;
use raddle::RechunkRequest;

/// Options of `raddle rechunk`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RechunkArgs {
    #[command(flatten)]
    request: RechunkRequest,
    #[command(flatten)]
    printing: PrintArgs,
    #[command(flatten)]
    io: IoArgs,
    #[command(flatten)]
    verbosity: VerbosityArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle rechunk old.h5 -o new.h5
      chunks for reading by events
  raddle rechunk old.h5 -o new.h5 --for scan -c small
      large chunks, smallest size
  raddle rechunk old.h5 -o new.h5 --chunk 128x1024
      this shape for every two-dimensional dataset
  raddle rechunk maps.nc -o series.nc --for timeseries
      chunks that are long in time and small in space
  raddle rechunk old.h5 -o new.h5 --layout '/tas: chunk=time=365,lat=90, filter=zstd:3'
      other chunks and filters for one dataset
  raddle rechunk old.h5 -o new.h5 --rank-1
      columns of N x 1 elements as N elements";

/// Collective. Rewrites the file.
pub fn run(arguments: &RechunkArgs, team: &Ranks) -> Result<Exit, Error> {
    let RechunkArgs { request, printing, io, verbosity } = arguments;
    let io = io.open(team, false, request.preview.preview.is_some())?;
    let output = Output { path: &request.output.output, printing: *printing, io, verbosity, command: "rechunk" };
    output.write(team, vec![request.input.clone()], |_, context| request.plan(context))
}
