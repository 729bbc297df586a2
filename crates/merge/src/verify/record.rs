//! The record of a merge in its output: convention, rules, and the options that determine values.
//!
//! It is stored as JSON in the attribute `join` of `/_raddle`. [`super::remembered`] fills and follows it. Layout
//! options are not stored, because no value depends on them.

use crate::conventions::{Choice, ConventionOptions};
use crate::error::Result;
use crate::options::{Empty, MergeOptions};
use crate::schema::join::{AddedColumn, AttributePolicy, Join, ScalarPolicy};
use crate::subset::DimensionRange;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
pub struct StoredRecord {
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
    /// Number of first inputs that a union combined, if others were appended to it.
    pub united: Option<u32>,
    /// Handling of scalars that differ.
    pub scalars: ScalarPolicy,
    /// Handling of attributes that differ.
    pub attributes: AttributePolicy,
    /// Patterns of the objects to merge; if empty, all objects are merged.
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
    /// Values that these conditions compare, if they were chosen.
    pub values: Option<String>,
    /// Columns that repeat an attribute of each input.
    pub add_column: Vec<AddedColumn>,
    /// Whether datasets of N x 1 elements become datasets of N elements.
    pub rank_1: bool,
    /// Conversion of datasets without elements, if requested.
    pub empty: Option<EmptyConversion>,
    /// Settings that conventions and rules leave to the user.
    #[serde(flatten)]
    pub conventions: ConventionOptions,
}

/// Conversion of datasets without elements; a different storage alone does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmptyConversion {
    /// Datasets without elements become null datasets.
    Null,
}

/// Fields of [`Decisions`] about how each input is taken. They must not be applied again to an output.
const OF_INPUTS: [&str; 6] = ["new_dim", "tiles", "select", "where", "values", "add_column"];

impl Decisions {
    /// Returns the part of `options` that determines values.
    pub fn of(options: &MergeOptions) -> Self {
        let [include, exclude, keep] = options.selection.patterns().map(<[String]>::to_vec);
        let join = &options.join;
        Self {
            join: join.join,
            united: join.united,
            scalars: join.scalars,
            attributes: join.attributes,
            include,
            exclude,
            keep,
            select: options.subset.clone(),
            conditions: options.rows.as_ref().map(|rows| rows.conditions.clone()).unwrap_or_default(),
            values: options.rows.as_ref().and_then(|rows| rows.values.clone()),
            add_column: join.add_columns.clone(),
            rank_1: options.rank_1,
            empty: (options.empty == Empty::Null).then_some(EmptyConversion::Null),
            conventions: options.conventions.clone(),
        }
    }

    /// Writes these decisions into options.
    ///
    /// # Errors
    /// [`MergeError::Pattern`](crate::error::MergeError::Pattern) if a pattern is not valid.
    pub(super) fn apply(self, options: &mut MergeOptions) -> Result<()> {
        (options.join.join, options.join.scalars, options.join.attributes) = (self.join, self.scalars, self.attributes);
        (options.join.united, options.join.add_columns) = (self.united, self.add_column);
        options.rank_1 = self.rank_1;
        options.subset = self.select;
        if let Some(EmptyConversion::Null) = self.empty {
            options.empty = Empty::Null;
        }
        options.selection = options.selection.with_patterns(&self.include, &self.exclude, &self.keep)?;
        options.conventions = self.conventions;
        Ok(())
    }

    pub(super) fn fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            // Cannot happen: a struct of plain values with text keys.
            _ => Map::new(),
        }
    }

    pub(super) fn of_fields(fields: Map<String, Value>) -> Self {
        // Cannot fail: each field is one that was serialised.
        serde_json::from_value(Value::Object(fields)).unwrap_or_default()
    }

    /// Returns the options of conventions by which datasets are recognised, and nothing else.
    pub(super) fn guides(&self) -> ConventionOptions {
        let ConventionOptions { convention, dim, rules, .. } = self.conventions.clone();
        ConventionOptions { convention, dim, rules, ..ConventionOptions::default() }
    }

    /// Returns these options without those that an input of the file has followed already and that would change it again.
    pub(super) fn without_done(self, of_input: &Self) -> Self {
        let (usual, mut fields) = (Self::default().fields(), self.fields());
        for (name, done) in of_input.fields() {
            if OF_INPUTS.contains(&name.as_str()) && fields.get(&name) == Some(&done) {
                fields.insert(name.clone(), usual[&name].clone());
            }
        }
        Self::of_fields(fields)
    }

    /// Returns these options on top of earlier ones: lists are appended to the earlier lists, and defaults are replaced
    /// by the earlier values.
    pub(super) fn after(self, earlier: &Self) -> Self {
        let (usual, mut fields) = (Self::default().fields(), self.fields());
        for (name, known) in earlier.fields() {
            match (fields.get_mut(&name), known) {
                // A later selection cannot be combined with an earlier one.
                (Some(later), _) if ["select", "where"].contains(&name.as_str()) && *later != usual[&name] => {}
                // A later --include narrows the earlier one.
                (Some(Value::Array(later)), Value::Array(known)) if name != "include" => {
                    later.retain(|one| !known.contains(one));
                    later.splice(0..0, known);
                }
                (Some(later), known) if *later == usual[&name] => *later = known,
                _ => {}
            }
        }
        Self::of_fields(fields)
    }
}
