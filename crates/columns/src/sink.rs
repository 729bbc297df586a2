//! Consumers of events.
//!
//! Any thread may prepare a block; blocks are committed in order. A sink whose output is divided differently than its
//! blocks (into chunks of a dataset) returns tiles from the commit: any thread may encode them, and they are placed in
//! order.
//!
//! Invariant of every sink: its output depends only on the blocks and their order, so that any number of threads may
//! prepare and encode.

use crate::block::Block;
use crate::error::Result;
use raddle_core::ranks::communicator::Communicator;

/// Tile type of a sink without tiles.
pub type NoTile = std::convert::Infallible;

/// Consumer of blocks.
pub trait Sink: Send {
    /// State with which one thread prepares blocks and encodes tiles.
    type Preparer: Prepare<Prepared = Self::Prepared, Tile = Self::Tile, Encoded = Self::Encoded>;
    /// Block that only needs to be committed.
    type Prepared: Send;
    /// Part of the output that is yet to be encoded; [`NoTile`] if preparing does all the work.
    type Tile: Send;
    /// Part of the output that only needs to be written.
    type Encoded: Send;
    /// Result of the finished sink.
    type Summary;

    /// Creates a preparer for one thread.
    ///
    /// # Errors
    /// If memory for a compressor cannot be allocated.
    fn preparer(&self) -> Result<Self::Preparer>;

    /// Returns the maximum memory that the sink itself keeps, in addition to the blocks and tiles in flight.
    fn kept_len_bytes(&self) -> u64 {
        0
    }

    /// Returns the maximum memory that a preparer keeps between pieces of work; 0 if it is at most a few MiB.
    fn preparer_len_bytes(&self) -> u64 {
        0
    }

    /// Returns the maximum length of a prepared block, as a multiple of the length of the block.
    fn prepared_per_byte(&self) -> u64 {
        1
    }

    /// Commits the next block and returns the tiles that it completes. It is called in the order of the blocks, by one
    /// thread at a time.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn commit(&mut self, prepared: Self::Prepared) -> Result<Vec<Self::Tile>>;

    /// Returns the tiles that are left after the last block.
    ///
    /// # Errors
    /// If the blocks do not fit together.
    fn rest(&mut self) -> Result<Vec<Self::Tile>> {
        Ok(Vec::new())
    }

    /// Places the next tile. It is called in the order in which tiles were handed out, by the thread that commits.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn place(&mut self, encoded: Self::Encoded) -> Result<()>;

    /// Finishes the output. Without this call, no output appears.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn finish(self) -> Result<Self::Summary>;
}

/// Sink that ranks fill together, in rounds. Each rank prepares a run of blocks; the runs follow the source in rank
/// order. Then each completed tile is encoded by one rank and placed.
///
/// Invariant: the output equals that of one process. All functions are collective.
pub trait SharedSink: Sink {
    /// Commits the blocks that the ranks prepared in this round, and returns the tiles that this rank encodes.
    ///
    /// # Errors
    /// If the output cannot be written, here or on another rank.
    fn commit_collective(&mut self, prepared: Vec<Self::Prepared>, ranks: &dyn Communicator)
    -> Result<Vec<Self::Tile>>;

    /// Returns the tiles that are left after the last round and that this rank encodes.
    ///
    /// # Errors
    /// As for [`Sink::rest`].
    fn rest_collective(&mut self, ranks: &dyn Communicator) -> Result<Vec<Self::Tile>>;

    /// Places the tiles that were handed out last; `encoded` holds this rank's tiles, in the order in which they were
    /// handed out.
    ///
    /// # Errors
    /// As for [`SharedSink::commit_collective`].
    fn place_collective(&mut self, encoded: Vec<Self::Encoded>, ranks: &dyn Communicator) -> Result<()>;

    /// Finishes the output.
    ///
    /// # Errors
    /// As for [`SharedSink::commit_collective`].
    fn finish_collective(self, ranks: &dyn Communicator) -> Result<Self::Summary>;
}

/// Processing of a block that does not depend on order: serialising, compressing, checking.
pub trait Prepare: Send {
    /// Block that only needs to be committed.
    type Prepared: Send;
    /// Tile type; see [`Sink::Tile`].
    type Tile: Send;
    /// Encoded tile type; see [`Sink::Encoded`].
    type Encoded: Send;

    /// Prepares a block.
    ///
    /// # Errors
    /// If the block cannot be written in this layout.
    fn prepare(&mut self, block: Block) -> Result<Self::Prepared>;

    /// Encodes a tile.
    ///
    /// # Errors
    /// If a compressor fails.
    fn encode(&mut self, tile: Self::Tile) -> Result<Self::Encoded>;
}
