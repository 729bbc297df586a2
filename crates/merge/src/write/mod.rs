//! Execution of a plan: the engine writes the tiles, this thread creates the objects, and at the end the file is
//! published.
//!
//! Invariant: nothing appears under the output's name unless every tile was placed, every object was created, and no
//! input changed in the meantime.

pub(crate) mod commit;
pub(crate) mod counting;
pub(crate) mod other_programs;
pub(crate) mod parallel_hdf5;
pub mod parts;
pub(crate) mod picking;
pub(crate) mod publish;
pub(crate) mod ranks;
pub(crate) mod reader_pool;
pub(crate) mod reading;
pub(crate) mod regrouping;
mod report;
pub(crate) mod resume;
pub(crate) mod tile_observer;
pub(crate) mod tiles;
pub(crate) mod values;

pub(crate) use report::skipped;
pub use report::{MergeReport, SkippedInput, bridged};

use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::plan::dataset_specs::output_options;
use crate::plan::links::external_targets;
use crate::plan::memory::ReaderMemory;
use crate::verify::digests::{Digests, of_inputs};
use crate::write::commit::Committer;
use crate::write::other_programs::open_without_writers;
use crate::write::publish::{begin_output, journal_path, temporary_path};
use crate::write::ranks::{agree_what_is_kept, stages_of_all};
use crate::write::reading::{Reading, Strategy};
use crate::write::resume::{JournalPaths, ResumeRequest, ResumeSource, ResumedRun};
use crate::write::tile_observer::TileObserver;
use crate::write::tiles::MergeWork;
use crate::write::values::open_pool;
use raddle_core::CoreError;
use raddle_core::engine::{
    Checkpoint, Context, EngineOptions, EngineReport, Execution, PlacedArray, SharedFiles, SharedIo, SharedSink,
};
use raddle_core::memory::MemoryBudget;
use raddle_core::output::flusher::FlushedFile;
use raddle_core::output::publish::AtomicFile;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::ranks::datasets::SharedDatasets;
use raddle_core::report::progress::{Event, Stage};
use raddle_core::report::{StageTimer, StageTotals, add_stages};
use raddle_hdf5::write::OutputOptions;
use std::fs::OpenOptions;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Copies owner, group and permissions of `output` to the file at `temporary`, which replaces it.
fn keep_permissions(output: &Path, temporary: &Path) -> Result<()> {
    let failed = |operation| write_failed(temporary, operation);
    let old = std::fs::metadata(output).map_err(failed("set the permissions"))?;
    let new = std::fs::metadata(temporary).map_err(failed("set the permissions"))?;
    if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
        // Before the permissions, which a change of the owner may reduce.
        std::os::unix::fs::chown(temporary, Some(old.uid()), Some(old.gid()))
            .map_err(failed("set the owner and group"))?;
    }
    std::fs::set_permissions(temporary, old.permissions()).map_err(failed("set the permissions"))
}

/// Executes `plan` and publishes the output; resumes an interrupted run of the same plan.
///
/// # Errors
/// If the merge fails or is cancelled. The output's name is then untouched. [`MergeError::Resumable`] describes the
/// work kept for the next run; after other errors nothing is kept.
pub fn merge(plan: &MergePlan, watch: &Watch<'_>) -> Result<MergeReport> {
    let report = merge_collective(plan, watch, &SingleProcess, MergeContext::default())?;
    // Only a run with several ranks can have its report on another rank.
    report.ok_or_else(|| CoreError::RankLeft { operation: "merge" }.into())
}

/// Parameters of carrying out a merge that are not part of its plan.
#[derive(Clone, Copy, Default)]
pub struct MergeContext<'a> {
    /// Method of writing chunks.
    pub io: IoBackend<'a>,
    /// Way in which several ranks read the inputs. It is ignored with [`IoBackend::Collective`], which always reads by
    /// tiles.
    pub reading: Reading<'a>,
    /// Tile observer that sees the values; cannot be combined with [`IoBackend::Collective`].
    pub tile_observer: Option<&'a dyn TileObserver>,
}

/// Method of writing chunks.
#[derive(Debug, Clone, Copy, Default)]
pub enum IoBackend<'a> {
    /// System calls of each thread of each rank.
    #[default]
    Posix,
    /// Files that all ranks write collectively.
    Shared(&'a dyn SharedFiles),
    /// Library that accepts values and places chunks itself. Objects and values are the same as with the other methods,
    /// but the bytes of the file differ. No checkpoint is recorded.
    Collective(&'a dyn SharedDatasets),
}

/// Collective. Like [`merge`], by the `ranks` that planned it together: each rank writes and places its own tiles;
/// the first rank creates the objects, publishes the file and gets the report. An interrupted run can be resumed by any
/// number of ranks, even if it was started with a different number.
///
/// The bytes do not depend on `through`, except with [`IoBackend::Collective`]. A tile observer sees all values, and
/// its file is published next to the output. Either all ranks have one or none has.
///
/// # Errors
/// As for [`merge`], on every rank; also [`CoreError::RankFailed`] if only another rank encountered an error.
pub fn merge_collective(
    plan: &MergePlan,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
    through: MergeContext<'_>,
) -> Result<Option<MergeReport>> {
    let options = &plan.options;
    if let IoBackend::Collective(_) = through.io {
        parallel_hdf5::check(plan, through.tile_observer.is_some())?;
    }
    let begin = || -> Result<_> {
        let replaced = options.in_place.then(|| open_without_writers(&options.output)).transpose()?;
        let others = if options.in_place { Vec::new() } else { files_to_keep(plan) };
        Ok((begin_output(&options.output, &others, options.force)?, replaced))
    };
    let begun = (ranks.rank() == 0).then(begin).transpose();
    let (publication, _replaced) = ranks.agree("begin the output", begun)?.unzip();
    carry_out(plan, watch, ranks, through, publication, ResumeSource::Interrupted)
}

/// Returns the files that the output must not replace: the inputs, and those to which its external links lead.
fn files_to_keep(plan: &MergePlan) -> Vec<PathBuf> {
    let inputs = plan.inputs.iter().map(|input| input.path.clone());
    inputs.chain(external_targets(plan)).collect()
}

/// Completes an output whose lock this process holds and whose parts are joined; otherwise like [`merge`].
pub(crate) fn complete(plan: &MergePlan, watch: &Watch<'_>, publication: AtomicFile) -> Result<MergeReport> {
    let report =
        carry_out(plan, watch, &SingleProcess, MergeContext::default(), Some(publication), ResumeSource::Parts)?;
    report.ok_or_else(|| CoreError::RankLeft { operation: "merge" }.into())
}

/// Collective. Carries out a merge like [`merge_collective`]; only the leading rank has the `publication`.
fn carry_out(
    plan: &MergePlan,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
    through: MergeContext<'_>,
    publication: Option<AtomicFile>,
    source: ResumeSource,
) -> Result<Option<MergeReport>> {
    let options = &plan.options;
    let mut recorded = None;
    let outcome = make(plan, watch, ranks, through, publication.as_ref(), source, &mut recorded);
    if let IoBackend::Collective(_) = through.io {
        // No checkpoint is recorded, and a rank may have failed while the others are still in a call.
        return outcome;
    }
    let worth_keeping = |publication: &AtomicFile| match recorded {
        Some(kept) => (kept.tiles > 0 && publication.path().exists()).then_some(kept),
        // Stopped while checking the data of an earlier run.
        None => {
            (plan.is_recordable() && options.resume && journal_path(&options.output).exists()).then(Checkpoint::default)
        }
    };
    let kept = agree_what_is_kept(ranks, outcome.as_ref().err(), publication.as_ref().and_then(worth_keeping))?;
    let Some(kept) = kept else { return outcome };
    if let Some(publication) = publication {
        publication.keep();
    }
    outcome.map_err(|source| match source.is_secondary() {
        true => source,
        false => MergeError::Resumable { source: Box::new(source), path: temporary_path(&options.output), kept },
    })
}

/// Collective. Writes the output under its temporary name and publishes it. Only the rank with the `publication`
/// publishes and gets the report. `recorded` receives the work from which a later run can resume, even after an error.
fn make(
    plan: &MergePlan,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
    MergeContext { io, reading, tile_observer }: MergeContext<'_>,
    publication: Option<&AtomicFile>,
    source: ResumeSource,
    recorded: &mut Option<Checkpoint>,
) -> Result<Option<MergeReport>> {
    let started = std::time::Instant::now();
    let budget = Arc::new(MemoryBudget::new(plan.options.memory_limit_bytes));
    let pool = open_pool(plan);
    let work = MergeWork::new(plan, &pool).for_ranks(ranks.size(), plan.options.memory_limit_bytes);
    let work = work.observed(watch.observer).accompanied(tile_observer);
    let reading = match io {
        IoBackend::Collective(_) => Reading { strategy: Strategy::Tiles, ..reading },
        IoBackend::Posix | IoBackend::Shared(_) => reading,
    };
    let room =
        tile_observer.map(|tile_observer| budget.try_acquire(tile_observer.len_bytes(), "the companion of the output"));
    let _permit = ranks.agree("make room", room.transpose().map_err(MergeError::from))?;
    let (work, arrangement) = reading::arrange(work, reading, &budget, watch, ranks)?;
    let keeper = |input| work.keeper(input, ranks.size());
    let output_options = output_options(plan);
    // A region that is too long is refused when the output is created.
    let raw_start = output_options.raw_start().unwrap_or(0);
    let samples = resume::samples(plan, &pool, keeper, ranks)?;
    let (data, journal) = (temporary_path(&plan.options.output), journal_path(&plan.options.output));
    let record = JournalPaths { data: &data, journal: &journal, first_tile: 0, start_address: raw_start };
    let is_recorded = work.is_recorded() && !matches!(io, IoBackend::Collective(_));
    let binding = is_recorded.then(|| resume::binding(plan, &samples, raw_start));
    let beginning = ResumeRequest { plan, work: &work, record, resume: plan.options.resume, source, watch: *watch };
    let mut begun = resume::begin(&beginning, binding.as_ref(), ranks)?;
    let resumed = begun.as_ref().map(|begun| begun.journal.recorded()).unwrap_or_default();
    if tile_observer.is_some() {
        let kept = ranks.all_gather_u64(resumed.tiles)?[0];
        work.replay_kept(kept, (plan.options.jobs, &budget), watch, ranks)?;
    }
    let target = OutputTarget { path: &data, begun: begun.as_mut(), options: &output_options, samples: &samples, io };
    let written = match io {
        IoBackend::Collective(datasets) => parallel_hdf5::write(plan, &work, target, datasets, (&budget, watch, ranks)),
        _ => write(plan, &work, target, &budget, watch, ranks),
    };
    *recorded = begun.as_ref().map(|begun| begun.journal.recorded());
    let WriteOutcome { mut engine, led, shared } = written?;
    let compared = led.as_ref().map_or(Ok(()), |led| of_inputs::compare(plan, &led.digests));
    ranks.agree("compare the digests of the inputs", compared)?;
    add_stages(&mut engine.stages, stages_of_all(&work.regrouper().take_early_stages(), ranks)?);
    let regrouping = work.regrouper().report(ranks)?;
    let reading = arrangement.report(&work, pool.opens(), &mut engine, ranks)?;
    let mut local_inputs = (0..plan.inputs.len() as u32).filter(|input| keeper(*input) == ranks.rank());
    let unchanged: Result<()> = local_inputs.try_for_each(|input| Ok(pool.get(input)?.check_unchanged()?));
    ranks.agree("check whether inputs changed", unchanged.and_then(|()| Ok(watch.cancel.check()?)))?;
    if let Some(tile_observer) = tile_observer {
        complete_companion(tile_observer, publication.is_some(), &budget, watch, ranks)?;
    }
    let publish = |publication| publish_output(plan, publication, tile_observer);
    ranks.agree("publish the output", publication.map_or(Ok(()), publish))?;
    let Some(led) = led else { return Ok(None) };
    Ok(Some(MergeReport {
        elapsed_s: plan.elapsed_s + started.elapsed().as_secs_f64(),
        resumed_tiles: resumed.tiles,
        resumed_len_bytes: resumed.stored_len_bytes,
        shared_io: shared,
        reading,
        regrouping,
        ..MergeReport::of_output(plan, &led, engine, &budget)
    }))
}

/// Collective. Completes the companion of the output, on the rank that publishes them.
fn complete_companion(
    tile_observer: &dyn TileObserver,
    publishes: bool,
    budget: &MemoryBudget,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<()> {
    let failed = |source| MergeError::of_observer(source, watch);
    tile_observer.gather(ranks).map_err(failed)?;
    let completed = if publishes { tile_observer.complete(budget.available_bytes(), watch) } else { Ok(()) };
    ranks.agree("complete the companion of the output", completed.map_err(failed))
}

/// Publishes the output, and the companion that `tile_observer` has written.
fn publish_output(plan: &MergePlan, publication: &AtomicFile, tile_observer: Option<&dyn TileObserver>) -> Result<()> {
    if plan.options.in_place {
        keep_permissions(&plan.options.output, publication.path())?;
    }
    let Some(tile_observer) = tile_observer else { return Ok(publication.publish()?) };
    tile_observer.withdraw().map_err(|source| MergeError::TileObserver { source })?;
    let published = publication.publish().map_err(MergeError::from);
    // The output may be published but not yet durable; the observer's older file must not be restored then.
    if published.is_err() && publication.path().exists() {
        return published;
    }
    let output = plan.options.output.clone();
    let accompanied = tile_observer.publish().map_err(|source| MergeError::Unaccompanied { output, source });
    published.and(accompanied)
}

/// An output that is complete but not yet published.
pub(crate) struct WriteOutcome {
    pub engine: EngineReport,
    /// Results that only the leading rank has.
    pub led: Option<RootResult>,
    pub shared: Option<SharedIo>,
}

/// Results of the leading rank.
pub(crate) struct RootResult {
    pub file_len_bytes: u64,
    pub digests: Digests,
    pub commit: StageTotals,
}

/// Files to which an output is written and recorded.
pub(crate) struct OutputTarget<'a, 'j> {
    pub path: &'a Path,
    /// State of the run; only on the leading rank.
    pub begun: Option<&'a mut ResumedRun<'j>>,
    pub options: &'a OutputOptions,
    pub samples: &'a [u64],
    pub io: IoBackend<'a>,
}

/// Returns a function that wraps an I/O error of `operation` on the file at `path`.
pub(crate) fn write_failed(path: &Path, operation: &'static str) -> impl FnOnce(std::io::Error) -> MergeError + use<> {
    let path = path.to_path_buf();
    move |source| MergeError::Write { path, operation, source }
}

/// Number of bytes after which the output is flushed: an uncompressed merge produces data faster than most disks write
/// it.
const FLUSH_LEN_BYTES: u64 = 64 << 20;

/// Destination of chunks.
enum Sink<'a> {
    Own(FlushedFile),
    Shared(Box<dyn SharedSink + 'a>),
}

/// Collective. Writes the tiles and, on the leading rank, the objects.
fn write<'p>(
    plan: &'p MergePlan,
    work: &MergeWork<'p>,
    target: OutputTarget<'_, '_>,
    budget: &MemoryBudget,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<WriteOutcome> {
    let OutputTarget { path, begun, options, samples, io } = target;
    let failed = |operation| write_failed(path, operation);
    let to_sink = |file| Sink::Own(FlushedFile::new(file, FLUSH_LEN_BYTES));
    let sink = match (io, &begun) {
        (IoBackend::Shared(files), _) => files.open(path).map(Sink::Shared),
        (IoBackend::Posix | IoBackend::Collective(_), Some(begun)) => begun.data.try_clone().map(to_sink),
        (IoBackend::Posix | IoBackend::Collective(_), None) => OpenOptions::new().write(true).open(path).map(to_sink),
    };
    let sink = ranks.agree("open the output", sink.map_err(failed("open")))?;
    let create = |begun: &ResumedRun<'_>| {
        let file = begun.data.try_clone().map_err(failed("open"))?;
        Committer::create(plan, file, path, options, work, watch.cancel)
    };
    let mut committer = ranks.agree("create the output", begun.as_deref().map(create).transpose())?;
    let of_objects = committer.as_ref().map(|_| ReaderMemory::of_objects(plan).acquire(plan, budget)).transpose();
    let _of_objects = ranks.agree("make room for long chunks", of_objects)?;
    let raw_start = committer.as_ref().map_or(0, Committer::raw_start);
    let engine_options = EngineOptions { start_address: ranks.all_gather_u64(raw_start)?[0], ..plan.engine_options() };
    let context = Context { communicator: ranks, budget, observer: watch.observer, cancel: watch.cancel };
    let commit = &mut |done: PlacedArray<'_>| match &mut committer {
        Some(committer) => committer.commit(done.array, done.claims),
        None => Ok(()),
    };
    let execution = match &sink {
        Sink::Shared(sink) => Execution::shared(&plan.tiles, work, sink.as_ref()),
        Sink::Own(sink) => Execution::new(&plan.tiles, work, sink),
    };
    let execution = match begun {
        Some(begun) => execution.record(&mut begun.journal),
        None => execution,
    };
    let engine = execution.commit(commit).run(&engine_options, &context).map_err(|error| work.failed(error, path))?;
    watch.observer.event(&Event::StageStarted { stage: Stage::Commit, total_bytes: None });
    work.gather_digests(ranks)?;
    let timer = StageTimer::start();
    let shared = match &sink {
        Sink::Shared(sink) => Some(sink.describe()),
        Sink::Own(_) => None,
    };
    // The final sync of the leading rank covers only data written on its own node, so other ranks sync here.
    let synced = match sink {
        Sink::Shared(sink) => sink.finish(),
        Sink::Own(file) => file.finish().and_then(|file| match committer.is_none() {
            true => file.sync_data(),
            false => Ok(()),
        }),
    };
    let synced = synced.map_err(failed("fsync"));
    let finish = |committer: Committer<'_>| {
        let mut digests = work.finish()?;
        let file = committer.finish(engine.end_address, &mut digests, samples)?;
        Ok(RootResult { file_len_bytes: file.file_len_bytes, digests, commit: timer.totals(0, 1) })
    };
    let led = synced.and_then(|()| committer.map(finish).transpose());
    let led = ranks.agree("complete the output", led)?;
    watch.observer.event(&Event::StageFinished { stage: Stage::Commit, elapsed_s: timer.elapsed_s() });
    Ok(WriteOutcome { engine, led, shared })
}
