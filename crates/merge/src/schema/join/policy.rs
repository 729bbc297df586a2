//! Policies of a join for differences between inputs.
//!
//! Plain values that the user chooses; [`Joiner`](super::Joiner) applies them.

use super::AddedColumn;
use serde::{Deserialize, Serialize};

/// Handling of objects that only some inputs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Join {
    /// All inputs must have the same objects; otherwise show all differences and stop.
    #[default]
    Exact,
    /// Objects that all inputs have.
    Inner,
    /// Objects that any input has; missing rows are filled with the fill value.
    Outer,
    /// Objects that any input has, each dataset in only one of them; nothing is concatenated.
    Union,
}

/// Handling of attributes that differ between inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AttributePolicy {
    /// Use those of the first input and report how many differ.
    #[default]
    First,
    /// Keep those that are identical in all inputs.
    Identical,
    /// Stop if any differs.
    Error,
    /// Store each that differs as a dataset with one row per input: ATTRIBUTE in its group, DATASET.ATTRIBUTE next to
    /// its dataset.
    Stack,
}

/// Handling of scalar datasets that differ between inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ScalarPolicy {
    /// Stop if they differ.
    #[default]
    Equal,
    /// Use the value of the first input.
    First,
    /// Where they differ, add a dimension with one element per input.
    Stack,
}

/// Policies of a join.
#[derive(Debug, Clone, Default)]
pub struct JoinOptions {
    /// Handling of objects that only some inputs have.
    pub join: Join,
    /// Number of first inputs that a union combines, if the others were appended to it; `None` stands for all inputs.
    pub united: Option<u32>,
    /// Handling of differing attributes.
    pub attributes: AttributePolicy,
    /// Handling of differing scalars.
    pub scalars: ScalarPolicy,
    /// Columns that repeat an attribute of each input.
    pub add_columns: Vec<AddedColumn>,
}

impl JoinOptions {
    /// Returns whether the objects of `input` are combined with those of earlier inputs, and not appended to them.
    pub(crate) fn unites(&self, input: u32) -> bool {
        self.join == Join::Union && self.united.is_none_or(|united| input < united)
    }

    /// Returns whether nothing is concatenated.
    pub(crate) fn is_union_only(&self) -> bool {
        self.join == Join::Union && self.united.is_none()
    }
}
