//! Policies of a join for differences between inputs.
//!
//! Plain values that the user chooses; [`Joiner`](super::Joiner) applies them.

use super::AddedColumn;
use serde::{Deserialize, Serialize};

/// Handling of objects that only some inputs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Join {
    /// Every input must have the same objects.
    #[default]
    Exact,
    /// Keep the objects that all inputs have.
    Inner,
    /// Keep every object; if an input lacks a column of a table, its rows hold the fill value.
    Outer,
    /// Keep every object, and each dataset of the single input that has it; no rows are filled. Groups with the same
    /// path are merged and get the attributes of all inputs.
    Union,
}

/// Handling of attributes that differ between inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AttributePolicy {
    /// Keep the first input's attributes, with a warning that counts the differing ones.
    #[default]
    First,
    /// Keep only attributes that are identical in all inputs.
    Identical,
    /// Treat a difference as an error.
    Error,
    /// Turn differing attributes into datasets with a row per input.
    Stack,
}

/// Handling of scalar datasets that differ between inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ScalarPolicy {
    /// Treat a difference as an error.
    #[default]
    Equal,
    /// Keep the first input's value.
    First,
    /// Turn differing scalars into a one-dimensional dataset with one element per input.
    Stack,
}

/// Policies of a join.
#[derive(Debug, Clone, Default)]
pub struct JoinOptions {
    /// Handling of objects that only some inputs have.
    pub join: Join,
    /// Handling of differing attributes.
    pub attributes: AttributePolicy,
    /// Handling of differing scalars.
    pub scalars: ScalarPolicy,
    /// Columns that repeat an attribute of each input.
    pub add_columns: Vec<AddedColumn>,
}
