//! Values of entries as text: one line of JSON per entry, or lines for people.
//!
//! JSON lines contain every value in full. Floating-point numbers of 32 bits are written as the 64-bit numbers that
//! they equal, so that programs read exactly the stored values. Invariant: every line is a separate JSON object; no
//! part of a value is left out.

use super::json::{self, Style};
use crate::error::{EventsError, Result};
use raddle_columns::block::Block;
use raddle_columns::error::{ColumnsError, Location};
use raddle_columns::schema::Schema;
use raddle_columns::sink::{NoTile, Prepare, Sink};
use std::io::Write;

/// Format of the written values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValuesFormat {
    /// One line of JSON per entry: `{"entry":0,"id":{"run":1,"lumi":1,"event":1},"products":{…}}`, without `id` if the
    /// source has no ids.
    JsonLines,
    /// One line per product, with at most `max_items` items of each list or bytes.
    Text {
        /// Maximum number of items.
        max_items: usize,
    },
}

/// Sink that writes values as text.
pub struct ValuesSink<W> {
    out: W,
    formatter: ValuesPreparer,
    entries: u64,
}

/// Maximum length of the text of a block while it waits to be written, as a multiple of the length of the block. The
/// text of most values is shorter: up to 22 characters for a number of 4 bytes. The rest of a longer text is only made
/// when it is written.
const TEXT_PER_BYTE: u64 = 6;

impl<W: Write + Send> ValuesSink<W> {
    /// Creates a sink that writes the values of blocks of `schema` to `out`.
    pub fn new(out: W, schema: &Schema, format: ValuesFormat) -> Self {
        Self { out, formatter: ValuesPreparer::new(schema, format), entries: 0 }
    }
}

/// Text of the first entries of a block, and the rest of the block.
pub struct PreparedValues {
    /// Number of entries of the block.
    entries: u64,
    text: String,
    /// The block and its first entry without text; `None` if the text is complete.
    rest: Option<(Block, u64)>,
}

/// Preparer that formats values.
#[derive(Debug, Clone)]
pub struct ValuesPreparer {
    schema: Schema,
    format: ValuesFormat,
    /// Width of the column of names.
    width: usize,
}

/// Maximum width of the column of names.
const WIDEST: usize = 40;

impl<W: Write + Send> Sink for ValuesSink<W> {
    type Preparer = ValuesPreparer;
    type Prepared = PreparedValues;
    type Tile = NoTile;
    type Encoded = NoTile;
    /// Number of entries.
    type Summary = u64;

    fn preparer(&self) -> Result<ValuesPreparer, ColumnsError> {
        Ok(self.formatter.clone())
    }

    fn prepared_per_byte(&self) -> u64 {
        TEXT_PER_BYTE
    }

    fn commit(&mut self, prepared: PreparedValues) -> Result<Vec<NoTile>, ColumnsError> {
        let PreparedValues { entries, mut text, rest } = prepared;
        self.entries += entries;
        let mut write = |text: &str| self.out.write_all(text.as_bytes()).map_err(|source| EventsError::Text { source });
        write(&text)?;
        if let Some((block, first)) = rest {
            for number in first..block.len_entries() {
                text.clear();
                self.formatter.push_entry(&block, number, &mut text);
                write(&text)?;
            }
        }
        Ok(Vec::new())
    }

    fn place(&mut self, encoded: NoTile) -> Result<(), ColumnsError> {
        match encoded {}
    }

    fn finish(mut self) -> Result<u64, ColumnsError> {
        self.out.flush().map_err(|source| EventsError::Text { source })?;
        Ok(self.entries)
    }
}

impl Prepare for ValuesPreparer {
    type Prepared = PreparedValues;
    type Tile = NoTile;
    type Encoded = NoTile;

    fn prepare(&mut self, block: Block) -> Result<PreparedValues, ColumnsError> {
        let place = Location::default().entries(block.entries.clone());
        block.check(&self.schema).map_err(|(product, fault)| match product {
            Some(number) => fault.at(&place.branch(&self.schema.products[number].name)),
            None => fault.at(&place),
        })?;
        let entries = block.len_entries();
        let max_text_len = block.len_bytes().saturating_mul(TEXT_PER_BYTE as usize);
        // The text does not grow beyond this length by doubling; pages that it does not reach are never used.
        let mut text = String::with_capacity(max_text_len);
        for number in 0..entries {
            if text.len() >= max_text_len {
                return Ok(PreparedValues { entries, text, rest: Some((block, number)) });
            }
            self.push_entry(&block, number, &mut text);
        }
        Ok(PreparedValues { entries, text, rest: None })
    }

    fn encode(&mut self, tile: NoTile) -> Result<NoTile, ColumnsError> {
        match tile {}
    }
}

impl ValuesPreparer {
    fn new(schema: &Schema, format: ValuesFormat) -> Self {
        let widths = schema.products.iter().map(|product| escaped_name(&product.name).chars().count());
        let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
        Self { schema: schema.clone(), format, width }
    }

    /// Appends the text of an entry of a checked block.
    fn push_entry(&self, block: &Block, number: u64, text: &mut String) {
        let entry = block.entries.start + number;
        match self.format {
            ValuesFormat::JsonLines => self.push_json(block, number, entry, text),
            ValuesFormat::Text { max_items } => self.push_text(block, number, entry, max_items, text),
        }
    }

    fn push_json(&self, block: &Block, number: u64, entry: u64, text: &mut String) {
        text.push_str(&format!("{{\"entry\":{entry}"));
        if let Some(id) = block.ids.get(number as usize) {
            text.push_str(&format!(",\"id\":{{\"run\":{},\"lumi\":{},\"event\":{}}}", id.run, id.lumi, id.event));
        }
        text.push_str(",\"products\":{");
        for (place, (product, column)) in self.schema.products.iter().zip(&block.columns).enumerate() {
            if place > 0 {
                text.push(',');
            }
            json::push_text(product.name.as_bytes(), text);
            text.push(':');
            json::push_value(&product.form, &column.buffers, number, Style::WHOLE, text);
        }
        text.push_str("}}\n");
    }

    fn push_text(&self, block: &Block, number: u64, entry: u64, max_items: usize, text: &mut String) {
        text.push_str(&format!("entry {entry}"));
        if let Some(id) = block.ids.get(number as usize) {
            text.push_str(&format!(": run {}, lumi {}, event {}", id.run, id.lumi, id.event));
        }
        text.push('\n');
        let width = self.width;
        for (product, column) in self.schema.products.iter().zip(&block.columns) {
            text.push_str(&format!("  {:width$}  ", escaped_name(&product.name)));
            json::push_value(&product.form, &column.buffers, number, Style::shortened(max_items), text);
            text.push('\n');
        }
    }
}

/// Escapes characters of a name that would affect the terminal.
fn escaped_name(name: &str) -> String {
    name.chars()
        .flat_map(|letter| if letter.is_control() { letter.escape_default().collect() } else { vec![letter] })
        .collect()
}
