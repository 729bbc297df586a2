//! Where events go.
//!
//! Invariant of every sink: what it makes depends on the blocks and their order alone, so that any number of threads may
//! prepare them.

use crate::block::Block;
use crate::error::Result;

/// A consumer of blocks.
pub trait Sink: Send {
    /// What one thread prepares blocks with.
    type Preparer: Prepare<Prepared = Self::Prepared>;
    /// A block that needs only to be put in its place.
    type Prepared: Send;
    /// What there is to say at the end.
    type Summary;

    /// A preparer for one thread.
    ///
    /// # Errors
    /// No memory for a compressor.
    fn preparer(&self) -> Result<Self::Preparer>;

    /// Puts the next block in its place. Called in the order of the blocks, by one thread at a time.
    ///
    /// # Errors
    /// The output cannot be written.
    fn commit(&mut self, prepared: Self::Prepared) -> Result<()>;

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

    /// Prepares a block.
    ///
    /// # Errors
    /// It cannot be written in this layout.
    fn prepare(&mut self, block: Block) -> Result<Self::Prepared>;
}
