//! The record of a merge in its output: convention, rules, and the options that determine values.
//!
//! It is stored as JSON in attribute `join` of `/_raddle`. [`super::remembered`] fills and follows it. Layout options are not
//! stored, because no value depends on them.

use crate::conventions::{Choice, ConventionOptions};
use crate::schema::join::{AddedColumn, AttributePolicy, Join, ScalarPolicy};
use crate::subset::DimensionRange;
use serde::{Deserialize, Serialize};

/// Name of the attribute.
pub const JOIN: &str = "join";

/// Serialises a value as JSON text, for formats that do not support maps of unknown length: records are flattened
/// structs.
pub(crate) mod as_text {
    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

    pub fn serialize<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::to_string(value).map_err(ser::Error::custom)?.serialize(serializer)
    }

    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        serde_json::from_str(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// The stored record of a merge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Remembered {
    /// The convention that was recognised or requested, if any.
    pub convention: Option<Choice>,
    /// Paths of objects and their rules in words.
    pub rules: Vec<(String, String)>,
    /// The options that determine values.
    pub options: Decisions,
}

/// The options that determine values. Fields are named after the options.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decisions {
    /// Handling of objects that only some inputs have.
    pub join: Join,
    /// Handling of scalars that differ.
    pub scalars: ScalarPolicy,
    /// Handling of attributes that differ.
    pub attributes: AttributePolicy,
    /// Patterns of the objects to merge; empty: all objects.
    pub include: Vec<String>,
    /// Patterns of the objects to leave out.
    pub exclude: Vec<String>,
    /// Patterns of datasets that are stored once.
    pub keep: Vec<String>,
    /// Ranges of dimensions to which the output is restricted.
    pub select: Vec<DimensionRange>,
    /// Conditions on the rows of tables, if the output is restricted to the rows that satisfy them.
    #[serde(rename = "where")]
    pub conditions: Vec<String>,
    /// Columns that repeat an attribute of each input.
    pub add_column: Vec<AddedColumn>,
    /// Whether datasets of N x 1 elements become datasets of N elements.
    pub rank_1: bool,
    /// Conversion of datasets without elements, if requested.
    pub empty: Option<EmptyBecome>,
    /// Settings that conventions and rules leave to the user.
    #[serde(flatten)]
    pub conventions: ConventionOptions,
}

/// Conversion of datasets without elements; a different storage alone does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmptyBecome {
    /// Datasets without elements become null datasets.
    Null,
}
