//! Schedule of a plan shared by several ranks: owners and rounds of its batches, as plain data.
//!
//! [`dry_run`] computes, in one process, the schedule on which an execution by any number of ranks would agree.
//! Invariant: a dry run and an execution use the same function on the same facts.

use super::fit::{BatchFootprint, MemoryFit, RankInfo, WINDOW_TILES};
use super::{EngineOptions, TileWork};
use crate::error::CoreError;
use crate::memory::MemoryBudget;
use crate::output::arenas::Arenas;
use crate::plan::{Batch, Plan, TileIndex};
use crate::ranks::communicator::Rank;
use crate::ranks::owners::{Item, OwningRanks, assign};
use crate::ranks::rounds::{Footprint, overlaps, rounds};
use std::num::NonZeroUsize;
use std::ops::Range;

/// Assignment of a plan's batches to ranks and rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Batches of the plan, in order.
    pub batches: Vec<Batch>,
    /// Output file of each batch.
    pub files: Vec<u32>,
    /// Lane of each batch, which determines where its tiles are placed; see [`crate::output::arenas`].
    pub lanes: Vec<u32>,
    /// Owner of each batch.
    pub owners: Vec<u32>,
    /// Ranges of batches that the ranks process together.
    pub rounds: Vec<Range<usize>>,
    /// Whether round n + 1 may be open together with round n, indexed by n.
    pub overlaps: Vec<bool>,
    /// Memory that each batch occupies on its owner during its round.
    pub len_bytes: Vec<u64>,
}

impl Schedule {
    /// Assigns `batches` with the given `needs` to ranks.
    pub(super) fn new<W: TileWork>(
        plan: &Plan,
        index: &TileIndex,
        work: &W,
        batches: Vec<Batch>,
        needs: &[BatchFootprint],
        terms: &AssignOptions<'_>,
    ) -> Self {
        let AssignOptions { buffer_len_bytes, arenas, quotas, owners } = *terms;
        let items = batches.iter().map(|batch| BatchFootprint::item(index, work, plan, batch));
        let lanes = lanes(plan, index, work, &batches, arenas);
        let of_batch = |(batch, need): (&Batch, &BatchFootprint)| Footprint {
            len_bytes: buffer_len_bytes.saturating_add(need.received_len_bytes),
            tiles: batch.tiles,
        };
        let memory: Vec<_> = batches.iter().zip(needs).map(of_batch).collect();
        let (owners, rounds) = match arenas {
            Some(Arenas { lanes: count, .. }) if count as usize >= quotas.len() => {
                let owners = owners_of_lanes(items, &lanes, count, quotas.len());
                let rounds = rounds(&owners, &memory, quotas, WINDOW_TILES);
                (owners, rounds)
            }
            // With fewer lanes than ranks, some stripes are shared, which is better than leaving ranks idle.
            _ => OwningRanks::new(quotas.len(), owners).assign_rounds(items, &memory, quotas, WINDOW_TILES),
        };
        let overlaps = overlaps(&owners, &memory, quotas, &rounds);
        let files = needs.iter().map(|need| need.file).collect();
        let len_bytes = memory.iter().map(|need| need.len_bytes).collect();
        Self { batches, files, lanes, owners, rounds, overlaps, len_bytes }
    }

    /// Returns the batches that `rank` owns in `round`.
    pub fn owned_by(&self, rank: Rank, round: Range<usize>) -> impl Iterator<Item = usize> {
        round.filter(move |at| self.owners[*at] as usize == rank)
    }
}

/// Constraints for assigning batches.
#[derive(Debug, Clone, Copy)]
pub(super) struct AssignOptions<'a> {
    /// Length of a batch buffer.
    pub buffer_len_bytes: u64,
    pub arenas: Option<Arenas>,
    /// Memory quota of each rank per round.
    pub quotas: &'a [u64],
    /// Number of ranks that own batches; `None` for all.
    pub owners: Option<NonZeroUsize>,
}

/// Returns the lane of each batch, which does not depend on the number of ranks.
pub(super) fn lanes<W: TileWork>(
    plan: &Plan,
    index: &TileIndex,
    work: &W,
    batches: &[Batch],
    arenas: Option<Arenas>,
) -> Vec<u32> {
    let Some(Arenas { lanes, .. }) = arenas.filter(|arenas| arenas.lanes > 1) else { return vec![0; batches.len()] };
    let item = |batch| Item { cost: BatchFootprint::cost(index, work, plan, batch), ..Item::default() };
    let items: Vec<Item> = batches.iter().map(item).collect();
    assign(&items, lanes as usize)
}

/// Returns the owner of each item if ranks own whole lanes.
fn owners_of_lanes(items: impl Iterator<Item = Item>, lanes: &[u32], count: u32, ranks: usize) -> Vec<u32> {
    let mut of_lanes = vec![Item::default(); count as usize];
    for (item, lane) in items.zip(lanes) {
        let cost = &mut of_lanes[*lane as usize].cost;
        *cost = cost.saturating_add(item.cost);
    }
    let owners = assign(&of_lanes, ranks);
    lanes.iter().map(|lane| owners[*lane as usize]).collect()
}

/// Setup on which an execution by many ranks would agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DryRun {
    /// Owners and rounds.
    pub schedule: Schedule,
    /// Number of worker threads of each rank.
    pub jobs: usize,
    /// Memory of each rank apart from batch buffers.
    pub fixed_len_bytes: u64,
    /// Memory that each rank acquires from its budget: fixed memory and all buffers.
    pub permit_len_bytes: u64,
}

/// Computes the setup of an execution by `ranks` ranks with identical `options` and memory budgets.
///
/// # Errors
/// If the plan contradicts itself, or one worker with its largest tile does not fit the budget.
pub fn dry_run<W: TileWork>(
    plan: &Plan,
    work: &W,
    ranks: usize,
    options: &EngineOptions,
    memory_limit_bytes: u64,
) -> Result<DryRun, CoreError> {
    plan.validate()?;
    let (index, budget) = (plan.tile_index(), MemoryBudget::new(memory_limit_bytes));
    let all = vec![RankInfo::new(plan, &index, options, None, &budget); ranks.max(1)];
    let batches = RankInfo::batches(&all, plan, options.arenas, &|array| work.file(array));
    let needs: Vec<_> = batches.iter().map(|batch| BatchFootprint::of(&index, work, batch)).collect();
    let fitted = MemoryFit::new(plan, &batches, &needs, work, options.jobs, &budget)?;
    let quotas = vec![fitted.quota_bytes(); all.len()];
    let (jobs, fixed_len_bytes) = (fitted.jobs(), fitted.fixed_len_bytes());
    let terms = AssignOptions {
        buffer_len_bytes: fitted.buffer_len_bytes(),
        arenas: options.arenas,
        quotas: &quotas,
        owners: options.owners,
    };
    let schedule = Schedule::new(plan, &index, work, batches, &needs, &terms);
    Ok(DryRun { schedule, jobs, fixed_len_bytes, permit_len_bytes: fitted.permit_len_bytes() })
}

/// Returns the cost of encoding each batch, in the unit of the work.
pub fn costs<W: TileWork>(plan: &Plan, work: &W, batches: &[Batch]) -> Vec<u64> {
    let index = plan.tile_index();
    batches.iter().map(|batch| BatchFootprint::cost(&index, work, plan, batch)).collect()
}
