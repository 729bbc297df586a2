//! Fits a plan into the memory budget and assigns it to ranks, before the first tile is produced.
//!
//! Invariant: all ranks compute the same batches, owners and rounds, from the plan and from gathered facts; a rank that
//! cannot take part makes all ranks fail.

use super::fit::{BatchFootprint, MemoryFit, RankInfo};
use super::schedule::{AssignOptions, Schedule, lanes};
use super::status::agree_at_start;
use super::window::{LocalBatch, WindowLimits};
use super::{Checkpoint, Context, EngineError, EngineOptions, TileWork};
use crate::error::CoreError;
use crate::memory::Permit;
use crate::plan::{Batch, Plan, TileIndex};
use crate::ranks::message::{encode_u64s, number};
use std::ops::Range;

/// Setup for executing a plan within the budget.
pub(super) struct ExecutionSetup {
    /// Number of worker threads.
    pub jobs: usize,
    /// Batches of this rank.
    pub local_batches: Vec<LocalBatch>,
    pub limits: WindowLimits,
    /// Length of the largest tile.
    pub raw_len_bytes: usize,
    /// Permit for the memory of the whole execution.
    pub permit: Permit,
    /// Assignment to ranks; `None` for a single rank.
    pub schedule: Option<Schedule>,
    /// Work that rank 0 kept from an earlier run; `None` if nothing is recorded.
    pub recorded: Option<Checkpoint>,
}

impl ExecutionSetup {
    fn of(
        fit: MemoryFit,
        local_batches: Vec<LocalBatch>,
        schedule: Option<Schedule>,
        recorded: Option<Checkpoint>,
    ) -> Self {
        Self {
            jobs: fit.jobs as usize,
            local_batches,
            limits: fit.limits,
            // This cannot overflow: the permit for it is within the memory of this machine or was refused.
            raw_len_bytes: usize::try_from(fit.raw_len_bytes).unwrap_or(usize::MAX),
            permit: fit.permit,
            schedule,
            recorded,
        }
    }

    /// Returns the tiles that all ranks produce together, and the consecutive runs of tiles that this rank produces.
    pub(super) fn tiles(&self) -> (Range<u64>, Vec<Range<u64>>) {
        let range = |batch: &Batch| batch.first..batch.first + batch.tiles;
        let local: Vec<Range<u64>> = self.local_batches.iter().map(|local| range(&local.batch)).collect();
        let all = match &self.schedule {
            Some(schedule) => hull(schedule.batches.first().map(range), schedule.batches.last().map(range)),
            None => hull(local.first().cloned(), local.last().cloned()),
        };
        (all, local)
    }

    /// Collective. Agrees on the setup. Of `tiles`, only those after the tiles that rank 0 has `recorded` are produced.
    /// With `has_rounds` there is a schedule even for a single rank.
    pub(super) fn agree<W: TileWork>(
        plan: &Plan,
        index: &TileIndex,
        work: &W,
        options: &EngineOptions,
        (tiles, recorded): (Range<u64>, Option<Checkpoint>),
        has_rounds: bool,
        context: &Context<'_>,
    ) -> Result<Self, EngineError<W::Error>> {
        let facts = plan.validate().map(|()| RankInfo::new(plan, index, options, recorded, context.budget).to_bytes());
        let all = agree_at_start(context.communicator, facts)?;
        let all = all.iter().map(|bytes| RankInfo::from_bytes(bytes)).collect::<Result<Vec<_>, _>>()?;
        if let Some(rank) = all.iter().position(|facts| facts.common != all[0].common) {
            return Err(CoreError::PlansDiffer { rank }.into());
        }

        let batches = RankInfo::batches(&all, plan, options.arenas, &|array| work.file(array));
        let recorded = all[0].recorded;
        let left = tiles.start.saturating_add(recorded.unwrap_or_default().tiles)..tiles.end;
        let batches = within(&left, batches, plan, index);
        let needs: Vec<_> = batches.iter().map(|batch| BatchFootprint::of(index, work, batch)).collect();

        let fitted = MemoryFit::new(plan, &batches, &needs, work, options.jobs, context.budget);
        if !has_rounds {
            let lanes = lanes(plan, index, work, &batches, options.arenas);
            let local_batches =
                batches.iter().zip(&needs).zip(lanes).map(|((batch, need), lane)| need.local_batch(*batch, lane));
            let local_batches = local_batches.collect();
            return Ok(Self::of(fitted?, local_batches, None, recorded));
        }

        let (quota, fitted) = match fitted {
            Ok(fitted) => (Ok(encode_u64s([fitted.quota_bytes()])), Some(fitted)),
            Err(error) => (Err(error), None),
        };
        let quotas = agree_at_start::<W::Error>(context.communicator, quota)?;
        let quotas: Vec<_> = quotas.iter().map(|bytes| number(bytes)).collect();
        let mut fitted = fitted.ok_or(CoreError::RankLeft { operation: "set up the engine" })?;
        let terms = AssignOptions {
            buffer_len_bytes: fitted.buffer_len_bytes(),
            arenas: options.arenas,
            quotas: &quotas,
            owners: options.owners,
        };
        let schedule = Schedule::new(plan, index, work, batches, &needs, &terms);
        let local_batches = schedule.owned_by(context.communicator.rank(), 0..schedule.batches.len());
        let local_batches =
            local_batches.map(|at| needs[at].local_batch(schedule.batches[at], schedule.lanes[at])).collect();
        // Rounds limit the tiles in flight.
        fitted.limits.tiles = u64::MAX;
        Ok(Self::of(fitted, local_batches, Some(schedule), recorded))
    }
}

/// Returns the range from the beginning of `first` to the end of `last`; empty if there are none.
fn hull(first: Option<Range<u64>>, last: Option<Range<u64>>) -> Range<u64> {
    first.zip(last).map_or(0..0, |(first, last)| first.start..last.end)
}

/// Restricts `batches` to `tiles`.
fn within(tiles: &Range<u64>, batches: Vec<Batch>, plan: &Plan, index: &TileIndex) -> Vec<Batch> {
    let bounds = |batch: &Batch| (batch.first.max(tiles.start), (batch.first + batch.tiles).min(tiles.end));
    let rest = batches.into_iter().filter(|batch| bounds(batch).0 < bounds(batch).1);
    rest.map(|batch| {
        let (first, end) = bounds(&batch);
        if end - first == batch.tiles {
            return batch;
        }
        let cut = Batch { first, tiles: end - first, raw_len_bytes: 0 };
        let raw_len_bytes = index.tiles_in(&cut).map(|tile| plan.arrays[tile.array as usize].tile_len_bytes()).sum();
        Batch { raw_len_bytes, ..cut }
    })
    .collect()
}
