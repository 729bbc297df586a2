//! `raddle idx info`: shows the contents of a dataset.

use super::place::open;
use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{idx, zarr};
use raddle_idx::zarr::{Images, is_zarr};
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
  raddle idx info flow.idx            fields, time steps, layout, samples at each resolution
  raddle idx info flow.idx --json | jq .bitmask
  raddle idx info flow.zarr           images, levels, shards and chunks

Reads only the .idx file, the names of folders and a field's first block record, or zarr.json files; `raddle \
idx verify` checks blocks and shards.";

/// Prints the contents of the header and of the records of the coarsest blocks.
pub fn run(arguments: &InfoArgs) -> Result<Exit, Failure> {
    if is_zarr(&arguments.input) {
        let images = Images::open(&arguments.input).map_err(|error| Failure::of_idx(&error))?;
        let info = zarr::Info::of(&arguments.input, &images);
        print(&if arguments.json { crate::render::json(&info) } else { info.text() })?;
        return Ok(Exit::Done);
    }
    let dataset = open(&arguments.input)?;
    let steps = dataset.steps().map_err(|error| Failure::of_idx(&error))?;
    let info = idx::Info::of(&dataset, &steps);
    print(&if arguments.json { crate::render::json(&info) } else { info.text() })?;
    Ok(Exit::Done)
}
