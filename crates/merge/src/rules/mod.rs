//! Rules: the treatment of datasets whose values would change their meaning if simply concatenated along axis 0.
//!
//! A [`Rule`] states what a convention (or the user) requires for one dataset. It is determined for each input during
//! the scan, and must be the same in all of them. `settle` turns the rules of a joined schema into
//! [`Conversion`]s: plain numbers for each input, which `ColumnReader` applies wherever
//! values are read, so that merge, verify, append and ranks all see the same values. Conventions are recognised
//! elsewhere ([`crate::conventions`]). Invariant: a dataset without a rule is neither read nor changed here.

pub(crate) mod absent;
pub(crate) mod calendar;
pub(crate) mod check;
mod conversion;
mod coordinate;
mod fills;
mod inexact;
pub(crate) mod once;
pub(crate) mod overlaps;
pub(crate) mod packed;
mod packing;
pub(crate) mod pick;
mod pickled;
mod positions;
mod record_lengths;
pub(crate) mod records;
pub(crate) mod repack;
pub(crate) mod settle;
pub(crate) mod settling;
pub(crate) mod time_units;
pub(crate) mod unit_scale;
mod units;
mod unpack;
pub mod user;
mod versions;

pub use conversion::{Conversion, ElementMap, Gather, InputConversion, Trim};
pub(crate) use conversion::{ConvertBuffers, ConvertError, convert_piece, source_box, with_suffix};
pub use packed::OutputPacking;
pub use pick::{Pick, PickForm};

use crate::schema::display_path;
use serde::{Deserialize, Serialize};

/// Treatment of one dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rule {
    /// Position of the dataset's values in the output.
    pub placement: Placement,
    /// Meaning of the dataset's values.
    pub values: ValueMeaning,
    /// Attributes that may differ between inputs because the rule takes their difference into account.
    pub attributes: Vec<Vec<u8>>,
    /// Attributes that may differ between inputs because they are rewritten or have no meaning for readers.
    pub ignored: Vec<Vec<u8>>,
    /// Axes other than the axis of concatenation whose elements are matched by their labels.
    pub labels: Option<Labels>,
    /// Whether no option can reconcile inputs that differ.
    pub is_strict: bool,
    /// Whether the values are coordinates of other datasets, in which case those of one input cannot stand for those of
    /// another.
    pub is_coordinate: bool,
    /// Whether readers require a scalar, in which case values which differ cannot be stacked, and neither can attributes.
    pub stays_scalar: bool,
    /// Axis of characters along which shorter strings are padded.
    pub widened: Option<usize>,
    /// Whether each input is one record, in which case its dataset gets an additional first axis.
    pub is_lifted: bool,
    /// Axes along which the dataset is a tile of a larger one, with the paths of their dimensions.
    pub tiled: Vec<(usize, Vec<u8>)>,
    /// Path of the coordinate of the records that are concatenated, if there is one.
    pub record: Option<Vec<u8>>,
}

/// Position of the inputs' values in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Placement {
    /// Concatenation along this axis.
    Along(usize),
    /// One copy of values that must be equal in all inputs.
    Once,
    /// One copy of values that are equal in all inputs; left out if they differ.
    OnceOrLeftOut,
    /// One copy of the longest dataset, without comparing values.
    Widest,
    /// Concatenation along axis 0 without values, because nobody reads them.
    Empty,
    /// No place: the dataset is left out.
    LeftOut,
}

impl Default for Placement {
    fn default() -> Self {
        Self::Along(0)
    }
}

/// Meaning of the values of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ValueMeaning {
    /// No special meaning.
    #[default]
    Plain,
    /// Positions of rows of another dataset.
    Positions {
        /// Path of the dataset that the positions refer to.
        target: Vec<u8>,
        /// Kind of positions.
        form: PositionForm,
    },
    /// Numbers of elements on the labelled axis of another dataset, such as the column indices of a sparse matrix.
    LabelNumbers {
        /// Path of the labels.
        labels: Vec<u8>,
    },
    /// Unique numbers, such as identifiers of rows.
    Unique,
    /// Numbers of categories.
    Codes {
        /// Path of the categories.
        categories: Vec<u8>,
    },
    /// Categories to which codes refer. The output has the categories of all inputs, in order of appearance.
    Categories {
        /// Whether the order of the categories has a meaning, in which case all inputs must have the same order.
        ordered: bool,
    },
    /// Time that counts from a reference in an attribute.
    Time(TimeAttributes),
    /// Time with the units of another time, such as the bounds of that time.
    TimeOf {
        /// Path of the time whose units apply.
        time: Vec<u8>,
    },
    /// Numbers packed with a scale and an offset in attributes, as CF defines.
    Packed,
    /// Values that determine the structure of the output, and are kept until all inputs are known.
    Kept,
}

impl ValueMeaning {
    /// Describes what the values are.
    fn kind(&self) -> String {
        match self {
            Self::Plain => "values other than numbers".to_owned(),
            Self::Packed => "numbers".to_owned(),
            Self::Time(_) => "times in units of their own".to_owned(),
            Self::TimeOf { time } => format!("times in the units of {}", display_path(time)),
            _ => "other values".to_owned(),
        }
    }

    /// Returns the path of the dataset into which these values are indices; `None` if they are not indices.
    pub fn refers_to(&self) -> Option<&[u8]> {
        match self {
            Self::Positions { target, .. } => Some(target),
            Self::LabelNumbers { labels } => Some(labels),
            Self::Codes { categories } => Some(categories),
            _ => None,
        }
    }
}

/// Kind of positions that a dataset holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PositionForm {
    /// First row of each group, followed by the end of the last group; begins with zero (`indptr`).
    Bounds,
    /// First row of each group (`event_index`).
    Starts,
    /// Row after the last of each group (`VectorIndex`).
    Ends,
    /// Arbitrary rows (`DynamicTableRegion`).
    Rows,
}

impl PositionForm {
    /// Returns the name used in rules.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bounds => "bounds",
            Self::Starts => "starts",
            Self::Ends => "ends",
            Self::Rows => "rows",
        }
    }
}

/// Attributes that define the units of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeAttributes {
    /// `units` of the form "days since 2000-01-01" and `calendar`, as in CF.
    Cf,
    /// `units` of a duration, and a reference in an attribute of this name, as in NeXus.
    Reference(NexusReference),
}

/// Attribute that holds the reference of a time in NeXus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NexusReference {
    /// `offset`, used by `event_time_zero`.
    Offset,
    /// `start`, used by the `time` of a log.
    Start,
}

/// Labels that match the elements of an axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// Number of the axis.
    pub axis: usize,
    /// Path of the dataset that holds the labels.
    pub path: Vec<u8>,
}

impl Rule {
    /// Creates a rule for concatenation along `axis`.
    pub fn along(axis: usize) -> Self {
        Self { placement: Placement::Along(axis), ..Self::default() }
    }

    /// Creates a rule for one copy that all inputs must have.
    pub fn once() -> Self {
        Self { placement: Placement::Once, ..Self::default() }
    }

    /// Creates a rule for one copy that all inputs must have under any options: for labels to which codes refer, or
    /// references of times.
    pub(crate) fn strictly_once() -> Self {
        Self { is_strict: true, ..Self::once() }
    }

    /// Creates a rule for positions of rows of the dataset at `target`.
    pub fn positions(target: impl Into<Vec<u8>>, form: PositionForm) -> Self {
        Self { values: ValueMeaning::Positions { target: target.into(), form }, ..Self::default() }
    }

    /// Returns the rule in the syntax of `--rule`, or `None` if that cannot express it.
    pub fn option(&self) -> Option<String> {
        let (said, text) = match &self.values {
            ValueMeaning::Positions { target, form } => {
                let text = format!("{} of {}", form.word(), display_path(target));
                (Self::positions(target.clone(), *form), text)
            }
            _ => (Self::once(), "once".to_owned()),
        };
        (*self == said).then_some(text)
    }

    /// Adds attributes that the rule takes into account.
    #[must_use]
    pub(crate) fn with_attributes(mut self, names: &[&str]) -> Self {
        self.attributes.extend(names.iter().map(|name| name.as_bytes().to_vec()));
        self
    }

    /// Adds attributes that the rule ignores.
    #[must_use]
    pub fn ignoring(mut self, names: &[&str]) -> Self {
        self.ignored.extend(names.iter().map(|name| name.as_bytes().to_vec()));
        self
    }

    /// Returns whether inputs may differ in the attribute of this name, because the rule takes it into account or
    /// ignores it.
    pub(crate) fn accounts_for(&self, name: &[u8]) -> bool {
        self.attributes.iter().chain(&self.ignored).any(|known| known == name)
    }

    /// Returns the axis of concatenation; 0 if values are not concatenated.
    pub fn axis(&self) -> usize {
        match self.placement {
            Placement::Along(axis) => axis,
            _ => 0,
        }
    }

    /// Returns whether values are concatenated along axis 0 as they are.
    pub fn is_plain(&self) -> bool {
        self.placement == Placement::Along(0)
            && !self.is_lifted
            && self.tiled.is_empty()
            && matches!(self.values, ValueMeaning::Plain | ValueMeaning::Packed | ValueMeaning::Unique)
            && self.labels.is_none()
    }

    /// Returns whether all values must be read during the scan of the inputs.
    pub(crate) fn needs_values(&self) -> bool {
        matches!(self.placement, Placement::Once | Placement::OnceOrLeftOut) || self.keeps_values()
    }

    /// Returns whether the values of each input are kept until the rules are settled.
    pub(crate) fn keeps_values(&self) -> bool {
        matches!(self.values, ValueMeaning::Categories { .. } | ValueMeaning::Kept)
    }

    /// Describes the rule in a few words, for plans and provenance.
    pub fn describe(&self) -> String {
        let placement = match self.placement {
            Placement::Along(_) if !self.tiled.is_empty() => {
                let axes: Vec<String> = self.tiled.iter().map(|(axis, _)| axis.to_string()).collect();
                let word = if axes.len() == 1 { "axis" } else { "axes" };
                format!("tiles along {word} {}", axes.join(", "))
            }
            Placement::Along(_) if self.is_lifted => "one record of each input".to_owned(),
            Placement::Along(axis) => format!("concatenated along axis {axis}"),
            Placement::Once => "carried once".to_owned(),
            Placement::OnceOrLeftOut => "carried once where all inputs agree".to_owned(),
            Placement::Widest => "as long as the longest".to_owned(),
            Placement::Empty => "without values".to_owned(),
            Placement::LeftOut => "left out".to_owned(),
        };
        let values = match &self.values {
            ValueMeaning::Plain | ValueMeaning::Kept | ValueMeaning::Packed => String::new(),
            ValueMeaning::Positions { target, form } => format!("{} of {}", form.word(), display_path(target)),
            ValueMeaning::LabelNumbers { labels } => format!("numbers of {}", display_path(labels)),
            ValueMeaning::Unique => "all different".to_owned(),
            ValueMeaning::Codes { categories } => format!("codes of {}", display_path(categories)),
            ValueMeaning::Categories { .. } => "categories of all inputs".to_owned(),
            ValueMeaning::Time(_) | ValueMeaning::TimeOf { .. } => "time in the units of the output".to_owned(),
        };
        let labels = self
            .labels
            .as_ref()
            .map_or(String::new(), |labels| format!("axis {} by {}", labels.axis, display_path(&labels.path)));
        [placement, values, labels].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// Returns whether both rules treat a dataset in the same way. Other datasets may name it as a coordinate in some inputs
    /// only, so this is not compared.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match self.is_coordinate == other.is_coordinate {
            true => self == other,
            false => *self == Self { is_coordinate: self.is_coordinate, ..other.clone() },
        }
    }

    /// Describes this rule and another one, in detail where their descriptions are the same.
    pub(crate) fn contrast(&self, other: &Self) -> (String, String) {
        let (left, right) = (self.describe(), other.describe());
        if left != right {
            return (left, right);
        }
        let details = match (&self.values, &other.values) {
            (known, found) if known != found => (known.kind(), found.kind()),
            _ if self.record != other.record => {
                let record = |rule: &Self| rule.record.as_deref().map_or("no dimension".to_owned(), display_path);
                (record(self), record(other))
            }
            _ => {
                let lacking = |rule: &Self, other: &Self| {
                    let names = other.attributes.iter().filter(|name| !rule.attributes.contains(name));
                    let names: Vec<_> = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
                    if names.is_empty() { String::new() } else { format!("no attribute {}", names.join(", ")) }
                };
                (lacking(self, other), lacking(other, self))
            }
        };
        let joined = |text: String, detail: String| if detail.is_empty() { text } else { format!("{text}; {detail}") };
        (joined(left, details.0), joined(right, details.1))
    }
}
