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
        Self { table, alignments }
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

    /// Returns whether no row was added.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Formats the table, without trailing blanks.
    pub fn render(&self) -> String {
        self.table.lines().fold(String::new(), |mut text, line| {
            text.push_str(line.trim_end());
            text.push('\n');
            text
        })
    }
}

/// Formats the line below a table that shows only the first `shown` of `count` rows; empty if it shows all.
pub fn rest(count: usize, shown: usize) -> String {
    match count.checked_sub(shown) {
        Some(more @ 1..) => format!(" … and {} more\n", quantity::count(more as u64)),
        _ => String::new(),
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
        assert_eq!((rest(0, 100), rest(100, 100)), (String::new(), String::new()));
        assert_eq!(rest(1300, 100), " … and 1,200 more\n");
    }
}
