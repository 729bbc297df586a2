//! Choice of the datasets of a new file that are extendible along axis 0, in addition to those that are extendible in
//! an input.
//!
//! Merged files are often appended to, and one fixed-size dataset is enough to prevent that. An extendible dataset must
//! be chunked: this costs a chunk index for small datasets that would be stored contiguously, and nothing for others.
//! Invariant: by default a merge adds at most [`MAX_ADDED`] of the bytes stored by its inputs.

use super::unchunked::is_stored_whole;
use crate::options::Extendible;
use crate::schema::{ABSENT, Column, Schema};

/// Largest share of the inputs' stored bytes that chunk indexes may add.
const MAX_ADDED: f64 = 0.01;
/// Upper bound for the index of a single chunk, a B-tree node in the HDF5 1.8 format. Measured: 1,862 bytes per
/// dataset.
const INDEX_LEN_BYTES: u64 = 2048;

/// Choice of the datasets that become extendible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growable {
    /// Datasets that are extendible in an input.
    AsTheInputs,
    /// Like `AsTheInputs`, and also datasets with rows from several inputs.
    OfSeveralInputs,
    /// All datasets with rows.
    All,
}

impl Growable {
    /// Chooses which datasets of a file with this `schema` are extendible. `is_plain` is true if the inputs are
    /// concatenated and follow no convention.
    pub fn of(schema: &Schema, asked: Extendible, is_plain: bool) -> Self {
        match asked {
            Extendible::All => Self::All,
            Extendible::Likely if is_plain && is_cheap(schema) => Self::OfSeveralInputs,
            _ => Self::AsTheInputs,
        }
    }

    /// Returns whether a column is extendible regardless of the inputs.
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
    added <= stored as f64 * MAX_ADDED
}
