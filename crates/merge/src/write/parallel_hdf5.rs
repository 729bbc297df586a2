//! Writing of values through collective calls of a parallel libhdf5, for comparison with the engine.
//!
//! The first rank creates the objects as usual, but without chunks. Then all ranks process the datasets together: each
//! reads its share of the inputs, which are consecutive, and all write their rows collectively; the library filters
//! them and places the chunks. Digests are the same as those of the engine, so that outputs of both can be verified in
//! the same way. Invariant: all ranks make the same calls in the same order, even if something fails; they agree before
//! each call, and collective calls report their own failures to all ranks.

use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::{MergePlan, Route};
use crate::schema::display_path;
use crate::verify::digests::Digests;
use crate::verify::provenance;
use crate::write::commit::{Committer, Skeleton, write_provenance};
use crate::write::ranks::stages_of_all;
use crate::write::tiles::MergeWork;
use crate::write::{OutputTarget, RootResult, WriteOutcome, write_failed};
use raddle_core::engine::EngineReport;
use raddle_core::memory::MemoryBudget;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::ranks::datasets::{DatasetSink, Rows, SharedDatasets};
use raddle_core::ranks::shares::even_share;
use raddle_core::report::progress::{Event, Stage};
use raddle_core::report::{StageTable, StageTimer, StageTotals};
use raddle_hdf5::write::OutputFile;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Divisor of the memory budget for the values of a step: the library needs several times as much to exchange and
/// filter them.
const SHARE_OF_BUDGET: u64 = 8;

/// Refuses plans that cannot be written with collective calls.
///
/// # Errors
/// If chunks of a dataset are moved as stored, because the library only takes values; if a dataset is concatenated
/// along an axis other than the first; or if there is a tile observer, because the library moves the values and nothing
/// else sees them.
pub fn check(plan: &MergePlan, is_accompanied: bool) -> Result<()> {
    if is_accompanied {
        let reason = "cannot have a companion file, because HDF5 itself moves the values; write it another way (--io)"
            .to_owned();
        return Err(MergeError::Output { path: plan.options.output.clone(), reason });
    }
    let is_elsewhere = |&column: &u32| {
        let scanned = &plan.schema.columns[column as usize];
        scanned.axis > 0 || scanned.boxes.is_some()
    };
    if let Some(column) = (0..plan.columns.len() as u32).find(is_elsewhere) {
        let reason = "is concatenated along an axis other than the first; write it another way (--io)".to_owned();
        return Err(MergeError::Object { object: display_path(plan.schema.column_path(column)), reason });
    }
    let moved = (0..).zip(&plan.columns).find(|(_, planned)| matches!(planned.route, Route::Verbatim { .. }));
    match moved {
        None => Ok(()),
        Some((column, _)) => Err(MergeError::Object {
            object: display_path(plan.schema.column_path(column)),
            reason:
                "its chunks are moved as stored, which collective writes do not support; write it another way (--io)"
                    .to_owned(),
        }),
    }
}

/// Collective. Creates the objects on the leading rank and writes the values from all ranks.
pub fn write<'p>(
    plan: &'p MergePlan,
    work: &MergeWork<'p>,
    target: OutputTarget<'_, '_>,
    datasets: &dyn SharedDatasets,
    (budget, watch, ranks): (&MemoryBudget, &Watch<'_>, &dyn Communicator),
) -> Result<WriteOutcome> {
    let started = std::time::Instant::now();
    let OutputTarget { path, begun, options, samples, .. } = target;
    let data = begun.as_ref().map(|begun| &begun.data);
    let create = |data: &File| {
        let data = data.try_clone().map_err(write_failed(path, "open"))?;
        let mut committer = Committer::create(plan, data, path, options, work, watch.cancel)?;
        for array in 0..plan.tiles.arrays.len() as u32 {
            committer.commit(array, &[])?;
        }
        committer.finish_without_tiles()
    };
    let skeleton = ranks.agree("create the output", data.map(create).transpose())?;
    let sink = datasets.open(path).map_err(write_failed(path, "open"))?;
    let raw_len_bytes = plan.tiles.raw_len_bytes();
    watch.observer.event(&Event::StageStarted { stage: Stage::Place, total_bytes: Some(raw_len_bytes) });
    let writer = Writer { plan, work, sink: sink.as_ref(), target: path, watch, ranks };
    let stages = writer.write_all(budget)?;
    let shared = Some(sink.describe());
    sink.finish().map_err(write_failed(path, "close"))?;
    watch.observer.event(&Event::StageFinished { stage: Stage::Place, elapsed_s: started.elapsed().as_secs_f64() });
    work.gather_digests(ranks)?;
    let timer = StageTimer::start();
    // Each rank syncs the data written on its own node.
    let synced = File::open(path).and_then(|file| file.sync_data()).map_err(write_failed(path, "fsync"));
    ranks.agree("complete the output", synced)?;
    let elapsed_s = started.elapsed().as_secs_f64();
    let complete = |(mut skeleton, data): (Skeleton, &File)| -> Result<_> {
        let chunks_end = data.metadata().map_err(write_failed(path, "stat"))?.len();
        let mut digests = work.finish()?;
        skeleton.add_to(plan, &mut digests);
        let file_len_bytes = match plan.options.provenance {
            true => add_provenance(plan, data, chunks_end, path, &digests, samples)?,
            false => chunks_end,
        };
        let stored_len_bytes = chunks_end.saturating_sub(skeleton.file.file_len_bytes);
        Ok((stored_len_bytes, RootResult { file_len_bytes, digests, commit: timer.totals(0, 1) }))
    };
    let led = ranks.agree("complete the output", skeleton.zip(data).map(complete).transpose())?;
    let (stored_len_bytes, led) = led.unzip();
    let engine = EngineReport {
        tiles: plan.tiles.tile_count(),
        raw_len_bytes,
        stored_len_bytes: stored_len_bytes.unwrap_or(0),
        jobs: ranks.size(),
        elapsed_s,
        stages: stages_of_all(&stages, ranks)?,
        ..EngineReport::default()
    };
    Ok(WriteOutcome { engine, led, shared })
}

/// Writer of all datasets, one after another.
struct Writer<'a, 'p> {
    plan: &'p MergePlan,
    work: &'a MergeWork<'p>,
    sink: &'a dyn DatasetSink,
    target: &'a Path,
    watch: &'a Watch<'a>,
    ranks: &'a dyn Communicator,
}

impl Writer<'_, '_> {
    /// Collective. Writes all values that are read from the inputs row by row; returns the stages of this rank.
    fn write_all(&self, budget: &MemoryBudget) -> Result<StageTable> {
        let mut reader = self.work.column_reader();
        let mut stages = StageTable::default();
        let longest = (0..).zip(&self.plan.columns).filter(|(_, planned)| is_written(&planned.route));
        let longest = longest.map(|(column, _)| self.plan.row_len_bytes(column)).max().unwrap_or(0);
        let local_len_bytes = (budget.available_bytes() / SHARE_OF_BUDGET).max(longest);
        // All ranks take as many steps as the one with the least memory.
        let step_len_bytes = self.ranks.all_gather_u64(local_len_bytes)?.into_iter().min().unwrap_or(local_len_bytes);
        let permit = budget.try_acquire(step_len_bytes, "the rows of a collective write");
        let _permit = self.ranks.agree("reserve memory", permit.map_err(MergeError::from))?;
        let mut values = Vec::new();
        for (column, planned) in (0..).zip(&self.plan.columns).filter(|(_, planned)| is_written(&planned.route)) {
            let row_len_bytes = self.plan.row_len_bytes(column);
            let step_rows = (step_len_bytes / row_len_bytes.max(1)).max(1);
            let shares: Vec<_> = (0..self.ranks.size()).map(|rank| self.share(column, rank)).collect();
            let steps = shares.iter().map(|rows| (rows.end - rows.start).div_ceil(step_rows)).max().unwrap_or(0);
            let local_rows = &shares[self.ranks.rank()];
            debug_assert_eq!(shares.last().map_or(0, |last| last.end), planned.dims[0]);
            for step in 0..steps {
                let start = (local_rows.start + step * step_rows).min(local_rows.end);
                let rows = start..(start + step_rows).min(local_rows.end);
                values.resize(((rows.end - rows.start) * row_len_bytes) as usize, 0);
                let read = self.watch.cancel.check().map_err(MergeError::from);
                let read = read.and_then(|()| reader.read_rows(column, rows.clone(), &mut values));
                let read = read.and_then(|()| self.work.digest_rows(column, &rows, &values));
                self.ranks.agree("read the inputs", read)?;
                let totals = self.write_rows(column, &rows, &values)?;
                stages.get_mut(Stage::Place).add(&totals);
            }
        }
        reader.retire(&mut stages);
        Ok(stages)
    }

    /// Collective. Writes the rows of all ranks in one call.
    fn write_rows(&self, column: u32, rows: &Range<u64>, bytes: &[u8]) -> Result<StageTotals> {
        let path = self.plan.schema.column_path(column);
        let (timer, count) = (StageTimer::start(), rows.end - rows.start);
        let written = self.sink.write_rows(path, Rows { start: rows.start, count, bytes });
        written.map_err(write_failed(self.target, "write datasets"))?;
        self.watch.observer.event(&Event::Advanced { stage: Stage::Place, bytes: bytes.len() as u64, items: 1 });
        Ok(timer.totals(bytes.len() as u64, 1))
    }

    /// Returns the rows of a column that a rank writes, which come from consecutive inputs.
    fn share(&self, column: u32, rank: usize) -> Range<u64> {
        let facts = &self.plan.schema.columns[column as usize].facts;
        let inputs = even_share(facts.len() as u64, rank as u64, self.ranks.size() as u64);
        let rows_before = |input: u64| facts.iter().take(input as usize).map(|fact| fact.rows).sum::<u64>();
        rows_before(inputs.start)..rows_before(inputs.end)
    }
}

fn is_written(route: &Route) -> bool {
    matches!(route, Route::Encoded { .. } | Route::Raw { .. })
}

/// Adds the provenance group, whose digests are only known after all values have been written.
fn add_provenance(
    plan: &MergePlan,
    data: &File,
    end: u64,
    path: &Path,
    digests: &Digests,
    samples: &[u64],
) -> Result<u64> {
    let file = data.try_clone().map_err(write_failed(path, "open"))?;
    let mut output = OutputFile::edit(file, path, end, end)?;
    write_provenance(&mut output, &provenance::gather(plan, digests, samples))?;
    let edited = output.finish_edit()?;
    for change in &edited.changes {
        data.write_all_at(&change.bytes, change.address).map_err(write_failed(path, "write the provenance"))?;
    }
    Ok(edited.file_len_bytes)
}
