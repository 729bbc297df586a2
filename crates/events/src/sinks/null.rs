//! A sink that discards entries, to measure the cost of a source alone.

use raddle_columns::block::Block;
use raddle_columns::error::Result;
use raddle_columns::sink::{NoTile, Prepare, SharedSink, Sink};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};

/// Sink that keeps nothing; its summary is the number of entries.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullSink {
    entries: u64,
}

impl Sink for NullSink {
    type Preparer = Self;
    type Prepared = u64;
    type Tile = NoTile;
    type Encoded = NoTile;
    type Summary = u64;

    fn preparer(&self) -> Result<Self> {
        Ok(*self)
    }

    fn commit(&mut self, entries: u64) -> Result<Vec<NoTile>> {
        self.entries += entries;
        Ok(Vec::new())
    }

    fn place(&mut self, encoded: NoTile) -> Result<()> {
        match encoded {}
    }

    fn finish(self) -> Result<u64> {
        Ok(self.entries)
    }
}

impl SharedSink for NullSink {
    fn commit_collective(&mut self, prepared: Vec<u64>, _: &dyn Communicator) -> Result<Vec<NoTile>> {
        self.entries += prepared.iter().sum::<u64>();
        Ok(Vec::new())
    }

    fn rest_collective(&mut self, _: &dyn Communicator) -> Result<Vec<NoTile>> {
        Ok(Vec::new())
    }

    fn place_collective(&mut self, _: Vec<NoTile>, _: &dyn Communicator) -> Result<()> {
        Ok(())
    }

    fn finish_collective(self, ranks: &dyn Communicator) -> Result<u64> {
        Ok(ranks.all_gather_u64(self.entries)?.iter().sum())
    }
}

impl Prepare for NullSink {
    type Prepared = u64;
    type Tile = NoTile;
    type Encoded = NoTile;

    fn prepare(&mut self, block: Block) -> Result<u64> {
        Ok(block.len_entries())
    }

    fn encode(&mut self, tile: NoTile) -> Result<NoTile> {
        match tile {}
    }
}
