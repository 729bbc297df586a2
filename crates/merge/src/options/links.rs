//! Outputs that refer to the inputs instead of holding their values, as options.

use serde::{Deserialize, Serialize};

/// Choice between an output that holds values and one that refers to the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Link {
    /// The output holds the values.
    #[default]
    #[cfg_attr(feature = "clap", value(skip))]
    No,
    /// Virtual datasets (HDF5 1.10): the output reads like a merged file; scalars, references and keys are copied.
    Virtual,
    /// One external link per input, named after the file, to its root group; nothing is merged.
    External,
    /// One external link per object in the root groups of the inputs, with the same name; duplicate names are refused.
    ExternalObjects,
}

impl Link {
    /// Returns whether the output consists of external links only.
    pub fn is_external(self) -> bool {
        matches!(self, Self::External | Self::ExternalObjects)
    }
}

/// Form of the paths by which an output names its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LinkPaths {
    /// Relative to the output's folder: output and inputs can be moved together.
    #[default]
    Relative,
    /// Absolute: the output can be moved alone.
    Absolute,
}
