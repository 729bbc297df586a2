//! What the user asked for where a convention leaves a choice.
//!
//! Plain values, the same for the command, for Python and for other ranks; recorded in the output, so that verify and append
//! follow them.

use crate::rules::user::UserRule;
use serde::{Deserialize, Serialize};

/// Options of conventions and rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConventionOptions {
    /// The convention of all inputs; `None`: as recognised.
    pub convention: Option<Choice>,
    /// The user's own rules, which come before those of the convention.
    pub rules: Vec<UserRule>,
    /// Name of the dimension along which netCDF files follow one another; `None`: the unlimited one.
    pub dim: Option<String>,
    /// Name of a scalar variable of netCDF files that becomes the dimension along which they follow one another.
    pub new_dim: Option<String>,
    /// Units of times in the output; `None`: those of the first input.
    pub time_units: Option<String>,
    /// What becomes of values that inputs pack differently.
    pub packing: Packing,
    /// What becomes of values in other units.
    pub units: Units,
    /// What becomes of inputs whose record coordinates overlap.
    pub overlap: Overlap,
    /// Largest difference between values of what is carried once.
    pub tolerance: f64,
    /// The axis along which AnnData files follow one another.
    pub axis: Axis,
    /// Pairwise arrays of that axis are kept, block by block.
    pub pairwise: bool,
    /// Which elements along the other axis are carried.
    pub merge: MergePolicy,
    /// What makes names of that axis unique: put between a name and the number of its input.
    pub index_unique: Option<String>,
    /// Attributes of the root that must be equal.
    pub require_equal: Vec<String>,
}

impl ConventionOptions {
    /// Returns an option that was given and belongs to another convention than the one `followed`, and that convention.
    pub(crate) fn misplaced(&self, followed: Option<Choice>) -> Option<(&'static str, Choice)> {
        let given = [
            ("dim", Choice::Cf, self.dim.is_some()),
            ("new-dim", Choice::Cf, self.new_dim.is_some()),
            ("time-units", Choice::Cf, self.time_units.is_some()),
            ("packing", Choice::Cf, self.packing != Packing::Refuse),
            ("units", Choice::Cf, self.units != Units::Refuse),
            ("overlap", Choice::Cf, self.overlap != Overlap::Refuse),
            ("require-equal", Choice::Cf, !self.require_equal.is_empty()),
            ("axis", Choice::Anndata, self.axis != Axis::Obs),
            ("pairwise", Choice::Anndata, self.pairwise),
            ("merge", Choice::Anndata, self.merge != MergePolicy::Same),
            ("index-unique", Choice::Anndata, self.index_unique.is_some()),
        ];
        let found = given.into_iter().find(|(_, of, is_given)| *is_given && followed != Some(*of));
        found.map(|(option, of, _)| (option, of))
    }
}

/// A convention, as users name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Choice {
    /// CF and netCDF-4.
    Cf,
    /// AnnData (`.h5ad`).
    Anndata,
    /// NeXus.
    Nexus,
    /// NWB and other files of HDMF.
    Nwb,
    /// Event files of raddle.
    Events,
    /// Tables of pandas and PyTables.
    Pandas,
    /// None: values are concatenated as they are.
    None,
}

impl Choice {
    /// The convention in a word, as options name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cf => "cf",
            Self::Anndata => "anndata",
            Self::Nexus => "nexus",
            Self::Nwb => "nwb",
            Self::Events => "events",
            Self::Pandas => "pandas",
            Self::None => "none",
        }
    }

    /// The convention in words, for messages.
    pub fn title(self) -> &'static str {
        match self {
            Self::Cf => "CF or netCDF-4",
            Self::Anndata => "AnnData",
            Self::Nexus => "NeXus",
            Self::Nwb => "NWB",
            Self::Events => "events of raddle",
            Self::Pandas => "tables of pandas or PyTables",
            Self::None => "no convention",
        }
    }
}

/// What becomes of packed values (`scale_factor`, `add_offset`) that inputs pack differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Packing {
    /// They are refused.
    #[default]
    Refuse,
    /// They are written unpacked, as floats.
    Unpack,
    /// They are repacked with one scale and offset for all inputs.
    Repack,
}

/// What becomes of values whose units differ between inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Units {
    /// They are refused.
    #[default]
    Refuse,
    /// They are converted to the units of the first input, where a linear map is known.
    Convert,
}

/// What becomes of inputs whose record coordinates overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Overlap {
    /// They are refused.
    #[default]
    Refuse,
    /// The earlier input's rows are taken.
    First,
    /// The later input's rows are taken.
    Last,
}

/// The axis along which AnnData files follow one another, as `anndata.concat(axis=…)` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Axis {
    /// Observations, the rows of matrices.
    #[default]
    Obs,
    /// Variables, their columns.
    Var,
}

impl Axis {
    /// The data frame of this axis.
    pub(crate) fn frame(self) -> &'static str {
        match self {
            Self::Obs => "obs",
            Self::Var => "var",
        }
    }

    /// The other axis.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Obs => Self::Var,
            Self::Var => Self::Obs,
        }
    }

    /// Its number among the axes of a matrix.
    pub(crate) fn number(self) -> usize {
        match self {
            Self::Obs => 0,
            Self::Var => 1,
        }
    }
}

/// Which elements that are not along the axis of concatenation are carried, as `anndata.concat(merge=…)` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MergePolicy {
    /// Those that are the same in all inputs.
    #[default]
    Same,
    /// Those that have only one value among the inputs that have them.
    Unique,
    /// The first input's.
    First,
    /// Those that only one input has.
    Only,
}
