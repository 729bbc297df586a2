//! Appending of inputs to an existing file, in place and atomically.
//!
//! The file is the first input of a merge, and its rows stay in place. New chunks are written after the old end of the
//! file; then libhdf5 changes the metadata in memory, without touching the file; finally the changes are written to a
//! [`redo`] log and from there to the file. Invariant: whenever the process ends, the file is the old or the new one,
//! or becomes the new one when raddle opens it next.

mod column;
pub(crate) mod growth;
pub mod redo;
mod repeated;

use crate::conventions::Choice;
use crate::error::{MergeError, Result};
use crate::inputs::same_file;
use crate::options::{MergeOptions, Watch};
use crate::plan::Growth;
use crate::plan::dataset_specs::column_spec;
use crate::plan::layout::LayoutPolicy;
use crate::plan::{MergePlan, OutputState, Route, plan_from};
use crate::schema::join::{Join, ScalarPolicy};
use crate::schema::{SchemaEntry, display_path};
use crate::verify::digests::blocks::InOrder;
use crate::verify::digests::column::DigestForm;
use crate::verify::digests::known_rows::{RowsDigest, canonical_runs};
use crate::verify::digests::of_inputs;
use crate::verify::digests::stored;
use crate::verify::digests::structure::{check_structure, not_as_written, structure_digests_with};
use crate::verify::digests::{ColumnDigests, Digests, StoredDigests};
use crate::verify::provenance::{gather, provenance_path};
use crate::verify::record::StoredRecord;
use crate::verify::remembered::{self, OnConflict};
use crate::write::commit::write_provenance;
use crate::write::other_programs::{lock_out_readers, lock_out_writers};
use crate::write::ranks::share;
use crate::write::resume::sample;
use crate::write::tiles::MergeWork;
use crate::write::values::open_pool;
use raddle_core::CoreError;
use raddle_core::engine::{Claim, Context, EngineOptions, EngineReport, Execution, PlacedArray, Placement};
use raddle_core::memory::MemoryBudget;
use raddle_core::output::OutputLock;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::report::progress::{Event, Stage};
use raddle_core::report::{InputDifference, MemoryReport, StageTimer};
use raddle_hdf5::source::InputFile;
use raddle_hdf5::write::{EditedFile, OutputFile};
use redo::{Recovery, Redo};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Operation named in errors on other ranks.
const APPENDING: &str = "append to the file";
/// New chunks begin on a page boundary, so that large writes are aligned.
const ALIGNMENT_BYTES: u64 = 4096;
/// How long to wait for programs that have the file open before its metadata is changed.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The exclusive right to append to a file, and the state in which it was found.
#[derive(Debug)]
pub struct AppendLock {
    /// Path of the file itself, with symbolic links resolved.
    pub path: PathBuf,
    /// Outcome of settling an interrupted append.
    pub settled: Recovery,
    file: File,
    /// Lock on the file; only the first rank holds it.
    _lock: Option<OutputLock>,
}

/// Report of an append.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AppendReport {
    /// Path of the file.
    #[serde(serialize_with = "crate::path_text::of")]
    pub output: PathBuf,
    /// Number of inputs appended.
    pub inputs: u64,
    /// Inputs that were skipped because they cannot be read (`--skip-bad`).
    pub skipped: Vec<crate::write::SkippedInput>,
    /// Differences from the file that the options bridge; the file counts as the first input.
    pub differences: Vec<InputDifference>,
    /// Size of all input files in bytes.
    pub input_len_bytes: u64,
    /// Size of the file before the append.
    pub old_len_bytes: u64,
    /// Size of the file after the append.
    pub output_len_bytes: u64,
    /// Number of datasets that grew.
    pub grown_datasets: u64,
    /// Largest number of rows appended to a dataset.
    pub most_rows: u64,
    /// Length of metadata that changed in place.
    pub changed_len_bytes: u64,
    /// Wall time of scan, plan and execution.
    pub elapsed_s: f64,
    /// Report of the engine.
    pub engine: EngineReport,
    /// Memory use compared with the budget.
    pub memory: MemoryReport,
}

/// Locks the file at `path` for an append, and completes or discards an interrupted one.
///
/// # Errors
/// [`MergeError::Locked`] if another process is writing it, [`MergeError::Output`] if it cannot be written.
pub fn open_for_append(path: &Path) -> Result<AppendLock> {
    let canonical_path =
        std::fs::canonicalize(path).map_err(|source| MergeError::Input { path: path.to_path_buf(), source })?;
    let refuse = |reason: &str| Err(MergeError::Output { path: path.to_path_buf(), reason: reason.to_owned() });
    if !canonical_path.is_file() {
        return refuse("is not a regular file; name the HDF5 file to append to");
    }
    let lock = Some(OutputLock::take(&canonical_path)?);
    let file = open(&canonical_path)?;
    let settled = redo::settle_locked(&canonical_path)?;
    // Programs that only read may continue until the end.
    lock_out_writers(&file, &canonical_path)?;
    Ok(AppendLock { path: canonical_path, settled, file, _lock: lock })
}

fn open(path: &Path) -> Result<File> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map_err(|source| MergeError::Write { path: path.to_path_buf(), operation: "open for writing", source })
}

/// Collective. Like [`open_for_append`]: the first of the `ranks` locks the file for all.
///
/// # Errors
/// As for [`open_for_append`], on every rank.
pub fn open_for_append_collective(path: &Path, ranks: &dyn Communicator) -> Result<AppendLock> {
    const OPERATION: &str = "lock the file";
    let lock = (ranks.rank() == 0).then(|| open_for_append(path)).transpose();
    let lock = ranks.agree(OPERATION, lock)?;
    let code = lock.as_ref().map_or(0, |lock| lock.settled.code());
    let settled = Recovery::of_code(ranks.all_gather_u64(code)?[0]);
    let of_others = || {
        let canonical_path =
            std::fs::canonicalize(path).map_err(|source| MergeError::Input { path: path.to_path_buf(), source })?;
        Ok(AppendLock { file: open(&canonical_path)?, path: canonical_path, settled, _lock: None })
    };
    let lock = lock.map_or_else(of_others, Ok);
    ranks.agree(OPERATION, lock)
}

/// Plans to append `inputs` to the file that `lock` locks. `again` allows inputs that are already in the file.
///
/// # Errors
/// As for [`crate::plan::plan`]; also [`MergeError::Repeated`], and [`MergeError::Object`] for a dataset that cannot
/// grow.
pub fn plan(
    lock: &AppendLock,
    inputs: &[PathBuf],
    again: bool,
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<MergePlan> {
    plan_collective(lock, inputs, again, options, watch, &SingleProcess)
}

/// Collective. Like [`plan`], with each input scanned by one of the `ranks`.
///
/// # Errors
/// As for [`plan`], on every rank.
pub fn plan_collective(
    lock: &AppendLock,
    inputs: &[PathBuf],
    again: bool,
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<MergePlan> {
    if let Some(input) = inputs.iter().find(|input| same_file(input, &lock.path)) {
        let reason = format!("is also an input ({}); leave it out", input.display());
        return Err(MergeError::Output { path: lock.path.clone(), reason });
    }
    let stored = ranks.agree(APPENDING, stored::find(&lock.path, options))?;
    if let Some(stored) = &stored {
        let repeated = if again { Vec::new() } else { repeated::repeated(stored, inputs, ranks)? };
        if !repeated.is_empty() {
            return Err(MergeError::Repeated { file: lock.path.clone(), repeated });
        }
    }
    let options = MergeOptions {
        output: lock.path.clone(),
        layout: LayoutPolicy::Keep,
        chunk: None,
        provenance: stored.is_some(),
        derived: stored.as_ref().map_or_else(Vec::new, |stored| stored.derived.clone()),
        ordered: true,
        resume: false,
        ..ranks.agree(APPENDING, recall(stored.as_ref(), options, lock))?
    };
    let all: Vec<PathBuf> = std::iter::once(&lock.path).chain(inputs).cloned().collect();
    let mut plan = plan_from(&all, OutputState::Grows(stored), &options, watch, ranks)?;
    if let Some(file) = plan.skipped.iter().position(|bad| bad.path == lock.path) {
        // Unreadable inputs may be skipped, but not the file that they are appended to.
        return Err(MergeError::BadInputs { bad: vec![plan.skipped.swap_remove(file)] });
    }
    if plan.inputs.len() == 1 && !plan.skipped.is_empty() {
        // Nothing remains to be appended.
        return Err(MergeError::BadInputs { bad: plan.skipped });
    }
    if plan.convention == Some(Choice::Anndata) {
        let reason =
            "is an AnnData file, whose categories, names and shapes depend on all inputs; merge all inputs again";
        return Err(MergeError::Output { path: lock.path.clone(), reason: reason.to_owned() });
    }
    let counts_rows = |entry: &&SchemaEntry| entry.attributes.iter().any(|attribute| attribute.name == b"NROWS");
    if plan.convention == Some(Choice::Pandas)
        && let Some(table) = plan.schema.entries.iter().find(counts_rows)
    {
        let reason =
            "keeps its number of rows in an attribute, which an append does not change; merge all inputs again";
        return Err(MergeError::Object { object: display_path(&table.path), reason: reason.to_owned() });
    }
    if let Some(growth) = &plan.growth {
        growth.check(&plan)?;
        if let Some(stored) = &growth.stored {
            let old_rows = |column: u32| growth.columns[column as usize].old_rows;
            check_structure(&plan, stored, structure_digests_with(&plan, &old_rows))?;
        }
    }
    Ok(plan)
}

/// Scalars of a file that have a value for each of its inputs (`--scalars stack`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackedScalars {
    /// Scalars are not stacked.
    No,
    /// Datasets, which grow.
    Growing,
    /// Variables along a dimension that inputs lack, so that they cannot grow: those of netCDF.
    Fixed,
}

impl StackedScalars {
    /// Returns how the records of the file at `path` state that differing scalars are stacked.
    pub fn of(path: &Path, options: &MergeOptions) -> Self {
        let remembered = stored::records_of(path, options).ok().and_then(|records| records.remembered);
        match remembered.filter(|remembered| remembered.options.scalars == ScalarPolicy::Stack) {
            Some(StoredRecord { convention: Some(Choice::Cf), .. }) => Self::Fixed,
            Some(_) => Self::Growing,
            None => Self::No,
        }
    }
}

/// Completes `options` with the records of the file, and exempts the file from the selection.
fn recall(stored: Option<&StoredDigests>, options: &MergeOptions, lock: &AppendLock) -> Result<MergeOptions> {
    let mut recalled = remembered::recall(stored, options, OnConflict::Refuse)?;
    if recalled.join.join == Join::Union {
        // Rows are added to the datasets of all inputs.
        recalled.join.join = Join::Exact;
        recalled.join.united = recalled.join.united.or_else(|| Some(stored?.inputs.len() as u32));
    }
    if let Some(name) = &recalled.conventions.new_dim {
        let reason = format!(
            "was stacked along a new dimension (--new-dim {name}), which the inputs lack; merge all inputs again"
        );
        return Err(MergeError::Object { object: lock.path.display().to_string(), reason });
    }
    if recalled.conventions.tiles.is_some() {
        let reason =
            "was joined from tiles (--tiles), to which no rows can be added; merge all inputs again".to_owned();
        return Err(MergeError::Object { object: lock.path.display().to_string(), reason });
    }
    if let Some(condition) = stored.and_then(|stored| stored.remembered.as_ref()?.options.conditions.first()) {
        let reason =
            format!("holds selected rows of its input (--where '{condition}'); select again instead of appending");
        return Err(MergeError::Object { object: lock.path.display().to_string(), reason });
    }
    if let Some(range) = recalled.subset.first() {
        let reason =
            format!("holds a part of its inputs (--select {range}); merge all inputs again instead of appending");
        return Err(MergeError::Object { object: lock.path.display().to_string(), reason });
    }
    recalled.selection = recalled.selection.with_whole(&lock.path);
    Ok(recalled)
}

/// Executes a plan that [`plan`] returned for the same `lock`.
///
/// # Errors
/// If the append fails or is cancelled. The file is then unchanged, unless the error states that the append is
/// complete.
pub fn append(plan: &MergePlan, lock: &AppendLock, watch: &Watch<'_>) -> Result<AppendReport> {
    let report = append_collective(plan, lock, watch, &SingleProcess)?;
    // Only a run with several ranks can have its report on another rank.
    report.ok_or_else(|| CoreError::RankLeft { operation: APPENDING }.into())
}

/// Collective. Like [`append`], by the `ranks` that planned it: each rank encodes and writes its own tiles; the
/// first one updates the metadata and returns the report.
///
/// # Errors
/// As for [`append`], on every rank; also [`CoreError::RankFailed`] if only another rank encountered an error.
pub fn append_collective(
    plan: &MergePlan,
    lock: &AppendLock,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<Option<AppendReport>> {
    let Some(growth) = &plan.growth else {
        let reason = "was not planned as an append".to_owned();
        return Err(MergeError::Output { path: lock.path.clone(), reason });
    };
    let started = Instant::now();
    let redo = (ranks.rank() == 0).then(|| Redo::begin(&lock.path, &lock.file)).transpose();
    let redo = ranks.agree(APPENDING, redo)?;
    let old_len_bytes = ranks.all_gather_u64(redo.as_ref().map_or(0, Redo::old_end))?[0];
    let budget = Arc::new(MemoryBudget::new(plan.options.memory_limit_bytes));
    let placed = place(plan, growth, lock, old_len_bytes, &budget, watch, ranks).and_then(|placed| {
        let synced = lock.file.sync_all().map_err(|source| MergeError::Write {
            path: lock.path.clone(),
            operation: "fsync",
            source,
        });
        ranks.agree(APPENDING, synced)?;
        ranks.agree(APPENDING, if ranks.rank() == 0 { wait_for_readers(lock, watch) } else { Ok(()) })?;
        Ok(placed)
    });
    let (engine, edited) = match placed {
        Ok(placed) => placed,
        Err(error) => {
            // A failure to clean up must not hide the original error; the next run of raddle cleans up again.
            let _ = redo.map(|redo| redo.discard(&lock.file));
            return Err(error);
        }
    };
    let commit = redo.zip(edited).map(|(redo, edited)| -> Result<_> {
        let changed_len_bytes = edited.changes.iter().map(|change| change.bytes.len() as u64).sum();
        redo.commit(&lock.file, edited.file_len_bytes, edited.changes)?;
        Ok((changed_len_bytes, edited.file_len_bytes))
    });
    // From now on readers may open the file, even if the caller keeps the lock. Locks never make a run fail.
    let _ = lock_out_writers(&lock.file, &lock.path);
    let Some((changed_len_bytes, output_len_bytes)) = ranks.agree("commit the append", commit.transpose())? else {
        return Ok(None);
    };
    let grown = || growth.columns.iter().filter(|column| column.new_rows > 0);
    Ok(Some(AppendReport {
        output: lock.path.clone(),
        inputs: plan.inputs.len() as u64 - 1,
        skipped: crate::write::skipped(plan),
        differences: crate::write::bridged(plan),
        input_len_bytes: plan.inputs[1..].iter().map(|input| input.identity.len_bytes).sum(),
        old_len_bytes,
        output_len_bytes,
        grown_datasets: grown().count() as u64,
        most_rows: grown().map(|column| column.new_rows).max().unwrap_or(0),
        changed_len_bytes,
        elapsed_s: plan.elapsed_s + started.elapsed().as_secs_f64(),
        engine,
        memory: MemoryReport::of(&budget),
    }))
}

/// Collective. Writes the new chunks; the first rank updates the metadata in memory.
fn place(
    plan: &MergePlan,
    growth: &Growth,
    lock: &AppendLock,
    old_end: u64,
    budget: &MemoryBudget,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<(EngineReport, Option<EditedFile>)> {
    let pool = open_pool(plan);
    let work = MergeWork::of_rank(plan, &pool, ranks.rank() == 0);
    let start_address = old_end.next_multiple_of(ALIGNMENT_BYTES);
    let options = EngineOptions {
        jobs: plan.options.jobs,
        placement: Placement::Ordered,
        start_address,
        ..EngineOptions::default()
    };
    let context = Context { communicator: ranks, budget, observer: watch.observer, cancel: watch.cancel };
    let mut claims: Vec<Vec<Claim>> = vec![Vec::new(); plan.tiles.arrays.len()];
    let mut commit = |committed: PlacedArray<'_>| {
        claims[committed.array as usize].extend_from_slice(committed.claims);
        Ok(())
    };
    let engine = Execution::new(&plan.tiles, &work, &lock.file)
        .commit(&mut commit)
        .run(&options, &context)
        .map_err(|error| work.failed(error, &lock.path))?;
    watch.observer.event(&Event::StageStarted { stage: Stage::Commit, total_bytes: None });
    let timer = StageTimer::start();
    work.gather_digests(ranks)?;
    let raw_end = if engine.end_address > start_address { engine.end_address } else { old_end };
    let edit = Edit { plan, growth, work: &work, watch };
    let run = || edit.run(lock, old_end, raw_end, &claims, &mut work.finish()?);
    let edited = ranks.agree(APPENDING, (ranks.rank() == 0).then(run).transpose())?;
    let mut local_inputs = share(ranks, plan.inputs.len()).filter(|&input| input > 0);
    let unchanged: Result<()> = local_inputs.try_for_each(|input| Ok(pool.get(input as u32)?.check_unchanged()?));
    ranks.agree("check whether inputs changed", unchanged.and_then(|()| Ok(watch.cancel.check()?)))?;
    watch.observer.event(&Event::StageFinished { stage: Stage::Commit, elapsed_s: timer.elapsed_s() });
    Ok((engine, edited))
}

/// Waits until no program has the file open through libhdf5, because readers must not see half of the changes.
fn wait_for_readers(lock: &AppendLock, watch: &Watch<'_>) -> Result<()> {
    let started = Instant::now();
    loop {
        watch.cancel.check()?;
        if lock_out_readers(&lock.file) {
            return Ok(());
        }
        if started.elapsed() >= MAX_WAIT {
            return Err(MergeError::InUse { path: lock.path.clone() });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Editor of the file's metadata.
struct Edit<'a, 'p> {
    plan: &'p MergePlan,
    growth: &'a Growth,
    work: &'a MergeWork<'p>,
    watch: &'a Watch<'a>,
}

impl Edit<'_, '_> {
    fn run(
        &self,
        lock: &AppendLock,
        old_end: u64,
        raw_end: u64,
        claims: &[Vec<Claim>],
        digests: &mut Digests,
    ) -> Result<EditedFile> {
        let file = lock.file.try_clone().map_err(|source| MergeError::Write {
            path: lock.path.clone(),
            operation: "open",
            source,
        })?;
        let mut output = OutputFile::edit(file, &lock.path, old_end, raw_end)?;
        self.remove_partial_chunks(&mut output)?;
        for column in self.grown() {
            self.watch.cancel.check()?;
            self.grow(&mut output, column, claims).map_err(|error| self.named(column, error))?;
        }
        // After all claims, because libhdf5 may reuse space that is freed here for its own writes.
        for column in self.grown() {
            if let Route::FileLocal = self.plan.columns[column as usize].route {
                let (of_column, runs) = self.write_file_local(&mut output, column)?;
                digests.columns[column as usize] = Some(of_column);
                digests.runs.insert(column, runs);
            }
        }
        self.growth.complete(self.plan, digests)?;
        of_inputs::compare(self.plan, digests)?;
        if self.growth.stored.is_some() {
            let mut samples = vec![0];
            for input in &self.plan.inputs[1..] {
                samples.push(sample(&InputFile::open(&input.path)?)?.crc64_nvme());
            }
            output.unlink(&provenance_path(""))?;
            write_provenance(&mut output, &gather(self.plan, digests, &samples))?;
        }
        Ok(output.finish_edit()?)
    }

    fn grown(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.growth.columns).filter(|(_, grown)| grown.new_rows > 0).map(|(column, _)| column)
    }

    /// Removes partly filled chunks from their indexes. They are rewritten elsewhere, because the bytes in the file
    /// must stay in place.
    fn remove_partial_chunks(&self, output: &mut OutputFile) -> Result<()> {
        let mut is_any = false;
        for column in self.grown() {
            let (grown, planned) = (&self.growth.columns[column as usize], &self.plan.columns[column as usize]);
            if grown.first_row < grown.old_rows {
                let mut dims = planned.dims.clone();
                dims[0] = grown.first_row;
                let path = self.plan.schema.column_path(column);
                output.resize_dataset(path, &dims).map_err(|error| self.named(column, error.into()))?;
                is_any = true;
            }
        }
        if is_any {
            output.forget_free_space()?;
        }
        Ok(())
    }

    fn grow(&self, output: &mut OutputFile, column: u32, claims: &[Vec<Claim>]) -> Result<()> {
        let (plan, planned) = (self.plan, &self.plan.columns[column as usize]);
        let entry = &plan.schema.entries[plan.schema.columns[column as usize].entry as usize];
        output.resize_dataset(&entry.path, &planned.dims)?;
        let (Route::Encoded { array, .. } | Route::Verbatim { array }) = &planned.route else { return Ok(()) };
        let (tiles, claims) = (&plan.tiles.arrays[*array as usize], &claims[*array as usize]);
        let spec = column_spec(plan, entry, column);
        let mut dataset = output.open_dataset(&entry.path, &spec)?;
        dataset.expect_chunks(claims.len() as u64)?;
        for claim in claims {
            let mut origin = tiles.tile_origin(claim.tile.index);
            origin[0] += self.growth.columns[column as usize].first_row;
            dataset.insert(&origin, claim.address, claim.len_bytes, claim.filter_mask)?;
        }
        Ok(())
    }

    /// Writes new rows that hold addresses within their file. Digests cover all rows: existing rows are read again for
    /// this, and must match their stored digests.
    fn write_file_local(&self, output: &mut OutputFile, column: u32) -> Result<(ColumnDigests, Vec<RowsDigest>)> {
        let (plan, grown) = (self.plan, self.growth.columns[column as usize]);
        let entry = &plan.schema.entries[plan.schema.columns[column as usize].entry as usize];
        let spec = column_spec(plan, entry, column);
        let block_rows = self.growth.block_rows(plan, column);
        let mut dataset = output.open_dataset(&entry.path, &spec).map_err(|error| self.named(column, error.into()))?;
        let (mut digests, mut old_digests) =
            (InOrder::new(DigestForm::Canonical, block_rows), InOrder::new(DigestForm::Canonical, block_rows));
        let mut runs = canonical_runs(plan, column);
        self.work.column_reader().for_each_canonical_block(column, block_rows, &mut |start, rows, canonical| {
            self.watch.cancel.check()?;
            digests.add(rows, canonical);
            if start < grown.old_rows {
                old_digests.add(rows, canonical);
                return Ok(());
            }
            runs.add(start, canonical);
            dataset.write_rows(start, rows, canonical).map_err(|error| self.named(column, error.into()))
        })?;
        let known = self.growth.stored.as_ref().and_then(|stored| stored.datasets.get(&entry.path));
        if let Some(known) = known.and_then(|known| known.digests.as_ref())
            && old_digests.finish().blocks != known.blocks
        {
            return Err(not_as_written(display_path(&entry.path)));
        }
        Ok((digests.finish(), runs.finish()))
    }

    fn named(&self, column: u32, error: MergeError) -> MergeError {
        error.in_object(self.plan.schema.column_path(column))
    }
}
