//! Several sources presented as one by concatenating their entries.
//!
//! Invariants: products are found by name, so that a source that lacks a product, or has it in a different form, never
//! shifts the others; either all entries have ids or none.

use crate::error::{EventsError, Result};
use raddle_columns::baskets::Baskets;
use raddle_columns::block::{Block, Column};
use raddle_columns::error::{ColumnsError, Location};
use raddle_columns::schema::{Form, Product, Schema};
use raddle_columns::source::{RangeReader, Source, check_entries, check_products};
use raddle_core::cancel::CancelToken;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Treatment of products that not all sources have in the same form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MismatchPolicy {
    /// Fail, naming the first such product.
    #[default]
    Refuse,
    /// Leave these products out.
    LeaveOut,
    /// Fill the entries of sources without the product with zeros or empty values. A product with a different form is
    /// an error, and so is a product stored as bytes, because zero bytes are not an object.
    Fill,
}

/// Concatenation of several sources.
pub struct ConcatSource {
    parts: Vec<ConcatPart>,
    schema: Schema,
    /// Whether all sources that have entries also have ids.
    has_ids: bool,
    left_out: Vec<(String, EventsError)>,
}

struct ConcatPart {
    source: Box<dyn Source>,
    /// For each product of the concatenation, its number in this source, if it exists there.
    products: Vec<Option<usize>>,
    /// Memory per entry of the products that this source lacks.
    filled_len_bytes: u64,
    /// Number of entries of this source and all before it.
    end: u64,
}

impl ConcatSource {
    /// Joins sources; at least one is required. The products are those of the first source, in its order.
    ///
    /// # Errors
    /// If a source lacks a product, has it in a different form, or has an additional one.
    pub fn new(sources: Vec<Box<dyn Source>>) -> Result<Self> {
        Self::of(sources, |_| true, MismatchPolicy::Refuse)
    }

    /// Joins sources as [`ConcatSource::new`] does, restricted to the products whose names `is_wanted` accepts.
    ///
    /// # Errors
    /// If products differ in a way that `differing` does not allow, or all products would be left out.
    pub fn of(
        sources: Vec<Box<dyn Source>>,
        is_wanted: impl Fn(&str) -> bool,
        differing: MismatchPolicy,
    ) -> Result<Self> {
        let mut schema = Schema::default();
        let wanted = |source: &dyn Source| -> Vec<Product> {
            source.schema().products.iter().filter(|product| is_wanted(&product.name)).cloned().collect()
        };
        if let Some(first) = sources.first() {
            schema.products = wanted(first.as_ref());
        }
        let mut left_out: Vec<(String, EventsError)> = Vec::new();
        let mut leave_out = |schema: &mut Schema, product: Product, error| {
            schema.products.retain(|other| other.name != product.name);
            if left_out.iter().all(|(name, _)| *name != product.name) {
                left_out.push((product.name, error));
            }
        };
        for source in sources.iter().skip(1) {
            for (number, product) in schema.products.clone().into_iter().enumerate() {
                match (find(&product, number, source.as_ref()), differing) {
                    (Ok(_), _) => {}
                    (Err(EventsError::Columns(ColumnsError::NoSuch { .. })), MismatchPolicy::Fill)
                        if can_be_filled(&product.form) => {}
                    (Err(error), MismatchPolicy::LeaveOut) => leave_out(&mut schema, product, error),
                    (Err(error), _) => return Err(error),
                }
            }
            for (number, product) in wanted(source.as_ref()).into_iter().enumerate() {
                if schema.position_near(&product.name, number).is_some() {
                    continue;
                }
                let place = source.place().branch(&product.name).into();
                let available = names(&sources[0].schema().products);
                let not_in_first = EventsError::NotInFirst { place, available };
                match differing {
                    MismatchPolicy::Fill if can_be_filled(&product.form) => schema.products.push(product),
                    MismatchPolicy::LeaveOut => leave_out(&mut schema, product, not_in_first),
                    MismatchPolicy::Refuse | MismatchPolicy::Fill => return Err(not_in_first),
                }
            }
        }
        if schema.products.is_empty() && !left_out.is_empty() {
            let products = left_out.iter().map(|(name, _)| name.clone()).collect();
            return Err(EventsError::NothingInCommon { products, first: Box::new(left_out.swap_remove(0).1) });
        }
        let has_ids = sources.iter().all(|source| source.len_entries() == 0 || source.has_ids());
        let (mut parts, mut end) = (Vec::with_capacity(sources.len()), 0_u64);
        for source in sources {
            let number = |(number, product): (usize, &Product)| match find(product, number, source.as_ref()) {
                Ok(number) => Ok(Some(number)),
                // With any other source, the product would have been refused or left out by now.
                Err(EventsError::Columns(ColumnsError::NoSuch { .. })) => Ok(None),
                Err(error) => Err(error),
            };
            let products = schema.products.iter().enumerate().map(number).collect::<Result<Vec<_>>>()?;
            let filled = schema.products.iter().zip(&products).filter(|(_, number)| number.is_none());
            let filled_len_bytes = filled.map(|(product, _)| Column::filled(&product.form, 1).len_bytes() as u64).sum();
            end = end.saturating_add(source.len_entries());
            parts.push(ConcatPart { source, products, filled_len_bytes, end });
        }
        Ok(Self { parts, schema, has_ids, left_out })
    }

    /// Hides the ids of a source.
    ///
    /// # Errors
    /// As for [`ConcatSource::new`].
    pub(crate) fn without_ids(source: Box<dyn Source>) -> Result<Self> {
        Ok(Self { has_ids: false, ..Self::new(vec![source])? })
    }

    /// Returns the products that were left out, and why.
    pub fn left_out(&self) -> &[(String, EventsError)] {
        &self.left_out
    }

    /// Returns the number of the part that holds an entry, and the first entry of that part.
    fn part_of(&self, entry: u64) -> Option<(usize, u64)> {
        let number = self.parts.partition_point(|part| part.end <= entry);
        let start = number.checked_sub(1).map_or(0, |before| self.parts[before].end);
        (number < self.parts.len()).then_some((number, start))
    }

    /// Returns the number of a product in a part that must have it.
    fn number_in(&self, part: &ConcatPart, product: usize) -> Result<usize> {
        let source = part.source.as_ref();
        part.products[product].map_or_else(|| find(&self.schema.products[product], product, source), Ok)
    }

    /// Calls `part` with each part that overlaps `entries` and with the entries in it.
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

fn can_be_filled(form: &Form) -> bool {
    match form {
        Form::Blob(_) => false,
        Form::Number(_) | Form::String => true,
        Form::Regular { content, .. } | Form::List(content) => can_be_filled(content),
        Form::Record(fields) => fields.iter().all(|field| can_be_filled(&field.form)),
    }
}

fn names(products: &[Product]) -> Vec<String> {
    products.iter().map(|product| product.name.clone()).collect()
}

/// Returns the number of the product with this name and form in `source`. Similar files have it at `likely`, which is
/// tried first.
fn find(product: &Product, likely: usize, source: &dyn Source) -> Result<usize> {
    let schema = source.schema();
    let place = || source.place().branch(&product.name).into();
    let Some(number) = schema.position_near(&product.name, likely) else {
        return Err(ColumnsError::NoSuch { place: place(), kind: "product", available: names(&schema.products) }.into());
    };
    let form = &schema.products[number].form;
    match *form == product.form {
        true => Ok(number),
        false => {
            let (got, expected) = (form.to_string(), product.form.to_string());
            Err(EventsError::FormDiffers { place: place(), got, expected })
        }
    }
}

impl Source for ConcatSource {
    fn place(&self) -> Location {
        self.parts.first().map(|part| part.source.place()).unwrap_or_default()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.end)
    }

    fn has_ids(&self) -> bool {
        self.has_ids
    }

    fn id_product(&self) -> Option<usize> {
        let first = &self.parts.first()?.source;
        let product = &first.schema().products[first.id_product()?];
        self.schema.position(&product.name)
    }

    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        match self.part_of(start) {
            Some((number, first)) => first + self.parts[number].source.unit_end(start - first, target_len_bytes),
            None => self.len_entries(),
        }
    }

    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        let mut len_bytes = 0_u64;
        let _ = self.each_part(entries, |number, entries| -> Result<(), std::convert::Infallible> {
            let ConcatPart { source, filled_len_bytes, .. } = &self.parts[number];
            let filled = filled_len_bytes.saturating_mul(entries.end - entries.start);
            len_bytes = len_bytes.saturating_add(source.batch_len_bytes(entries)).saturating_add(filled);
            Ok(())
        });
        len_bytes
    }

    /// Returns the most memory that the reader of a part keeps, because only one part is open at a time.
    fn reader_len_bytes(&self, products: &[usize]) -> u64 {
        let of_part = |part: &ConcatPart| {
            let products: Vec<usize> = products.iter().filter_map(|&product| part.products[product]).collect();
            part.source.reader_len_bytes(&products)
        };
        self.parts.iter().map(of_part).max().unwrap_or(0)
    }

    fn reads_products_alone(&self) -> bool {
        self.parts.iter().all(|part| part.source.reads_products_alone())
    }

    fn check_unchanged(&self) -> Result<(), ColumnsError> {
        self.parts.iter().try_for_each(|part| part.source.check_unchanged())
    }

    fn basket_ends(&self, product: usize) -> Result<Vec<u64>, ColumnsError> {
        check_products(&self.place(), &[product], &self.schema)?;
        let (mut ends, mut start) = (Vec::new(), 0);
        for part in &self.parts {
            let number = self.number_in(part, product)?;
            ends.extend(part.source.basket_ends(number)?.into_iter().map(|end| start + end));
            start = part.end;
        }
        Ok(ends)
    }

    fn read_baskets(
        &self,
        product: usize,
        baskets: Range<usize>,
        cancel: &CancelToken,
    ) -> Result<Baskets, ColumnsError> {
        check_products(&self.place(), &[product], &self.schema)?;
        let (mut read, mut first, mut start) = (Baskets::default(), 0, 0);
        for part in &self.parts {
            let number = self.number_in(part, product)?;
            let end = first + part.source.basket_ends(number)?.len();
            let of_part = baskets.start.clamp(first, end) - first..baskets.end.clamp(first, end) - first;
            if !of_part.is_empty() {
                read.append(part.source.read_baskets(number, of_part, cancel)?, start);
            }
            (first, start) = (end, part.end);
        }
        Ok(read)
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>, ColumnsError> {
        check_products(&self.place(), products, &self.schema)?;
        let with_ids = self.has_ids;
        Ok(Box::new(JoinedReader { source: self, products: products.to_vec(), open: None, with_ids }))
    }
}

/// Reader that reads one part after the other.
struct JoinedReader<'source> {
    source: &'source ConcatSource,
    with_ids: bool,
    products: Vec<usize>,
    /// Number and reader of the part being read: only one part is open at a time.
    open: Option<(usize, Box<dyn RangeReader + 'source>)>,
}

impl JoinedReader<'_> {
    fn read_part(&mut self, number: usize, entries: Range<u64>) -> Result<Block> {
        let part = &self.source.parts[number];
        let mut reader = match self.open.take() {
            Some((open, reader)) if open == number => reader,
            _ => {
                let products: Vec<usize> = self.products.iter().filter_map(|&product| part.products[product]).collect();
                let mut reader = part.source.reader(&products)?;
                if !self.with_ids {
                    reader.leave_out_ids();
                }
                reader
            }
        };
        let mut block = reader.read(entries)?;
        if !self.with_ids {
            // A reader may return ids anyway.
            block.ids.clear();
        }
        self.open = Some((number, reader));
        let missing = self.products.iter().enumerate().filter(|(_, product)| part.products[**product].is_none());
        for (column, &product) in missing {
            let form = &self.source.schema.products[product].form;
            block.columns.insert(column, Column::filled(form, block.len_entries()));
        }
        Ok(block)
    }
}

impl RangeReader for JoinedReader<'_> {
    fn leave_out_ids(&mut self) {
        self.with_ids = false;
        self.open = None;
    }

    fn read(&mut self, entries: Range<u64>) -> Result<Block, ColumnsError> {
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
