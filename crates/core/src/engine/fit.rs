//! Batches of a plan, and the threads and memory with which a rank can execute them.

use super::window::{LocalBatch, WindowLimits};
use super::{Checkpoint, DEFAULT_BATCH_LEN_BYTES, EngineOptions, Placement, TileWork};
use crate::error::CoreError;
use crate::memory::{MemoryBudget, Permit};
use crate::output::arenas::Arenas;
use crate::output::claims::Claim;
use crate::plan::{Batch, Plan, Tile, TileIndex};
use crate::ranks::communicator::Rank;
use crate::ranks::message::{MessageReader, encode_u64s};
use crate::ranks::owners::{Holders, Item};

/// Minimum batch length for plans of any size: in smaller batches, locks and writes would be noticeable.
const MIN_BATCH_LEN_BYTES: u64 = 256 << 10;

/// Divisor of the memory. Batches are no longer than the quotient if it is less than [`MIN_BATCH_LEN_BYTES`].
const MIN_BATCHES_IN_MEMORY: u64 = 16;

/// Divisor of the memory: claims of tiles in flight take no more than the quotient.
const CLAIMS_SHARE: u64 = 16;

/// Minimum number of batches per worker, so that the last ones end at about the same time.
const BATCHES_PER_JOB: u64 = 16;

/// Share of a worker's memory that a batch of several tiles may take: one in this many.
const BATCHES_IN_JOB_MEMORY: u64 = 4;

/// Maximum number of batches in flight per worker: enough that a batch taking ten times as long as its neighbours does
/// not stall them, few enough to leave some of the budget to others.
const WINDOW_BATCHES_PER_JOB: u64 = 16;

/// Number of batches if the output has arenas. The batch of a tile then determines its lane and therefore its address,
/// so batches must depend only on the plan. With this number, each of a few hundred lanes still has several batches to
/// balance.
const BATCHES_WITH_ARENAS: u64 = 1024;

/// Maximum number of tiles in flight: their claims take 2.5 MiB.
pub(super) const WINDOW_TILES: u64 = 64 * 1024;

/// Facts that a rank sends to the others at the start.
#[derive(Debug, Clone)]
pub(super) struct RankInfo {
    /// Values that must be the same on all ranks.
    pub(super) common: [u64; 9],
    jobs: u64,
    batch_len_bytes: u64,
    available_bytes: u64,
    pub(super) recorded: Option<Checkpoint>,
}

impl RankInfo {
    pub(super) fn new(
        plan: &Plan,
        index: &TileIndex,
        options: &EngineOptions,
        recorded: Option<Checkpoint>,
        budget: &MemoryBudget,
    ) -> Self {
        Self {
            common: [
                plan.arrays.len() as u64,
                index.tile_count(),
                plan.raw_len_bytes(),
                options.start_address,
                u64::from(options.placement == Placement::Unordered),
                options.owners.map_or(0, |owners| owners.get() as u64),
                options.arenas.map_or(0, |arenas| arenas.lanes.into()),
                options.arenas.map_or(0, |arenas| arenas.stripe_len_bytes),
                options.arenas.map_or(0, |arenas| arenas.arena_len_bytes),
            ],
            jobs: options.jobs.max(1) as u64,
            batch_len_bytes: options.batch_len_bytes.max(1),
            available_bytes: budget.available_bytes(),
            recorded,
        }
    }

    /// Splits the plan into batches. All ranks with the same facts get the same batches.
    pub(super) fn batches(
        all: &[Self],
        plan: &Plan,
        arenas: Option<Arenas>,
        file_of: &dyn Fn(u32) -> u32,
    ) -> Vec<Batch> {
        let all_jobs = all.iter().map(|facts| facts.jobs).fold(0, u64::saturating_add).max(1);
        let least = |value: fn(&Self) -> u64| all.iter().map(value).min().unwrap_or(0);
        let batch_len_bytes = least(|facts| facts.batch_len_bytes);
        let target = match arenas {
            // Arenas need batches that do not depend on the memory.
            Some(_) => BatchTarget {
                usual_len_bytes: plan.raw_len_bytes() / BATCHES_WITH_ARENAS,
                least_len_bytes: MIN_BATCH_LEN_BYTES,
            },
            None => BatchTarget::of(
                plan,
                all_jobs,
                least(|facts| facts.available_bytes / facts.jobs.max(1)),
                least(|facts| facts.available_bytes),
            ),
        };
        plan.batches_within(target.within(batch_len_bytes), file_of)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Checkpoint { tiles, stored_len_bytes } = self.recorded.unwrap_or_default();
        let recorded = [u64::from(self.recorded.is_some()), tiles, stored_len_bytes];
        encode_u64s(
            self.common.into_iter().chain([self.jobs, self.batch_len_bytes, self.available_bytes]).chain(recorded),
        )
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, CoreError> {
        let mut words = MessageReader::new("set up the engine", bytes);
        let common = words.words()?;
        let [jobs, batch_len_bytes, available_bytes] = words.words()?;
        let [is_recorded, tiles, stored_len_bytes] = words.words()?;
        let recorded = (is_recorded != 0).then_some(Checkpoint { tiles, stored_len_bytes });
        Ok(Self { common, jobs, batch_len_bytes, available_bytes, recorded })
    }
}

/// Length up to which tiles are combined to batches.
struct BatchTarget {
    usual_len_bytes: u64,
    least_len_bytes: u64,
}

impl BatchTarget {
    /// Chooses the length for this number of workers, the memory of each, and the memory of a rank.
    fn of(plan: &Plan, jobs: u64, job_len_bytes: u64, available_bytes: u64) -> Self {
        let of_jobs = plan.raw_len_bytes() / BATCHES_PER_JOB.saturating_mul(jobs);
        Self {
            usual_len_bytes: of_jobs.min(job_len_bytes / BATCHES_IN_JOB_MEMORY),
            least_len_bytes: MIN_BATCH_LEN_BYTES.min(available_bytes / MIN_BATCHES_IN_MEMORY),
        }
    }

    fn within(&self, limit_len_bytes: u64) -> u64 {
        self.usual_len_bytes.max(self.least_len_bytes).min(limit_len_bytes)
    }
}

/// Returns the maximum length of the values of a batch of several tiles in an execution of `plan` with this memory and
/// at least this number of workers.
pub fn batch_len_bytes(plan: &Plan, jobs: usize, memory_len_bytes: u64) -> u64 {
    let jobs = jobs.max(1) as u64;
    BatchTarget::of(plan, jobs, memory_len_bytes / jobs, memory_len_bytes).within(DEFAULT_BATCH_LEN_BYTES)
}

/// Resources that a batch needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchFootprint {
    /// Output file.
    pub file: u32,
    /// Maximum length of its stored form.
    bound_len_bytes: u64,
    /// Length of the pieces that other ranks send for the batch.
    pub received_len_bytes: u64,
}

impl BatchFootprint {
    pub(super) fn of<W: TileWork>(index: &TileIndex, work: &W, batch: &Batch) -> Self {
        let file = index.tile(batch.first).map_or(0, |tile| work.file(tile.array));
        let mut need = Self { file, bound_len_bytes: 0, received_len_bytes: 0 };
        for tile in index.tiles_in(batch) {
            need.bound_len_bytes = need.bound_len_bytes.saturating_add(work.stored_bound_len_bytes(tile) as u64);
            need.received_len_bytes = need.received_len_bytes.saturating_add(work.received_len_bytes(tile));
        }
        need
    }

    /// Returns the batch for the window of the rank that owns it.
    pub(super) fn local_batch(&self, batch: Batch, lane: u32) -> LocalBatch {
        LocalBatch { batch, file: self.file, lane, received_len_bytes: self.received_len_bytes }
    }

    /// Returns the cost of producing a batch.
    pub(super) fn cost<W: TileWork>(index: &TileIndex, work: &W, plan: &Plan, batch: &Batch) -> u64 {
        let of_tile = |tile: Tile| work.cost(tile, plan.arrays[tile.array as usize].tile_len_bytes());
        index.tiles_in(batch).map(of_tile).fold(0, u64::saturating_add)
    }

    /// Converts a batch to an item to assign: its cost, and the ranks that hold most of the batch.
    pub(super) fn item<W: TileWork>(index: &TileIndex, work: &W, plan: &Plan, batch: &Batch) -> Item {
        let (mut parts, mut len_bytes) = (Vec::<(Rank, u64)>::new(), 0_u64);
        for tile in index.tiles_in(batch) {
            len_bytes = len_bytes.saturating_add(plan.arrays[tile.array as usize].tile_len_bytes());
            work.holders(tile, &mut |rank, len_bytes| match parts.last_mut() {
                Some((last, sum)) if *last == rank => *sum = sum.saturating_add(len_bytes),
                _ => parts.push((rank, len_bytes)),
            });
        }
        Item { cost: Self::cost(index, work, plan, batch), len_bytes, holders: Holders::of(&mut parts) }
    }
}

/// Returns the number of tiles in flight with this memory.
fn window_tiles(plan: &Plan, memory_len_bytes: u64) -> u64 {
    let all_tiles = plan.arrays.iter().map(|array| array.tile_count()).fold(0, u64::saturating_add);
    let within_memory = memory_len_bytes / CLAIMS_SHARE / (2 * size_of::<Claim>() as u64);
    WINDOW_TILES.min(all_tiles).min(within_memory.max(1))
}

/// Returns the memory for the claims of two rounds of `tiles` in flight, and of the largest array, which is committed
/// as a whole.
fn claims_of(plan: &Plan, tiles: u64) -> u64 {
    let array_tiles = plan.arrays.iter().map(|array| array.tile_count()).max().unwrap_or(0);
    tiles.saturating_mul(2).saturating_add(array_tiles).saturating_mul(size_of::<Claim>() as u64)
}

/// Returns the memory that claims of tiles take in an execution of `plan` with this memory. Assumes that no batch has
/// more tiles than usual.
pub fn claims_len_bytes(plan: &Plan, memory_len_bytes: u64) -> u64 {
    claims_of(plan, window_tiles(plan, memory_len_bytes))
}

/// Threads and memory of this rank.
pub(super) struct MemoryFit {
    pub(super) jobs: u64,
    pub(super) limits: WindowLimits,
    pub(super) raw_len_bytes: u64,
    pub(super) permit: Permit,
}

impl MemoryFit {
    /// Chooses the largest number of workers for which the memory holds a batch of each.
    pub(super) fn new<W: TileWork>(
        plan: &Plan,
        batches: &[Batch],
        needs: &[BatchFootprint],
        work: &W,
        jobs: usize,
        budget: &MemoryBudget,
    ) -> Result<Self, CoreError> {
        let available_bytes = budget.available_bytes();
        let tiled = plan.arrays.iter().filter(|array| array.tile_count() > 0);
        let raw_len_bytes = tiled.map(|array| array.tile_len_bytes()).max().unwrap_or(0);
        let buffer_len_bytes = needs.iter().map(|need| need.bound_len_bytes).max().unwrap_or(0).max(1);
        let max_received = needs.iter().map(|need| need.received_len_bytes).max().unwrap_or(0);
        let largest = buffer_len_bytes.saturating_add(max_received);

        // Claims: those in flight (of two rounds if there are several ranks), and those of the largest array, which is
        // committed as a whole.
        let max_tiles = batches.iter().map(|batch| batch.tiles).max().unwrap_or(0);
        let tiles = window_tiles(plan, available_bytes).max(max_tiles);
        let shared = claims_of(plan, tiles).saturating_add(work.shared_len_bytes());

        let per_worker = raw_len_bytes.saturating_add(work.worker_len_bytes());
        let needed = |jobs: u64| per_worker.saturating_add(largest).saturating_mul(jobs).saturating_add(shared);
        let Some(jobs) = (1..=jobs.max(1) as u64).rev().find(|jobs| needed(*jobs) <= available_bytes) else {
            let (needed_bytes, limit_bytes) = (needed(1), budget.limit_bytes());
            let purpose = "one worker with its largest tile";
            return Err(CoreError::Memory { purpose, needed_bytes, available_bytes, limit_bytes });
        };
        let fixed = shared + jobs * per_worker;
        let window = largest.saturating_mul(WINDOW_BATCHES_PER_JOB).saturating_mul(jobs);
        let buffers_bytes = window.min(available_bytes - fixed);
        let limits = WindowLimits { buffers_bytes, buffer_len_bytes, tiles };
        let permit = budget.try_acquire(fixed + buffers_bytes, "the engine")?;
        Ok(Self { jobs, limits, raw_len_bytes, permit })
    }

    /// Returns the memory for the batches of one round. Half of the buffers serve the round being encoded, the other
    /// half the round being placed.
    pub(super) fn quota_bytes(&self) -> u64 {
        self.limits.buffers_bytes / 2
    }

    /// Returns the length of a batch buffer.
    pub(super) fn buffer_len_bytes(&self) -> u64 {
        self.limits.buffer_len_bytes
    }

    /// Returns the number of worker threads.
    pub(super) fn jobs(&self) -> usize {
        self.jobs as usize
    }

    /// Returns the memory acquired from the budget.
    pub(super) fn permit_len_bytes(&self) -> u64 {
        self.permit.len_bytes()
    }

    /// Returns the memory apart from the buffers.
    pub(super) fn fixed_len_bytes(&self) -> u64 {
        self.permit.len_bytes().saturating_sub(self.limits.buffers_bytes)
    }
}
