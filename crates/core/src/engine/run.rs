//! The calling thread of an execution: sets up the window within the budget, starts the workers, commits arrays.

use super::window::{Addressing, Limits, OwnBatch, Window, buffer_len_bytes};
use super::worker::Shop;
use super::{Committed, Context, EngineError, EngineOptions, EngineReport, Placement, Sink, TileWork};
use crate::claims::{Claim, Collector};
use crate::error::CoreError;
use crate::plan::{Batch, Plan, TileIndex};
use crate::progress::{Event, Stage};
use crate::report::{StageTable, elapsed_ns, thread_cpu_ns};
use std::time::Instant;

type Commit<'a, E> = &'a mut dyn FnMut(Committed<'_>) -> Result<(), E>;

/// Batches are not cut finer than this, whatever the plan's size: below it the locks and writes would show.
const MIN_BATCH_LEN_BYTES: u64 = 256 << 10;

/// A plan is cut into at least this many batches per worker, so that the last ones end together.
const BATCHES_PER_JOB: u64 = 16;

/// Batches in flight per worker, at most: enough for a batch that takes ten times as long as its neighbours not to make
/// them wait, few enough to leave the budget to others.
const WINDOW_BATCHES_PER_JOB: u64 = 16;

/// Tiles in flight, at most: their claims take 2.5 MiB.
const WINDOW_TILES: u64 = 64 * 1024;

/// Executes `plan`: `work` makes its tiles, `sink` takes them, `commit` is called on this thread, in plan order, with
/// the claims of each array whose tiles are all placed. Collective over the context's communicator; only rank 0
/// commits.
///
/// # Errors
/// The first error in plan order. Nothing is undone: the output is then worth nothing.
pub fn execute<W: TileWork>(
    plan: &Plan,
    work: &W,
    sink: &dyn Sink,
    commit: &mut dyn FnMut(Committed<'_>) -> Result<(), W::Error>,
    options: &EngineOptions,
    context: &Context<'_>,
) -> Result<EngineReport, EngineError<W::Error>> {
    let started = Instant::now();
    plan.validate()?;
    let index = plan.tile_index();
    let setup = Setup::new(plan, &index, work, options, context)?;
    let permit = context.budget.try_acquire(setup.permit_len_bytes, "the engine")?;
    let addressing = match options.placement {
        Placement::Ordered => Addressing::InOrder,
        Placement::Unordered => Addressing::AtOnce,
    };
    let window = Window::new(setup.batches, addressing, setup.limits, options.start_address);
    let mut report = EngineReport {
        tiles: index.tile_count(),
        raw_len_bytes: plan.raw_len_bytes(),
        jobs: setup.jobs,
        ..EngineReport::default()
    };
    for (stage, total_bytes) in
        [(Stage::Encode, Some(report.raw_len_bytes)), (Stage::Place, None), (Stage::Commit, None)]
    {
        context.observer.event(&Event::StageStarted { stage, total_bytes });
    }
    let shop = Shop {
        plan,
        index: &index,
        work,
        sink,
        window: &window,
        observer: context.observer,
        cancel: context.cancel,
        raw_len_bytes: setup.raw_len_bytes,
    };
    let mut stages = StageTable::default();
    std::thread::scope(|scope| {
        // A panic of `commit` must not leave the workers waiting for ever.
        let _stop = StopOnPanic(&window);
        let mut workers = Vec::new();
        let wanted = if index.tile_count() == 0 { 0 } else { setup.jobs };
        for number in 0..wanted {
            window.worker_starts();
            let thread = std::thread::Builder::new().name(format!("raddle-{number}"));
            match thread.spawn_scoped(scope, || shop.run()) {
                Ok(worker) => workers.push(worker),
                Err(source) => {
                    window.worker_ends();
                    // With at least one worker the run gets done, only slower.
                    if workers.is_empty() {
                        window.fail(0, EngineError::Core(CoreError::Threads { source }));
                    }
                    break;
                }
            }
        }
        commit_all(&index, &window, commit, &mut report, &mut stages, context);
        for worker in workers {
            match worker.join() {
                Ok(counted) => stages.add(&counted),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    report.end_address = window.into_result()?;
    drop(permit);
    report.stored_len_bytes = report.end_address - options.start_address;
    report.elapsed_s = started.elapsed().as_secs_f64();
    report.stages = stages.reports(0);
    for stage in [Stage::Encode, Stage::Place, Stage::Commit] {
        context.observer.event(&Event::StageFinished { stage, elapsed_s: report.elapsed_s });
    }
    Ok(report)
}

/// Commits arrays as their batches get placed, until all are or something failed.
fn commit_all<E: std::error::Error>(
    index: &TileIndex,
    window: &Window<E>,
    commit: Commit<'_, E>,
    report: &mut EngineReport,
    stages: &mut StageTable,
    context: &Context<'_>,
) {
    let mut collector = Collector::new(index);
    let mut timed = |done: Committed<'_>| {
        let (cpu_before_ns, started) = (thread_cpu_ns(), Instant::now());
        let outcome = commit(done);
        let totals = stages.get_mut(Stage::Commit);
        totals.wall_ns += elapsed_ns(started);
        totals.cpu_ns += thread_cpu_ns() - cpu_before_ns;
        totals.bytes += done.claims.iter().map(|claim| claim.len_bytes).sum::<u64>();
        totals.calls += 1;
        report.fill_tiles += done.fill_tiles;
        context.observer.event(&Event::Advanced { stage: Stage::Commit, bytes: 0, items: 1 });
        outcome
    };
    let mut outcome = collector.collect(0, &[], &mut timed);
    while outcome.is_ok() && !collector.is_complete() {
        let Some(parcel) = window.next_placed(|| context.cancel.is_cancelled()) else { return };
        report.verbatim_tiles += parcel.verbatim_tiles;
        outcome = collector.collect(parcel.batch.tiles, &parcel.claims, &mut timed);
        window.recycle(parcel);
    }
    if let Err((array, source)) = outcome {
        let end = index.tiles_of(array).map_or(0, |(_, end)| end);
        window.fail(end, EngineError::Commit { array, source });
    }
}

/// Stops the workers when the calling thread unwinds.
struct StopOnPanic<'a, E: std::error::Error + 'static>(&'a Window<E>);

impl<E: std::error::Error + 'static> Drop for StopOnPanic<'_, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(0, EngineError::Panicked { message: "in the calling thread".to_owned() });
        }
    }
}

/// How a plan is executed within the budget.
struct Setup {
    jobs: usize,
    batches: Vec<OwnBatch>,
    limits: Limits,
    raw_len_bytes: usize,
    permit_len_bytes: u64,
}

impl Setup {
    fn new<W: TileWork>(
        plan: &Plan,
        index: &TileIndex,
        work: &W,
        options: &EngineOptions,
        context: &Context<'_>,
    ) -> Result<Self, CoreError> {
        let available_bytes = context.budget.available_bytes();
        let asked = options.jobs.max(1) as u64;
        let batch_len_bytes = options
            .batch_len_bytes
            .min(plan.raw_len_bytes() / (BATCHES_PER_JOB * asked))
            .min(available_bytes / (4 * asked))
            .max(MIN_BATCH_LEN_BYTES.min(options.batch_len_bytes));
        let batches: Vec<_> = plan
            .batches(batch_len_bytes)
            .into_iter()
            .map(|batch| OwnBatch { batch, bound_len_bytes: bound_len_bytes(plan, index, work, &batch) })
            .collect();
        let raw_len_bytes = plan.arrays.iter().filter(|a| a.tile_count() > 0).map(|a| a.tile_len_bytes()).max();
        let raw_len_bytes = raw_len_bytes.unwrap_or(0);
        let largest = batches.iter().map(|own| buffer_len_bytes(own.bound_len_bytes)).max().unwrap_or(0);

        // Claims: those in flight, and those of the largest array, which is committed as a whole.
        let claim_len_bytes = size_of::<Claim>() as u64;
        let tiles = WINDOW_TILES.min(index.tile_count());
        let most_tiles = batches.iter().map(|own| own.batch.tiles).max().unwrap_or(0);
        let array_tiles = plan.arrays.iter().map(|array| array.tile_count()).max().unwrap_or(0);
        let claims = (tiles.max(most_tiles).saturating_add(array_tiles)).saturating_mul(claim_len_bytes);

        let per_worker = raw_len_bytes.saturating_add(work.worker_len_bytes());
        let fits = |jobs: u64| {
            jobs.checked_mul(per_worker.saturating_add(largest))
                .and_then(|len| len.checked_add(claims))
                .filter(|len| *len <= available_bytes)
        };
        let Some(jobs) = (1..=asked).rev().find(|jobs| fits(*jobs).is_some()) else {
            return Err(CoreError::Memory {
                purpose: "one worker with its largest tile",
                needed_bytes: per_worker.saturating_add(largest).saturating_add(claims),
                available_bytes,
                limit_bytes: context.budget.limit_bytes(),
            });
        };
        let fixed = claims + jobs * per_worker;
        let buffers_bytes =
            (available_bytes - fixed).min(largest.saturating_mul(WINDOW_BATCHES_PER_JOB).saturating_mul(jobs));
        // Every tile of the plan fits memory from here on.
        let raw_len_bytes = usize::try_from(raw_len_bytes).unwrap_or(usize::MAX);
        Ok(Self {
            jobs: jobs as usize,
            batches,
            limits: Limits { buffers_bytes, tiles },
            raw_len_bytes,
            permit_len_bytes: fixed + buffers_bytes,
        })
    }
}

/// Most bytes that the stored form of a batch can take.
fn bound_len_bytes<W: TileWork>(plan: &Plan, index: &TileIndex, work: &W, batch: &Batch) -> u64 {
    let Some(mut tile) = index.tile(batch.first) else { return 0 };
    let mut bound = 0u64;
    for _ in 0..batch.tiles {
        while tile.index >= plan.arrays[tile.array as usize].tile_count() {
            tile = crate::plan::Tile { array: tile.array + 1, index: 0 };
        }
        bound = bound.saturating_add(work.stored_bound_len_bytes(tile) as u64);
        tile.index += 1;
    }
    bound
}
