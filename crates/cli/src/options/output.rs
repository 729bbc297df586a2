//! Options for the output file.

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

    /// Print what would be done without writing anything
    #[arg(short = 'n', long)]
    pub dry_run: bool,

    /// Print the report, or the failure, as JSON
    #[arg(long)]
    pub json: bool,

    /// Write encoded chunks in order of completion: slightly faster, but output bytes differ between runs, and an
    /// interrupted run starts over
    #[arg(long)]
    pub unordered: bool,

    /// Start over instead of resuming an interrupted run of the same command
    #[arg(long)]
    pub no_resume: bool,

    /// Do not record inputs, row ranges and digests in the group /_raddle of the output
    #[arg(long)]
    pub no_provenance: bool,
}

impl OutputArgs {
    /// Applies these options to those of a merge.
    pub fn apply(&self, options: &mut MergeOptions) {
        options.output.clone_from(&self.output);
        options.force = self.force;
        options.ordered = !self.unordered;
        options.resume = !self.no_resume;
        options.provenance = !self.no_provenance;
    }
}

/// Checks that `output` can be written: it must not be one of `inputs`, a folder or a special file, and must not exist
/// unless it is to be replaced.
///
/// # Errors
/// The reason, with advice.
pub fn check_output(output: &Path, inputs: &[PathBuf], replace: bool) -> Result<(), Failure> {
    raddle_merge::check_output(output, inputs, replace).map_err(|error| Failure::of_merge(&error, inputs))
}
