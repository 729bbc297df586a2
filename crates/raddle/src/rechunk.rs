//! Rewriting of one file with a new layout, which is a merge of a single input.

use crate::context::Context;
use crate::error::Error;
use crate::merge::{PlannedMerge, plan_output};
use crate::options::{ExecutionOptions, LayoutOptions, MergePreviewOptions, OutputOptions, SortOptions, StripeOptions};
use raddle_merge::options::MergeOptions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Request to rewrite a file with other chunks, compression or format.
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
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct RechunkRequest {
    /// File to rewrite; it is not modified
    #[cfg_attr(feature = "clap", arg(value_name = "FILE"))]
    #[serde(skip)]
    pub input: PathBuf,
    /// The file to write.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub output: OutputOptions,
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
    /// Use of the machine.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub execution: ExecutionOptions,
}

impl RechunkRequest {
    /// Creates a request with default options.
    pub fn new(input: impl Into<PathBuf>, output: impl Into<PathBuf>) -> Self {
        let output = OutputOptions { output: output.into(), ..OutputOptions::default() };
        Self { input: input.into(), output, ..Self::default() }
    }

    /// Returns the options of the merge of the single input.
    ///
    /// # Errors
    /// If options conflict, or the profile does not exist.
    pub fn options(&self, default_jobs: usize) -> Result<MergeOptions, Error> {
        let mut options = MergeOptions::new(&self.output.output);
        self.output.apply(&mut options);
        self.stripes.apply(&mut options);
        self.layout.apply(&mut options)?;
        options.rank_1 = self.rank_1;
        self.execution.apply(&mut options, default_jobs);
        Ok(options)
    }

    /// Collective. Plans the output from the metadata of the file. Nothing is written.
    ///
    /// # Errors
    /// If options conflict, the output cannot be written, or the file cannot be read.
    pub fn plan(&self, context: &Context<'_>) -> Result<PlannedMerge, Error> {
        let options = self.options(context.default_jobs)?;
        plan_output(vec![self.input.clone()], &SortOptions::default(), options, &self.preview, None, context)
    }
}
