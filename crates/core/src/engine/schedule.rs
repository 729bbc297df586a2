//! How ranks share a plan: owners and rounds of its batches, as plain data.
//!
//! Not for executing it. [`rehearse`] computes for any number of ranks, in one process, what an execution by them would
//! agree on at its start. Invariant: both come from the same function of the same facts.

use super::setup::{BatchNeed, Facts, Fitted};
use super::{EngineOptions, TileWork};
use crate::arenas::Arenas;
use crate::communicator::Rank;
use crate::error::CoreError;
use crate::memory::MemoryBudget;
use crate::owners::{Item, Need, deal, deal_to_some, overlaps, rounds};
use crate::plan::{Batch, Plan, Tile, TileIndex};
use std::num::NonZeroUsize;
use std::ops::Range;

/// Tiles in flight, at most: their claims take 2.5 MiB.
pub(super) const WINDOW_TILES: u64 = 64 * 1024;

/// How ranks share a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The plan's tiles, in order.
    pub batches: Vec<Batch>,
    /// Output file of each batch.
    pub files: Vec<u32>,
    /// Lane of each batch, by which tiles get their places; see [`crate::arenas`].
    pub lanes: Vec<u32>,
    /// Owner of each batch.
    pub owners: Vec<u32>,
    /// Batches that the ranks go through together.
    pub rounds: Vec<Range<usize>>,
    /// Whether round n + 1 may be open while round n is, by n.
    pub overlaps: Vec<bool>,
    /// Memory that each batch takes on its owner while its round lasts.
    pub len_bytes: Vec<u64>,
}

impl Schedule {
    /// Deals `batches`, which have these `needs`, to ranks.
    pub(super) fn new<W: TileWork>(
        plan: &Plan,
        index: &TileIndex,
        work: &W,
        batches: Vec<Batch>,
        needs: &[BatchNeed],
        terms: &Terms<'_>,
    ) -> Self {
        let Terms { buffer_len_bytes, arenas, quotas, owners } = *terms;
        let items = batches.iter().map(|batch| BatchNeed::item(index, work, plan, batch));
        let lanes = lanes(plan, index, work, &batches, arenas);
        let owners = match arenas {
            Some(Arenas { lanes: count, .. }) if count as usize >= quotas.len() => {
                owners_of_lanes(items, &lanes, count, quotas.len())
            }
            // With fewer lanes than ranks some stripes are shared, which is better than ranks without work.
            _ => deal_to_some(items, quotas.len(), owners),
        };
        let of_batch = |(batch, need): (&Batch, &BatchNeed)| Need {
            len_bytes: buffer_len_bytes.saturating_add(need.brought_len_bytes),
            tiles: batch.tiles,
        };
        let memory: Vec<_> = batches.iter().zip(needs).map(of_batch).collect();
        let rounds = rounds(&owners, &memory, quotas, WINDOW_TILES);
        let overlaps = overlaps(&owners, &memory, quotas, &rounds);
        let files = needs.iter().map(|need| need.file).collect();
        let len_bytes = memory.iter().map(|need| need.len_bytes).collect();
        Self { batches, files, lanes, owners, rounds, overlaps, len_bytes }
    }

    /// Batches that `rank` owns in `round`.
    pub fn owned_by(&self, rank: Rank, round: Range<usize>) -> impl Iterator<Item = usize> {
        round.filter(move |at| self.owners[*at] as usize == rank)
    }
}

/// What batches are dealt by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms<'a> {
    /// Length of the buffer of a batch.
    pub buffer_len_bytes: u64,
    pub arenas: Option<Arenas>,
    /// Memory of each rank for a round.
    pub quotas: &'a [u64],
    /// How many of them own batches; `None`: all.
    pub owners: Option<NonZeroUsize>,
}

/// The lane of each batch: the same for any number of ranks.
pub(super) fn lanes<W: TileWork>(
    plan: &Plan,
    index: &TileIndex,
    work: &W,
    batches: &[Batch],
    arenas: Option<Arenas>,
) -> Vec<u32> {
    let Some(Arenas { lanes, .. }) = arenas.filter(|arenas| arenas.lanes > 1) else { return vec![0; batches.len()] };
    let items = batches.iter().map(|batch| Item { home: None, ..BatchNeed::item(index, work, plan, batch) });
    deal(items, lanes as usize)
}

/// The owner of each item where ranks own whole lanes.
fn owners_of_lanes(items: impl Iterator<Item = Item>, lanes: &[u32], count: u32, ranks: usize) -> Vec<u32> {
    let mut of_lanes = vec![Item { cost: 0, home: None }; count as usize];
    for (item, lane) in items.zip(lanes) {
        let cost = &mut of_lanes[*lane as usize].cost;
        *cost = cost.saturating_add(item.cost);
    }
    let owners = deal(of_lanes, ranks);
    lanes.iter().map(|lane| owners[*lane as usize]).collect()
}

/// What an execution by many ranks would agree on at its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rehearsal {
    /// Who makes what, and when.
    pub schedule: Schedule,
    /// Worker threads of each rank.
    pub jobs: usize,
    /// Memory of each rank beside the buffers of its batches.
    pub fixed_len_bytes: u64,
    /// Memory that each rank acquires from its budget: the above and all buffers.
    pub permit_len_bytes: u64,
}

/// What `ranks` ranks, each with the same `options` and memory budget, would agree on at the start of an execution.
///
/// # Errors
/// If the plan contradicts itself, or one worker with its largest tile does not fit the budget.
pub fn rehearse<W: TileWork>(
    plan: &Plan,
    work: &W,
    ranks: usize,
    options: &EngineOptions,
    memory_limit_bytes: u64,
) -> Result<Rehearsal, CoreError> {
    plan.validate()?;
    let (index, budget) = (plan.tile_index(), MemoryBudget::new(memory_limit_bytes));
    let all = vec![Facts::new(plan, &index, options, None, &budget); ranks.max(1)];
    let batches = Facts::batches(&all, plan, options.arenas, &|array| work.file(array));
    let needs: Vec<_> = batches.iter().map(|batch| BatchNeed::of(&index, work, batch)).collect();
    let fitted = Fitted::new(plan, &batches, &needs, work.worker_len_bytes(), options.jobs, &budget)?;
    let quotas = vec![fitted.quota_bytes(); all.len()];
    let (jobs, fixed_len_bytes) = (fitted.jobs(), fitted.fixed_len_bytes());
    let terms = Terms {
        buffer_len_bytes: fitted.buffer_len_bytes(),
        arenas: options.arenas,
        quotas: &quotas,
        owners: options.owners,
    };
    let schedule = Schedule::new(plan, &index, work, batches, &needs, &terms);
    Ok(Rehearsal { schedule, jobs, fixed_len_bytes, permit_len_bytes: fitted.permit_len_bytes() })
}

/// The cost of encoding each batch, in the work's unit.
pub fn costs<W: TileWork>(plan: &Plan, work: &W, batches: &[Batch]) -> Vec<u64> {
    let index = plan.tile_index();
    let of_tile = |tile: Tile| work.cost(tile, plan.arrays[tile.array as usize].tile_len_bytes());
    let of_batch = |batch: &Batch| index.tiles_in(batch).map(of_tile).fold(0, u64::saturating_add);
    batches.iter().map(of_batch).collect()
}
