//! Previews of a merge's arrays: `raddle_merge` shows values as they pass, `raddle_idx` picks samples and writes them. They are
//! joined here; neither knows the other.

use crate::arrays::number_of;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::preview::PreviewArgs;
use crate::render::quantity;
use raddle_core::communicator::Communicator;
use raddle_core::extent::{BoxSource, Extent};
use raddle_core::progress::Watch;
use raddle_idx::preview::{Candidate, Preview, PreviewFolder, PreviewOptions, PreviewPlan, PreviewReport, is_worth};
use raddle_idx::{Existing, IdxError, WriteOptions};
use raddle_merge::execute::MergeReport;
use raddle_merge::links::Link;
use raddle_merge::options::MergeOptions;
use raddle_merge::plan::MergePlan;
use raddle_merge::schema::{ColumnIndex, display_path};
use raddle_merge::{Companion, CompanionError};
use std::sync::OnceLock;

/// Share of the memory budget that samples may take until the merge ends.
const SHARE_OF_MEMORY: u64 = 4;

/// The preview of a merge.
#[derive(Debug)]
pub struct MergePreview {
    preview: Preview,
    /// Number of each column's dataset, if it has one.
    dataset_of: Vec<Option<usize>>,
    /// Arrays that would have one if their filter were known.
    undecodable: u64,
    /// Samples asked for, of which all could not be had.
    asked_samples: u64,
    jobs: usize,
    /// On the rank that leads, when it has begun.
    folder: Option<PreviewFolder>,
    report: OnceLock<PreviewReport>,
}

/// An error as merges take it: what `raddle_core` says keeps its meaning there.
fn passed_on(error: IdxError) -> CompanionError {
    match error {
        IdxError::Core(error) => error.into(),
        error => error.into(),
    }
}

fn existing(options: &MergeOptions) -> Existing {
    if options.force { Existing::Replace } else { Existing::Refuse }
}

/// Refuses what cannot be, before anything is read: a preview of a merge that moves no values or not all, or a folder that is
/// taken.
///
/// # Errors
/// As said.
pub fn check(arguments: &PreviewArgs, options: &MergeOptions, is_part: bool) -> Result<(), Failure> {
    let Some(folder) = arguments.folder(&options.output) else { return Ok(()) };
    if is_part {
        return Err(Failure::usage("--preview is not for parts: none of them sees all values; leave out --part"));
    }
    if options.link != Link::No {
        return Err(Failure::usage("--preview is of values that are copied: leave out --link"));
    }
    if folder == options.output {
        return Err(Failure::usage("--preview names the output; name a folder"));
    }
    PreviewFolder::check(&folder, &options.output, existing(options)).map_err(|error| Failure::of_idx(&error))
}

impl MergePreview {
    /// The preview of what `plan` makes, if one is asked for. Nothing is written or held yet.
    ///
    /// # Errors
    /// If there is nothing to make one of, or it cannot be within the memory.
    pub fn of(arguments: &PreviewArgs, plan: &MergePlan) -> Result<Option<Self>, Failure> {
        let Some(folder) = arguments.folder(&plan.options.output) else { return Ok(None) };
        let (mut candidates, mut dataset_of, mut undecodable) = (Vec::new(), Vec::new(), 0);
        for (column, (planned, scanned)) in (0..).zip(plan.columns.iter().zip(&plan.schema.columns)) {
            let is_tiled = planned.route.array().is_some();
            let number = number_of(&scanned.model().datatype.class).filter(|_| is_tiled && is_worth(&planned.dims));
            undecodable += u64::from(number.is_some() && planned.is_undecodable());
            let number = number.filter(|_| !planned.is_undecodable());
            dataset_of.push(number.map(|_| candidates.len()));
            candidates.extend(number.map(|(number, is_big_endian)| {
                let path = display_path(plan.schema.column_path(column));
                Candidate { path, shape: planned.dims.clone(), number, is_big_endian }
            }));
        }
        if candidates.is_empty() {
            let what = "no dataset to make a preview of: none has numbers along 2 to 5 axes, two of them with 32 elements or more";
            return Err(Failure::new(Exit::InputRefused, what).hint("leave out --preview"));
        }
        let asked_samples = arguments.max_samples();
        let max_len_bytes = plan.options.memory_limit_bytes / SHARE_OF_MEMORY;
        let options = PreviewOptions { folder, max_samples: asked_samples, max_len_bytes };
        let made = PreviewPlan::new(&candidates, &options).map_err(|error| Failure::of_idx(&error))?;
        let made = made.ok_or_else(|| {
            let (datasets, limit) =
                (quantity::counted(candidates.len() as u64, "dataset"), quantity::size(max_len_bytes));
            let what = format!("previews of {datasets} do not fit {limit}, a quarter of the memory");
            Failure::new(Exit::Limit, &what).hint("raise --memory, or merge fewer datasets with --include or --exclude")
        })?;
        let (preview, jobs, report) = (Preview::new(made), plan.options.jobs, OnceLock::new());
        Ok(Some(Self { preview, dataset_of, undecodable, asked_samples, jobs, folder: None, report }))
    }

    /// What it is to be.
    pub fn plan(&self) -> &PreviewPlan {
        self.preview.plan()
    }

    /// What is not as it was asked for, in words.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let max_samples = self.plan().max_samples;
        if max_samples < self.asked_samples {
            let samples = quantity::count(max_samples);
            warnings.push(format!("previews have at most {samples} samples each: all must fit a quarter of --memory"));
        }
        if self.undecodable > 0 {
            let datasets = quantity::counted(self.undecodable, "dataset");
            warnings.push(format!("no preview of {datasets}: a filter is unknown"));
        }
        warnings
    }

    /// Takes the right to write it. On the rank that leads.
    ///
    /// # Errors
    /// If the folder is taken or cannot be written to.
    pub fn begin(&mut self, options: &MergeOptions) -> Result<(), Failure> {
        let begun = PreviewFolder::begin(&self.plan().folder, &options.output, existing(options));
        self.folder = Some(begun.map_err(|error| Failure::of_idx(&error))?);
        Ok(())
    }

    /// What it became, on the rank that leads.
    fn report(&self) -> Option<&PreviewReport> {
        self.report.get()
    }

    fn dataset(&self, column: ColumnIndex) -> Option<usize> {
        *self.dataset_of.get(column as usize)?
    }

    /// Does something with the folder; nothing on other ranks.
    fn on_folder(&self, act: impl FnOnce(&PreviewFolder) -> raddle_idx::Result<()>) -> Result<(), CompanionError> {
        self.folder.as_ref().map_or(Ok(()), act).map_err(passed_on)
    }
}

/// What a merge did, and what it made beside its output.
#[derive(Debug, serde::Serialize)]
pub struct Accompanied<'a> {
    #[serde(flatten)]
    report: &'a MergeReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<&'a PreviewReport>,
}

impl<'a> Accompanied<'a> {
    /// `report`, and that of `preview` if there is one.
    pub fn new(report: &'a MergeReport, preview: Option<&'a MergePreview>) -> Self {
        Self { report, preview: preview.and_then(MergePreview::report) }
    }

    /// What became of the preview.
    pub fn preview(&self) -> Option<&'a PreviewReport> {
        self.preview
    }
}

impl Companion for MergePreview {
    fn len_bytes(&self) -> u64 {
        self.plan().len_bytes()
    }

    fn wants(&self, column: ColumnIndex, extent: &Extent) -> bool {
        self.dataset(column).is_some_and(|dataset| self.preview.wants(dataset, extent))
    }

    fn take(&self, column: ColumnIndex, extent: &Extent, values: BoxSource<'_>) -> Result<(), CompanionError> {
        let Some(dataset) = self.dataset(column) else { return Ok(()) };
        self.preview.take(dataset, extent, values).map_err(passed_on)
    }

    fn bring(&self, ranks: &dyn Communicator) -> Result<(), CompanionError> {
        self.preview.bring(ranks).map_err(passed_on)
    }

    fn complete(&self, memory_limit_bytes: u64, watch: &Watch<'_>) -> Result<(), CompanionError> {
        let options = WriteOptions { jobs: self.jobs, memory_limit_bytes, ..WriteOptions::default() };
        self.on_folder(|folder| {
            let report = self.preview.complete(folder, &options, watch)?;
            // It is completed once.
            let _ = self.report.set(report);
            Ok(())
        })
    }

    fn withdraw(&self) -> Result<(), CompanionError> {
        self.on_folder(PreviewFolder::withdraw)
    }

    fn publish(&self) -> Result<(), CompanionError> {
        self.on_folder(PreviewFolder::publish)
    }
}
