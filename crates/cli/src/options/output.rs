//! Where the result goes and how it is written.

use crate::failure::Failure;
use raddle_merge::options::MergeOptions;
use std::path::{Path, PathBuf};

/// Options of commands that write an HDF5 file.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// File to write; it appears under this name only when it is complete
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// Replace the output if it exists
    #[arg(short, long)]
    pub force: bool,

    /// Plan and print what would be done, write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,

    /// Print the report as JSON instead of lines; a failure as well
    #[arg(long)]
    pub json: bool,

    /// Write encoded chunks in the order they get ready: a little faster, but two runs give different bytes, and an
    /// interrupted run starts over
    #[arg(long)]
    pub unordered: bool,

    /// Start over instead of going on from what an interrupted run of the same command left
    #[arg(long)]
    pub no_resume: bool,

    /// Do not record inputs, row ranges and digests in the group /_raddle of the output
    #[arg(long)]
    pub no_provenance: bool,
}

impl OutputArgs {
    /// Writes these options into those of a merge.
    pub fn apply(&self, options: &mut MergeOptions) {
        options.output.clone_from(&self.output);
        options.force = self.force;
        options.ordered = !self.unordered;
        options.resume = !self.no_resume;
        options.provenance = !self.no_provenance;
    }
}

/// Fails where `output` cannot be written: it is one of `inputs`, a folder or a special file, or exists and is not to be
/// replaced.
///
/// # Errors
/// With the reason and what to do.
pub fn check_output(output: &Path, inputs: &[PathBuf], replace: bool) -> Result<(), Failure> {
    raddle_merge::check_output(output, inputs, replace).map_err(|error| Failure::of_merge(&error, inputs))
}
