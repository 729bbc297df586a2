//! Comparison of a merged file with its inputs, or with the digests that it holds.

use crate::advice::Advice;
use crate::context::Context;
use crate::error::Error;
use crate::options::{ExecutionOptions, ListingOptions, SchemaOptions, SortOptions};
use crate::select::{recorded_selection, restrict};
use raddle_core::ranks::communicator::CommunicatorExt;
use raddle_hdf5::open_file::OpenFile;
use raddle_merge::MergeError;
use raddle_merge::options::MergeOptions;
use raddle_merge::verify::digests::check::check_collective;
use raddle_merge::verify::{Mismatch, VerifyReport, verify_collective};
use raddle_query::Index;
use raddle_query::index::FoundIndex;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Request to verify a merged file.
///
/// Fields are the options of `raddle verify`.
///
/// ```
/// use raddle::{Context, MergeRequest, VerifyRequest};
/// # use raddle_testing::plain::make_columns;
/// # let folder = tempfile::tempdir()?;
/// # let (a, b, all) = (folder.path().join("a.h5"), folder.path().join("b.h5"), folder.path().join("all.h5"));
/// # make_columns(&a, &[("/rec/energy", &[1.0, 2.0])])?;
/// # make_columns(&b, &[("/rec/energy", &[3.0])])?;
///
/// let context = Context::default();
/// MergeRequest::new([&a, &b], &all).plan(&context)?.run(&context)?;
/// let report = VerifyRequest::new(&all).against([&a, &b]).run(&context)?;
/// assert!(report.mismatches.is_empty());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct VerifyRequest {
    /// The merged file
    #[cfg_attr(feature = "clap", arg(value_name = "MERGED"))]
    #[serde(skip)]
    pub file: PathBuf,

    /// Inputs of the merge, given as for merge: files, folders, quoted globs, @LIST, or - for standard input
    ///
    /// Without inputs, the file is checked against the digests it holds.
    #[cfg_attr(feature = "clap", arg(long, value_name = "INPUT", num_args = 1..))]
    #[serde(skip)]
    pub against: Vec<PathBuf>,

    /// Options for listing the inputs.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub listing: ListingOptions,
    /// Order of the inputs.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub sorting: SortOptions,
    /// Treatment of differences between inputs.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub schema: SchemaOptions,
    /// Use of the machine.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub execution: ExecutionOptions,
}

impl VerifyRequest {
    /// Creates a request to check a file against the digests that it holds.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), ..Self::default() }
    }

    /// Compares with these inputs instead of the digests.
    #[must_use]
    pub fn against<P: Into<PathBuf>>(mut self, inputs: impl IntoIterator<Item = P>) -> Self {
        self.against = inputs.into_iter().map(Into::into).collect();
        self
    }

    /// Returns whether the file is compared with inputs.
    pub fn has_inputs(&self) -> bool {
        !(self.against.is_empty() && self.listing.lists.is_empty())
    }

    /// Returns the inputs to compare with; `None` to compare with the digests.
    ///
    /// # Errors
    /// If an input cannot be listed.
    pub fn files(&self) -> Result<Option<Vec<PathBuf>>, Error> {
        if !self.has_inputs() {
            return Ok(None);
        }
        self.listing.expand(&self.against).map(Some)
    }

    /// Collective. Compares the file. A difference is part of the report.
    ///
    /// # Errors
    /// If a file cannot be read, has no digests, or inputs do not fit together.
    pub fn run(&self, context: &Context<'_>) -> Result<VerifyReport, Error> {
        let expand = || Ok(self.files()?.unwrap_or_default());
        let files = crate::options::inputs::paths_of_first(context.ranks, expand)?;
        self.run_with(files, context)
    }

    /// Collective. Compares the file with these inputs instead of those that the request names.
    ///
    /// # Errors
    /// As for [`VerifyRequest::run`].
    pub fn run_with(&self, files: Vec<PathBuf>, context: &Context<'_>) -> Result<VerifyReport, Error> {
        let (watch, ranks) = (&context.watch, context.ranks);
        let mut options = MergeOptions::new(&self.file);
        context.agree_on_options(self.schema.apply(&mut options))?;
        self.execution.apply(&mut options, context.default_jobs);
        if !self.has_inputs() {
            let checked = check_collective(&self.file, &options, watch, ranks);
            let mut report = checked.map_err(|error| Error::of_merge(&error, std::slice::from_ref(&self.file)))?;
            report.mismatches.extend(context.on_first("check the index", || self.check_index(options.jobs, context))?);
            return Ok(report);
        }
        let files = self.sorting.sort_collective(files, &options, watch, ranks)?;
        if let [input] = &files[..] {
            let selection = recorded_selection(&self.file, input, &options, context);
            if let Some(selection) = ranks.agree("select events", selection)? {
                restrict(&mut options, selection);
            }
        }
        let verified = verify_collective(&self.file, &files, &options, watch, ranks).map_err(|error| match &error {
            // The file to verify counts as an input here, although it is not one of those it is compared with.
            MergeError::Hdf5(source) => Error::of_input(source).advise(Advice::on_bad_values(source, 1)),
            error => Error::of_merge(error, &files),
        })?;
        let matched = options.selection.check_matched(ranks, watch);
        matched.map_err(|error| Error::of_merge(&error, &files))?;
        Ok(verified)
    }

    /// Compares the index of the file, if there is one that belongs to it, with the values of the file.
    fn check_index(&self, threads: usize, context: &Context<'_>) -> Result<Vec<Mismatch>, Error> {
        let file = OpenFile::open(&self.file, Some(1)).map_err(|error| Error::of_file(&error))?;
        let path = Index::default_path(&self.file);
        let index = match Index::find(&file).map_err(|error| Error::of_query(&error))? {
            FoundIndex::Missing => return Ok(Vec::new()),
            FoundIndex::Stale => {
                context.warn(format!(
                    "{} was written for a different state of the file, and is not checked",
                    path.display()
                ));
                return Ok(Vec::new());
            }
            FoundIndex::Usable(index) => index,
        };
        let found = index.differences(&file, threads, context.watch.cancel).map_err(|error| Error::of_query(&error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mismatch =
            |(path, what)| Mismatch { path, what: format!("{what} in the index {name}"), row: None, input: None };
        Ok(found.into_iter().map(mismatch).collect())
    }
}
