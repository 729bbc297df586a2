//! Result of a comparison. Plain values.

use raddle_core::path_text;
use serde::Serialize;
use std::path::PathBuf;

/// A field that is not equal to its input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unequal {
    /// Name of the field.
    pub field: String,
    /// Time step, if the dataset has any.
    pub time: Option<u64>,
    /// Path of the field's input.
    #[serde(serialize_with = "path_text::of")]
    pub input: PathBuf,
    /// Number of samples that differ.
    pub samples: u64,
}

/// A field that was rounded when it was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoundedField {
    /// Name of the field.
    pub field: String,
    /// Time step, if the dataset has any.
    pub time: Option<u64>,
    /// Compression, as named in the header.
    pub compression: String,
    /// Largest difference between a sample and the corresponding one of the input.
    pub largest_difference: f64,
}

/// First and last of each run of consecutive time steps; `None` if there are no time steps.
pub type StepRuns = Vec<Option<(u64, u64)>>;

/// Time steps of a field that were not compared with any input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UncomparedSteps {
    /// Name of the field.
    pub field: String,
    /// First and last of the consecutive steps, if there are time steps.
    pub time: Option<(u64, u64)>,
}

/// Result of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Fields that differ from their inputs by more than their compression allows.
    pub unequal: Vec<Unequal>,
    /// Fields that differ from their inputs within the limits of their compression.
    pub rounded: Vec<RoundedField>,
    /// Parts of the dataset that were not compared.
    pub not_compared: Vec<UncomparedSteps>,
}

impl Comparison {
    /// Returns whether nothing differs and nothing was left out.
    pub fn is_equal(&self) -> bool {
        self.unequal.is_empty() && self.not_compared.is_empty()
    }
}
