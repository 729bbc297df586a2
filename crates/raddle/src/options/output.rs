//! Options for the output file.

use crate::error::Error;
use raddle_merge::MergeError;
use raddle_merge::inputs::same_file;
use raddle_merge::options::MergeOptions;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Options of commands that write an HDF5 file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Output"))]
pub struct OutputOptions {
    /// File to write; it appears under this name only when it is complete
    #[cfg_attr(feature = "clap", arg(short, long, value_name = "FILE"))]
    pub output: PathBuf,

    /// How to write it.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub writing: WritingOptions,
}

/// Options about how an HDF5 file is written, whatever its name.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Output"))]
pub struct WritingOptions {
    /// Replace the output if it exists
    #[cfg_attr(feature = "clap", arg(short, long))]
    pub force: bool,

    /// Write encoded chunks in order of completion: slightly faster, but output bytes differ between runs, and an
    /// interrupted run starts over
    #[cfg_attr(feature = "clap", arg(long))]
    pub unordered: bool,

    /// Start over instead of resuming an interrupted run of the same command
    #[cfg_attr(feature = "clap", arg(long))]
    pub no_resume: bool,

    /// Do not record inputs, row ranges and digests in the group /_raddle of the output
    #[cfg_attr(feature = "clap", arg(long))]
    pub no_provenance: bool,

    /// Accept inputs whose values differ from the digests that raddle recorded in them
    ///
    /// An input that raddle wrote holds digests of its values. A file that was damaged or changed since then is refused
    /// if its datasets are copied or concatenated as they are.
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Inputs"))]
    pub ignore_digests: bool,
}

impl OutputOptions {
    /// Applies these options to the options of a merge.
    pub fn apply(&self, options: &mut MergeOptions) {
        options.output.clone_from(&self.output);
        self.writing.apply(options);
    }
}

impl WritingOptions {
    /// Applies these options to the options of a merge.
    pub fn apply(&self, options: &mut MergeOptions) {
        options.force = self.force;
        options.ordered = !self.unordered;
        options.resume = !self.no_resume;
        options.provenance = !self.no_provenance;
        options.ignore_digests = self.ignore_digests;
    }
}

/// Checks that `output` can be written: it must not be one of `inputs`, a folder or a special file, and must not exist
/// unless it is to be replaced.
///
/// # Errors
/// If the output is refused. The error gives the reason and a remedy.
pub fn check_output(output: &Path, inputs: &[PathBuf], replace: bool) -> Result<(), Error> {
    raddle_merge::check_output(output, inputs, replace).map_err(|error| Error::of_merge(&error, inputs))
}

/// Refuses an output that is one of the files from which inputs or options are read, such as a list of inputs: it would
/// be replaced.
///
/// # Errors
/// If the output is one of `read`.
pub fn refuse_replacing(output: &Path, read: &[PathBuf]) -> Result<(), Error> {
    let Some(file) = read.iter().find(|file| same_file(file, output)) else { return Ok(()) };
    let reason = format!("is also a file that this command reads ({}); name another output", file.display());
    Err(Error::of_merge(&MergeError::Output { path: output.to_path_buf(), reason }, &[]))
}
