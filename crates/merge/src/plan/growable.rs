//! Which datasets of a new file can grow along axis 0, besides those that could in an input.
//!
//! A merge is often appended to later, and a dataset that cannot grow stops that. Being able to grow costs a chunk index where
//! a small dataset would be stored in one piece, and nothing elsewhere. Invariant: by itself a merge adds at most
//! [`MOST_ADDED`] of the bytes that its inputs store.

use super::column::is_stored_whole;
use crate::options::Extendible;
use crate::schema::{ABSENT, Column, Schema};

/// Part of the inputs' bytes that chunk indexes may add.
const MOST_ADDED: f64 = 0.01;
/// Bytes of a chunk index of one chunk: a node of a B-tree as HDF5 1.8 has it, and what its address takes. Measured: 1,862.
const INDEX_LEN_BYTES: u64 = 2048;

/// Which datasets can grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growable {
    /// Those that could in an input.
    AsTheInputs,
    /// Also those with rows of several inputs.
    OfSeveralInputs,
    /// All with rows.
    All,
}

impl Growable {
    /// Decides for a file of `schema`; `is_plain`: its inputs are put together by their structure alone, and follow one another.
    pub fn of(schema: &Schema, asked: Extendible, is_plain: bool) -> Self {
        match asked {
            Extendible::All => Self::All,
            Extendible::Likely if is_plain && is_cheap(schema) => Self::OfSeveralInputs,
            _ => Self::AsTheInputs,
        }
    }

    /// Whether a column can grow whatever the inputs have.
    pub fn includes(self, column: &Column) -> bool {
        !column.is_once
            && match self {
                Self::AsTheInputs => false,
                Self::OfSeveralInputs => is_of_several(column),
                Self::All => true,
            }
    }
}

fn is_of_several(column: &Column) -> bool {
    column.facts.iter().filter(|fact| fact.template != ABSENT).nth(1).is_some()
}

fn is_cheap(schema: &Schema) -> bool {
    let indexes =
        schema.columns.iter().filter(|column| !column.is_once && is_of_several(column) && is_stored_whole(column));
    let added = indexes.count() as f64 * INDEX_LEN_BYTES as f64;
    let stored: u64 = schema.columns.iter().map(Column::stored_len_bytes).fold(0, u64::saturating_add);
    added <= stored as f64 * MOST_ADDED
}
