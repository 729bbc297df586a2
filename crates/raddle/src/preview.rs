//! Previews of a merge's arrays: `raddle_merge` passes values on during a merge, `raddle_idx` picks samples and writes
//! them. They are connected here; neither depends on the other.

use crate::error::Error;
use crate::exit::Exit;
use crate::number::idx_number;
use crate::options::MergePreviewOptions;
use crate::text::quantity;
use raddle_core::plan::extent::{BoxSource, Extent};
use raddle_core::ranks::communicator::Communicator;
use raddle_core::report::progress::Watch;
use raddle_idx::preview::{
    Preview, PreviewCandidate, PreviewFolder, PreviewOptions, PreviewPlan, PreviewReport, is_worth,
};
use raddle_idx::{IdxError, IfExists, WriteOptions};
use raddle_merge::Link;
use raddle_merge::options::MergeOptions;
use raddle_merge::plan::MergePlan;
use raddle_merge::schema::{ColumnIndex, display_path};
use raddle_merge::{TileObserver, TileObserverError};
use std::sync::OnceLock;

/// Share of the memory budget that samples may use until the merge ends, as 1/N.
const SHARE_OF_MEMORY: u64 = 4;

/// The preview of a merge.
#[derive(Debug)]
pub struct MergePreview {
    preview: Preview,
    /// Number of each column's preview dataset, if it has one.
    dataset_of: Vec<Option<usize>>,
    /// Number of arrays that lack a preview only because their filter is unknown.
    undecodable: u64,
    /// Requested number of samples, if it had to be reduced.
    asked_samples: u64,
    jobs: usize,
    /// Folder of the preview, on the leading rank once it has begun.
    folder: Option<PreviewFolder>,
    report: OnceLock<PreviewReport>,
}

/// Converts an error for merges; errors of `raddle_core` keep their meaning.
fn passed_on(error: IdxError) -> TileObserverError {
    match error {
        IdxError::Core(error) => error.into(),
        error => error.into(),
    }
}

fn existing(options: &MergeOptions) -> IfExists {
    if options.force { IfExists::Replace } else { IfExists::Fail }
}

/// Refuses impossible previews before anything is read: for a merge that moves no values or not all of them, or in a
/// folder that is in use.
///
/// # Errors
/// If the preview is refused. The error gives the reason.
pub fn check(request: &MergePreviewOptions, options: &MergeOptions, is_part: bool) -> Result<(), Error> {
    request.check()?;
    let Some(folder) = request.folder(&options.output) else { return Ok(()) };
    if is_part {
        return Err(Error::usage("--preview cannot be used with --part: no part sees all values"));
    }
    if options.link != Link::No {
        return Err(Error::usage("--preview needs values that are copied: leave out --link"));
    }
    if folder == options.output {
        return Err(Error::usage("--preview names the output file; name a folder"));
    }
    PreviewFolder::check(&folder, &options.output, existing(options)).map_err(|error| Error::of_idx(&error))
}

impl MergePreview {
    /// Plans the preview for `plan`, if one is requested. Nothing is written or held in memory yet.
    ///
    /// # Errors
    /// If there is nothing to preview, or the preview exceeds the memory budget.
    pub fn of(request: &MergePreviewOptions, plan: &MergePlan) -> Result<Option<Self>, Error> {
        let Some(folder) = request.folder(&plan.options.output) else { return Ok(None) };
        let (mut candidates, mut dataset_of, mut undecodable) = (Vec::new(), Vec::new(), 0);
        for (column, (planned, scanned)) in (0..).zip(plan.columns.iter().zip(&plan.schema.columns)) {
            let is_tiled = planned.route.array().is_some();
            let number = idx_number(&scanned.model().datatype.class).filter(|_| is_tiled && is_worth(&planned.dims));
            undecodable += u64::from(number.is_some() && planned.is_undecodable());
            let number = number.filter(|_| !planned.is_undecodable());
            dataset_of.push(number.map(|_| candidates.len()));
            candidates.extend(number.map(|(number, is_big_endian)| {
                let path = display_path(plan.schema.column_path(column));
                PreviewCandidate { path, shape: planned.dims.clone(), number, is_big_endian }
            }));
        }
        if candidates.is_empty() {
            let what =
                "no dataset to preview: none has numbers along 2 to 5 axes, two of them with 32 elements or more";
            return Err(Error::new(Exit::InputRefused, what).hint("leave out --preview"));
        }
        let asked_samples = request.max_samples();
        let max_len_bytes = plan.options.memory_limit_bytes / SHARE_OF_MEMORY;
        let options = PreviewOptions { folder, max_samples: asked_samples, max_len_bytes };
        let preview_plan = PreviewPlan::new(&candidates, &options).map_err(|error| Error::of_idx(&error))?;
        let preview_plan = preview_plan.ok_or_else(|| {
            let (datasets, limit) =
                (quantity::counted(candidates.len() as u64, "dataset"), quantity::size(max_len_bytes));
            let what = format!("previews of {datasets} do not fit {limit}, a quarter of the memory");
            Error::new(Exit::Limit, &what).hint("raise --memory, or merge fewer datasets with --include or --exclude")
        })?;
        let (preview, jobs, report) = (Preview::new(preview_plan), plan.options.jobs, OnceLock::new());
        Ok(Some(Self { preview, dataset_of, undecodable, asked_samples, jobs, folder: None, report }))
    }

    /// Returns the plan of the preview.
    pub fn plan(&self) -> &PreviewPlan {
        self.preview.plan()
    }

    /// Returns warnings about deviations from the request.
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

    /// Locks the folder, on the leading rank.
    ///
    /// # Errors
    /// If the folder is in use or not writable.
    pub fn begin(&mut self, options: &MergeOptions) -> Result<(), Error> {
        let begun = PreviewFolder::begin(&self.plan().folder, &options.output, existing(options));
        self.folder = Some(begun.map_err(|error| Error::of_idx(&error))?);
        Ok(())
    }

    /// Returns the report of a finished preview, on the leading rank.
    pub fn into_report(self) -> Option<PreviewReport> {
        self.report.into_inner()
    }

    fn dataset(&self, column: ColumnIndex) -> Option<usize> {
        *self.dataset_of.get(column as usize)?
    }

    /// Performs an operation on the folder; does nothing on other ranks.
    fn on_folder(&self, act: impl FnOnce(&PreviewFolder) -> raddle_idx::Result<()>) -> Result<(), TileObserverError> {
        self.folder.as_ref().map_or(Ok(()), act).map_err(passed_on)
    }
}

impl TileObserver for MergePreview {
    fn len_bytes(&self) -> u64 {
        self.plan().len_bytes()
    }

    fn wants(&self, column: ColumnIndex, extent: &Extent) -> bool {
        self.dataset(column).is_some_and(|dataset| self.preview.wants(dataset, extent))
    }

    fn take(&self, column: ColumnIndex, extent: &Extent, values: BoxSource<'_>) -> Result<(), TileObserverError> {
        let Some(dataset) = self.dataset(column) else { return Ok(()) };
        self.preview.take(dataset, extent, values).map_err(passed_on)
    }

    fn take_canonical(&self, _: ColumnIndex, _: u64, _: &[u8]) -> Result<(), TileObserverError> {
        // No preview has values of variable length.
        Ok(())
    }

    fn gather(&self, ranks: &dyn Communicator) -> Result<(), TileObserverError> {
        self.preview.gather(ranks).map_err(passed_on)
    }

    fn complete(&self, memory_limit_bytes: u64, watch: &Watch<'_>) -> Result<(), TileObserverError> {
        let options = WriteOptions { jobs: self.jobs, memory_limit_bytes, ..WriteOptions::default() };
        self.on_folder(|folder| {
            let report = self.preview.complete(folder, &options, watch)?;
            // Completion happens only once.
            let _ = self.report.set(report);
            Ok(())
        })
    }

    fn withdraw(&self) -> Result<(), TileObserverError> {
        self.on_folder(PreviewFolder::withdraw)
    }

    fn publish(&self) -> Result<(), TileObserverError> {
        self.on_folder(PreviewFolder::publish)
    }
}
