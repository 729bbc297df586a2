//! `raddle rechunk`: rewrites a file with a new layout, as a merge of a single input.

use super::merge::{MergeMode, merge};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::{
    inputs::SortArgs, io::IoArgs, layout::LayoutArgs, output::OutputArgs, preview::PreviewArgs, running::RuntimeArgs,
    stripes::StripesArgs,
};
use crate::ranks::Ranks;
use raddle_merge::options::MergeOptions;
use std::path::PathBuf;

/// Options of `raddle rechunk`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RechunkArgs {
    /// File to rewrite; it is not modified
    #[arg(value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    stripes: StripesArgs,
    #[command(flatten)]
    io: IoArgs,
    #[command(flatten)]
    layout: LayoutArgs,
    /// Store datasets of N x 1 elements with one dimension of N elements
    ///
    /// Datasets with dimension scales or labels keep both dimensions. verify --against accounts for it.
    #[arg(long, help_heading = "Layout")]
    rank_1: bool,
    #[command(flatten)]
    preview: PreviewArgs,
    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle rechunk old.h5 -o new.h5                       chunks for reading by events
  raddle rechunk old.h5 -o new.h5 --for scan -c small   large chunks, smallest size
  raddle rechunk old.h5 -o new.h5 --chunk 128x1024      this shape for every two-dimensional dataset
  raddle rechunk old.h5 -o new.h5 --rank-1              columns of N x 1 elements as N elements";

/// Collective. Rewrites the file.
pub fn run(arguments: &RechunkArgs, team: &Ranks) -> Result<Exit, Failure> {
    let mut options = MergeOptions::new(&arguments.output.output);
    arguments.output.apply(&mut options);
    arguments.stripes.apply(&mut options);
    arguments.layout.apply(&mut options)?;
    options.rank_1 = arguments.rank_1;
    arguments.running.apply_collective(team, &mut options);
    let inputs = vec![arguments.input.clone()];
    let (io, preview) = (&arguments.io, &arguments.preview);
    let (dry_run, json) = (arguments.output.dry_run, arguments.output.json);
    let how = MergeMode { dry_run, json, part: None, io, preview };
    merge(team, inputs, &SortArgs::default(), &options, how, &arguments.running, "rechunk")
}
