//! Executing a plan: the engine makes the tiles, this thread makes the objects, and the file gets its name at the end.
//!
//! Invariant: nothing appears under the output's name unless every tile was placed, every object was created, and no
//! input changed meanwhile.

use crate::commit::{Committer, output_options};
use crate::digests::Digests;
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::publish::Publication;
use crate::resume::{self, RunJournal};
use crate::tiles::MergeWork;
use crate::values::open_pool;
use raddle_core::communicator::SingleProcess;
use raddle_core::engine::{Context, EngineOptions, EngineReport, Kept, Placement, execute_recorded};
use raddle_core::memory::MemoryBudget;
use raddle_core::progress::{Event, Stage};
use raddle_core::report::{MemoryReport, StageReport, StageTable, StageTimer, StageTotals};
use raddle_hdf5::write::{OutputOptions, WrittenFile};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};
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
    /// Virtual datasets and external links that lead to the inputs.
    pub linked: u64,
    /// Datasets without an element.
    pub empty_datasets: u64,
    /// Rows of the longest dataset.
    pub longest_rows: u64,
    /// Wall time of scan, plan and execution.
    pub elapsed_s: f64,
    /// Wall time of the scan.
    pub scan_s: f64,
    /// Tiles kept of an interrupted run.
    pub resumed_tiles: u64,
    /// Their stored bytes.
    pub resumed_len_bytes: u64,
    /// What the engine did.
    pub engine: EngineReport,
    /// Stages outside of the engine.
    pub stages: Vec<StageReport>,
    /// Memory against its budget.
    pub memory: MemoryReport,
    /// Digest of all concatenated values; equal values have equal digests whatever the layout.
    pub digest: String,
}

/// Inputs that a plan leaves out.
pub(crate) fn skipped(plan: &MergePlan) -> Vec<SkippedInput> {
    let of = |bad: &crate::error::BadInput| SkippedInput { path: bad.path.clone(), reason: bad.error.to_string() };
    plan.skipped.iter().map(of).collect()
}

/// Gives the file at `temporary` the permissions of `output`, which it replaces.
fn keep_permissions(output: &Path, temporary: &Path) -> Result<()> {
    let permissions = std::fs::metadata(output).map(|metadata| metadata.permissions());
    permissions
        .and_then(|permissions| std::fs::set_permissions(temporary, permissions))
        .map_err(|source| MergeError::Write { path: temporary.to_path_buf(), operation: "set the permissions", source })
}

/// Executes `plan` and publishes the output; goes on from what an interrupted run of the same plan left.
///
/// # Errors
/// Any error leaves the output's name untouched. [`MergeError::Resumable`] tells of what is kept for the next run;
/// after any other nothing is left of this one.
pub fn merge(plan: &MergePlan, watch: &Watch<'_>) -> Result<MergeReport> {
    let options = &plan.options;
    let inputs: Vec<PathBuf> = plan.inputs.iter().map(|input| input.path.clone()).collect();
    let others = if options.in_place { &[] } else { inputs.as_slice() };
    let publication = Publication::begin(&options.output, others, options.force)?;
    let mut recorded = None;
    make(plan, watch, &publication, &mut recorded).map_err(|source| {
        let is_worth = match recorded {
            Some(Kept { tiles, .. }) => tiles > 0 && publication.temporary().exists(),
            // Stopped while what an earlier run had left was looked at.
            None => options.ordered && options.resume && publication.journal().exists(),
        };
        if !is_worth || !source.is_resumable() {
            return source;
        }
        let path = publication.temporary().to_path_buf();
        publication.keep();
        MergeError::Resumable { source: Box::new(source), path, kept: recorded.unwrap_or_default() }
    })
}

/// Makes the output under its temporary name and publishes it. `recorded` tells, also after an error, what a later run
/// can go on from.
fn make(
    plan: &MergePlan,
    watch: &Watch<'_>,
    publication: &Publication,
    recorded: &mut Option<Kept>,
) -> Result<MergeReport> {
    let started = std::time::Instant::now();
    let budget = Arc::new(MemoryBudget::new(plan.options.memory_limit_bytes));
    let pool = open_pool(plan);
    let work = MergeWork::new(plan, &pool);
    let output_options = output_options(plan);
    // Too long a region is refused when the output is created.
    let raw_start = output_options.raw_start().unwrap_or(0);
    let resume::Begun { temporary, mut journal, samples } =
        resume::begin(plan, &pool, &work, raw_start, publication, *watch)?;
    let resumed = journal.recorded();
    let (path, options) = (publication.temporary(), &output_options);
    let target = Target { temporary, path, options, journal: &mut journal, samples: &samples };
    let written = write(plan, &work, target, &budget, watch);
    *recorded = Some(journal.recorded());
    let Written { engine, file, digests, commit } = written?;
    for input in 0..plan.inputs.len() as u32 {
        pool.get(input)?.check_unchanged()?;
    }
    watch.cancel.check()?;
    if plan.options.in_place {
        keep_permissions(&plan.options.output, publication.temporary())?;
    }
    publication.publish()?;
    let columns = &plan.columns;
    let mut late_stages = StageTable::default();
    late_stages.get_mut(Stage::Commit).add(&commit);
    Ok(MergeReport {
        output: plan.options.output.clone(),
        inputs: plan.inputs.len() as u64,
        skipped: skipped(plan),
        input_len_bytes: plan.input_len_bytes(),
        output_len_bytes: file.file_len_bytes,
        metadata_len_bytes: file.file_len_bytes.saturating_sub(engine.stored_len_bytes),
        logical_len_bytes: plan.logical_len_bytes(),
        datasets: columns.len() as u64,
        linked: plan.linked(),
        empty_datasets: columns.iter().filter(|column| column.dims.contains(&0)).count() as u64,
        longest_rows: columns.iter().filter_map(|column| column.dims.first().copied()).max().unwrap_or(0),
        elapsed_s: plan.elapsed_s + started.elapsed().as_secs_f64(),
        scan_s: plan.scan_s,
        resumed_tiles: resumed.tiles,
        resumed_len_bytes: resumed.stored_len_bytes,
        stages: late_stages.reports(0),
        engine,
        memory: MemoryReport::of(&budget),
        digest: format!("{:016x}", digests.whole()),
    })
}

/// An output that is complete but for its name.
struct Written {
    engine: EngineReport,
    file: WrittenFile,
    digests: Digests,
    commit: StageTotals,
}

/// What is written to and recorded.
struct Target<'a, 'j> {
    temporary: File,
    path: &'a Path,
    options: &'a OutputOptions,
    journal: &'a mut RunJournal<'j>,
    samples: &'a [u64],
}

/// Makes the tiles and the objects.
fn write(
    plan: &MergePlan,
    work: &MergeWork<'_>,
    target: Target<'_, '_>,
    budget: &MemoryBudget,
    watch: &Watch<'_>,
) -> Result<Written> {
    let Target { temporary, path, options, journal, samples } = target;
    let sink = temporary.try_clone().map_err(|source| MergeError::Write {
        path: path.to_path_buf(),
        operation: "open",
        source,
    })?;
    let mut committer = Committer::create(plan, temporary, path, options, work, watch.cancel)?;
    let engine_options = EngineOptions {
        jobs: plan.options.jobs,
        placement: if plan.options.ordered { Placement::Ordered } else { Placement::Unordered },
        start_address: committer.raw_start(),
        ..EngineOptions::default()
    };
    let context = Context { communicator: &SingleProcess, budget, observer: watch.observer, cancel: watch.cancel };
    let engine = execute_recorded(
        &plan.tiles,
        work,
        &sink,
        &mut |committed| committer.commit(committed.array, committed.claims),
        journal,
        &engine_options,
        &context,
    )
    .map_err(|error| MergeError::from_engine(error, path))?;
    watch.observer.event(&Event::StageStarted { stage: Stage::Commit, total_bytes: None });
    let mut digests = work.finish()?;
    let timer = StageTimer::start();
    let file = committer.finish(engine.end_address, &mut digests, samples)?;
    let (commit, elapsed_s) = (timer.totals(0, 1), timer.elapsed_s());
    watch.observer.event(&Event::StageFinished { stage: Stage::Commit, elapsed_s });
    Ok(Written { engine, file, digests, commit })
}
