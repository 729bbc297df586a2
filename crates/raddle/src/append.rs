//! Appending of rows to an existing file, in place and atomically.

use crate::context::Context;
use crate::error::Error;
use crate::options::{ExecutionOptions, Inputs, SortOptions};
use crate::summary::{Input, Summary};
use crate::text::quantity;
use raddle_hdf5::open_file::OpenFile;
use raddle_merge::MergeError;
use raddle_merge::append::redo::Recovery;
use raddle_merge::append::{
    AppendLock, AppendReport, StackedScalars, append_collective, open_for_append_collective, plan_collective,
};
use raddle_merge::inputs::selection::Selection;
use raddle_merge::options::{Compress, MergeOptions};
use raddle_merge::plan::MergePlan;
use raddle_merge::schema::join::{AttributePolicy, Join, ScalarPolicy};
use raddle_query::Index;
use raddle_query::index::FoundIndex;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Request to append the rows of files to a merged file.
///
/// Fields are the options of `raddle append`.
///
/// ```
/// use raddle::{AppendRequest, Context, MergeRequest};
/// # use raddle_testing::plain::make_columns;
/// # let folder = tempfile::tempdir()?;
/// # let [a, b, new, all] = ["a.h5", "b.h5", "new.h5", "all.h5"].map(|name| folder.path().join(name));
/// # make_columns(&a, &[("/rec/energy", &[1.0, 2.0])])?;
/// # make_columns(&b, &[("/rec/energy", &[3.0])])?;
/// # make_columns(&new, &[("/rec/energy", &[4.0, 5.0])])?;
///
/// let context = Context::default();
/// MergeRequest::new([a, b], &all).plan(&context)?.run(&context)?;
/// let planned = AppendRequest::new(&all, [new]).plan(&context)?;
/// assert_eq!(planned.growth().most_rows, 2);
/// planned.run(&context)?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct AppendRequest {
    /// HDF5 file to append to; at any time it holds either the old or the new content
    #[cfg_attr(feature = "clap", arg(value_name = "FILE"))]
    #[serde(skip)]
    pub file: PathBuf,

    /// Files whose rows are appended.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub inputs: Inputs,

    /// Order of the inputs.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub sorting: SortOptions,

    /// Append inputs even if the file already has their rows
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Inputs"))]
    pub again: bool,

    /// What to do if an input lacks a dataset of the file [default: as the file was merged]
    #[cfg_attr(feature = "clap", arg(long, value_enum, help_heading = "Where inputs differ"))]
    pub join: Option<AppendJoin>,

    /// Datasets of a single value (scalars) that differ from the file's [default: as the file was merged]
    #[cfg_attr(feature = "clap", arg(long, value_enum, help_heading = "Where inputs differ"))]
    pub scalars: Option<AppendScalars>,

    /// Attributes that differ from the file's [default: as the file was merged]
    #[cfg_attr(feature = "clap", arg(long, value_enum, help_heading = "Where inputs differ"))]
    pub attributes: Option<AppendAttributes>,

    /// Do not append to datasets whose path matches; they must be equal in all inputs
    #[cfg_attr(feature = "clap", arg(long, value_name = "GLOB", help_heading = "Where inputs differ"))]
    #[serde(with = "crate::options::text::list")]
    pub keep: Vec<String>,

    /// Leave out inputs that cannot be read; the run then ends with exit code 4
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Where inputs differ"))]
    pub skip_bad: bool,

    /// Accept inputs whose values differ from the digests that raddle recorded in them
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Where inputs differ"))]
    pub ignore_digests: bool,

    /// Follow virtual datasets and external storage even outside of the input's folder
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Where inputs differ"))]
    pub follow_foreign_files: bool,

    /// Compression effort for datasets.
    #[cfg_attr(
        feature = "clap",
        arg(short = 'c', long, value_name = "HOW", help = crate::options::compression::APPEND_HELP, default_value_t = Compress::default(), help_heading = "Layout")
    )]
    #[serde(with = "crate::options::text::required")]
    pub compress: Compress,

    /// Use of the machine.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub execution: ExecutionOptions,
}

/// Requirement on the datasets of each input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum AppendJoin {
    /// All inputs must have exactly the objects of the file.
    Exact,
    /// Datasets that an input lacks get rows with the fill value.
    Outer,
}

/// Treatment of scalar datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum AppendScalars {
    /// Stop if they differ.
    Equal,
    /// Keep those of the file.
    First,
}

/// Treatment of attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum AppendAttributes {
    /// Keep those of the file and report how many differ.
    First,
    /// Stop if any differs.
    Error,
}

impl AppendRequest {
    /// Creates a request with default options.
    pub fn new(file: impl Into<PathBuf>, inputs: impl Into<Inputs>) -> Self {
        Self { file: file.into(), inputs: inputs.into(), ..Self::default() }
    }

    /// Returns the options of the append.
    ///
    /// # Errors
    /// If a pattern is not a valid glob.
    pub fn options(&self, default_jobs: usize) -> Result<MergeOptions, Error> {
        let mut options = MergeOptions::new(&self.file);
        options.selection = Selection::new(&[], &[], &self.keep).map_err(|error| Error::of_merge(&error, &[]))?;
        options.join.join = match self.join {
            None | Some(AppendJoin::Exact) => Join::Exact,
            Some(AppendJoin::Outer) => Join::Outer,
        };
        options.join.scalars = match self.scalars {
            None | Some(AppendScalars::Equal) => ScalarPolicy::Equal,
            Some(AppendScalars::First) => ScalarPolicy::First,
        };
        options.join.attributes = match self.attributes {
            None | Some(AppendAttributes::First) => AttributePolicy::First,
            Some(AppendAttributes::Error) => AttributePolicy::Error,
        };
        let explicit_flags = [
            ("join", self.join.is_some()),
            ("scalars", self.scalars.is_some()),
            ("attributes", self.attributes.is_some()),
        ];
        options.explicit = explicit_flags.into_iter().filter(|one| one.1).map(|one| one.0).collect();
        options.skip_bad = self.skip_bad;
        options.ignore_digests = self.ignore_digests;
        options.follow_foreign_files = self.follow_foreign_files;
        options.compress = self.compress;
        self.execution.apply(&mut options, default_jobs);
        Ok(options)
    }

    /// Collective. Locks the file, completes or rolls back an interrupted append, and plans the new rows.
    ///
    /// # Errors
    /// If the file cannot be appended to, or inputs cannot be read, do not fit or are already in the file.
    pub fn plan(&self, context: &Context<'_>) -> Result<PlannedAppend, Error> {
        self.plan_files(self.inputs.expand_collective(context.ranks)?, context)
    }

    /// Collective. Plans the rows of these files instead of those that the inputs name.
    ///
    /// # Errors
    /// As for [`AppendRequest::plan`].
    pub fn plan_files(&self, files: Vec<PathBuf>, context: &Context<'_>) -> Result<PlannedAppend, Error> {
        let (watch, ranks) = (&context.watch, context.ranks);
        let options = context.agree_on_options(self.options(context.default_jobs))?;
        let files = self.sorting.sort_collective(files, &options, watch, ranks)?;
        let failed = |error: MergeError| self.error(&error, &files);
        let lock = open_for_append_collective(&self.file, ranks).map_err(failed)?;
        let plan = match plan_collective(&lock, &files, self.again, &options, watch, ranks) {
            Ok(plan) => Some(plan),
            // The interrupted run was a run of this same request.
            Err(MergeError::Repeated { repeated, .. })
                if lock.settled == Recovery::Completed && repeated.len() == files.len() =>
            {
                None
            }
            Err(error) => return Err(failed(error)),
        };
        if plan.is_some() {
            options.selection.check_matched(ranks, watch).map_err(failed)?;
        }
        Ok(PlannedAppend { request: self.clone(), files, lock, plan })
    }

    /// Converts the error of an append; differences are reported with the file as the first input.
    fn error(&self, error: &MergeError, files: &[PathBuf]) -> Error {
        let all: Vec<PathBuf> = std::iter::once(&self.file).chain(files).cloned().collect();
        match error {
            MergeError::Differences { differences } => {
                let stacked = self.options(1).map_or(StackedScalars::No, |options| StackedScalars::of(&self.file, &options));
                Error::of_merge(error, &all).for_append(differences, stacked)
            }
            // The file records how its keys are made, so an append has no options for them.
            MergeError::KeyFaults { .. } => Error::of_merge(error, files).hint(
                "leave out the inputs with these rows, or merge all inputs into a new file with other ids or options of keys",
            ),
            // An append converts to the units of the file, whatever its inputs need.
            MergeError::Inexact { .. } if error.to_string().contains("; --") => {
                Error::of_merge(error, files).hint("merge all inputs into a new file with an option that the message names")
            }
            _ => Error::of_merge(error, files),
        }
    }
}

/// Planned append, which holds the lock of the file.
#[derive(Debug)]
pub struct PlannedAppend {
    request: AppendRequest,
    files: Vec<PathBuf>,
    lock: AppendLock,
    /// Plan; `None` if an interrupted append of the same inputs was completed.
    plan: Option<MergePlan>,
}

/// Numbers of rows that an append adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Growth {
    /// Number of datasets that get rows.
    pub grown_datasets: u64,
    /// Maximum number of rows that a dataset gets.
    pub most_rows: u64,
}

/// Summary of a planned append.
#[derive(Debug, Serialize)]
pub struct AppendSummary {
    /// Summary of the plan, with the file as the first of the inputs. No data is encoded on trial, so no cost is
    /// predicted.
    #[serde(flatten)]
    pub summary: Summary,
    /// Numbers of new rows.
    #[serde(flatten)]
    pub growth: Growth,
}

/// Finished append.
#[derive(Debug, Serialize)]
pub struct FinishedAppend {
    /// Report of the append.
    #[serde(flatten)]
    pub report: AppendReport,
    /// Files whose rows were appended.
    pub input_files: Vec<Input>,
}

impl PlannedAppend {
    /// Returns the plan; `None` if there is nothing to do, because an interrupted append of the same inputs was
    /// completed when the file was locked.
    pub fn plan(&self) -> Option<&MergePlan> {
        self.plan.as_ref()
    }

    /// Returns the numbers of rows that are added.
    pub fn growth(&self) -> Growth {
        let columns = self.plan.iter().flat_map(|plan| &plan.growth).flat_map(|growth| &growth.columns);
        let new_rows = columns.map(|column| column.new_rows).filter(|&rows| rows > 0);
        new_rows.fold(Growth::default(), |growth, rows| Growth {
            grown_datasets: growth.grown_datasets + 1,
            most_rows: growth.most_rows.max(rows),
        })
    }

    /// Summarises the plan as plain data; `None` if there is nothing to do.
    pub fn summary(&self) -> Option<AppendSummary> {
        let summary = Summary::of(self.plan()?, None);
        Some(AppendSummary { summary, growth: self.growth() })
    }

    /// Returns what happened to an interrupted append when the file was locked.
    pub fn recovery(&self) -> Recovery {
        self.lock.settled
    }

    /// Returns warnings about deviations from the request.
    pub fn warnings(&self) -> Vec<String> {
        let columns = self.plan.iter().flat_map(|plan| &plan.columns);
        let unfiltered = columns.filter(|column| column.skipped_filters != 0).count() as u64;
        let count = quantity::counted(unfiltered, "dataset");
        let warning = format!("{count} with filters that raddle does not write: new chunks are stored without them");
        (unfiltered > 0).then_some(warning).into_iter().collect()
    }

    /// Collective. Appends the rows. Returns the outcome on the first rank; `None` also if there was nothing to do.
    ///
    /// # Errors
    /// If an input changed or cannot be read, or the file cannot be written; it then has its old content.
    pub fn run(&self, context: &Context<'_>) -> Result<Option<FinishedAppend>, Error> {
        let Some(plan) = &self.plan else { return Ok(None) };
        let index = if context.leads() { usable_index(&self.request.file) } else { None };
        let appended = append_collective(plan, &self.lock, &context.watch, context.ranks);
        let report = appended.map_err(|error| self.request.error(&error, &self.files))?;
        if let Some(index) = index
            && let Err(error) = extend_index(&self.request.file, &index, plan.options.jobs, context)
        {
            context.warn(format!("the rows are appended, but the index is not up to date: {error}"));
        }
        Ok(report.map(|report| FinishedAppend { report, input_files: Input::of(plan).split_off(1) }))
    }
}

/// Returns the index of a file; `None` if there is none for the file's present state.
fn usable_index(file: &Path) -> Option<Index> {
    let file = OpenFile::open(file, Some(1)).ok()?;
    match Index::find(&file) {
        Ok(FoundIndex::Usable(index)) => Some(index),
        // It is not used for searches either, which warn about it.
        Ok(FoundIndex::Missing | FoundIndex::Stale) | Err(_) => None,
    }
}

/// Adds the limits of appended rows to the index of a file.
fn extend_index(file: &Path, index: &Index, threads: usize, context: &Context<'_>) -> Result<(), Error> {
    let open = OpenFile::open(file, Some(1)).map_err(|error| Error::of_file(&error))?;
    let extended = index.extended(&open, threads, context.watch.cancel);
    let written = extended.and_then(|extended| extended.write(&Index::default_path(file), file));
    written.map(drop).map_err(|error| Error::of_query(&error))
}
