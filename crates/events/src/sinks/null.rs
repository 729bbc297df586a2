//! Entries are read and dropped: what a source costs by itself.

use crate::block::Block;
use crate::error::Result;
use crate::sink::{Prepare, Sink};

/// A sink that keeps nothing; its summary is the number of entries.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullSink {
    entries: u64,
}

impl Sink for NullSink {
    type Preparer = Self;
    type Prepared = u64;
    type Summary = u64;

    fn preparer(&self) -> Result<Self> {
        Ok(*self)
    }

    fn commit(&mut self, entries: u64) -> Result<()> {
        self.entries += entries;
        Ok(())
    }

    fn finish(self) -> Result<u64> {
        Ok(self.entries)
    }
}

impl Prepare for NullSink {
    type Prepared = u64;

    fn prepare(&mut self, block: Block) -> Result<u64> {
        Ok(block.len_entries())
    }
}
