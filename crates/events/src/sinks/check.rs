//! Comparison of entries with those of another source, bit for bit, including ids if both sources know them.
//!
//! Numbers are compared as bits: NaN equals itself, and 0 differs from -0.

use raddle_columns::block::{Block, Column};
use raddle_columns::error::{ColumnsError, Location, Result, UnlocatedError};
use raddle_columns::schema::{Form, Schema};
use raddle_columns::sink::{NoTile, Prepare, Sink};
use raddle_columns::source::{RangeReader, Source};

/// Sink that compares entries with another source.
pub struct CheckSink<'expected> {
    expected: &'expected dyn Source,
    products: Vec<usize>,
    ignores_padding: bool,
    checked: CheckReport,
}

/// Figures of a successful comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckReport {
    /// Number of entries.
    pub entries: u64,
    /// Length of the compared blocks.
    pub block_len_bytes: u64,
}

impl<'expected> CheckSink<'expected> {
    /// Creates a sink that compares blocks of `schema` with the products of the same names in `expected`. With
    /// `ignores_padding`, up to three zeros at the end of a blob are ignored, because packed data streams do not keep
    /// the length of blobs.
    ///
    /// # Errors
    /// If `expected` lacks a product, or has it in a different form.
    pub fn new(schema: &Schema, expected: &'expected dyn Source, ignores_padding: bool) -> Result<Self> {
        let place = expected.place();
        let mut products = Vec::new();
        for product in &schema.products {
            let number = expected.schema().position(&product.name).ok_or_else(|| ColumnsError::NoSuch {
                place: place.branch(&product.name).into(),
                kind: "product",
                available: expected.schema().products.iter().map(|product| product.name.clone()).collect(),
            })?;
            let form = &expected.schema().products[number].form;
            if *form != product.form {
                return Err(ColumnsError::Form {
                    product: product.name.clone(),
                    form: product.form.to_string(),
                    layout: "a comparison",
                    needed: "the other source has a different form",
                });
            }
            products.push(number);
        }
        Ok(Self { expected, products, ignores_padding, checked: CheckReport::default() })
    }
}

/// Preparer that compares blocks.
pub struct CheckPreparer<'expected> {
    reader: Box<dyn RangeReader + 'expected>,
    schema: Schema,
    place: Location,
    ignores_padding: bool,
}

impl<'expected> Sink for CheckSink<'expected> {
    type Preparer = CheckPreparer<'expected>;
    type Prepared = CheckReport;
    type Tile = NoTile;
    type Encoded = NoTile;
    type Summary = CheckReport;

    fn preparer(&self) -> Result<CheckPreparer<'expected>> {
        Ok(CheckPreparer {
            reader: self.expected.reader(&self.products)?,
            schema: self.expected.schema().select(&self.products),
            place: self.expected.place(),
            ignores_padding: self.ignores_padding,
        })
    }

    fn commit(&mut self, part: CheckReport) -> Result<Vec<NoTile>> {
        self.checked.entries += part.entries;
        self.checked.block_len_bytes += part.block_len_bytes;
        Ok(Vec::new())
    }

    fn place(&mut self, encoded: NoTile) -> Result<()> {
        match encoded {}
    }

    fn finish(self) -> Result<CheckReport> {
        let expected = self.expected.len_entries();
        if self.checked.entries != expected {
            let place = self.expected.place().entries(0..self.checked.entries);
            return Err(ColumnsError::NoSuchEntries { place: place.into(), len_entries: expected });
        }
        Ok(self.checked)
    }
}

impl Prepare for CheckPreparer<'_> {
    type Prepared = CheckReport;
    type Tile = NoTile;
    type Encoded = NoTile;

    fn prepare(&mut self, block: Block) -> Result<CheckReport> {
        block.check(&self.schema).map_err(|(_, fault)| fault.at(&self.place.entries(block.entries.clone())))?;
        let expected = self.reader.read(block.entries.clone())?;
        let entries = block.len_entries();
        if !block.ids.is_empty() && !expected.ids.is_empty() && block.ids != expected.ids {
            let equal = block.ids.iter().zip(&expected.ids).take_while(|(got, expected)| got == expected).count();
            let entry = block.entries.start + equal as u64;
            return Err(UnlocatedError::Differs { entry, what: "run, subrun or event" }.at(&self.place));
        }
        let columns = block.columns.iter().zip(&expected.columns);
        for ((got, expected), product) in columns.zip(&self.schema.products) {
            if got != expected
                && let Some(at) = first_difference(got, expected, &product.form, entries, self.ignores_padding)
            {
                let entry = block.entries.start + at;
                return Err(UnlocatedError::Differs { entry, what: "its value" }.at(&self.place.branch(&product.name)));
            }
        }
        Ok(CheckReport { entries, block_len_bytes: block.len_bytes() as u64 })
    }

    fn encode(&mut self, tile: NoTile) -> Result<NoTile> {
        match tile {}
    }
}

/// Returns the number of the first entry at which two columns of a form differ.
fn first_difference(got: &Column, expected: &Column, form: &Form, entries: u64, ignores_padding: bool) -> Option<u64> {
    let differs = |at: u64| {
        let (got, expected) = (got.slice(form, at..at + 1), expected.slice(form, at..at + 1));
        match (form, got.as_bytes(), expected.as_bytes()) {
            (Form::Blob(_), Some((_, got)), Some((_, expected))) if ignores_padding => !is_padded(got, expected),
            _ => got != expected,
        }
    };
    (0..entries).find(|&at| differs(at))
}

/// Returns whether `one` equals `other` followed by up to three zeros, or the reverse.
fn is_padded(one: &[u8], other: &[u8]) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    long.strip_prefix(short).is_some_and(|rest| rest.len() < 4 && rest.iter().all(|&byte| byte == 0))
}
