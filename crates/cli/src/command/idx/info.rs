//! `raddle idx info`: shows the contents of a dataset.

use crate::command::print;
use crate::exit::Exit;
use crate::render::targets;
use raddle::Error;
use raddle_idx::targets::describe;
use std::path::PathBuf;

/// Options of `raddle idx info`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct InfoArgs {
    /// The .idx file, or an OME-Zarr folder written by raddle
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  raddle idx info flow.idx
      fields, time steps, layout, samples at each resolution
  raddle idx info flow.idx --json | jq .bitmask
  raddle idx info flow.zarr
      images, levels, shards and chunks

Reads only the .idx file, the names of folders and a field's first block record, or zarr.json files; `raddle \
idx verify` checks blocks and shards.";

/// Prints the contents of the header and of the records of the coarsest blocks.
pub fn run(arguments: &InfoArgs) -> Result<Exit, Error> {
    let info = describe(&arguments.input)?;
    print(&if arguments.json { crate::render::json(&info) } else { targets::described(&info) })?;
    Ok(Exit::Done)
}
