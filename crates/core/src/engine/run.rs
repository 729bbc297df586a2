//! The calling thread of an execution: starts the workers and commits arrays in plan order.

use super::committer::{Commit, Committer, commit_kept};
use super::rounds::Rounds;
use super::setup::ExecutionSetup;
use super::window::{Addressing, InFlightWindow};
use super::worker::WorkerContext;
use super::{
    Assignment, Context, EngineError, EngineOptions, EngineReport, Placement, Recorder, SharedSink, Sink, TileWork,
};
use crate::error::CoreError;
use crate::output::addresses::Addresses;
use crate::plan::Plan;
use crate::ranks::communicator::SingleProcess;
use crate::ranks::message::{MessageReader, encode_u64s, put_u64s};
use crate::report::progress::{Event, Stage};
use crate::report::{StageTable, thread_cpu_ns};
use std::ops::Range;
use std::time::Instant;

/// Execution of a plan: `work` produces its tiles, and a sink writes them.
///
/// # Example
/// Stores ten one-byte numbers in raw tiles of four, after a header of 8 bytes.
/// ```
/// use raddle_core::ranks::communicator::SingleProcess;
/// use raddle_core::engine::{Context, EngineOptions, Execution, TileForm, TileWork};
/// use raddle_core::plan::{ArrayPlan, Plan, Tile};
/// use raddle_core::{cancel::CancelToken, memory::MemoryBudget, report::progress::Silent};
///
/// struct Counting(Plan);
///
/// impl TileWork for Counting {
///     type Error = std::convert::Infallible;
///     type Worker = ();
///
///     fn worker(&self) -> Result<(), Self::Error> {
///         Ok(())
///     }
///
///     fn assemble(&self, (): &mut (), tile: Tile, raw: &mut [u8]) -> Result<(), Self::Error> {
///         let extent = self.0.arrays[tile.array as usize].tile_extent(tile.index);
///         raw.fill(0xFF); // what lies beyond the array
///         for number in 0..extent.count[0] {
///             raw[number as usize] = (extent.start[0] + number) as u8;
///         }
///         Ok(())
///     }
///
///     fn encode(&self, (): &mut (), _: Tile, raw: &[u8], stored: &mut Vec<u8>) -> Result<TileForm, Self::Error> {
///         stored.extend_from_slice(raw);
///         Ok(TileForm::Stored { filter_mask: 0 })
///     }
///
///     fn stored_bound_len_bytes(&self, _: Tile) -> usize {
///         4
///     }
/// }
///
/// let array = ArrayPlan { shape: vec![10], tile_shape: vec![4], element_len_bytes: 1, ..ArrayPlan::default() };
/// let work = Counting(Plan { arrays: vec![array] });
/// let file = tempfile::tempfile()?;
/// let (budget, cancel) = (MemoryBudget::new(1 << 20), CancelToken::new());
/// let context = Context { communicator: &SingleProcess, budget: &budget, observer: &Silent, cancel: &cancel };
/// let options = EngineOptions { start_address: 8, ..EngineOptions::default() };
/// let mut addresses = Vec::new();
/// let mut commit = |done: raddle_core::engine::PlacedArray<'_>| {
///     addresses.extend(done.claims.iter().map(|claim| claim.address));
///     Ok(())
/// };
/// let report = Execution::new(&work.0, &work, &file).commit(&mut commit).run(&options, &context)?;
/// assert_eq!((addresses, report.end_address), (vec![8, 12, 16], 20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Execution<'a, W: TileWork> {
    plan: &'a Plan,
    work: &'a W,
    target: OutputMode<'a>,
    commit: Option<&'a mut Commit<'a, W::Error>>,
    recorder: Option<&'a mut (dyn Recorder + 'a)>,
    part: Option<Range<u64>>,
}

impl<'a, W: TileWork> Execution<'a, W> {
    /// Creates an execution whose workers write the batches they encode to `sink`.
    pub fn new(plan: &'a Plan, work: &'a W, sink: &'a dyn Sink) -> Self {
        Self { plan, work, target: OutputMode::PerWorker(sink), commit: None, recorder: None, part: None }
    }

    /// Creates an execution whose ranks write each round's batches together, on their calling threads, while the workers
    /// encode the next round.
    pub fn shared(plan: &'a Plan, work: &'a W, sink: &'a dyn SharedSink) -> Self {
        Self { plan, work, target: OutputMode::Collective(sink), commit: None, recorder: None, part: None }
    }

    /// Calls `commit` on the calling thread, in plan order, with the claims of each array whose tiles are all placed.
    /// Only rank 0 commits.
    #[must_use]
    pub fn commit(mut self, commit: &'a mut Commit<'a, W::Error>) -> Self {
        self.commit = Some(commit);
        self
    }

    /// Resumes after the batches already in `recorder` and records newly placed ones. The claims of kept batches are
    /// committed like new ones.
    ///
    /// Only the recorder of rank 0 is used; it receives the batches of all ranks. Recording requires placement in order,
    /// in one file and without arenas; otherwise the recorder is not used.
    #[must_use]
    pub fn record(mut self, recorder: &'a mut (dyn Recorder + 'a)) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Produces and places only `tiles`, from the start address on, in order and on a single rank. Batches kept by the
    /// recorder are counted from the first of `tiles`.
    #[must_use]
    pub fn part(mut self, tiles: Range<u64>) -> Self {
        self.part = Some(tiles);
        self
    }

    /// Collective over the context's communicator. Executes the plan.
    ///
    /// # Errors
    /// Returns the first error in plan order. Partial output is not rolled back and must be discarded, unless it is
    /// recorded: the record stays valid as far as [`SharedSink::write_together`] reports failures correctly.
    pub fn run(self, options: &EngineOptions, context: &Context<'_>) -> Result<EngineReport, EngineError<W::Error>> {
        let Self { plan, work, target, commit, recorder, part } = self;
        match part {
            Some(tiles) => {
                let options = EngineOptions { placement: Placement::Ordered, arenas: None, ..options.clone() };
                let context = Context { communicator: &SingleProcess, ..*context };
                execute(plan, work, target, ExecutionSpec { tiles, commit, recorder }, &options, &context)
            }
            None => {
                let recorder = recorder.filter(|_| is_recordable(options, context));
                execute(plan, work, target, ExecutionSpec { tiles: ALL_TILES, commit, recorder }, options, context)
            }
        }
    }
}

/// Returns whether this rank records placed batches and the options allow recording.
fn is_recordable(options: &EngineOptions, context: &Context<'_>) -> bool {
    context.communicator.rank() == 0 && options.placement == Placement::Ordered && options.arenas.is_none()
}

/// Choice of the threads that write the batches.
#[derive(Clone, Copy)]
enum OutputMode<'a> {
    /// Every worker writes the batches it encodes.
    PerWorker(&'a dyn Sink),
    /// The calling threads of all ranks write together, round by round.
    Collective(&'a dyn SharedSink),
}

impl<'a> OutputMode<'a> {
    /// Returns the sink of the workers; `None` if the calling threads write.
    fn sink(self) -> Option<&'a dyn Sink> {
        match self {
            Self::PerWorker(sink) => Some(sink),
            Self::Collective(_) => None,
        }
    }

    /// Returns the sink through which calling threads write; `None` if workers write.
    fn shared_sink(self) -> Option<&'a dyn SharedSink> {
        match self {
            Self::PerWorker(_) => None,
            Self::Collective(shared) => Some(shared),
        }
    }

    /// Returns the way in which batches get their addresses, with or without rounds.
    fn addressing(self, has_rounds: bool, placement: Placement) -> Addressing {
        match (has_rounds, placement, self) {
            (true, _, Self::PerWorker(_)) => Addressing::Collective,
            (true, _, Self::Collective(_)) => Addressing::CollectiveIo,
            (false, Placement::Ordered, _) => Addressing::Ordered,
            (false, Placement::Unordered, _) => Addressing::Unordered,
        }
    }
}

/// Tiles of an execution, with the callback and the recorder that follow them.
struct ExecutionSpec<'a, E> {
    /// Tiles to produce or to take from the recorder.
    tiles: Range<u64>,
    /// Callback that commits arrays, if this execution commits.
    commit: Option<&'a mut Commit<'a, E>>,
    /// Recorder of placed batches.
    recorder: Option<&'a mut (dyn Recorder + 'a)>,
}

const ALL_TILES: Range<u64> = 0..u64::MAX;

fn execute<W: TileWork>(
    plan: &Plan,
    work: &W,
    target: OutputMode<'_>,
    spec: ExecutionSpec<'_, W::Error>,
    options: &EngineOptions,
    context: &Context<'_>,
) -> Result<EngineReport, EngineError<W::Error>> {
    let started = Instant::now();
    let ExecutionSpec { tiles, commit, recorder } = spec;
    let index = plan.tile_index();
    let recorded = recorder.as_ref().map(|recorder| recorder.kept());
    let has_rounds = context.communicator.size() > 1 || matches!(target, OutputMode::Collective(_));
    let setup = ExecutionSetup::agree(plan, &index, work, options, (tiles, recorded), has_rounds, context)?;
    let kept = setup.recorded.unwrap_or_default();
    let addressing = target.addressing(setup.schedule.is_some(), options.placement);
    let jobs = if setup.local_batches.is_empty() { 0 } else { setup.jobs };
    let raw_len_bytes = plan.raw_len_bytes();
    // Raw bytes that this rank has to produce.
    let left_len_bytes = setup.local_batches.iter().map(|local| local.batch.raw_len_bytes).sum();
    let start_address = options.start_address.saturating_add(kept.stored_len_bytes);
    let addresses = Addresses::new(start_address, options.arenas);
    let (all, local) = setup.tiles();
    let window = InFlightWindow::new(setup.local_batches, addressing, setup.limits, addresses.clone());
    let assignment = Assignment { all, local, jobs: setup.jobs, stop: window.stop_signal() };
    start_stages(context, left_len_bytes);
    let workers = WorkerContext {
        plan,
        index: &index,
        work,
        sink: target.sink(),
        window: &window,
        observer: context.observer,
        cancel: context.cancel,
        raw_len_bytes: setup.raw_len_bytes,
        is_recorded: setup.recorded.is_some(),
    };
    let shared = target.shared_sink();
    let by_schedule = |schedule| Rounds { schedule, index: &index, work, window: &window, context, addresses, shared };
    let rounds = setup.schedule.as_ref().map(by_schedule);
    let committer = Committer::new(&index, commit, context.observer);
    if let Err(source) = work.begin(assignment, context) {
        window.fail(0, EngineError::Regroup { source });
    }
    let recorder = recorder.map(|recorder| recorder as &mut dyn Recorder);
    let counts = produce(&workers, jobs, rounds, committer, recorder, context);
    let addresses = window.into_result()?;
    drop(setup.permit);
    let mut report = EngineReport {
        tiles: index.tile_count(),
        raw_len_bytes,
        stored_len_bytes: kept.stored_len_bytes + addresses.len_bytes(),
        end_address: addresses.end_address(),
        unused_len_bytes: addresses.unused_len_bytes(),
        elapsed_s: started.elapsed().as_secs_f64(),
        ..EngineReport::default()
    };
    // From here on nothing fails on a single rank: all take part in the last gather.
    counts.gather_into(&mut report, context)?;
    for stage in [Stage::Encode, Stage::Place, Stage::Commit] {
        context.observer.event(&Event::StageFinished { stage, elapsed_s: report.elapsed_s });
    }
    Ok(report)
}

/// Produces and commits the tiles of this rank until all are placed or something fails, which the window of `workers`
/// holds. Several ranks proceed in `rounds`. Returns the counts of this rank.
fn produce<W: TileWork>(
    workers: &WorkerContext<'_, W>,
    jobs: usize,
    rounds: Option<Rounds<'_, W>>,
    mut committer: Committer<'_, '_, W::Error>,
    recorder: Option<&mut dyn Recorder>,
    context: &Context<'_>,
) -> RankCounts {
    let mut counts = RankCounts::default();
    std::thread::scope(|scope| {
        // A panic in `commit` must not leave the workers waiting forever.
        let _stop = StopOnPanic(workers.window);
        let started = workers.start(scope, jobs);
        counts.jobs = started.len() as u64;
        let cpu_before_ns = thread_cpu_ns();
        match rounds {
            None => commit_all(workers.window, &mut committer, recorder, context),
            Some(rounds) => counts.stages.get_mut(Stage::Place).add(&rounds.run(&mut committer, recorder)),
        }
        // This thread only commits or waits, so its processor time is the time of committing; no clock is read per
        // array.
        committer.totals.cpu_ns = thread_cpu_ns() - cpu_before_ns;
        for worker in started {
            match worker.join() {
                Ok(counted) => counts.stages.add(&counted),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    *counts.stages.get_mut(Stage::Commit) = committer.totals;
    (counts.fill_tiles, counts.verbatim_tiles) = (committer.fill_tiles, committer.verbatim_tiles);
    counts
}

/// Reports to the observer that the stages have started. The encoding stage produces `total_bytes`.
fn start_stages(context: &Context<'_>, total_bytes: u64) {
    for (stage, total_bytes) in [(Stage::Encode, Some(total_bytes)), (Stage::Place, None), (Stage::Commit, None)] {
        context.observer.event(&Event::StageStarted { stage, total_bytes });
    }
}

/// Commits arrays as their batches are placed, starting with those of an earlier run, until all are committed or
/// something fails.
fn commit_all<E: std::error::Error>(
    window: &InFlightWindow<E>,
    committer: &mut Committer<'_, '_, E>,
    mut recorder: Option<&mut dyn Recorder>,
    context: &Context<'_>,
) {
    let mut outcome = committer.take(0, &[]);
    if let Some(recorder) = recorder.as_deref_mut() {
        outcome = outcome.and_then(|()| commit_kept(committer, recorder, context));
    }
    while outcome.is_ok() && !committer.is_complete() {
        let Some(mut parcel) = window.next_placed(|| context.cancel.is_cancelled()) else { return };
        committer.count(parcel.batch.tiles, &parcel.claims, parcel.verbatim_tiles);
        if let Some(recorder) = recorder.as_deref_mut() {
            let placed = parcel.take_placed();
            recorder.placed(&placed);
            parcel.claims = placed.claims;
        }
        outcome = committer.take(parcel.batch.tiles, &parcel.claims);
        window.recycle(parcel);
    }
    if let Err((ordinal, error)) = outcome {
        window.fail(ordinal, error);
    }
}

/// Numbers of tiles and workers of a rank, and times of its stages.
#[derive(Debug, Default)]
struct RankCounts {
    fill_tiles: u64,
    verbatim_tiles: u64,
    jobs: u64,
    stages: StageTable,
}

impl RankCounts {
    /// Collective. Adds the counts of all ranks to `report`.
    fn gather_into(&self, report: &mut EngineReport, context: &Context<'_>) -> Result<(), CoreError> {
        let of_ranks = context.communicator.all_gather_bytes(&self.to_bytes())?;
        for (rank, bytes) in (0..).zip(&of_ranks) {
            Self::from_bytes(bytes)?.add_to(report, rank);
        }
        Ok(())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut message = encode_u64s([self.fill_tiles, self.verbatim_tiles, self.jobs]);
        put_u64s(&mut message, self.stages.to_words());
        message
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, CoreError> {
        let mut words = MessageReader::new("gather the report", bytes);
        let [fill_tiles, verbatim_tiles, jobs] = words.words()?;
        Ok(Self { fill_tiles, verbatim_tiles, jobs, stages: StageTable::from_words(&mut words)? })
    }

    fn add_to(self, report: &mut EngineReport, rank: u32) {
        report.fill_tiles += self.fill_tiles;
        report.verbatim_tiles += self.verbatim_tiles;
        report.jobs += self.jobs as usize;
        report.stages.extend(self.stages.reports(rank));
    }
}

/// Guard that stops the workers if the calling thread unwinds.
struct StopOnPanic<'a, E: std::error::Error + 'static>(&'a InFlightWindow<E>);

impl<E: std::error::Error + 'static> Drop for StopOnPanic<'_, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(0, EngineError::Panicked { message: "in the calling thread".to_owned() });
        }
    }
}
