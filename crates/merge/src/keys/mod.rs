//! Partition keys: datasets that say which rows of every table belong to which event, so that a reader can take a share
//! of the events without reading ids.
//!
//! A group with a row per event is the index; its ids (run, subrun and event number, say) are found again in tables
//! with a row per track or hit. For an id column `NAME`, the last of the key, each such group gets
//!
//! | dataset | shape, type | content |
//! |---|---|---|
//! | `NAME.seq` | as `NAME` with one number in a row, i64 | row of the index group with the same ids; in the index group 0, 1, 2, … |
//! | `NAME.seq_cnt` | (events with rows) x 2, i64 | the event and how many rows it has |
//! | `NAME.offsets` | (events + 1), i64 | rows before the event; event `e` has rows `offsets[e]` to `offsets[e + 1]` |
//!
//! The first two are those of ph5concat. The ids are joined as sorted sequences ([`index`], [`table`]), by all ranks
//! together ([`shared_join`]), before anything is written; values are made with their tiles ([`made`]). Invariant: an id that the index
//! does not have is an error, never a number.

pub mod attach;
pub mod check;
mod faults;
pub mod first_value;
pub(crate) mod growth;
pub(crate) mod ids;
mod index;
pub mod made;
pub mod partition;
pub mod rewrite;
mod runs;
mod scratch;
pub mod shared_chunks;
mod shared_join;
pub mod sizes;
mod table;

pub use faults::{KeyFault, KeyFaultKind};

use serde::{Deserialize, Serialize};

/// Datasets to be made beside those of the inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MadeSpec {
    /// Partition keys.
    Keys(KeySpec),
    /// A column of the index group.
    FirstValue(first_value::FirstValueSpec),
}

impl MadeSpec {
    /// Whether a dataset at `path` is what this makes.
    pub(crate) fn makes(&self, path: &[u8]) -> bool {
        match self {
            Self::Keys(spec) => {
                let named = spec.columns.last().map_or(&[][..], |column| last_name(column.as_bytes()));
                let ending = last_name(path).strip_prefix(named);
                ending.is_some_and(|ending| spec.datasets.endings().any(|made| made.as_bytes() == ending))
            }
            Self::FirstValue(spec) => path == spec.made_path(),
        }
    }

    /// Whether datasets that are there already are made anew.
    fn replaces(&self) -> bool {
        match self {
            Self::Keys(spec) => spec.replace,
            Self::FirstValue(spec) => spec.replace,
        }
    }

    /// Lets datasets that are there already be made anew.
    pub fn allow_replacing(&mut self) {
        match self {
            Self::Keys(spec) => spec.replace = true,
            Self::FirstValue(spec) => spec.replace = true,
        }
    }
}

/// The last part of a path.
fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// Partition keys to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySpec {
    /// Absolute paths of the id columns of the index group, the most significant first.
    pub columns: Vec<String>,
    /// Which datasets to make.
    pub datasets: KeyDatasets,
    /// Where ids are unique.
    pub scope: KeyScope,
    /// What becomes of ids that two rows of the index have.
    pub repeated: RepeatedIds,
    /// Patterns of the paths of groups that get no keys.
    pub skip: Vec<String>,
    /// Make datasets anew that are there already; else that is an error.
    pub replace: bool,
}

impl KeySpec {
    /// All datasets for a key of these columns.
    pub fn new(columns: Vec<String>) -> Self {
        Self {
            columns,
            datasets: KeyDatasets::default(),
            scope: KeyScope::default(),
            repeated: RepeatedIds::default(),
            skip: Vec::new(),
            replace: false,
        }
    }
}

/// Kinds of key datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDatasets {
    /// `NAME.seq`.
    pub seq: bool,
    /// `NAME.seq_cnt`.
    pub counts: bool,
    /// `NAME.offsets`.
    pub offsets: bool,
}

impl Default for KeyDatasets {
    fn default() -> Self {
        Self { seq: true, counts: true, offsets: true }
    }
}

impl KeyDatasets {
    /// Endings of the names of these datasets.
    pub fn endings(self) -> impl Iterator<Item = &'static str> {
        let all = [(self.seq, ".seq"), (self.counts, ".seq_cnt"), (self.offsets, ".offsets")];
        all.into_iter().filter_map(|(wanted, ending)| wanted.then_some(ending))
    }
}

/// Where ids are unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyScope {
    /// In the whole file.
    #[default]
    File,
    /// In the rows that came from one input: rows of tables belong to index rows of the same input.
    Input,
}

/// What becomes of ids that several rows of the index have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepeatedIds {
    /// An error.
    #[default]
    Refuse,
    /// Rows of tables belong to the first of them.
    First,
}
