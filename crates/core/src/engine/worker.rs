//! What one worker thread does: encode batches and write those that have an address, until none is left.
//!
//! Invariant: between the tiles of a batch no lock is taken and nothing is allocated; the raw buffer and the state of
//! the work live as long as the thread.

use super::window::{Job, Parcel, Window};
use super::{EngineError, Sink, TileForm, TileWork};
use crate::cancel::CancelToken;
use crate::claims::Claim;
use crate::error::CoreError;
use crate::plan::{Plan, Tile, TileIndex};
use crate::progress::{Event, Observer, Stage};
use crate::report::{StageTable, elapsed_ns, thread_cpu_ns};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// What all workers of a rank look at.
pub(super) struct Shop<'a, W: TileWork> {
    pub plan: &'a Plan,
    pub index: &'a TileIndex,
    pub work: &'a W,
    pub sink: &'a dyn Sink,
    pub window: &'a Window<W::Error>,
    pub observer: &'a dyn Observer,
    pub cancel: &'a CancelToken,
    /// Length of the largest tile.
    pub raw_len_bytes: usize,
}

impl<W: TileWork> Shop<'_, W> {
    /// Runs one worker to its end and returns what it counted. A panic becomes a failure of the run.
    pub(super) fn run(&self) -> StageTable {
        let mut stages = StageTable::default();
        // The state that a panic may leave half-changed is dropped with the run: nothing of it is read again.
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
                Job::Leave => break,
                Job::Encode(parcel) => self.encode(&mut worker, &mut raw, parcel, stages),
                Job::Write(parcel) => self.write(parcel, stages),
            }
        }
        let mut inner = StageTable::default();
        self.work.retire(worker, &mut inner);
        let regroup = stages.get_mut(Stage::Regroup);
        for stage in [Stage::Read, Stage::Decode] {
            regroup.wall_ns = regroup.wall_ns.saturating_sub(inner.get(stage).wall_ns);
            regroup.cpu_ns = regroup.cpu_ns.saturating_sub(inner.get(stage).cpu_ns);
        }
        stages.add(&inner);
    }

    fn encode(&self, worker: &mut W::Worker, raw: &mut [u8], mut parcel: Parcel, stages: &mut StageTable) {
        let batch = parcel.batch;
        let Some(mut tile) = self.index.tile(batch.first) else { return };
        let cpu_before_ns = thread_cpu_ns();
        let (mut regroup_ns, mut encode_ns, mut encoded) = (0, 0, 0);
        for ordinal in batch.first..batch.first + batch.tiles {
            if self.cancel.is_cancelled() {
                return self.window.fail(0, EngineError::Core(CoreError::Cancelled));
            }
            if !self.window.wants(ordinal) {
                return;
            }
            // The length is checked when the window is made: the largest tile fits `raw`.
            let len = self.plan.arrays[tile.array as usize].tile_len_bytes() as usize;
            let times = match self.make(worker, tile, &mut raw[..len], &mut parcel) {
                Ok(times) => times,
                Err(error) => return self.window.fail(ordinal, error),
            };
            regroup_ns += times.regroup_ns;
            encode_ns += times.encode_ns;
            encoded += u64::from(!times.verbatim);
            tile = self.index.next(tile);
        }
        // A clock of the thread costs a system call: it is read per batch and shared out by wall time.
        let cpu_ns = thread_cpu_ns() - cpu_before_ns;
        let share = |wall_ns: u64| (cpu_ns as f64 * wall_ns as f64 / (regroup_ns + encode_ns).max(1) as f64) as u64;
        for (stage, wall_ns) in [(Stage::Regroup, regroup_ns), (Stage::Encode, encode_ns)] {
            let totals = stages.get_mut(stage);
            totals.wall_ns += wall_ns;
            totals.cpu_ns += share(wall_ns);
            totals.bytes += batch.raw_len_bytes;
            totals.calls += if stage == Stage::Encode { encoded } else { batch.tiles };
        }
        self.observer.event(&Event::Advanced { stage: Stage::Encode, bytes: batch.raw_len_bytes, items: batch.tiles });
        self.window.encoded(parcel);
    }

    /// Appends the stored form of one tile to the parcel.
    fn make(
        &self,
        worker: &mut W::Worker,
        tile: Tile,
        raw: &mut [u8],
        parcel: &mut Parcel,
    ) -> Result<TileTimes, EngineError<W::Error>> {
        let started = Instant::now();
        let before = parcel.stored.len();
        let failed = |stage| move |source| EngineError::Tile { tile, stage, source };
        let moved = self.work.verbatim(worker, tile, &mut parcel.stored).map_err(failed(Stage::Read))?;
        let verbatim = moved.is_some();
        let (form, regroup_ns, encode_ns) = match moved {
            Some(form) => (form, elapsed_ns(started), 0),
            None => {
                parcel.stored.truncate(before);
                self.work.assemble(worker, tile, raw).map_err(failed(Stage::Regroup))?;
                let assembled = Instant::now();
                let form = self.work.encode(worker, tile, raw, &mut parcel.stored).map_err(failed(Stage::Encode))?;
                let regroup_ns = u64::try_from((assembled - started).as_nanos()).unwrap_or(u64::MAX);
                (form, regroup_ns, elapsed_ns(assembled))
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
        parcel.verbatim_tiles += u64::from(verbatim);
        Ok(TileTimes { regroup_ns, encode_ns, verbatim })
    }

    fn write(&self, parcel: Parcel, stages: &mut StageTable) {
        let (cpu_before_ns, started) = (thread_cpu_ns(), Instant::now());
        let (address, len_bytes) = (parcel.address, parcel.stored.len() as u64);
        if let Err(source) = self.sink.write_at(address, &parcel.stored) {
            return self.window.fail(parcel.batch.first, EngineError::Write { address, len_bytes, source });
        }
        let totals = stages.get_mut(Stage::Place);
        totals.wall_ns += elapsed_ns(started);
        totals.cpu_ns += thread_cpu_ns() - cpu_before_ns;
        totals.bytes += len_bytes;
        totals.calls += 1;
        let items = parcel.batch.tiles;
        self.observer.event(&Event::Advanced { stage: Stage::Place, bytes: len_bytes, items });
        self.window.placed(parcel);
    }
}

struct TileTimes {
    regroup_ns: u64,
    encode_ns: u64,
    verbatim: bool,
}
