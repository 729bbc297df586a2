//! Source that recodes some columns of another source, each independently: the basis of decoding and serialising.
//!
//! Invariant: columns that are not recoded are passed on unchanged.

use raddle_columns::baskets::Baskets;
use raddle_columns::block::{Block, Column};
use raddle_columns::error::{Location, Result, UnlocatedError};
use raddle_columns::schema::{Product, Schema};
use raddle_columns::source::{RangeReader, Source};
use raddle_core::cancel::CancelToken;
use std::ops::Range;

/// Recoding of one column.
pub trait Recode: Send + Sync {
    /// Returns the maximum number of bytes by which an entry may grow.
    fn growth_len_bytes(&self) -> u64 {
        0
    }

    /// Recodes `column`, which has been checked.
    ///
    /// # Errors
    /// If an entry cannot be recoded. Returns its number and its fault.
    fn recode(&self, column: &Column) -> Result<Column, (u64, UnlocatedError)>;
}

/// Source with recoded columns.
pub struct MapSource<R> {
    inner: Box<dyn Source>,
    schema: Schema,
    /// Recoder of each product; `None` if it is passed on.
    recoders: Vec<Option<R>>,
}

impl<R: Recode> MapSource<R> {
    /// Recodes the products of `inner` for which `way` returns a recoder. `way` changes the form of the product
    /// accordingly.
    pub(crate) fn with(inner: Box<dyn Source>, way: impl FnMut(&mut Product) -> Option<R>) -> Self {
        let mut schema = inner.schema().clone();
        let recoders = schema.products.iter_mut().map(way).collect();
        Self { inner, schema, recoders }
    }
}

impl<R: Recode + 'static> MapSource<R> {
    /// Converts this into a boxed source: the inner one if nothing is recoded.
    pub fn into_source(self) -> Box<dyn Source> {
        if self.recoders.iter().any(Option::is_some) { Box::new(self) } else { self.inner }
    }
}

impl<R: Recode> Source for MapSource<R> {
    fn place(&self) -> Location {
        self.inner.place()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.inner.len_entries()
    }

    fn has_ids(&self) -> bool {
        self.inner.has_ids()
    }

    fn id_product(&self) -> Option<usize> {
        self.inner.id_product()
    }

    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        self.inner.unit_end(start, target_len_bytes)
    }

    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        let count = entries.end.saturating_sub(entries.start);
        let growth: u64 = self.recoders.iter().flatten().map(Recode::growth_len_bytes).sum();
        self.inner.batch_len_bytes(entries).saturating_add(count.saturating_mul(growth))
    }

    fn reads_products_alone(&self) -> bool {
        self.inner.reads_products_alone()
    }

    fn reader_len_bytes(&self, products: &[usize]) -> u64 {
        self.inner.reader_len_bytes(products)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.inner.check_unchanged()
    }

    /// Returns the ends of the stored baskets, which are passed on without recoding.
    fn basket_ends(&self, product: usize) -> Result<Vec<u64>> {
        self.inner.basket_ends(product)
    }

    fn read_baskets(&self, product: usize, baskets: Range<usize>, cancel: &CancelToken) -> Result<Baskets> {
        self.inner.read_baskets(product, baskets, cancel)
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>> {
        let inner = self.inner.reader(products)?;
        Ok(Box::new(RecodedReader { inner, source: self, products: products.to_vec() }))
    }
}

struct RecodedReader<'source, R> {
    inner: Box<dyn RangeReader + 'source>,
    source: &'source MapSource<R>,
    products: Vec<usize>,
}

impl<R: Recode> RangeReader for RecodedReader<'_, R> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        let mut block = self.inner.read(entries)?;
        for (column, &product) in block.columns.iter_mut().zip(&self.products) {
            if let Some(recoder) = &self.source.recoders[product] {
                *column = recoder.recode(column).map_err(|(number, fault)| {
                    let entry = block.entries.start + number;
                    let name = &self.source.schema.products[product].name;
                    fault.at(&self.source.place().branch(name).entries(entry..entry + 1))
                })?;
            }
        }
        Ok(block)
    }

    fn leave_out_ids(&mut self) {
        self.inner.leave_out_ids();
    }

    fn append(&mut self, entries: Range<u64>, block: &mut Block) -> Result<()> {
        if self.products.iter().all(|&product| self.source.recoders[product].is_none()) {
            return self.inner.append(entries, block);
        }
        let more = self.read(entries)?;
        block.append(&more).map_err(|fault| fault.at(&self.source.place()))
    }
}
