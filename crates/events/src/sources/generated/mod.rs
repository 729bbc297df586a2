//! Generated events: the reference framework's test products, products of random sizes, events without products, or the
//! events of another source repeated from memory.
//!
//! Invariant: an entry depends only on its number and the options, regardless of its reader and the range in which it
//! is read.

mod cyclic;
mod products;
mod random;
mod throttled;

pub use cyclic::CyclicSource;
pub use products::TestProducts;
pub use random::{RandomOptions, RandomProducts, SizeLaw};
pub use throttled::{EventTimesError, ThrottledSource, parse_event_times};

use raddle_columns::block::{Block, Column};
use raddle_columns::error::{Location, Result};
use raddle_columns::event_id::EventId;
use raddle_columns::schema::Schema;
use raddle_columns::source::{RangeReader, Source, check_entries, check_products};
use std::ops::Range;

/// Generator of entries.
trait Generator: Send + Sync {
    fn schema(&self) -> &Schema;

    fn len_entries(&self) -> u64;

    /// Returns the approximate length of one entry in memory.
    fn entry_len_bytes(&self) -> u64;

    /// Appends a product of an entry to its column.
    fn push(&self, entry: u64, product: usize, column: &mut Column);
}

/// Implements [`Source`] for generators. The trait is of another crate, so it cannot be implemented for all of them at
/// once.
macro_rules! sources {
    ($($generator:ty),+) => {$(
        impl Source for $generator {
            fn place(&self) -> Location {
                Location::default()
            }

            fn schema(&self) -> &Schema {
                Generator::schema(self)
            }

            fn len_entries(&self) -> u64 {
                Generator::len_entries(self)
            }

            fn has_ids(&self) -> bool {
                true
            }

            fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
                let entries = (target_len_bytes / self.entry_len_bytes().max(1)).max(1);
                start.saturating_add(entries).min(Generator::len_entries(self))
            }

            fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
                (entries.end - entries.start).saturating_mul(self.entry_len_bytes())
            }

            fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>> {
                check_products(&self.place(), products, Generator::schema(self))?;
                let schema = Generator::schema(self).select(products);
                Ok(Box::new(GeneratedReader { generator: self, products: products.to_vec(), schema }))
            }
        }
    )+};
}

sources!(CyclicSource, Empty, RandomProducts, TestProducts);

struct GeneratedReader<'source, G> {
    generator: &'source G,
    products: Vec<usize>,
    schema: Schema,
}

impl<G: Generator> RangeReader for GeneratedReader<'_, G> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        check_entries(&Location::default(), &entries, self.generator.len_entries())?;
        let mut block = Block::new(&self.schema, entries.start);
        block.entries.end = entries.end;
        block.ids.extend(entries.clone().map(event_id));
        for (column, &product) in block.columns.iter_mut().zip(&self.products) {
            entries.clone().for_each(|entry| self.generator.push(entry, product, column));
        }
        Ok(block)
    }
}

/// Returns an id with run 1, subrun 1 and an event number counted from 1.
fn event_id(entry: u64) -> EventId {
    EventId { run: 1, lumi: 1, event: entry.saturating_add(1) }
}

/// Source of events without products.
#[derive(Debug, Clone)]
pub struct Empty {
    len_entries: u64,
    schema: Schema,
}

impl Empty {
    /// Creates a source of `len_entries` events.
    pub fn new(len_entries: u64) -> Self {
        Self { len_entries, schema: Schema::default() }
    }
}

impl Generator for Empty {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.len_entries
    }

    fn entry_len_bytes(&self) -> u64 {
        size_of::<EventId>() as u64
    }

    fn push(&self, _entry: u64, _product: usize, _column: &mut Column) {}
}
