//! Executing a plan: the engine makes the tiles, this thread makes the objects, and the file gets its name at the end.
//!
//! Invariant: nothing appears under the output's name unless every tile was placed, every object was created, and no
//! input changed meanwhile.

use crate::commit::Committer;
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::publish::Publication;
use crate::tiles::MergeWork;
use crate::values::open_pool;
use raddle_core::communicator::SingleProcess;
use raddle_core::engine::{Context, EngineOptions, EngineReport, Placement, execute};
use raddle_core::memory::MemoryBudget;
use raddle_core::progress::{Event, Stage};
use raddle_core::report::{MemoryReport, StageReport, StageTable, StageTimer};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// An input that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedInput {
    /// Path as given.
    pub path: PathBuf,
    /// Why, in words.
    pub reason: String,
}

/// What a merge did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MergeReport {
    /// Output path.
    pub output: PathBuf,
    /// Number of inputs.
    pub inputs: u64,
    /// Inputs left out because they cannot be read (`--skip-bad`), and why.
    pub skipped: Vec<SkippedInput>,
    /// Bytes of all input files.
    pub input_len_bytes: u64,
    /// Bytes of the output file.
    pub output_len_bytes: u64,
    /// Bytes of the output that are not chunk data.
    pub metadata_len_bytes: u64,
    /// Uncompressed bytes of the datasets.
    pub logical_len_bytes: u64,
    /// Datasets in the output, those of scalar and null kind not counted.
    pub datasets: u64,
    /// Datasets without an element.
    pub empty_datasets: u64,
    /// Rows of the longest dataset.
    pub longest_rows: u64,
    /// Wall time of scan, plan and execution.
    pub elapsed_s: f64,
    /// Wall time of the scan.
    pub scan_s: f64,
    /// What the engine did.
    pub engine: EngineReport,
    /// Stages outside of the engine.
    pub stages: Vec<StageReport>,
    /// Memory against its budget.
    pub memory: MemoryReport,
    /// Digest of all concatenated values; equal values have equal digests whatever the layout.
    pub digest: String,
}

/// Executes `plan` and publishes the output.
///
/// # Errors
/// Any error leaves the output's name untouched and removes what was written.
pub fn merge(plan: &MergePlan, watch: &Watch<'_>) -> Result<MergeReport> {
    let started = std::time::Instant::now();
    let options = &plan.options;
    let inputs: Vec<PathBuf> = plan.inputs.iter().map(|input| input.path.clone()).collect();
    let publication = Publication::begin(&options.output, &inputs, options.force)?;
    let budget = Arc::new(MemoryBudget::new(options.memory_limit_bytes));
    let pool = open_pool(plan);
    let work = MergeWork::new(plan, &pool);
    let mut committer = Committer::create(plan, publication.temporary(), &work)?;
    let sink = std::fs::OpenOptions::new().write(true).open(publication.temporary()).map_err(|source| {
        MergeError::Write { path: publication.temporary().to_path_buf(), operation: "open", source }
    })?;
    let engine_options = EngineOptions {
        jobs: options.jobs,
        placement: if options.ordered { Placement::Ordered } else { Placement::Unordered },
        start_address: committer.raw_start(),
        ..EngineOptions::default()
    };
    let context =
        Context { communicator: &SingleProcess, budget: &budget, observer: watch.observer, cancel: watch.cancel };
    let engine = execute(
        &plan.tiles,
        &work,
        &sink,
        &mut |committed| committer.commit(committed.array, committed.claims),
        &engine_options,
        &context,
    )
    .map_err(|error| MergeError::from_engine(error, publication.temporary()))?;
    watch.observer.event(&Event::StageStarted { stage: Stage::Commit, total_bytes: None });
    let digests = work.finish()?;
    let commit_timer = StageTimer::start();
    let written = committer.finish(engine.end_address, &digests)?;
    let commit_totals = commit_timer.totals(0, 1);
    let commit_s = commit_timer.elapsed_s();
    for input in 0..plan.inputs.len() as u32 {
        pool.get(input)?.check_unchanged()?;
    }
    if watch.cancel.is_cancelled() {
        return Err(MergeError::Cancelled);
    }
    publication.publish()?;
    watch.observer.event(&Event::StageFinished { stage: Stage::Commit, elapsed_s: commit_s });
    let columns = &plan.columns;
    let mut late_stages = StageTable::default();
    late_stages.get_mut(Stage::Commit).add(&commit_totals);
    Ok(MergeReport {
        output: options.output.clone(),
        inputs: plan.inputs.len() as u64,
        skipped: plan
            .skipped
            .iter()
            .map(|bad| SkippedInput { path: bad.path.clone(), reason: bad.error.to_string() })
            .collect(),
        input_len_bytes: plan.input_len_bytes(),
        output_len_bytes: written.file_len_bytes,
        metadata_len_bytes: written.file_len_bytes.saturating_sub(engine.stored_len_bytes),
        logical_len_bytes: plan.logical_len_bytes(),
        datasets: columns.len() as u64,
        empty_datasets: columns.iter().filter(|column| column.dims.contains(&0)).count() as u64,
        longest_rows: columns.iter().filter_map(|column| column.dims.first().copied()).max().unwrap_or(0),
        elapsed_s: plan.elapsed_s + started.elapsed().as_secs_f64(),
        scan_s: plan.scan_s,
        stages: late_stages.reports(0),
        engine,
        memory: MemoryReport::of(&budget),
        digest: format!("{:016x}", digests.whole()),
    })
}
