//! A source whose blocks have no ids, because those of another source cannot be read.

use raddle_columns::baskets::Baskets;
use raddle_columns::block::Block;
use raddle_columns::error::{Location, Result};
use raddle_columns::schema::Schema;
use raddle_columns::source::{RangeReader, Source};
use raddle_core::cancel::CancelToken;
use std::ops::Range;

/// Source without ids.
pub struct WithoutIds<'source> {
    inner: &'source dyn Source,
}

impl<'source> WithoutIds<'source> {
    /// Hides the ids of `inner`.
    pub fn new(inner: &'source dyn Source) -> Self {
        Self { inner }
    }
}

impl Source for WithoutIds<'_> {
    fn place(&self) -> Location {
        self.inner.place()
    }

    fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    fn len_entries(&self) -> u64 {
        self.inner.len_entries()
    }

    fn has_ids(&self) -> bool {
        false
    }

    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        self.inner.unit_end(start, target_len_bytes)
    }

    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        self.inner.batch_len_bytes(entries)
    }

    fn reads_products_alone(&self) -> bool {
        self.inner.reads_products_alone()
    }

    fn check_unchanged(&self) -> Result<()> {
        self.inner.check_unchanged()
    }

    fn basket_ends(&self, product: usize) -> Result<Vec<u64>> {
        self.inner.basket_ends(product)
    }

    fn read_baskets(&self, product: usize, baskets: Range<usize>, cancel: &CancelToken) -> Result<Baskets> {
        self.inner.read_baskets(product, baskets, cancel)
    }

    fn reader<'reader>(&'reader self, products: &[usize]) -> Result<Box<dyn RangeReader + 'reader>> {
        let mut inner = self.inner.reader(products)?;
        inner.leave_out_ids();
        Ok(Box::new(ReaderWithoutIds { inner }))
    }
}

struct ReaderWithoutIds<'source> {
    inner: Box<dyn RangeReader + 'source>,
}

impl RangeReader for ReaderWithoutIds<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        let mut block = self.inner.read(entries)?;
        // A reader may return ids anyway.
        block.ids.clear();
        Ok(block)
    }

    fn append(&mut self, entries: Range<u64>, block: &mut Block) -> Result<()> {
        self.inner.append(entries, block)?;
        block.ids.clear();
        Ok(())
    }
}
