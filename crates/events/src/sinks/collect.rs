//! A sink that concatenates blocks in memory.

use raddle_columns::block::Block;
use raddle_columns::error::{Location, Result};
use raddle_columns::schema::Schema;
use raddle_columns::sink::{NoTile, Prepare, Sink};

/// Sink whose summary is one block of all entries.
#[derive(Debug)]
pub struct CollectSink {
    schema: Schema,
    place: Location,
    entries: u64,
    collected: Option<Block>,
}

impl CollectSink {
    /// Creates a sink for blocks of `schema` that come from `place`; `entries` is their expected total number of
    /// entries.
    pub fn new(schema: Schema, place: Location, entries: u64) -> Self {
        Self { schema, place, entries, collected: None }
    }
}

/// Preparer that passes blocks on.
#[derive(Debug, Clone, Copy)]
pub struct CollectPreparer;

impl Sink for CollectSink {
    type Preparer = CollectPreparer;
    type Prepared = Block;
    type Tile = NoTile;
    type Encoded = NoTile;
    type Summary = Block;

    fn preparer(&self) -> Result<CollectPreparer> {
        Ok(CollectPreparer)
    }

    fn commit(&mut self, block: Block) -> Result<Vec<NoTile>> {
        match &mut self.collected {
            None => {
                self.collected.insert(block).grow_capacity(self.entries);
            }
            Some(collected) => {
                collected.append(&block).map_err(|fault| fault.at(&self.place.entries(block.entries.clone())))?;
            }
        }
        Ok(Vec::new())
    }

    fn place(&mut self, encoded: NoTile) -> Result<()> {
        match encoded {}
    }

    fn finish(self) -> Result<Block> {
        Ok(self.collected.unwrap_or_else(|| Block::new(&self.schema, 0)))
    }
}

impl Prepare for CollectPreparer {
    type Prepared = Block;
    type Tile = NoTile;
    type Encoded = NoTile;

    fn prepare(&mut self, block: Block) -> Result<Block> {
        Ok(block)
    }

    fn encode(&mut self, tile: NoTile) -> Result<NoTile> {
        match tile {}
    }
}
