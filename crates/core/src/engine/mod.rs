//! The engine: executes a plan. Tiles are assembled, encoded and placed by worker threads; the calling thread commits.
//!
//! The engine knows nothing of files or codecs: [`TileWork`] assembles and encodes, [`Sink`] (or, of all ranks together,
//! [`SharedSink`]) takes bytes at addresses,
//! the caller's `commit` gets the claims of each finished array in plan order.
//!
//! Invariants:
//! - The same plan and work give the same bytes and claims for any number of threads and ranks, if placed in order.
//! - All buffers are accounted for in one budget; workers wait before memory is taken, never after.
//! - Batches are handed out in plan order and the oldest unplaced batch always holds its memory: no deadlock.
//! - No lock is held, waited for or allocation made between the tiles of a batch; three short locks per batch.
//! - The first error in plan order is the one returned, however threads and ranks were scheduled; the ranks that did
//!   not meet it return [`CoreError::RankFailed`]. No rank leaves between two collectives.
//!
//! `setup` fits a plan into the budget and deals it to ranks, `window` holds what workers share, `worker` is what each
//! of them does, `run` is the calling thread where it is alone, `rounds` where it shares the plan with other ranks, by a
//! `schedule`;
//! `record` is what a later run can go on from; `sink` is where tiles go.

mod record;
mod rounds;
mod run;
mod schedule;
mod setup;
mod sink;
mod window;
#[cfg(all(test, loom))]
mod window_models;
mod worker;

pub use crate::claims::{Claim, Committed, Placement};
pub use record::{Kept, PlacedBatch, Recorder};
pub use rounds::told_len_bytes;
pub use run::{execute, execute_part, execute_recorded, execute_together};
pub use schedule::{Rehearsal, Schedule, costs, rehearse};
pub use sink::{Run, SharedFiles, SharedIo, SharedSink, Sink};

use crate::arenas::Arenas;
use crate::cancel::CancelToken;
use crate::communicator::{Communicator, Rank};
use crate::error::CoreError;
use crate::memory::MemoryBudget;
use crate::plan::{Batch, Tile, TileIndex};
use crate::progress::{Observer, Stage};
use crate::report::{StageReport, StageTable};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// How a tile is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TileForm {
    /// By the bytes that were appended.
    Stored {
        /// Bit i set: filter i of the pipeline was skipped.
        filter_mask: u32,
    },
    /// Not at all: every element is the fill value.
    Fill,
}

/// What makes tiles: reads, decodes, regroups and encodes.
pub trait TileWork: Sync {
    /// Error of the work.
    type Error: std::error::Error + Send + Sync + 'static;
    /// State of one worker thread, reused for all its tiles: open files, decompressors, scratch.
    type Worker: Send;

    /// Makes the state of a worker thread.
    fn worker(&self) -> Result<Self::Worker, Self::Error>;

    /// Appends the stored form of `tile` to `stored` where nothing has to be encoded: the inputs hold it as it is, or it is stored
    /// raw.
    fn verbatim(
        &self,
        worker: &mut Self::Worker,
        tile: Tile,
        stored: &mut Vec<u8>,
    ) -> Result<Option<TileForm>, Self::Error> {
        let _ = (worker, tile, stored);
        Ok(None)
    }

    /// Fills `raw`, a whole tile. Its contents are unspecified before; what lies beyond the array is padded with the
    /// fill value.
    fn assemble(&self, worker: &mut Self::Worker, tile: Tile, raw: &mut [u8]) -> Result<(), Self::Error>;

    /// Appends the stored form of `raw` to `stored`, by at most [`TileWork::stored_bound_len_bytes`]. The bytes depend
    /// on the tile alone, not on the worker's history.
    fn encode(
        &self,
        worker: &mut Self::Worker,
        tile: Tile,
        raw: &[u8],
        stored: &mut Vec<u8>,
    ) -> Result<TileForm, Self::Error>;

    /// Most bytes that the stored form of `tile` can take. Cheap: it is asked several times per tile.
    fn stored_bound_len_bytes(&self, tile: Tile) -> usize;

    /// Memory that a [`TileWork::Worker`] may come to hold, for the budget.
    fn worker_len_bytes(&self) -> u64 {
        0
    }

    /// The output file that `array` goes to, where there are several, each with its own addresses; see
    /// [`Sink::write_file_at`]. The same on every rank.
    fn file(&self, array: u32) -> u32 {
        let _ = array;
        0
    }

    /// Ends a worker thread: adds what it counted of stages inside [`TileWork::assemble`] (read, decode; the time of encode,
    /// where filling a tile is part of it) to `stages`.
    /// The engine takes their time off that of regroup.
    fn retire(&self, worker: Self::Worker, stages: &mut StageTable) {
        let _ = (worker, stages);
    }

    /// Appends to `note` what a later run must know of the batch that `worker` has just made, besides its claims. Called
    /// at the end of each batch if the run is recorded; see [`Recorder`].
    fn note(&self, worker: &mut Self::Worker, note: &mut Vec<u8>) {
        let _ = (worker, note);
    }

    /// Cost of encoding `tile`, in any unit, to balance ranks. The same on every rank.
    fn cost(&self, tile: Tile, raw_len_bytes: u64) -> u64 {
        let _ = tile;
        raw_len_bytes
    }

    /// The rank that holds most of the tile's pieces, where that matters. The same on every rank.
    fn home(&self, tile: Tile) -> Option<Rank> {
        let _ = tile;
        None
    }

    /// Collective. Brings the pieces of a round's tiles to their owners, where ranks hold them in memory; see
    /// [`crate::regroup`]. Called on the calling thread before the round's tiles are assembled, if there is more than
    /// one rank. Where it fails on one rank it must still go through its collectives; the engine agrees on the outcome.
    fn bring(&self, round: &Round<'_>, communicator: &dyn Communicator) -> Result<(), Self::Error> {
        let _ = (round, communicator);
        Ok(())
    }

    /// Memory that the brought pieces of `tile` take on its owner until it is assembled. The same on every rank.
    fn brought_len_bytes(&self, tile: Tile) -> u64 {
        let _ = tile;
        0
    }
}

/// Consecutive batches that the ranks go through together.
#[derive(Debug, Clone, Copy)]
pub struct Round<'a> {
    batches: &'a [Batch],
    owners: &'a [u32],
    index: &'a TileIndex,
}

impl Round<'_> {
    /// The round's tiles in plan order, each with its owner.
    pub fn tiles(&self) -> impl Iterator<Item = (Tile, Rank)> {
        self.batches.iter().zip(self.owners).flat_map(|(batch, owner)| {
            let first = self.index.tile(batch.first);
            let tiles = std::iter::successors(first, |tile| Some(self.index.next(*tile)));
            tiles.take(batch.tiles as usize).map(|tile| (tile, *owner as Rank))
        })
    }
}

/// Cores that this process may use, which on Linux heeds affinity and cgroup quotas.
pub fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Raw bytes of a batch unless one tile is larger. Large enough that the three locks and one write per batch vanish
/// (some 5 µs against 10 ms of encoding at 400 MB/s), small enough that two hundred fit a budget of 1 GiB.
pub const DEFAULT_BATCH_LEN_BYTES: u64 = 4 << 20;

/// How to execute a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// Worker threads; fewer are used if the budget cannot hold a tile for each.
    pub jobs: usize,
    /// How addresses are dealt.
    pub placement: Placement,
    /// Address of the first tile, in every output file.
    pub start_address: u64,
    /// Arenas to place tiles in; else they lie one behind the other.
    pub arenas: Option<Arenas>,
    /// Upper end of the raw bytes per batch; small plans are cut finer.
    pub batch_len_bytes: u64,
    /// How many of the ranks make and write tiles, spread evenly over all; `None`: all of them.
    pub owners: Option<NonZeroUsize>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            jobs: default_jobs(),
            placement: Placement::Ordered,
            start_address: 0,
            arenas: None,
            batch_len_bytes: DEFAULT_BATCH_LEN_BYTES,
            owners: None,
        }
    }
}

/// What a run shares with its surroundings.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The ranks that execute the plan together.
    pub communicator: &'a dyn Communicator,
    /// Memory that buffers may take.
    pub budget: &'a MemoryBudget,
    /// Receives progress.
    pub observer: &'a dyn Observer,
    /// Asks the run to stop.
    pub cancel: &'a CancelToken,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("communicator", &self.communicator).field("budget", &self.budget).finish()
    }
}

/// What an execution did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineReport {
    /// Tiles of the plan.
    pub tiles: u64,
    /// Tiles that are wholly fill and not stored.
    pub fill_tiles: u64,
    /// Tiles stored without decoding.
    pub verbatim_tiles: u64,
    /// Length of all tiles before encoding.
    pub raw_len_bytes: u64,
    /// Length of all stored tiles.
    pub stored_len_bytes: u64,
    /// First address behind the placed tiles; of several files, behind those of the last.
    pub end_address: u64,
    /// Bytes between the first and the last tile that hold none, of all files: what arenas leave.
    pub unused_len_bytes: u64,
    /// Worker threads used, of all ranks.
    pub jobs: usize,
    /// Wall time.
    pub elapsed_s: f64,
    /// Stages, of all ranks.
    pub stages: Vec<StageReport>,
}

/// Why an execution failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError<E: std::error::Error + 'static> {
    /// A tile could not be made.
    #[error("{source}")]
    Tile {
        /// The tile.
        tile: Tile,
        /// What was being done.
        stage: Stage,
        /// Cause; it names file and object.
        source: E,
    },
    /// A worker could not start.
    #[error("{source}")]
    Worker {
        /// Cause.
        source: E,
    },
    /// The caller could not commit an array.
    #[error("{source}")]
    Commit {
        /// Number of the array.
        array: u32,
        /// Cause.
        source: E,
    },
    /// Pieces could not be brought to their owners.
    #[error("{source}")]
    Bring {
        /// Cause.
        source: E,
    },
    /// The output did not take bytes.
    #[error("cannot write {len_bytes} bytes at {address}: {source}")]
    Write {
        /// Address.
        address: u64,
        /// Length.
        len_bytes: u64,
        /// Cause.
        source: std::io::Error,
    },
    /// What an earlier run left cannot be read again.
    #[error("cannot read the record of an earlier run: {source}")]
    Recorded {
        /// Cause.
        source: std::io::Error,
    },
    /// A tile's stored form is longer than its bound.
    #[error("tile {} of array {}: {got_bytes} stored bytes exceed the bound of {bound_bytes}", tile.index, tile.array)]
    Bound {
        /// The tile.
        tile: Tile,
        /// Bytes appended.
        got_bytes: u64,
        /// The bound.
        bound_bytes: u64,
    },
    /// The output is longer than addresses reach.
    #[error("the output does not fit 64-bit addresses")]
    AddressOverflow,
    /// A worker thread panicked, which is a defect.
    #[error("a worker thread panicked: {message}")]
    Panicked {
        /// Message of the panic.
        message: String,
    },
    /// Plan, memory, ranks or cancellation.
    #[error(transparent)]
    Core(#[from] CoreError),
}

impl<E: std::error::Error + 'static> EngineError<E> {
    /// Whether the run was cancelled, here or on another rank.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Core(CoreError::Cancelled))
    }
}
