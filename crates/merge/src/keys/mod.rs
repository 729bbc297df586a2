//! Partition keys: datasets that map the rows of every table to events, so that a reader can take a share of the events
//! without reading ids.
//!
//! A group with a row per event is the index; its ids (such as run, subrun and event number) are looked up in tables
//! with a row per track or hit. For an id column `NAME`, the last of the key, each such group gets
//!
//! | dataset | shape, type | content |
//! |---|---|---|
//! | `NAME.seq` | that of `NAME` with one number per row, i64 | row of the index group with the same ids; in the index group 0, 1, 2, … |
//! | `NAME.seq_cnt` | (events with rows) x 2, i64 | the event and how many rows it has |
//! | `NAME.offsets` | (events + 1), i64 | rows before the event; event `e` has rows `offsets[e]` to `offsets[e + 1]` |
//!
//! The first two are those of ph5concat. All ranks join the ids as sorted sequences (`index`, `table`, `shared_join`)
//! before anything is written; values are computed together with their tiles ([`derived`]). Invariant: an id that is
//! not in the index is an error. It never gets a row number.

pub(crate) mod attach;
pub mod check;
pub mod derived;
mod faults;
mod first_value;
mod groups;
pub(crate) mod growth;
pub(crate) mod ids;
mod index;
pub mod partition;
pub mod rewrite;
mod runs;
pub mod shared_chunks;
mod shared_join;
pub mod sizes;
mod table;
pub(crate) mod unrecorded;

pub use faults::{KeyFault, KeyFaultKind};

use crate::schema::last_name;

use serde::{Deserialize, Serialize};

/// Specification of datasets to compute in addition to those of the inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DerivedSpec {
    /// Partition keys.
    Keys(KeySpec),
    /// Column of the index group with the first value of another dataset.
    FirstValue(FirstValueSpec),
}

/// Specification of a column of the index group with the first value of another dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstValueSpec {
    /// Path of the dataset whose first value is taken.
    pub dataset: String,
    /// Path of the group that gets a column of the same name.
    pub group: String,
    /// Whether to recompute an existing column; otherwise, it is an error.
    pub replace: bool,
}

impl FirstValueSpec {
    /// Returns the path of the computed column.
    pub fn derived_path(&self) -> Vec<u8> {
        let name = self.dataset.rsplit('/').next().unwrap_or_default();
        crate::schema::child_path(self.group.as_bytes(), name.as_bytes())
    }
}

impl DerivedSpec {
    /// Returns whether this specification computes a dataset at `path`.
    pub(crate) fn makes(&self, path: &[u8]) -> bool {
        match self {
            Self::Keys(spec) => {
                let named = spec.columns.last().map_or(&[][..], |column| last_name(column.as_bytes()));
                let ending = last_name(path).strip_prefix(named);
                ending.is_some_and(|ending| spec.datasets.endings().any(|known| known.as_bytes() == ending))
            }
            Self::FirstValue(spec) => path == spec.derived_path(),
        }
    }

    /// Returns the paths of the datasets that this specification computes in the index group.
    pub(crate) fn index_paths(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Keys(spec) => {
                let named = spec.columns.last().map_or("", String::as_str);
                spec.datasets.endings().map(|ending| format!("{named}{ending}").into_bytes()).collect()
            }
            Self::FirstValue(spec) => vec![spec.derived_path()],
        }
    }

    /// Returns whether existing datasets are recomputed.
    fn replaces(&self) -> bool {
        match self {
            Self::Keys(spec) => spec.replace,
            Self::FirstValue(spec) => spec.replace,
        }
    }

    /// Returns whether both compute the same values. Assumes that neither is refused.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Keys(one), Self::Keys(other)) => {
                let values = |spec: &KeySpec| KeySpec { repeated: RepeatedIds::Refuse, replace: true, ..spec.clone() };
                values(one) == values(other)
            }
            (Self::FirstValue(one), Self::FirstValue(other)) => {
                (&one.dataset, &one.group) == (&other.dataset, &other.group)
            }
            _ => false,
        }
    }

    /// Returns whether both compute the same values in the groups to which both apply.
    pub(crate) fn is_like_in_other_groups(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Keys(one), Self::Keys(other)) => {
                let everywhere = |spec: &KeySpec| Self::Keys(KeySpec { skip: Vec::new(), ..spec.clone() });
                everywhere(one).is_like(&everywhere(other))
            }
            (one, other) => one.is_like(other),
        }
    }

    /// Allows existing datasets to be recomputed.
    pub fn allow_replacing(&mut self) {
        match self {
            Self::Keys(spec) => spec.replace = true,
            Self::FirstValue(spec) => spec.replace = true,
        }
    }
}

/// Specification of partition keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySpec {
    /// Absolute paths of the id columns of the index group, the most significant first.
    pub columns: Vec<String>,
    /// Kinds of datasets to compute.
    pub datasets: KeyDatasets,
    /// Scope in which ids are unique.
    pub scope: KeyScope,
    /// Treatment of ids that several rows of the index have.
    pub repeated: RepeatedIds,
    /// Patterns of the paths of groups that get no keys.
    pub skip: Vec<String>,
    /// Whether to recompute existing datasets; otherwise, they are an error.
    pub replace: bool,
}

impl KeySpec {
    /// Creates a specification for a key of these columns, with every dataset that a key can have.
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
    /// Whether `NAME.seq` is computed.
    pub seq: bool,
    /// Whether `NAME.seq_cnt` is computed.
    pub counts: bool,
    /// Whether `NAME.offsets` is computed.
    pub offsets: bool,
}

impl Default for KeyDatasets {
    fn default() -> Self {
        Self { seq: true, counts: true, offsets: true }
    }
}

impl KeyDatasets {
    /// Returns the suffixes of the names of these datasets.
    pub fn endings(self) -> impl Iterator<Item = &'static str> {
        let all = [(self.seq, ".seq"), (self.counts, ".seq_cnt"), (self.offsets, ".offsets")];
        all.into_iter().filter_map(|(wanted, ending)| wanted.then_some(ending))
    }
}

/// Scope in which ids are unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyScope {
    /// In the whole file.
    #[default]
    File,
    /// In the rows from one input.
    Input,
}

/// Treatment of ids that several rows of the index have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepeatedIds {
    /// Stop and name them.
    #[default]
    Refuse,
    /// Assign rows to the first of these events.
    First,
}
