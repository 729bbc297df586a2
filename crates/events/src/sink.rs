//! Where events go.
//!
//! A block is prepared by any thread and committed in order. A sink whose output is cut otherwise than its blocks are (into
//! chunks of a dataset) hands back tiles when it commits: they are encoded by any thread and placed in order.
//!
//! Invariant of every sink: what it makes depends on the blocks and their order alone, so that any number of threads may
//! prepare and encode.

use crate::block::Block;
use crate::error::Result;

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
