//! User options for the choices that a convention leaves open.
//!
//! They are plain values, shared by the command line, Python and other ranks, and recorded in the output, so that
//! verify and append follow them.

use super::tiling::Tiles;
use crate::rules::user::UserRule;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Options of conventions and rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConventionOptions {
    /// Convention of all inputs; `None` to recognise it.
    pub convention: Option<Choice>,
    /// The user's own rules, which take precedence over those of the convention.
    pub rules: Vec<UserRule>,
    /// Name of the dimension along which netCDF files are concatenated, or names separated by commas; `None` for the
    /// unlimited ones.
    pub dim: Option<String>,
    /// Name of a new first dimension along which each file is one record. If the files have a scalar of this name, it
    /// becomes the coordinate of that dimension.
    pub new_dim: Option<String>,
    /// Whether each netCDF file is a tile of a larger grid, and how the tiles are placed.
    pub tiles: Option<Tiles>,
    /// Units of times in the output; `None` for those of the first input.
    pub time_units: Option<String>,
    /// Treatment of times that cannot be converted to the units of the output exactly.
    pub times: Times,
    /// Treatment of values that inputs pack differently.
    pub packing: Packing,
    /// Treatment of values in different units.
    pub units: Units,
    /// Treatment of inputs whose record coordinates overlap.
    pub overlap: Overlap,
    /// Largest difference allowed between values that are kept once.
    pub tolerance: f64,
    /// Axis along which files of no convention, or of AnnData, are concatenated.
    pub axis: ConcatAxis,
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
    /// Returns whether the options also change a merge of a single file.
    pub(crate) fn is_of_one_file(&self) -> bool {
        self.new_dim.is_some() || self.tiles.is_some()
    }

    /// Returns the names of the dimensions along which files are concatenated; none if the user named none. The text is
    /// a single name with commas if `exists` returns true for it.
    pub(crate) fn dims(&self, exists: impl Fn(&str) -> bool) -> Vec<&str> {
        match self.dim.as_deref() {
            Some(name) if exists(name) => vec![name],
            names => names.into_iter().flat_map(|names| names.split(',')).map(str::trim).collect(),
        }
    }

    /// Returns an option that belongs to a convention other than `followed`, with that convention.
    pub(crate) fn misplaced(&self, followed: Option<Choice>) -> Option<(&'static str, Choice)> {
        if let ConcatAxis::Number(number) = self.axis
            && let Some(followed) = followed
            && !(followed == Choice::Anndata && (0..=1).contains(&number))
        {
            return Some(("axis", Choice::None));
        }
        let options = [
            ("dim", Choice::Cf, self.dim.is_some()),
            ("new-dim", Choice::Cf, self.new_dim.is_some() && followed.is_some()),
            ("tiles", Choice::Cf, self.tiles.is_some()),
            ("time-units", Choice::Cf, self.time_units.is_some()),
            ("times", Choice::Cf, self.times != Times::Exact),
            ("packing", Choice::Cf, self.packing != Packing::Refuse),
            ("units", Choice::Cf, self.units != Units::Refuse),
            ("overlap", Choice::Cf, self.overlap != Overlap::Refuse),
            ("require-equal", Choice::Cf, !self.require_equal.is_empty()),
            ("axis", Choice::Anndata, self.axis == ConcatAxis::Named(Axis::Var)),
            ("pairwise", Choice::Anndata, self.pairwise),
            ("merge", Choice::Anndata, self.merge != MergePolicy::Same),
            ("index-unique", Choice::Anndata, self.index_unique.is_some()),
        ];
        let found = options.into_iter().find(|(_, of, is_set)| *is_set && followed != Some(*of));
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
    /// NWB and other HDMF files.
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

/// Treatment of times without an exact counterpart in the units of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Times {
    /// Refuse the inputs.
    #[default]
    Exact,
    /// Write the nearest floating-point number, which is at most a microsecond away.
    Nearest,
}

/// Treatment of packed values (`scale_factor`, `add_offset`) that inputs pack differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Packing {
    /// Refuse the inputs.
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
    /// Refuse the inputs.
    #[default]
    Refuse,
    /// Convert the values to the units of the first input, if a linear conversion is known.
    Convert,
}

/// Treatment of inputs whose record coordinates overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Overlap {
    /// Refuse the inputs.
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

/// Axis of concatenation as users name it: by its number, or by its name in AnnData.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ConcatAxis {
    /// Axis of AnnData files.
    Named(Axis),
    /// Number of the axis of each dataset, from 0. Negative numbers count from the last axis, which is -1.
    Number(i32),
}

impl Default for ConcatAxis {
    fn default() -> Self {
        Self::Named(Axis::Obs)
    }
}

impl ConcatAxis {
    /// Returns the axis of AnnData files.
    pub(crate) fn of_anndata(self) -> Axis {
        match self {
            Self::Named(axis) => axis,
            Self::Number(1) => Axis::Var,
            Self::Number(_) => Axis::Obs,
        }
    }

    /// Returns whether each dataset is concatenated along its first axis.
    pub fn is_first(self) -> bool {
        matches!(self, Self::Named(_) | Self::Number(0))
    }
}

/// Error for a string that is not an axis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid axis {text:?}; expected a number such as 1 or -1, or obs or var for AnnData")]
pub struct ParseAxisError {
    text: String,
}

impl FromStr for ConcatAxis {
    type Err = ParseAxisError;

    fn from_str(text: &str) -> Result<Self, ParseAxisError> {
        match text {
            "obs" => Ok(Self::Named(Axis::Obs)),
            "var" => Ok(Self::Named(Axis::Var)),
            _ => text.parse().map(Self::Number).map_err(|_| ParseAxisError { text: text.to_owned() }),
        }
    }
}

raddle_core::serde_as_text!(ConcatAxis);

impl fmt::Display for ConcatAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(axis) => f.write_str(axis.frame()),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// Choice of the elements outside the axis of concatenation that are carried over, as in `anndata.concat(merge=…)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MergePolicy {
    /// Elements that are equal in all inputs.
    #[default]
    Same,
    /// Elements that are equal in all inputs that have them.
    Unique,
    /// The first element of each name.
    First,
    /// Elements that only one input has.
    Only,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_numbers_or_names() {
        for (text, axis) in [
            ("obs", ConcatAxis::Named(Axis::Obs)),
            ("var", ConcatAxis::Named(Axis::Var)),
            ("0", ConcatAxis::Number(0)),
            ("-1", ConcatAxis::Number(-1)),
        ] {
            assert_eq!(text.parse(), Ok(axis));
            assert_eq!(axis.to_string(), text);
            assert_eq!(serde_json::to_value(axis).unwrap(), text);
            assert_eq!(serde_json::from_value::<ConcatAxis>(text.into()).unwrap(), axis);
        }
        for text in ["", "time", "1.0", "99999999999"] {
            assert!(text.parse::<ConcatAxis>().is_err(), "{text}");
        }
        assert_eq!([0, 1].map(|number| ConcatAxis::Number(number).of_anndata()), [Axis::Obs, Axis::Var]);
    }

    #[test]
    fn a_number_is_for_files_of_no_convention() {
        let misplaced = |axis: &str, followed| {
            let options = ConventionOptions { axis: axis.parse().unwrap(), ..ConventionOptions::default() };
            options.misplaced(followed)
        };
        assert_eq!(misplaced("1", None), None);
        assert_eq!(misplaced("-2", None), None);
        assert_eq!(misplaced("1", Some(Choice::Anndata)), None);
        assert_eq!(misplaced("2", Some(Choice::Anndata)), Some(("axis", Choice::None)));
        assert_eq!(misplaced("0", Some(Choice::Cf)), Some(("axis", Choice::None)));
        assert_eq!(misplaced("var", None), Some(("axis", Choice::Anndata)));
        assert_eq!(misplaced("obs", None), None);
    }
}
