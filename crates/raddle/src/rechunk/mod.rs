//! Rewriting of files with a new layout: each file is a merge of a single input.
//!
//! One file is planned and written like a merge. Several files are written to a folder or in place: `targets`
//! determines the outputs, `files` plans, `writing` writes.

mod failed_file;
mod files;
mod targets;
mod writing;

pub use failed_file::FailedFile;
pub use files::{FilesSummary, PlannedFile, PlannedFiles};
pub use writing::{RechunkedFile, RechunkedFiles};

use crate::context::Context;
use crate::error::Error;
use crate::merge::{PlannedMerge, plan_output};
use crate::options::output::refuse_replacing;
use crate::options::{
    ExecutionOptions, FileInputs, LayoutOptions, MergeIndexOptions, MergePreviewOptions, SortOptions, StripeOptions,
    WritingOptions,
};
use raddle_merge::options::MergeOptions;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Request to rewrite files with other chunks, compression or format: one file to another, or many files to a folder or
/// in place.
///
/// Fields are the options of `raddle rechunk`.
///
/// ```
/// use raddle::options::{Chunk, LayoutOptions};
/// use raddle::{Context, RechunkRequest};
/// # use raddle_testing::plain::make_columns;
/// # let folder = tempfile::tempdir()?;
/// # let (old, new) = (folder.path().join("old.h5"), folder.path().join("new.h5"));
/// # make_columns(&old, &[("/rec/energy", &[1.0, 2.0, 3.0])])?;
///
/// let layout = LayoutOptions { chunk: Some(Chunk::Rows(65_536)), ..Default::default() };
/// let request = RechunkRequest { layout, ..RechunkRequest::new(old, new) };
/// request.plan(&Context::default())?.run(&Context::default())?;
///
/// let request = RechunkRequest::to_folder(["old.h5"], "rechunked");
/// # let request = RechunkRequest::to_folder([folder.path().join("old.h5")], folder.path().join("rechunked"));
/// let files = request.inputs.expand_collective(Context::default().ranks)?;
/// let report = request.plan_files(files, &Context::default())?.run(&Context::default())?;
/// assert_eq!(report.files.len(), 1);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct RechunkRequest {
    /// Files to rewrite.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub inputs: FileInputs,
    /// Where to write.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub destination: Destination,
    /// Options of writing.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub writing: WritingOptions,
    /// With --dir or --in-place, leave out files that cannot be rewritten; exit code 4 if there are any
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Inputs"))]
    pub skip_bad: bool,
    /// Follow virtual datasets and external storage even outside of the input's folder
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Inputs"))]
    pub follow_foreign_files: bool,
    /// Alignment of chunks.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub stripes: StripeOptions,
    /// Chunks, compression and format.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub layout: LayoutOptions,
    /// Store datasets of N x 1 elements with one dimension of N elements
    ///
    /// Datasets with dimension scales or labels keep both dimensions. verify --against accounts for it.
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Layout"))]
    pub rank_1: bool,
    /// Preview of the output.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub preview: MergePreviewOptions,
    /// Index of the output.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub indexing: MergeIndexOptions,
    /// Use of the machine.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub execution: ExecutionOptions,
}

/// Where the rewritten files are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Output"), group(required = true, multiple = false))]
pub struct Destination {
    /// File to write, for a single input; it appears under this name only when it is complete
    #[cfg_attr(feature = "clap", arg(short, long, value_name = "FILE"))]
    pub output: Option<PathBuf>,

    /// Write each input to a file of the same name in this folder, which is created if necessary
    #[cfg_attr(feature = "clap", arg(long, value_name = "FOLDER"))]
    pub dir: Option<PathBuf>,

    /// Replace each input by its new version, which is written next to it under a hidden name and then renamed
    ///
    /// Owner, group and permissions are kept. A file with several hard links, a write-protected file, and a file of
    /// another user are refused. After an interruption, the same command continues with the files that are not done.
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "force"))]
    pub in_place: bool,
}

impl RechunkRequest {
    /// Creates a request with default options for a single file.
    pub fn new(input: impl Into<PathBuf>, output: impl Into<PathBuf>) -> Self {
        let destination = Destination { output: Some(output.into()), ..Destination::default() };
        Self { inputs: FileInputs::from([input.into()]), destination, ..Self::default() }
    }

    /// Creates a request with default options that writes each input to a file of the same name in the folder `dir`.
    pub fn to_folder(inputs: impl Into<FileInputs>, dir: impl Into<PathBuf>) -> Self {
        let destination = Destination { dir: Some(dir.into()), ..Destination::default() };
        Self { inputs: inputs.into(), destination, ..Self::default() }
    }

    /// Creates a request with default options that replaces each input.
    pub fn in_place(inputs: impl Into<FileInputs>) -> Self {
        let destination = Destination { in_place: true, ..Destination::default() };
        Self { inputs: inputs.into(), destination, ..Self::default() }
    }

    /// Returns whether the files are written to a folder or in place.
    pub fn is_for_files(&self) -> bool {
        self.destination.output.is_none()
    }

    /// Returns the options of the merge of a single input that writes `output`.
    ///
    /// # Errors
    /// If options conflict, or the profile does not exist.
    pub fn options(&self, output: &Path, default_jobs: usize) -> Result<MergeOptions, Error> {
        let mut options = MergeOptions::new(output);
        self.writing.apply(&mut options);
        self.stripes.apply(&mut options);
        self.layout.apply(&mut options)?;
        options.rank_1 = self.rank_1;
        options.follow_foreign_files = self.follow_foreign_files;
        self.execution.apply(&mut options, default_jobs);
        Ok(options)
    }

    /// Collective. Plans the output of a single input from the metadata of the file. Nothing is written.
    ///
    /// # Errors
    /// If options conflict, there is more than one input, the output cannot be written, or the file cannot be read.
    pub fn plan(&self, context: &Context<'_>) -> Result<PlannedMerge, Error> {
        self.plan_inputs(self.inputs.expand_collective(context.ranks)?, context)
    }

    /// Collective. Plans the output of the single file `files` instead of that of the inputs.
    ///
    /// # Errors
    /// As for [`RechunkRequest::plan`].
    pub fn plan_inputs(&self, files: Vec<PathBuf>, context: &Context<'_>) -> Result<PlannedMerge, Error> {
        let Some(output) = &self.destination.output else {
            return Err(Error::usage("no output: name one with -o, or use --dir or --in-place"));
        };
        self.check_destination()?;
        if files.len() > 1 {
            let what = format!("-o names one file, and there are {} inputs", files.len());
            return Err(Error::usage(&what).hint("use --dir or --in-place, or raddle merge to concatenate them"));
        }
        if self.skip_bad {
            return Err(Error::usage("--skip-bad is for --dir and --in-place"));
        }
        let options = context.agree_on_options(self.options(output, context.default_jobs))?;
        let read = [self.inputs.listing().list_files(&self.inputs.inputs), self.layout.files()].concat();
        context.on_first("look at the output", || refuse_replacing(output, &read))?;
        plan_output(files, &SortOptions::default(), options, (&self.preview, self.indexing), None, context)
            .map_err(|error| error.without_option("--skip-bad"))
    }

    /// Refuses several destinations at once.
    fn check_destination(&self) -> Result<(), Error> {
        let Destination { output, dir, in_place } = &self.destination;
        match [output.is_some(), dir.is_some(), *in_place].into_iter().filter(|is_set| *is_set).count() {
            0 | 1 => Ok(()),
            _ => Err(Error::usage("an output file, --dir and --in-place exclude each other")),
        }
    }
}
