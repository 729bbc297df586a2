//! Loop of a worker thread: encodes batches and writes those that have an address, until none is left.
//!
//! Invariant: between the tiles of a batch no lock is taken and nothing is allocated; the raw buffer and the state of
//! the work live as long as the thread.

use super::window::{InFlightBatch, InFlightWindow, Job};
use super::{EngineError, OutputRun, Sink, TileForm, TileWork};
use crate::cancel::CancelToken;
use crate::digest::Digest;
use crate::error::CoreError;
use crate::output::claims::Claim;
use crate::plan::{Plan, Tile, TileIndex};
use crate::report::progress::{Event, Observer, Stage};
use crate::report::{StageTable, StageTotals, elapsed_ns, thread_cpu_ns};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Instant;

/// State shared by all workers of a rank.
pub(super) struct WorkerContext<'a, W: TileWork> {
    pub plan: &'a Plan,
    pub index: &'a TileIndex,
    pub work: &'a W,
    /// Output; `None` if the calling thread writes.
    pub sink: Option<&'a dyn Sink>,
    pub window: &'a InFlightWindow<W::Error>,
    pub observer: &'a dyn Observer,
    pub cancel: &'a CancelToken,
    /// Length of the largest tile.
    pub raw_len_bytes: usize,
    /// Whether a later run may resume from the placed batches.
    pub is_recorded: bool,
}

impl<W: TileWork> WorkerContext<'_, W> {
    /// Starts up to `jobs` workers. If the system cannot start a thread, those already started do all the work. The
    /// run fails if there are none.
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        jobs: usize,
    ) -> Vec<ScopedJoinHandle<'scope, StageTable>> {
        let mut workers = Vec::with_capacity(jobs);
        for number in 0..jobs {
            self.window.worker_starts();
            let thread = std::thread::Builder::new().name(format!("raddle-{number}"));
            match thread.spawn_scoped(scope, || self.run()) {
                Ok(worker) => workers.push(worker),
                Err(source) => {
                    self.window.worker_ends();
                    if workers.is_empty() {
                        self.window.fail(0, EngineError::Core(CoreError::Threads { source }));
                    }
                    break;
                }
            }
        }
        workers
    }

    /// Runs one worker to its end and returns its counters. A panic becomes a failure of the run.
    fn run(&self) -> StageTable {
        let mut stages = StageTable::default();
        // State that a panic leaves inconsistent is dropped with the run and never read again.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.work_until_done(&mut stages)));
        if let Err(panic) = outcome {
            let message = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_else(|| "no message".to_owned());
            self.window.fail(0, EngineError::Panicked { message });
        }
        self.window.worker_ends();
        stages
    }

    fn work_until_done(&self, stages: &mut StageTable) {
        let mut worker = match self.work.worker() {
            Ok(worker) => worker,
            Err(source) => return self.window.fail(0, EngineError::Worker { source }),
        };
        let mut raw = vec![0; self.raw_len_bytes];
        loop {
            match self.window.next_job() {
                Job::Exit => break,
                Job::Encode(parcel) => self.encode(&mut worker, &mut raw, parcel, stages),
                Job::Write(parcel) => self.write(parcel, stages),
            }
        }
        let mut inner = StageTable::default();
        self.work.retire(worker, &mut inner);
        let regroup = stages.get_mut(Stage::Regroup);
        for stage in [Stage::Read, Stage::Decode, Stage::Restructure, Stage::Encode] {
            regroup.wall_ns = regroup.wall_ns.saturating_sub(inner.get(stage).wall_ns);
            regroup.cpu_ns = regroup.cpu_ns.saturating_sub(inner.get(stage).cpu_ns);
        }
        stages.add(&inner);
    }

    fn encode(&self, worker: &mut W::Worker, raw: &mut [u8], mut parcel: InFlightBatch, stages: &mut StageTable) {
        let batch = parcel.batch;
        let Some(mut tile) = self.index.tile(batch.first) else { return };
        let cpu_before_ns = thread_cpu_ns();
        let mut clock = Stopwatch(Instant::now());
        let mut spent = BatchTime::default();
        for ordinal in batch.first..batch.first + batch.tiles {
            if self.cancel.is_cancelled() {
                return self.window.fail(0, EngineError::Core(CoreError::Cancelled));
            }
            if !self.window.wants(ordinal) {
                return;
            }
            // The length was checked when the window was created: the largest tile fits `raw`.
            let len = self.plan.arrays[tile.array as usize].tile_len_bytes() as usize;
            if let Err(error) = self.make(worker, tile, &mut raw[..len], &mut parcel, &mut clock, &mut spent) {
                return self.window.fail(ordinal, error);
            }
            tile = self.index.next(tile);
        }
        if self.is_recorded {
            // Computed while the bytes are still in the cache.
            parcel.checksum = Digest::of(&parcel.stored).crc64_nvme();
            self.work.note(worker, &mut parcel.note);
            spent.encode.wall_ns += clock.lap(0).wall_ns;
        }
        spent.share_out(thread_cpu_ns() - cpu_before_ns);
        stages.get_mut(Stage::Regroup).add(&spent.regroup);
        stages.get_mut(Stage::Encode).add(&spent.encode);
        self.observer.event(&Event::Advanced { stage: Stage::Encode, bytes: batch.raw_len_bytes, items: batch.tiles });
        self.window.encoded(parcel);
    }

    /// Appends the stored form of one tile to the parcel.
    fn make(
        &self,
        worker: &mut W::Worker,
        tile: Tile,
        raw: &mut [u8],
        parcel: &mut InFlightBatch,
        clock: &mut Stopwatch,
        spent: &mut BatchTime,
    ) -> Result<(), EngineError<W::Error>> {
        let (before, raw_len_bytes) = (parcel.stored.len(), raw.len() as u64);
        let failed = |stage| move |source| EngineError::Tile { tile, stage, source };
        let moved = self.work.verbatim(worker, tile, &mut parcel.stored).map_err(failed(Stage::Read))?;
        let form = match moved {
            Some(form) => {
                parcel.verbatim_tiles += 1;
                spent.regroup.add(&clock.lap(raw_len_bytes));
                form
            }
            None => {
                parcel.stored.truncate(before);
                self.work.assemble(worker, tile, raw).map_err(failed(Stage::Regroup))?;
                spent.regroup.add(&clock.lap(raw_len_bytes));
                let form = self.work.encode(worker, tile, raw, &mut parcel.stored).map_err(failed(Stage::Encode))?;
                spent.encode.add(&clock.lap(raw_len_bytes));
                form
            }
        };
        match form {
            TileForm::Fill => parcel.stored.truncate(before),
            TileForm::Stored { filter_mask } => {
                let (bound, got) = (self.work.stored_bound_len_bytes(tile), parcel.stored.len() - before);
                if got > bound {
                    return Err(EngineError::Bound { tile, got_bytes: got as u64, bound_bytes: bound as u64 });
                }
                let claim = Claim { tile, address: before as u64, len_bytes: got as u64, filter_mask };
                parcel.claims.push(claim);
            }
        }
        Ok(())
    }

    fn write(&self, parcel: InFlightBatch, stages: &mut StageTable) {
        let (cpu_before_ns, started) = (thread_cpu_ns(), Instant::now());
        let totals = stages.get_mut(Stage::Place);
        for OutputRun { file, address, bytes } in parcel.runs() {
            let len_bytes = bytes.len() as u64;
            // Without a sink, no worker receives anything to write.
            let Some(sink) = self.sink else { break };
            if let Err(source) = sink.write_file_at(file, address, bytes) {
                return self.window.fail(parcel.batch.first, EngineError::Write { address, len_bytes, source });
            }
            totals.calls += 1;
        }
        let len_bytes = parcel.stored.len() as u64;
        totals.wall_ns += elapsed_ns(started);
        totals.cpu_ns += thread_cpu_ns() - cpu_before_ns;
        totals.bytes += len_bytes;
        let items = parcel.batch.tiles;
        self.observer.event(&Event::Advanced { stage: Stage::Place, bytes: len_bytes, items });
        self.window.placed(parcel);
    }
}

/// Timer of laps: one clock reading ends a lap and begins the next.
struct Stopwatch(Instant);

impl Stopwatch {
    fn lap(&mut self, bytes: u64) -> StageTotals {
        let now = Instant::now();
        let wall_ns = u64::try_from((now - self.0).as_nanos()).unwrap_or(u64::MAX);
        self.0 = now;
        StageTotals { wall_ns, cpu_ns: 0, bytes, calls: 1 }
    }
}

/// Time spent on a batch.
#[derive(Default)]
struct BatchTime {
    regroup: StageTotals,
    encode: StageTotals,
}

impl BatchTime {
    /// Distributes processor time in proportion to wall time: reading the processor time is a system call, too
    /// expensive for every tile.
    fn share_out(&mut self, cpu_ns: u64) {
        let wall_ns = (self.regroup.wall_ns + self.encode.wall_ns).max(1);
        self.encode.cpu_ns = (cpu_ns as f64 * self.encode.wall_ns as f64 / wall_ns as f64) as u64;
        self.regroup.cpu_ns = cpu_ns.saturating_sub(self.encode.cpu_ns);
    }
}
