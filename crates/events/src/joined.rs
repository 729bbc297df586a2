//! Several sources as one, the entries of each behind those of the one before.
//!
//! Invariant: products are found by their names; a source that lacks one, or has it in another form, is refused with its
//! name and never shifts the others.

use crate::baskets::Baskets;
use crate::block::Block;
use crate::error::{EventsError, Place, Result};
use crate::schema::Schema;
use crate::source::{Reader, Source, check_entries, check_products};
use raddle_core::cancel::CancelToken;
use std::ops::Range;

/// Sources behind each other.
pub struct Joined {
    parts: Vec<Part>,
    schema: Schema,
}

struct Part {
    source: Box<dyn Source>,
    /// Number of each product of the whole in this source.
    products: Vec<usize>,
    /// Entries of this and all before.
    end: u64,
}

impl Joined {
    /// Joins sources; there must be at least one. The products are those of the first, in its order.
    ///
    /// # Errors
    /// A source lacks a product, has it in another form, or has one more.
    pub fn new(sources: Vec<Box<dyn Source>>) -> Result<Self> {
        let schema = sources.first().map(|source| source.schema().clone()).unwrap_or_default();
        let (mut parts, mut end) = (Vec::with_capacity(sources.len()), 0_u64);
        for source in sources {
            let products = match_products(&schema, source.as_ref())?;
            end = end.saturating_add(source.len_entries());
            parts.push(Part { source, products, end });
        }
        Ok(Self { parts, schema })
    }

    /// The part that holds an entry, and its first entry.
    fn part_of(&self, entry: u64) -> Option<(usize, u64)> {
        let number = self.parts.partition_point(|part| part.end <= entry);
        let start = number.checked_sub(1).map_or(0, |before| self.parts[before].end);
        (number < self.parts.len()).then_some((number, start))
    }

    /// Calls `part` with each part that has some of `entries`, and with the entries in it.
    fn each_part<E>(
        &self,
        entries: Range<u64>,
        mut part: impl FnMut(usize, Range<u64>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = entries.start;
        while at < entries.end {
            let Some((number, start)) = self.part_of(at) else { break };
            let end = self.parts[number].end.min(entries.end);
            part(number, at - start..end - start)?;
            at = end;
        }
        Ok(())
    }
}

/// The number of each product of `schema` in `source`.
fn match_products(schema: &Schema, source: &dyn Source) -> Result<Vec<usize>> {
    let own = source.schema();
    let names = |schema: &Schema| schema.products.iter().map(|product| product.name.clone()).collect();
    let mut products = Vec::with_capacity(schema.products.len());
    for product in &schema.products {
        let Some(number) = own.position(&product.name) else {
            let place = source.place().branch(&product.name);
            return Err(EventsError::NoSuch { place: place.into(), kind: "product", there_is: names(own) });
        };
        let form = &own.products[number].form;
        if *form != product.form {
            return Err(EventsError::FormDiffers {
                place: source.place().branch(&product.name).into(),
                got: form.to_string(),
                expected: product.form.to_string(),
            });
        }
        products.push(number);
    }
    match own.products.iter().find(|product| schema.position(&product.name).is_none()) {
        None => Ok(products),
        Some(more) => {
            let place = source.place().branch(&more.name);
            Err(EventsError::NotInFirst { place: place.into(), there_is: names(schema) })
        }
    }
}

impl Source for Joined {
    fn place(&self) -> Place {
        self.parts.first().map(|part| part.source.place()).unwrap_or_default()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.end)
    }

    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        match self.part_of(start) {
            Some((number, first)) => first + self.parts[number].source.unit_end(start - first, target_len_bytes),
            None => self.len_entries(),
        }
    }

    fn unit_len_bytes(&self, entries: Range<u64>) -> u64 {
        let mut len_bytes = 0_u64;
        let _ = self.each_part(entries, |number, entries| -> Result<(), std::convert::Infallible> {
            len_bytes = len_bytes.saturating_add(self.parts[number].source.unit_len_bytes(entries));
            Ok(())
        });
        len_bytes
    }

    fn reads_products_alone(&self) -> bool {
        self.parts.iter().all(|part| part.source.reads_products_alone())
    }

    fn check_unchanged(&self) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.source.check_unchanged())
    }

    fn basket_ends(&self, product: usize) -> Result<Vec<u64>> {
        check_products(&self.place(), &[product], &self.schema)?;
        let (mut ends, mut start) = (Vec::new(), 0);
        for part in &self.parts {
            ends.extend(part.source.basket_ends(part.products[product])?.into_iter().map(|end| start + end));
            start = part.end;
        }
        Ok(ends)
    }

    fn read_baskets(&self, product: usize, baskets: Range<usize>, cancel: &CancelToken) -> Result<Baskets> {
        check_products(&self.place(), &[product], &self.schema)?;
        let (mut read, mut first, mut start) = (Baskets::default(), 0, 0);
        for part in &self.parts {
            let number = part.products[product];
            let end = first + part.source.basket_ends(number)?.len();
            let of_part = baskets.start.clamp(first, end) - first..baskets.end.clamp(first, end) - first;
            if !of_part.is_empty() {
                read.append(part.source.read_baskets(number, of_part, cancel)?, start);
            }
            (first, start) = (end, part.end);
        }
        Ok(read)
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn Reader + 'source>> {
        check_products(&self.place(), products, &self.schema)?;
        Ok(Box::new(JoinedReader { source: self, products: products.to_vec(), open: None, with_ids: true }))
    }
}

/// Reads one part after the other.
struct JoinedReader<'source> {
    source: &'source Joined,
    with_ids: bool,
    products: Vec<usize>,
    /// Number of the part that is being read: only one is open, however many there are.
    open: Option<(usize, Box<dyn Reader + 'source>)>,
}

impl JoinedReader<'_> {
    fn read_part(&mut self, number: usize, entries: Range<u64>) -> Result<Block> {
        let part = &self.source.parts[number];
        let mut reader = match self.open.take() {
            Some((open, reader)) if open == number => reader,
            _ => {
                let products: Vec<usize> = self.products.iter().map(|&product| part.products[product]).collect();
                let mut reader = part.source.reader(&products)?;
                if !self.with_ids {
                    reader.leave_out_ids();
                }
                reader
            }
        };
        let block = reader.read(entries)?;
        self.open = Some((number, reader));
        Ok(block)
    }
}

impl Reader for JoinedReader<'_> {
    fn leave_out_ids(&mut self) {
        self.with_ids = false;
        self.open = None;
    }

    fn read(&mut self, entries: Range<u64>) -> Result<Block> {
        let source = self.source;
        check_entries(&source.place(), &entries, source.len_entries())?;
        let mut whole = Block::new(&source.schema.select(&self.products), entries.start);
        let mut is_first = true;
        source.each_part(entries.clone(), |number, range| {
            let block = self.read_part(number, range)?;
            if is_first {
                whole = block;
                is_first = false;
                return Ok(());
            }
            whole.append(&block).map_err(|fault| fault.at(&source.parts[number].source.place()))
        })?;
        whole.entries = entries;
        Ok(whole)
    }
}
