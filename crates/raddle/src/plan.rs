//! Planning of a merge without an output.

use crate::context::Context;
use crate::error::Error;
use crate::merge::{PlannedMerge, check_axis, check_subset, plan_inputs};
use crate::options::{
    ExecutionOptions, Inputs, LayoutOptions, PlacementOptions, SchemaOptions, SortOptions, StripeOptions,
};
use raddle_merge::options::MergeOptions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Request to plan a merge: to learn its output, the differences between the inputs, and its cost.
///
/// Fields are the options of `raddle plan`.
///
/// ```
/// use raddle::{Context, PlanRequest};
/// # use raddle_testing::plain::make_columns;
/// # let folder = tempfile::tempdir()?;
/// # let (a, b) = (folder.path().join("a.h5"), folder.path().join("b.h5"));
/// # make_columns(&a, &[("/rec/energy", &[1.0, 2.0])])?;
/// # make_columns(&b, &[("/rec/energy", &[3.0])])?;
///
/// let summary = PlanRequest::new([a, b]).plan(&Context::default())?.summary()?;
/// assert_eq!(summary.output.datasets[0].path, "/rec/energy");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct PlanRequest {
    /// Files to merge.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub inputs: Inputs,
    /// Order of the inputs.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub sorting: SortOptions,
    /// Treatment of differences between inputs.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub schema: SchemaOptions,
    /// Chunks, compression and format.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub layout: LayoutOptions,
    /// Alignment of chunks.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub stripes: StripeOptions,
    /// Copies or links instead of concatenated values.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub placing: PlacementOptions,
    /// Use of the machine.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub execution: ExecutionOptions,
}

impl PlanRequest {
    /// Creates a request with default options.
    pub fn new(inputs: impl Into<Inputs>) -> Self {
        Self { inputs: inputs.into(), ..Self::default() }
    }

    /// Returns the options of the planned merge.
    ///
    /// # Errors
    /// If options conflict, a pattern is not a valid glob, or a file of options cannot be read.
    pub fn options(&self, default_jobs: usize) -> Result<MergeOptions, Error> {
        self.placing.check(&self.schema, (&self.layout, &self.stripes), false)?;
        let mut options = MergeOptions::new("");
        self.schema.apply(&mut options)?;
        self.stripes.apply(&mut options);
        self.layout.apply(&mut options)?;
        self.placing.apply(&mut options);
        check_axis(&options)?;
        check_subset(&options)?;
        self.execution.apply(&mut options, default_jobs);
        Ok(options)
    }

    /// Collective. Plans the merge. Only metadata is read, and nothing is written.
    ///
    /// # Errors
    /// If options conflict, or inputs cannot be read or do not fit together.
    pub fn plan(&self, context: &Context<'_>) -> Result<PlannedMerge, Error> {
        self.plan_files(self.inputs.expand_collective(context.ranks)?, context)
    }

    /// Collective. Plans the merge of these files instead of those that the inputs name.
    ///
    /// # Errors
    /// As for [`PlanRequest::plan`].
    pub fn plan_files(&self, files: Vec<PathBuf>, context: &Context<'_>) -> Result<PlannedMerge, Error> {
        let options = context.agree_on_options(self.options(context.default_jobs))?;
        let (plan, files) = plan_inputs(files, &self.sorting, &options, context)?;
        self.placing.check_planned((&self.layout, &self.stripes), &plan)?;
        Ok(PlannedMerge::new(plan, files))
    }
}
