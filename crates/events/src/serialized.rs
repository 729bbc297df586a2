//! Another source's blobs of collections, serialised as is wanted.
//!
//! An entry of a branch of a collection is what the framework calls unrolled; as ROOT serialises it, a byte count and the
//! version of the class's streamer stand before it. Not for other classes, whose fronts need their descriptions: these are
//! passed on as they are, as is what is wanted already. Zeros with which packed data streams fill words up are taken off.

use crate::block::{Block, Column};
use crate::error::{Fault, Place, Result};
use crate::root::is_collection;
use crate::schema::{Form, Schema, Serialization};
use crate::source::{Reader, Source};
use std::ops::Range;

/// A source, serialised.
pub struct Serialized {
    inner: Box<dyn Source>,
    schema: Schema,
    /// For each product, how it is in `inner`, if that changes.
    changes: Vec<Option<Serialization>>,
    wanted: Serialization,
}

/// Set in a byte count.
const BYTE_COUNT: u32 = 0x4000_0000;

/// Byte count and version.
const FRONT_LEN_BYTES: usize = 6;

/// Version that ROOT states for collections.
const COLLECTION_VERSION: u16 = 6;

impl Serialized {
    /// Serialises the collections of `inner`.
    pub fn new(inner: Box<dyn Source>, wanted: Serialization) -> Self {
        let mut schema = inner.schema().clone();
        let mut changes = Vec::with_capacity(schema.products.len());
        for product in &mut schema.products {
            let change = match product.form {
                Form::Blob(own) if own != wanted && is_collection(&product.class) => Some(own),
                _ => None,
            };
            if change.is_some() {
                product.form = Form::Blob(wanted);
            }
            changes.push(change);
        }
        Self { inner, schema, changes, wanted }
    }
}

/// Appends a blob that is `own` as `wanted`.
fn push(blob: &[u8], own: Serialization, wanted: Serialization, out: &mut Vec<u8>) -> Result<(), Fault> {
    let damaged = |what: &str| Fault::Damaged { address: 0, structure: "serialised object", what: what.to_owned() };
    let entry = if own == Serialization::Root {
        let whole = counted(blob).ok_or_else(|| damaged("no byte count of what follows"))?;
        whole.get(FRONT_LEN_BYTES..).ok_or_else(|| damaged("it ends in its front"))?
    } else {
        // A collection has a byte count of its own.
        counted(blob).ok_or_else(|| damaged("a collection without byte count"))?
    };
    if wanted == Serialization::Root {
        let len_bytes = u32::try_from(entry.len() + FRONT_LEN_BYTES - 4).ok().filter(|len| *len < BYTE_COUNT);
        let len_bytes = len_bytes.ok_or_else(|| damaged("it is too long for a byte count"))?;
        out.extend_from_slice(&(BYTE_COUNT | len_bytes).to_be_bytes());
        out.extend_from_slice(&COLLECTION_VERSION.to_be_bytes());
    }
    out.extend_from_slice(entry);
    Ok(())
}

/// The bytes that a byte count at their front says there are, itself among them.
fn counted(bytes: &[u8]) -> Option<&[u8]> {
    let count = u32::from_be_bytes(*bytes.first_chunk()?);
    let len_bytes = (count & BYTE_COUNT != 0).then_some((count & !BYTE_COUNT) as usize)?;
    bytes.get(..len_bytes.checked_add(4)?)
}

impl Source for Serialized {
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
        let count = entries.end.saturating_sub(entries.start);
        let fronts = count.saturating_mul((self.changes.len() * FRONT_LEN_BYTES) as u64);
        self.inner.unit_len_bytes(entries).saturating_add(fronts)
    }

    fn reads_products_alone(&self) -> bool {
        self.inner.reads_products_alone()
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn Reader + 'source>> {
        let inner = self.inner.reader(products)?;
        Ok(Box::new(SerializedReader { inner, source: self, products: products.to_vec() }))
    }
}

struct SerializedReader<'source> {
    inner: Box<dyn Reader + 'source>,
    source: &'source Serialized,
    products: Vec<usize>,
}

impl Reader for SerializedReader<'_> {
    fn leave_out_ids(&mut self) {
        self.inner.leave_out_ids();
    }

    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        let mut block = self.inner.read(entries)?;
        for (column, &product) in block.columns.iter_mut().zip(&self.products) {
            let (Some(own), Some((offsets, bytes))) = (self.source.changes[product], column.as_bytes()) else {
                continue;
            };
            let (mut new_offsets, mut new_bytes) = (vec![0], Vec::with_capacity(bytes.len()));
            for (number, pair) in offsets.windows(2).enumerate() {
                let blob = &bytes[pair[0] as usize..pair[1] as usize];
                push(blob, own, self.source.wanted, &mut new_bytes).map_err(|fault| {
                    let entry = block.entries.start + number as u64;
                    let name = &self.source.schema.products[product].name;
                    fault.at(&self.source.place().branch(name).entries(entry..entry + 1))
                })?;
                new_offsets.push(new_bytes.len() as u64);
            }
            *column = Column::of_bytes(new_offsets, new_bytes);
        }
        Ok(block)
    }
}
