//! Table of quantities across ranks: minimum, mean and maximum.

use super::quantity::{count, size};
use super::table::{CellAlign, Columns};
use raddle_core::report::spread::Spread;

/// Rows of a quantity each.
pub(super) struct SpreadTable {
    columns: Columns,
}

impl SpreadTable {
    pub fn new() -> Self {
        let titles = [
            ("per rank", CellAlign::Left),
            ("least", CellAlign::Right),
            ("mean", CellAlign::Right),
            ("most", CellAlign::Right),
        ];
        Self { columns: Columns::new(&titles) }
    }

    /// Adds a quantity whose values are formatted by `format_value`.
    pub fn row(&mut self, title: &str, spread: Spread, format_value: impl Fn(f64) -> String) {
        let Spread { least, mean, most } = spread;
        self.columns.row(&[title.to_owned(), format_value(least), format_value(mean), format_value(most)]);
    }

    /// Adds a number of things.
    pub fn count(&mut self, title: &str, spread: Spread) {
        self.row(title, spread, |value| count(value.round() as u64));
    }

    /// Adds a length in bytes.
    pub fn bytes(&mut self, title: &str, spread: Spread) {
        self.row(title, spread, |value| size(value as u64));
    }

    pub fn render(&self) -> String {
        self.columns.render()
    }
}
