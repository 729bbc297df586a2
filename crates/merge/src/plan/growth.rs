//! Growth of the first input of a plan, to which the others are appended.

use crate::verify::digests::StoredDigests;

/// Growth of the first input of a plan, to which the other inputs are appended.
#[derive(Debug)]
pub struct Growth {
    /// Digests stored in the file; without them, the new rows get no digests either.
    pub stored: Option<StoredDigests>,
    /// Growth of each column.
    pub columns: Vec<ColumnGrowth>,
}

/// Growth of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnGrowth {
    /// Number of existing rows.
    pub old_rows: u64,
    /// Number of rows to append.
    pub new_rows: u64,
    /// First row of the column's tiles: the start of the chunk in which the old rows end.
    pub first_row: u64,
}
