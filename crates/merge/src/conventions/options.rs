//! User options for the choices that a convention leaves open.
//!
//! They are plain values, shared by the command line, Python and other ranks, and recorded in the output, so that
//! verify and append follow them.

use crate::rules::user::UserRule;
use serde::{Deserialize, Serialize};

/// Options of conventions and rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConventionOptions {
    /// Convention of all inputs; `None` to recognise it.
    pub convention: Option<Choice>,
    /// The user's own rules, which take precedence over those of the convention.
    pub rules: Vec<UserRule>,
    /// Name of the dimension along which netCDF files are concatenated; `None` for the unlimited one.
    pub dim: Option<String>,
    /// Name of a scalar variable of netCDF files that becomes the dimension along which they are concatenated.
    pub new_dim: Option<String>,
    /// Units of times in the output; `None` for those of the first input.
    pub time_units: Option<String>,
    /// Treatment of values that inputs pack differently.
    pub packing: Packing,
    /// Treatment of values in different units.
    pub units: Units,
    /// Treatment of inputs whose record coordinates overlap.
    pub overlap: Overlap,
    /// Largest difference allowed between values that are kept once.
    pub tolerance: f64,
    /// Axis along which AnnData files are concatenated.
    pub axis: Axis,
    /// Whether to keep pairwise arrays of that axis, block by block.
    pub pairwise: bool,
    /// Choice of the elements on the other axis that are carried over.
    pub merge: MergePolicy,
    /// Separator between a name and the number of its input, if that is appended to make names along the axis unique.
    pub index_unique: Option<String>,
    /// Attributes of the root group that must be equal.
    pub require_equal: Vec<String>,
}

impl ConventionOptions {
    /// Returns an option that belongs to a convention other than `followed`, with that convention.
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

/// Convention, as named by users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
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
    #[cfg_attr(feature = "clap", value(skip))]
    Events,
    /// Tables of pandas and PyTables.
    Pandas,
    /// Concatenate datasets as they are, whatever their meaning.
    None,
}

impl Choice {
    /// Returns the name of the convention in options.
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

    /// Returns the name of the convention in messages.
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

/// Treatment of packed values (`scale_factor`, `add_offset`) that inputs pack differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Packing {
    /// Stop.
    #[default]
    Refuse,
    /// Write them unpacked, as floats.
    Unpack,
    /// Repack them with one scale and offset for all inputs, which reads them twice; the largest error is reported.
    Repack,
}

/// Treatment of values whose units differ between inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Units {
    /// Stop.
    #[default]
    Refuse,
    /// Convert them to those of the first input, if a linear conversion is known.
    Convert,
}

/// Treatment of inputs whose record coordinates overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Overlap {
    /// Stop.
    #[default]
    Refuse,
    /// Use the record of the earlier input.
    First,
    /// Use the record of the later input.
    Last,
}

/// Axis along which AnnData files are concatenated, as in `anndata.concat(axis=…)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Axis {
    /// Observations (cells), the rows of X.
    #[default]
    Obs,
    /// Variables (genes), the columns of X.
    Var,
}

impl Axis {
    /// Returns the name of the data frame of this axis.
    pub(crate) fn frame(self) -> &'static str {
        match self {
            Self::Obs => "obs",
            Self::Var => "var",
        }
    }

    /// Returns the other axis.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Obs => Self::Var,
            Self::Var => Self::Obs,
        }
    }

    /// Returns the number of the axis in a matrix.
    pub(crate) fn number(self) -> usize {
        match self {
            Self::Obs => 0,
            Self::Var => 1,
        }
    }
}

/// Choice of the elements outside the axis of concatenation that are carried over, as in `anndata.concat(merge=…)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MergePolicy {
    /// Those that are the same in all inputs.
    #[default]
    Same,
    /// Those that have the same value in all inputs that have them.
    Unique,
    /// The first of each name.
    First,
    /// Those that only one input has.
    Only,
}
