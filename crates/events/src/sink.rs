//! Where events go.
//!
//! A block is prepared by any thread and committed in order. A sink whose output is cut otherwise than its blocks are (into
//! chunks of a dataset) hands back tiles when it commits: they are encoded by any thread and placed in order.
//!
//! Invariant of every sink: what it makes depends on the blocks and their order alone, so that any number of threads may
//! prepare and encode.

use crate::block::Block;
use crate::error::Result;
use raddle_core::communicator::Communicator;

/// Tiles of a sink that has none.
pub type NoTile = std::convert::Infallible;

/// A consumer of blocks.
pub trait Sink: Send {
    /// What one thread prepares blocks and encodes tiles with.
    type Preparer: Prepare<Prepared = Self::Prepared, Tile = Self::Tile, Encoded = Self::Encoded>;
    /// A block that needs only to be put in its place.
    type Prepared: Send;
    /// A part of the output that is yet to be encoded; [`NoTile`] where preparing does all.
    type Tile: Send;
    /// A part of the output that needs only to be written.
    type Encoded: Send;
    /// What there is to say at the end.
    type Summary;

    /// A preparer for one thread.
    ///
    /// # Errors
    /// No memory for a compressor.
    fn preparer(&self) -> Result<Self::Preparer>;

    /// Most memory that the sink itself keeps, beside the blocks and tiles that are on their way.
    fn kept_len_bytes(&self) -> u64 {
        0
    }

    /// Most memory that a preparer keeps from one piece of work to the next, where that is more than a few MiB.
    fn preparer_len_bytes(&self) -> u64 {
        0
    }

    /// Puts the next block in its place, and hands out the tiles that are complete with it. Called in the order of the
    /// blocks, by one thread at a time.
    ///
    /// # Errors
    /// The output cannot be written.
    fn commit(&mut self, prepared: Self::Prepared) -> Result<Vec<Self::Tile>>;

    /// Hands out the tiles that are left after the last block.
    ///
    /// # Errors
    /// The blocks do not go together.
    fn rest(&mut self) -> Result<Vec<Self::Tile>> {
        Ok(Vec::new())
    }

    /// Puts the next tile in its place. Called in the order in which tiles were handed out, by the thread that commits.
    ///
    /// # Errors
    /// The output cannot be written.
    fn place(&mut self, encoded: Self::Encoded) -> Result<()>;

    /// Ends the output. Without this there is none.
    ///
    /// # Errors
    /// The output cannot be written.
    fn finish(self) -> Result<Self::Summary>;
}

/// A sink that ranks fill together, in rounds: each prepares a run of blocks, rank after rank in the order of the source; then
/// the tiles that are complete are encoded, each by one rank, and placed.
///
/// Invariant: the output is that of one process. All functions are collective.
pub trait SharedSink: Sink {
    /// Puts in place what the ranks prepared in this round, and hands out the tiles that this rank encodes.
    ///
    /// # Errors
    /// The output cannot be written, here or on another rank.
    fn commit_among(&mut self, prepared: Vec<Self::Prepared>, ranks: &dyn Communicator) -> Result<Vec<Self::Tile>>;

    /// Hands out the tiles that are left after the last round and that this rank encodes.
    ///
    /// # Errors
    /// As [`Sink::rest`].
    fn rest_among(&mut self, ranks: &dyn Communicator) -> Result<Vec<Self::Tile>>;

    /// Puts the tiles in their places that were handed out last; `encoded` are this rank's, in the order of handing out.
    ///
    /// # Errors
    /// As [`SharedSink::commit_among`].
    fn place_among(&mut self, encoded: Vec<Self::Encoded>, ranks: &dyn Communicator) -> Result<()>;

    /// Ends the output.
    ///
    /// # Errors
    /// As [`SharedSink::commit_among`].
    fn finish_among(self, ranks: &dyn Communicator) -> Result<Self::Summary>;
}

/// Does to a block what needs no order: serialising, compressing, checking.
pub trait Prepare: Send {
    /// A block that needs only to be put in its place.
    type Prepared: Send;
    /// As for [`Sink`].
    type Tile: Send;
    /// As for [`Sink`].
    type Encoded: Send;

    /// Prepares a block.
    ///
    /// # Errors
    /// It cannot be written in this layout.
    fn prepare(&mut self, block: Block) -> Result<Self::Prepared>;

    /// Encodes a tile.
    ///
    /// # Errors
    /// A compressor could not work.
    fn encode(&mut self, tile: Self::Tile) -> Result<Self::Encoded>;
}
