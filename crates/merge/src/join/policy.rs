//! What a join is to do where inputs are not alike.
//!
//! Plain values that a user chooses; [`Joiner`](super::Joiner) follows them.

use super::AddedColumn;
use serde::{Deserialize, Serialize};

/// What to do with objects that only some inputs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Join {
    /// Every input must have the same objects.
    #[default]
    Exact,
    /// Keep the objects that all inputs have.
    Inner,
    /// Keep every object; where an input lacks a column of a table, its rows hold the fill value.
    Outer,
    /// Keep every object, each dataset from the one input that has it; no rows are filled. Groups of the same path
    /// become one, with the attributes of all.
    Union,
}

/// What to do with attributes that differ between inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AttributePolicy {
    /// The first input's, with a warning that counts the differing ones.
    #[default]
    First,
    /// Only those that are identical in all inputs.
    Identical,
    /// A difference is an error.
    Error,
    /// Differing attributes become datasets with a row per input.
    Stack,
}

/// What to do with scalar datasets that differ between inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ScalarPolicy {
    /// A difference is an error.
    #[default]
    Equal,
    /// The first input's value.
    First,
    /// Differing scalars become a dataset of one dimension, one element per input.
    Stack,
}

/// Policies of a join.
#[derive(Debug, Clone, Default)]
pub struct JoinOptions {
    /// Objects that only some inputs have.
    pub join: Join,
    /// Differing attributes.
    pub attributes: AttributePolicy,
    /// Differing scalars.
    pub scalars: ScalarPolicy,
    /// Columns that repeat an attribute of each input.
    pub add_columns: Vec<AddedColumn>,
}
