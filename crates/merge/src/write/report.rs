//! The report of a merge. Nothing here writes.

use crate::plan::MergePlan;
use crate::plan::alignment::Alignment;
use crate::write::RootResult;
use crate::write::reading::ReadingReport;
use crate::write::regrouping::RegroupingReport;
use raddle_core::engine::{EngineReport, SharedIo};
use raddle_core::memory::MemoryBudget;
use raddle_core::report::progress::Stage;
use raddle_core::report::{InputDifference, MemoryReport, StageReport, StageTable};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// An input that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedInput {
    /// Path of the input, as specified by the caller.
    #[serde(serialize_with = "crate::path_text::of")]
    pub path: PathBuf,
    /// Reason why the input was skipped.
    pub reason: String,
}

/// Report of a merge.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MergeReport {
    /// Path of the output.
    #[serde(serialize_with = "crate::path_text::of")]
    pub output: PathBuf,
    /// Number of inputs.
    pub inputs: u64,
    /// Inputs that were skipped because they cannot be read (`--skip-bad`), with reasons.
    pub skipped: Vec<SkippedInput>,
    /// Differences between the inputs that the options bridge.
    pub differences: Vec<InputDifference>,
    /// Size of all input files in bytes.
    pub input_len_bytes: u64,
    /// Size of the output file in bytes.
    pub output_len_bytes: u64,
    /// Length of the parts of the output that are neither chunk data nor unused space between arenas.
    pub metadata_len_bytes: u64,
    /// Uncompressed length of the datasets.
    pub logical_len_bytes: u64,
    /// Number of datasets in the output, not counting scalar and null ones.
    pub datasets: u64,
    /// Number of virtual datasets and external links that refer to the inputs.
    pub linked: u64,
    /// Number of datasets without elements.
    pub empty_datasets: u64,
    /// Number of rows of the longest dataset.
    pub longest_rows: u64,
    /// Wall time of scan, plan and execution.
    pub elapsed_s: f64,
    /// Wall time of the scan.
    pub scan_s: f64,
    /// Number of tiles kept from an interrupted run.
    pub resumed_tiles: u64,
    /// Stored length of these tiles.
    pub resumed_len_bytes: u64,
    /// Arenas in which chunks were placed, if they were aligned.
    pub alignment: Option<Alignment>,
    /// Method by which ranks wrote chunks to shared files, if they did.
    pub shared_io: Option<SharedIo>,
    /// Report on reading, if several ranks read the inputs.
    pub reading: Option<ReadingReport>,
    /// Report on datasets whose chunks were assembled in groups, if there are any.
    pub regrouping: Option<RegroupingReport>,
    /// Report of the engine.
    pub engine: EngineReport,
    /// Times of stages outside the engine.
    pub stages: Vec<StageReport>,
    /// Memory use compared with the budget.
    pub memory: MemoryReport,
    /// Digest of all concatenated values; equal values have equal digests regardless of layout.
    pub digest: String,
}

impl MergeReport {
    /// Creates the report of a published output, of which all tiles were placed by the same run of one process. The wall
    /// time is that of the plan.
    pub(super) fn of_output(plan: &MergePlan, led: &RootResult, engine: EngineReport, budget: &MemoryBudget) -> Self {
        let columns = &plan.columns;
        let mut late_stages = StageTable::default();
        late_stages.get_mut(Stage::Commit).add(&led.commit);
        Self {
            output: plan.options.output.clone(),
            inputs: plan.inputs.len() as u64,
            skipped: skipped(plan),
            differences: bridged(plan),
            input_len_bytes: plan.input_len_bytes(),
            output_len_bytes: led.file_len_bytes,
            metadata_len_bytes: led.file_len_bytes.saturating_sub(engine.stored_len_bytes + engine.unused_len_bytes),
            logical_len_bytes: plan.logical_len_bytes(),
            datasets: columns.len() as u64,
            linked: plan.linked(),
            empty_datasets: columns.iter().filter(|column| column.dims.contains(&0)).count() as u64,
            longest_rows: columns.iter().filter_map(|column| column.dims.first().copied()).max().unwrap_or(0),
            elapsed_s: plan.elapsed_s,
            scan_s: plan.scan_s,
            resumed_tiles: 0,
            resumed_len_bytes: 0,
            stages: late_stages.reports(0),
            alignment: plan.alignment,
            shared_io: None,
            reading: None,
            regrouping: None,
            engine,
            memory: MemoryReport::of(budget),
            digest: format!("{:016x}", led.digests.whole()),
        }
    }
}

/// Returns the inputs that a plan skips.
pub(crate) fn skipped(plan: &MergePlan) -> Vec<SkippedInput> {
    let of = |bad: &crate::error::BadInput| SkippedInput { path: bad.path.clone(), reason: bad.error.to_string() };
    plan.skipped.iter().map(of).collect()
}

/// Returns the differences between inputs that a plan bridges.
pub fn bridged(plan: &MergePlan) -> Vec<InputDifference> {
    let inputs: Vec<&Path> = plan.inputs.iter().map(|input| input.path.as_path()).collect();
    plan.warnings.iter().map(|difference| difference.of_inputs(&inputs)).collect()
}
