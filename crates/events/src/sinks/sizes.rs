//! A sink that adds up the lengths of products and keeps nothing else.

use raddle_columns::block::{Block, Column};
use raddle_columns::error::Result;
use raddle_columns::schema::Schema;
use raddle_columns::sink::{NoTile, Prepare, Sink};

/// Sink that adds up lengths; its summary is the length of each product in memory, including offsets.
#[derive(Debug, Clone)]
pub struct SizesSink {
    len_bytes: Vec<u64>,
}

impl SizesSink {
    /// Creates a sink for blocks of `schema`.
    pub fn new(schema: &Schema) -> Self {
        Self { len_bytes: vec![0; schema.products.len()] }
    }
}

/// Preparer that adds up the lengths in a block.
#[derive(Debug, Clone, Copy)]
pub struct SizesPreparer;

impl Sink for SizesSink {
    type Preparer = SizesPreparer;
    type Prepared = Vec<u64>;
    type Tile = NoTile;
    type Encoded = NoTile;
    type Summary = Vec<u64>;

    fn preparer(&self) -> Result<SizesPreparer> {
        Ok(SizesPreparer)
    }

    fn commit(&mut self, prepared: Vec<u64>) -> Result<Vec<NoTile>> {
        self.len_bytes.iter_mut().zip(&prepared).for_each(|(sum, len_bytes)| *sum += len_bytes);
        Ok(Vec::new())
    }

    fn place(&mut self, encoded: NoTile) -> Result<()> {
        match encoded {}
    }

    fn finish(self) -> Result<Vec<u64>> {
        Ok(self.len_bytes)
    }
}

impl Prepare for SizesPreparer {
    type Prepared = Vec<u64>;
    type Tile = NoTile;
    type Encoded = NoTile;

    fn prepare(&mut self, block: Block) -> Result<Vec<u64>> {
        Ok(block.columns.iter().map(Column::len_bytes).map(|len_bytes| len_bytes as u64).collect())
    }

    fn encode(&mut self, tile: NoTile) -> Result<NoTile> {
        match tile {}
    }
}
