//! Ids that cannot be partition keys, as a table with advice.

use super::table::{CellAlign, Columns};
use super::{escape, quantity};
use raddle_merge::keys::{KeyFault, KeyFaultKind};

/// Maximum number of rows of a table on the terminal.
const MAX_TABLE_ROWS: usize = 50;

/// Formats ids that cannot be keys.
pub fn table(faults: &[KeyFault]) -> String {
    let titles = [
        ("group", CellAlign::Left),
        ("what is wrong", CellAlign::Left),
        ("rows", CellAlign::Right),
        ("first row", CellAlign::Right),
        ("its ids", CellAlign::Left),
    ];
    let mut columns = Columns::new(&titles);
    columns.rows(faults, MAX_TABLE_ROWS, |fault| {
        let ids: Vec<String> = fault.ids.iter().map(i128::to_string).collect();
        [
            escape::shorten(&escape::text(&fault.group)).into_owned(),
            fault.kind.words().to_owned(),
            quantity::count(fault.rows),
            quantity::count(fault.first_row),
            ids.join(", "),
        ]
    });
    columns.render()
}

/// Returns advice on ids with these faults.
pub fn advice(faults: &[KeyFault]) -> &'static str {
    if faults.iter().any(|fault| fault.kind == KeyFaultKind::Repeated) {
        "name more id columns, say that ids are unique in each input only (--key-scope input), or let the first row count \
         (--repeated-ids first)"
    } else {
        "leave these groups out with --key-skip, or name the columns that distinguish their events"
    }
}
