//! A textual overview of the contents: names and lengths of each entry's products, or their averages.

use raddle_columns::block::{Block, Column};
use raddle_columns::error::{ColumnsError, Result};
use raddle_columns::schema::Schema;
use raddle_columns::sink::{NoTile, Prepare, Sink};
use std::fmt::Write as _;
use std::io::Write;

/// Options of the overview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOptions {
    /// Whether to write a paragraph for each entry.
    pub per_entry: bool,
    /// Whether to write average lengths at the end.
    pub summary: bool,
}

/// Sink that writes an overview as text.
pub struct TextSink<W> {
    out: W,
    schema: Schema,
    options: TextOptions,
    entries: u64,
    /// Length of each product in all entries.
    sum_len_bytes: Vec<u64>,
}

impl<W: Write + Send> TextSink<W> {
    /// Creates a sink that writes to `out` and takes blocks of `schema`.
    pub fn new(out: W, schema: &Schema, options: TextOptions) -> Self {
        let sum_len_bytes = vec![0; schema.products.len()];
        Self { out, schema: schema.clone(), options, entries: 0, sum_len_bytes }
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.out.write_all(text.as_bytes()).map_err(|source| ColumnsError::Io {
            path: "text".into(),
            operation: "write",
            source,
        })
    }
}

/// Preparer that formats blocks.
#[derive(Debug, Clone)]
pub struct TextPreparer {
    schema: Schema,
    options: TextOptions,
}

/// Text of one block.
#[derive(Debug)]
pub struct Text {
    text: String,
    entries: u64,
    len_bytes: Vec<u64>,
}

impl<W: Write + Send> Sink for TextSink<W> {
    type Preparer = TextPreparer;
    type Prepared = Text;
    type Tile = NoTile;
    type Encoded = NoTile;
    type Summary = u64;

    fn preparer(&self) -> Result<TextPreparer> {
        Ok(TextPreparer { schema: self.schema.clone(), options: self.options })
    }

    fn commit(&mut self, prepared: Text) -> Result<Vec<NoTile>> {
        self.entries += prepared.entries;
        self.sum_len_bytes.iter_mut().zip(&prepared.len_bytes).for_each(|(sum, len)| *sum += len);
        self.write(&prepared.text)?;
        Ok(Vec::new())
    }

    fn place(&mut self, encoded: NoTile) -> Result<()> {
        match encoded {}
    }

    fn finish(mut self) -> Result<u64> {
        if self.options.summary {
            let mut text = format!("{} events, mean bytes of each product:\n", self.entries);
            let entries = self.entries.max(1) as f64;
            for (product, sum) in self.schema.products.iter().zip(&self.sum_len_bytes) {
                push_line(&mut text, &product.name, format_args!("{:.1}", *sum as f64 / entries));
            }
            self.write(&text)?;
        }
        self.out.flush().map_err(|source| ColumnsError::Io { path: "text".into(), operation: "flush", source })?;
        Ok(self.entries)
    }
}

impl Prepare for TextPreparer {
    type Prepared = Text;
    type Tile = NoTile;
    type Encoded = NoTile;

    fn prepare(&mut self, block: Block) -> Result<Text> {
        let mut text = String::new();
        if self.options.per_entry {
            for (number, entry) in (0..block.len_entries()).zip(block.entries.start..) {
                // Writing to a string cannot fail.
                let _ = match block.ids.get(number as usize) {
                    Some(id) => writeln!(text, "entry {entry}: run {} subrun {} event {}", id.run, id.lumi, id.event),
                    None => writeln!(text, "entry {entry}"),
                };
                for (product, column) in self.schema.products.iter().zip(&block.columns) {
                    let len_bytes = value_len_bytes(&column.slice(&product.form, number..number + 1));
                    push_line(&mut text, &product.name, format_args!("{len_bytes}"));
                }
            }
        }
        let len_bytes = block.columns.iter().map(value_len_bytes).collect();
        Ok(Text { text, entries: block.len_entries(), len_bytes })
    }

    fn encode(&mut self, tile: NoTile) -> Result<NoTile> {
        match tile {}
    }
}

fn push_line(text: &mut String, name: &str, what: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "  {} {what}", name.escape_debug());
}

/// Returns the length of a column's values, without offsets.
fn value_len_bytes(column: &Column) -> u64 {
    use raddle_columns::block::Buffer;
    let len_bytes = |buffer: &Buffer| match buffer {
        Buffer::Values(bytes) => bytes.len() as u64,
        Buffer::Offsets(_) => 0,
    };
    column.buffers.iter().map(len_bytes).sum()
}
