//! The engine, which executes a plan. Worker threads assemble, encode and place tiles; the calling thread commits
//! arrays.
//!
//! The engine knows nothing about files or codecs: [`TileWork`] assembles and encodes tiles, [`Sink`] (or
//! [`SharedSink`], for all ranks together) writes bytes at addresses, and the caller's `commit` receives the claims of
//! each finished array in plan order.
//!
//! Invariants:
//! - If tiles are placed in order, the same plan and work give the same bytes and claims for any number of threads and
//!   ranks.
//! - All buffers are accounted for in one budget; workers wait before memory is taken, never after.
//! - Batches are handed out in plan order, and the oldest unplaced batch always holds its memory, so that no deadlock
//!   can occur.
//! - Between the tiles of a batch nothing is locked, awaited or allocated; each batch takes three short locks.
//! - The first error in plan order is returned, however threads and ranks were scheduled; ranks that did not encounter
//!   it return [`CoreError::RankFailed`]. No rank leaves between two collectives.
//!
//! `setup` fits a plan into the budget (`fit`) and assigns it to ranks, `window` holds the state shared by workers,
//! `worker` is the loop of a worker thread, and `run` is the calling thread of a single rank. With several ranks,
//! `rounds` is the calling thread and follows a `schedule`. `record` defines the state from which a later run can
//! resume, and `sink` the destination of tiles.

mod committer;
mod fit;
mod record;
mod rounds;
mod run;
mod schedule;
mod setup;
mod sink;
mod status;
mod window;
#[cfg(all(test, loom))]
mod window_models;
mod worker;

pub use crate::output::claims::{Claim, PlacedArray, Placement};
pub use committer::Commit;
pub use fit::{batch_len_bytes, claims_len_bytes};
pub use record::{Checkpoint, PlacedBatch, Recorder};
pub use rounds::claim_message_len_bytes;
pub use run::Execution;
pub use schedule::{DryRun, Schedule, costs, dry_run};
pub use sink::{OutputRun, SharedFiles, SharedIo, SharedSink, Sink};
pub use window::StopSignal;

use crate::cancel::CancelToken;
use crate::error::CoreError;
use crate::memory::MemoryBudget;
use crate::output::arenas::Arenas;
use crate::plan::{Batch, Tile, TileIndex};
use crate::ranks::communicator::{Communicator, Rank};
use crate::report::progress::{Observer, Stage};
use crate::report::{StageReport, StageTable};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::ops::Range;

/// Stored form of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TileForm {
    /// Bytes that were appended.
    Stored {
        /// Bit i set: filter i of the pipeline was skipped.
        filter_mask: u32,
    },
    /// No stored bytes: every element is the fill value.
    Fill,
}

/// Work of producing tiles: reading, decoding, regrouping and encoding.
pub trait TileWork: Sync {
    /// Error of the work.
    type Error: std::error::Error + Send + Sync + 'static;
    /// State of one worker thread, reused for all its tiles: open files, decompressors, scratch.
    type Worker: Send;

    /// Creates the state of a worker thread.
    fn worker(&self) -> Result<Self::Worker, Self::Error>;

    /// Appends the stored form of `tile` to `stored` if it needs no encoding, because the inputs hold it as is or it is
    /// stored raw.
    fn verbatim(
        &self,
        worker: &mut Self::Worker,
        tile: Tile,
        stored: &mut Vec<u8>,
    ) -> Result<Option<TileForm>, Self::Error> {
        let _ = (worker, tile, stored);
        Ok(None)
    }

    /// Fills `raw`, a whole tile with unspecified contents. Elements beyond the edge of the array are padded with the
    /// fill value.
    fn assemble(&self, worker: &mut Self::Worker, tile: Tile, raw: &mut [u8]) -> Result<(), Self::Error>;

    /// Appends the stored form of `raw` to `stored`, at most [`TileWork::stored_bound_len_bytes`] bytes. The bytes
    /// depend only on the tile, not on the worker's history.
    fn encode(
        &self,
        worker: &mut Self::Worker,
        tile: Tile,
        raw: &[u8],
        stored: &mut Vec<u8>,
    ) -> Result<TileForm, Self::Error>;

    /// Returns the maximum length of the stored form of `tile`. Must be cheap: it is called several times per tile.
    fn stored_bound_len_bytes(&self, tile: Tile) -> usize;

    /// Returns the maximum memory a [`TileWork::Worker`] may hold, for the budget.
    fn worker_len_bytes(&self) -> u64 {
        0
    }

    /// Returns the number of the output file of `array`. Each file has separate addresses; see [`Sink::write_file_at`].
    /// Must be the same on every rank.
    fn file(&self, array: u32) -> u32 {
        let _ = array;
        0
    }

    /// Ends a worker thread and adds its counts of the stages inside [`TileWork::assemble`] to `stages`: read, decode,
    /// restructure, and encode if filling a tile includes it. The engine subtracts their time from the regroup stage.
    fn retire(&self, worker: Self::Worker, stages: &mut StageTable) {
        let _ = (worker, stages);
    }

    /// Appends to `note` the facts that a later run needs about the batch that `worker` has just finished, apart from
    /// its claims. It is called at the end of each batch if the run is recorded; see [`Recorder`].
    fn note(&self, worker: &mut Self::Worker, note: &mut Vec<u8>) {
        let _ = (worker, note);
    }

    /// Returns the cost of encoding `tile`, in any unit, to balance ranks. Must be the same on every rank.
    fn cost(&self, tile: Tile, raw_len_bytes: u64) -> u64 {
        let _ = tile;
        raw_len_bytes
    }

    /// Calls `each` with the ranks that hold parts of the tile, and with the number of bytes that each of them holds.
    /// Ranks that hold little may be left out, and a rank may occur several times. Must be the same on every rank.
    fn holders(&self, tile: Tile, each: &mut dyn FnMut(Rank, u64)) {
        let _ = (tile, each);
    }

    /// Collective. It is called once on the calling thread, after memory and tiles have been assigned and before the
    /// first tile is produced. A rank on which it fails must still take part in its collectives; the engine agrees on
    /// the outcome.
    fn begin(&self, assignment: Assignment, context: &Context<'_>) -> Result<(), Self::Error> {
        let _ = (assignment, context);
        Ok(())
    }

    /// Returns the memory that all workers of this rank hold together, for the budget.
    fn shared_len_bytes(&self) -> u64 {
        0
    }

    /// Collective. Sends the pieces of a round's tiles that ranks hold in memory to the owners of the tiles; see
    /// [`crate::ranks::regroup`]. With several ranks, it is called on the calling thread before the round's tiles are
    /// assembled. A rank on which it fails must still take part in its collectives; the engine agrees on the outcome.
    fn regroup(&self, round: &Round<'_>, communicator: &dyn Communicator) -> Result<(), Self::Error> {
        let _ = (round, communicator);
        Ok(())
    }

    /// Returns the memory that the received pieces of `tile` occupy on its owner until it is assembled. Must be the
    /// same on every rank.
    fn received_len_bytes(&self, tile: Tile) -> u64 {
        let _ = tile;
        0
    }
}

/// The tiles that an execution produces; see [`TileWork::begin`].
#[derive(Debug, Clone)]
pub struct Assignment {
    /// Numbers of the tiles that all ranks produce together. Earlier ones are already in the output.
    pub all: Range<u64>,
    /// Numbers of the tiles that this rank produces, in order.
    pub local: Vec<Range<u64>>,
    /// Number of threads that fit into the memory of this rank.
    pub jobs: usize,
    /// Signal that the run has failed.
    pub stop: StopSignal,
}

/// Consecutive batches that the ranks process together.
#[derive(Debug, Clone, Copy)]
pub struct Round<'a> {
    batches: &'a [Batch],
    owners: &'a [u32],
    index: &'a TileIndex,
}

impl Round<'_> {
    /// Returns the round's tiles in plan order, each with its owner.
    pub fn tiles(&self) -> impl Iterator<Item = (Tile, Rank)> {
        self.batches.iter().zip(self.owners).flat_map(|(batch, owner)| {
            let first = self.index.tile(batch.first);
            let tiles = std::iter::successors(first, |tile| Some(self.index.next(*tile)));
            tiles.take(batch.tiles as usize).map(|tile| (tile, *owner as Rank))
        })
    }
}

/// Returns the number of cores available to this process; on Linux, respects affinity and cgroup quotas.
pub fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the default number of threads of each of `ranks` ranks of this machine.
pub fn jobs_per_rank(ranks: usize) -> NonZeroUsize {
    NonZeroUsize::new(default_jobs() / ranks.max(1)).unwrap_or(NonZeroUsize::MIN)
}

/// Maximum raw length of a batch, unless a single tile is larger. It is large enough for the three locks and one write
/// per batch to be negligible (about 5 µs against 10 ms of encoding at 400 MB/s), and small enough for two hundred
/// batches to fit a budget of 1 GiB.
pub const DEFAULT_BATCH_LEN_BYTES: u64 = 4 << 20;

/// Options of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// Number of worker threads; fewer are used if the budget cannot hold a tile for each.
    pub jobs: usize,
    /// Order in which addresses are assigned.
    pub placement: Placement,
    /// Address of the first tile, in every output file.
    pub start_address: u64,
    /// Arenas to place tiles in; without them tiles are placed back to back.
    pub arenas: Option<Arenas>,
    /// Maximum raw length of a batch; small plans are split into smaller batches.
    pub batch_len_bytes: u64,
    /// Number of ranks, spread evenly, that produce and write tiles; `None` for all.
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

/// Environment of a run.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The ranks that execute the plan together.
    pub communicator: &'a dyn Communicator,
    /// Budget for all buffers.
    pub budget: &'a MemoryBudget,
    /// Observer that receives progress events.
    pub observer: &'a dyn Observer,
    /// Token that asks the run to stop.
    pub cancel: &'a CancelToken,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("communicator", &self.communicator).field("budget", &self.budget).finish()
    }
}

/// Result of an execution.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineReport {
    /// Number of tiles of the plan.
    pub tiles: u64,
    /// Number of tiles that consist only of fill values and are not stored.
    pub fill_tiles: u64,
    /// Number of tiles stored without decoding.
    pub verbatim_tiles: u64,
    /// Total length of all tiles before encoding.
    pub raw_len_bytes: u64,
    /// Total length of all stored tiles.
    pub stored_len_bytes: u64,
    /// First address after the placed tiles; with several files, in the last file.
    pub end_address: u64,
    /// Unused bytes between the first and the last tile, over all files, as left by arenas.
    pub unused_len_bytes: u64,
    /// Number of worker threads used, across all ranks.
    pub jobs: usize,
    /// Wall time.
    pub elapsed_s: f64,
    /// Stages of all ranks.
    pub stages: Vec<StageReport>,
}

/// Error of an execution.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError<E: std::error::Error + 'static> {
    /// A tile could not be produced.
    #[error("{source}")]
    Tile {
        /// Tile that failed.
        tile: Tile,
        /// Stage that failed.
        stage: Stage,
        /// Cause, which names file and object.
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
    /// The work could not begin, or pieces could not be sent to their owners.
    #[error("{source}")]
    Regroup {
        /// Cause.
        source: E,
    },
    /// The output rejected a write.
    #[error("cannot write {len_bytes} bytes at {address}: {source}")]
    Write {
        /// Address of the write.
        address: u64,
        /// Length of the write.
        len_bytes: u64,
        /// Cause.
        source: std::io::Error,
    },
    /// The record of an earlier run cannot be read.
    #[error("cannot read the record of an earlier run: {source}")]
    Recorded {
        /// Cause.
        source: std::io::Error,
    },
    /// The stored form of a tile exceeds its bound.
    #[error("tile {} of array {}: {got_bytes} stored bytes exceed the bound of {bound_bytes}", tile.index, tile.array)]
    Bound {
        /// Tile that exceeds its bound.
        tile: Tile,
        /// Number of bytes appended.
        got_bytes: u64,
        /// Maximum number of bytes announced for the tile.
        bound_bytes: u64,
    },
    /// The output exceeds the address range.
    #[error("the output does not fit 64-bit addresses")]
    AddressOverflow,
    /// A worker thread panicked, which is a defect.
    #[error("a worker thread panicked: {message}")]
    Panicked {
        /// Message of the panic.
        message: String,
    },
    /// An error of the plan, the memory or the ranks, or a cancellation.
    #[error(transparent)]
    Core(#[from] CoreError),
}

impl<E: std::error::Error + 'static> EngineError<E> {
    /// Returns whether the run was cancelled, here or on another rank.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Core(CoreError::Cancelled))
    }
}
