//! The first entries of another source, held in memory and repeated: a source that takes almost no time to read, for
//! measuring sinks.

use super::Generator;
use raddle_columns::block::{Block, Column};
use raddle_columns::error::Result;
use raddle_columns::schema::Schema;
use raddle_columns::source::Source;

/// Source of entries in memory, repeated.
#[derive(Debug, Clone)]
pub struct CyclicSource {
    len_entries: u64,
    schema: Schema,
    kept: Block,
}

impl CyclicSource {
    /// Reads the first `kept_entries` of `source` (or all, if there are fewer) and repeats them up to `len_entries`.
    ///
    /// # Errors
    /// If reading fails.
    pub fn new(source: &dyn Source, kept_entries: u64, len_entries: u64) -> Result<Self> {
        let products: Vec<usize> = (0..source.schema().products.len()).collect();
        let kept = source.reader(&products)?.read(0..kept_entries.min(source.len_entries()))?;
        let schema = source.schema().clone();
        let len_entries = if kept.len_entries() == 0 { 0 } else { len_entries };
        Ok(Self { len_entries, schema, kept })
    }
}

impl Generator for CyclicSource {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.len_entries
    }

    fn entry_len_bytes(&self) -> u64 {
        self.kept.len_bytes() as u64 / self.kept.len_entries().max(1)
    }

    fn push(&self, entry: u64, product: usize, column: &mut Column) {
        let entry = entry % self.kept.len_entries();
        let one = self.kept.columns[product].slice(&self.schema.products[product].form, entry..entry + 1);
        // Both have the same form, so this cannot fail.
        let _ = column.append(&one);
    }
}
