//! A source of columns in memory, for data that is not yet in any file.
//!
//! Invariant: the columns match the schema, because they were checked.

use raddle_columns::block::Block;
use raddle_columns::error::{Location, Result};
use raddle_columns::schema::Schema;
use raddle_columns::source::{RangeReader, Source, check_entries, check_products};
use std::ops::Range;

/// Source of entries in memory.
#[derive(Debug, Clone)]
pub struct MemorySource {
    schema: Schema,
    block: Block,
}

impl MemorySource {
    /// Creates a source of the entries of `block`, the first of which becomes entry 0.
    ///
    /// # Errors
    /// If `block` does not match `schema`.
    pub fn new(schema: Schema, mut block: Block) -> Result<Self> {
        block.check(&schema).map_err(|(product, fault)| {
            let named = product.and_then(|number| schema.products.get(number));
            fault.at(&named.map_or_else(Location::default, |product| Location::default().branch(&product.name)))
        })?;
        block.entries = 0..block.len_entries();
        Ok(Self { schema, block })
    }
}

impl Source for MemorySource {
    fn place(&self) -> Location {
        Location::default()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.block.len_entries()
    }

    fn has_ids(&self) -> bool {
        !self.block.ids.is_empty()
    }

    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        let entry_len_bytes = self.block.len_bytes() as u64 / self.len_entries().max(1);
        start.saturating_add((target_len_bytes / entry_len_bytes.max(1)).max(1)).min(self.len_entries())
    }

    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        let of_all = u128::from(entries.end.saturating_sub(entries.start)) * self.block.len_bytes() as u128;
        u64::try_from(of_all / u128::from(self.len_entries().max(1))).unwrap_or(u64::MAX)
    }

    fn reads_products_alone(&self) -> bool {
        true
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>> {
        check_products(&self.place(), products, &self.schema)?;
        Ok(Box::new(HeldReader { source: self, products: products.to_vec() }))
    }
}

struct HeldReader<'source> {
    source: &'source MemorySource,
    products: Vec<usize>,
}

impl RangeReader for HeldReader<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        let MemorySource { schema, block } = self.source;
        check_entries(&Location::default(), &entries, block.len_entries())?;
        let slice = |&product: &usize| block.columns[product].slice(&schema.products[product].form, entries.clone());
        let ids = match block.ids.is_empty() {
            true => Vec::new(),
            false => block.ids[entries.start as usize..entries.end as usize].to_vec(),
        };
        Ok(Block { ids, columns: self.products.iter().map(slice).collect(), entries })
    }
}
