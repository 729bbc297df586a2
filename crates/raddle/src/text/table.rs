//! Plain tables: a header and aligned columns, without a frame or any special characters.

use super::quantity;
use comfy_table::{Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

/// Width in columns if the output is not a terminal.
const FILE_WIDTH: u16 = 120;
/// Minimum width of a table; narrower text cells are hard to read, so the terminal may break lines instead.
const MIN_WIDTH: u16 = 60;

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellAlign {
    /// Left, for text.
    Left,
    /// Right, for numbers.
    Right,
}

/// A table under construction; callers escape the cells.
#[derive(Debug)]
pub struct Columns {
    table: Table,
    alignments: Vec<CellAlign>,
    /// Number of items that [`Self::rows`] left out.
    left_out: u64,
}

impl Columns {
    /// Creates a table with these column titles.
    pub fn new(titles: &[(&str, CellAlign)]) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        match table.width() {
            // An MPI launcher gives its ranks terminals without a size.
            Some(width) if table.is_tty() && width > 0 => table.set_width(width.max(MIN_WIDTH)),
            _ => table.set_width(FILE_WIDTH),
        };
        let alignments: Vec<CellAlign> = titles.iter().map(|&(_, align)| align).collect();
        table.set_header(titles.iter().map(|&(title, align)| cell(title, align).add_attribute(Attribute::Bold)));
        Self { table, alignments, left_out: 0 }
    }

    /// Does not wrap the first column when writing to a file, so that its values can be searched for.
    #[must_use]
    pub fn with_whole_names(mut self) -> Self {
        if let (false, Some(column)) = (self.table.is_tty(), self.table.column_mut(0)) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        self
    }

    /// Adds a row, with one cell per title.
    pub fn row<T: AsRef<str>>(&mut self, cells: &[T]) {
        let cells = cells.iter().zip(&self.alignments);
        self.table.add_row(cells.map(|(text, &align)| cell(text.as_ref(), align)));
    }

    /// Adds the rows of the first `max` of `items`, and a line below the table that counts the others.
    pub fn rows<I: IntoIterator, const N: usize>(
        &mut self,
        items: I,
        max: usize,
        row: impl Fn(I::Item) -> [String; N],
    ) {
        let mut items = items.into_iter();
        items.by_ref().take(max).for_each(|item| self.row(&row(item)));
        self.left_out += items.count() as u64;
    }

    /// Returns whether no row was added.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Formats the table, without trailing blanks.
    pub fn render(&self) -> String {
        let mut text = self.table.lines().fold(String::new(), |mut text, line| {
            text.push_str(line.trim_end());
            text.push('\n');
            text
        });
        if self.left_out > 0 {
            text.push_str(&format!(" … and {} more\n", quantity::count(self.left_out)));
        }
        text
    }
}

fn cell(text: &str, align: CellAlign) -> Cell {
    Cell::new(text).set_alignment(match align {
        CellAlign::Left => CellAlignment::Left,
        CellAlign::Right => CellAlignment::Right,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_have_no_trailing_blanks() {
        let mut columns = Columns::new(&[("group", CellAlign::Left), ("rows", CellAlign::Right)]);
        columns.row(&["spill", "9,810"]);
        columns.row(&["rec.sel.nuecosrej", "12"]);
        assert_eq!(
            columns.render(),
            " group               rows\n spill              9,810\n rec.sel.nuecosrej     12\n"
        );
    }

    #[test]
    fn long_tables_say_what_they_leave_out() {
        let table = |max| {
            let mut columns = Columns::new(&[("number", CellAlign::Right)]);
            columns.rows(0..1203, max, |number| [number.to_string()]);
            columns.render()
        };
        assert!(table(3).ends_with("      2\n … and 1,200 more\n"), "{}", table(3));
        assert!(table(1203).ends_with("   1202\n"), "{}", table(1203));
    }
}
