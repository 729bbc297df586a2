//! Another source with its blobs as columns, where their classes say what is in them.
//!
//! Not for trees, which are read as columns at once. Invariant: a product that is not decoded is passed on as it is.

use crate::block::Block;
use crate::error::{Place, Result};
use crate::root::BlobDecoder;
use crate::schema::{Form, Schema};
use crate::source::{Reader, Source};
use std::ops::Range;

/// A source, decoded.
pub struct Decoded {
    inner: Box<dyn Source>,
    schema: Schema,
    /// For each product.
    decoders: Vec<Option<BlobDecoder>>,
}

impl Decoded {
    /// Decodes the products of `inner` that can be.
    pub fn new(inner: Box<dyn Source>) -> Self {
        let mut schema = inner.schema().clone();
        let mut decoders = Vec::with_capacity(schema.products.len());
        for product in &mut schema.products {
            let decoder = match product.form {
                Form::Blob(serialization) => BlobDecoder::of_class(&product.class, serialization),
                _ => None,
            };
            if let Some(decoder) = &decoder {
                product.form = decoder.form().clone();
            }
            decoders.push(decoder);
        }
        Self { inner, schema, decoders }
    }
}

impl Source for Decoded {
    fn place(&self) -> Place {
        self.inner.place()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.inner.len_entries()
    }

    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        self.inner.unit_end(start, target_len_bytes)
    }

    fn unit_len_bytes(&self, entries: Range<u64>) -> u64 {
        self.inner.unit_len_bytes(entries)
    }

    fn reads_products_alone(&self) -> bool {
        self.inner.reads_products_alone()
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn Reader + 'source>> {
        let inner = self.inner.reader(products)?;
        Ok(Box::new(DecodedReader { inner, source: self, products: products.to_vec() }))
    }
}

struct DecodedReader<'source> {
    inner: Box<dyn Reader + 'source>,
    source: &'source Decoded,
    products: Vec<usize>,
}

impl Reader for DecodedReader<'_> {
    fn leave_out_ids(&mut self) {
        self.inner.leave_out_ids();
    }

    fn append(&mut self, entries: Range<u64>, block: &mut Block) -> Result<()> {
        if self.products.iter().all(|&product| self.source.decoders[product].is_none()) {
            return self.inner.append(entries, block);
        }
        let more = self.read(entries)?;
        block.append(&more).map_err(|fault| fault.at(&self.source.place()))
    }

    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        let mut block = self.inner.read(entries)?;
        for (column, &product) in block.columns.iter_mut().zip(&self.products) {
            if let Some(decoder) = &self.source.decoders[product] {
                *column = decoder.decode(column).map_err(|(number, fault)| {
                    let entry = block.entries.start + number;
                    let name = &self.source.schema.products[product].name;
                    fault.at(&self.source.place().branch(name).entries(entry..entry + 1))
                })?;
            }
        }
        Ok(block)
    }
}
