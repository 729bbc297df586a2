//! Rules: what a merge does with a dataset whose values, concatenated along axis 0 as they are, would mean something else.
//!
//! A [`Rule`] names the wish of a convention (or of the user) for one dataset. It is found in each input while that is
//! scanned and must be the same in all of them. [`settle`](settle::settle) turns the rules of a joined schema into
//! [`Conversion`]s: plain numbers for each input, which [`ColumnReader`](crate::values::ColumnReader) applies wherever
//! values are read, so that merge, verify, append and ranks all see the same values. Not for recognising conventions
//! ([`crate::conventions`]). Invariant: a dataset without a rule is neither looked at nor changed here.

pub(crate) mod absent;
pub(crate) mod attribute;
pub(crate) mod calendar;
pub(crate) mod check;
mod conversion;
mod coordinate;
mod number;
pub(crate) mod once;
pub(crate) mod packing;
pub(crate) mod pick;
mod positions;
pub(crate) mod repack;
pub(crate) mod settle;
pub(crate) mod time_units;
mod units;
pub mod user;
mod versions;

pub use conversion::{Conversion, ElementMap, Gather, InputConversion, Trim};
pub(crate) use conversion::{ConvertBuffers, ConvertError, convert_piece, source_box, with_suffix};
pub use number::NumberType;
pub use pick::{Pick, PickForm};
pub use repack::OnePacking;

use serde::{Deserialize, Serialize};

/// What becomes of one dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rule {
    /// Where its values go.
    pub placement: Placement,
    /// What its values mean.
    pub values: Values,
    /// Attributes that may differ between inputs because the rule takes their difference into account.
    pub attributes: Vec<Vec<u8>>,
    /// Attributes that may differ between inputs because they are written anew or mean nothing to readers.
    pub ignored: Vec<Vec<u8>>,
    /// Axes other than that of concatenation whose elements are matched by their labels.
    pub labels: Option<Labels>,
    /// No option makes inputs that differ fit together.
    pub is_strict: bool,
    /// An axis of characters, on which shorter texts are filled up.
    pub widened: Option<usize>,
    /// Whether each input is one record: its dataset gets a first axis.
    pub is_lifted: bool,
    /// Path of the coordinate of the records that follow one another, where there is one.
    pub record: Option<Vec<u8>>,
}

/// Where the values of the inputs go in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Placement {
    /// One after another along this axis.
    Along(usize),
    /// One copy of what all inputs must have.
    Once,
    /// One copy of what all inputs have; left out where they differ.
    OnceOrLeftOut,
    /// One copy of the longest, whatever its values are.
    Widest,
    /// One after another along axis 0, without values that anybody reads.
    Empty,
    /// Nowhere.
    LeftOut,
}

impl Default for Placement {
    fn default() -> Self {
        Self::Along(0)
    }
}

/// What the values of a dataset mean, beyond what they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Values {
    /// Nothing.
    #[default]
    Plain,
    /// Positions of rows of another dataset.
    Positions {
        /// Path of that dataset.
        target: Vec<u8>,
        /// Which positions.
        form: PositionForm,
    },
    /// Numbers of the elements on the labelled axis of another dataset, as the column indices of a sparse matrix.
    LabelNumbers {
        /// Path of the labels.
        labels: Vec<u8>,
    },
    /// Numbers of which none may come twice, as identifiers of rows.
    Unique,
    /// Numbers of categories.
    Codes {
        /// Path of the categories.
        categories: Vec<u8>,
    },
    /// Categories that codes count: the output has those of all inputs, in order of appearance.
    Categories {
        /// Their order means something, so that all inputs must have the same.
        ordered: bool,
    },
    /// A time that counts from a reference in an attribute.
    Time(TimeAttributes),
    /// A time that counts as the one at this path does, as bounds of a time.
    TimeOf {
        /// Path of the time.
        time: Vec<u8>,
    },
    /// Numbers that stand for others by a scale and an offset in attributes, as CF packs them.
    Packed,
    /// What decides on the structure of the output, so that it is kept until all inputs are known.
    Kept,
}

/// Which positions a dataset holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PositionForm {
    /// The first row of each group, and the end of the last: one more than groups, beginning with zero (`indptr`).
    Bounds,
    /// The first row of each group (`event_index`).
    Starts,
    /// The row behind the last of each group (`VectorIndex`).
    Ends,
    /// Any rows (`DynamicTableRegion`).
    Rows,
}

impl PositionForm {
    /// What rules call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bounds => "bounds",
            Self::Starts => "starts",
            Self::Ends => "ends",
            Self::Rows => "rows",
        }
    }
}

/// Attributes that say what a time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeAttributes {
    /// `units` of the form "days since 2000-01-01" and `calendar`, as CF has them.
    Cf,
    /// `units` of a duration, and the reference in an attribute of this name, as NeXus has them.
    Reference(NexusReference),
}

/// The attribute in which NeXus keeps the reference of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NexusReference {
    /// Of `event_time_zero`.
    Offset,
    /// Of the `time` of a log.
    Start,
}

/// Labels by which the elements of an axis are matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// The axis.
    pub axis: usize,
    /// Path of the dataset that holds them.
    pub path: Vec<u8>,
}

impl Rule {
    /// Concatenation along `axis`.
    pub fn along(axis: usize) -> Self {
        Self { placement: Placement::Along(axis), ..Self::default() }
    }

    /// One copy that all inputs must have.
    pub fn once() -> Self {
        Self { placement: Placement::Once, ..Self::default() }
    }

    /// One copy that all inputs must have, whatever the user chooses: labels that codes count, or what times count from.
    pub fn strictly_once() -> Self {
        Self { is_strict: true, ..Self::once() }
    }

    /// Positions of rows of the dataset at `target`.
    pub fn positions(target: impl Into<Vec<u8>>, form: PositionForm) -> Self {
        Self { values: Values::Positions { target: target.into(), form }, ..Self::default() }
    }

    /// Returns the rule in the syntax of `--rule`, or `None` if that cannot express it.
    pub fn option(&self) -> Option<String> {
        let (said, text) = match &self.values {
            Values::Positions { target, form } => {
                let text = format!("{} of {}", form.word(), crate::schema::display_path(target));
                (Self::positions(target.clone(), *form), text)
            }
            _ => (Self::once(), "once".to_owned()),
        };
        (*self == said).then_some(text)
    }

    /// The same with these attributes taken into account.
    #[must_use]
    pub fn with_attributes(mut self, names: &[&str]) -> Self {
        self.attributes.extend(names.iter().map(|name| name.as_bytes().to_vec()));
        self
    }

    /// The same with these attributes ignored.
    #[must_use]
    pub fn ignoring(mut self, names: &[&str]) -> Self {
        self.ignored.extend(names.iter().map(|name| name.as_bytes().to_vec()));
        self
    }

    /// Whether inputs may differ in the attribute of this name, because the rule takes it into account or ignores it.
    pub(crate) fn accounts_for(&self, name: &[u8]) -> bool {
        self.attributes.iter().chain(&self.ignored).any(|known| known == name)
    }

    /// The axis of concatenation; 0 for what is not concatenated.
    pub fn axis(&self) -> usize {
        match self.placement {
            Placement::Along(axis) => axis,
            _ => 0,
        }
    }

    /// Whether values are concatenated along axis 0 as they are.
    pub fn is_plain(&self) -> bool {
        self.placement == Placement::Along(0)
            && !self.is_lifted
            && matches!(self.values, Values::Plain | Values::Packed | Values::Unique)
            && self.labels.is_none()
    }

    /// Whether all values have to be read while the inputs are scanned.
    pub(crate) fn needs_values(&self) -> bool {
        matches!(self.placement, Placement::Once | Placement::OnceOrLeftOut) || self.keeps_values()
    }

    /// Whether the values of each input are kept until the rules are settled.
    pub(crate) fn keeps_values(&self) -> bool {
        matches!(self.values, Values::Categories { .. } | Values::Kept)
    }

    /// The rule in a few words, for plans and provenance.
    pub fn describe(&self) -> String {
        use crate::schema::display_path;
        let placement = match self.placement {
            Placement::Along(_) if self.is_lifted => "one record of each input".to_owned(),
            Placement::Along(axis) => format!("concatenated along axis {axis}"),
            Placement::Once => "carried once".to_owned(),
            Placement::OnceOrLeftOut => "carried once where all inputs agree".to_owned(),
            Placement::Widest => "as long as the longest".to_owned(),
            Placement::Empty => "without values".to_owned(),
            Placement::LeftOut => "left out".to_owned(),
        };
        let values = match &self.values {
            Values::Plain | Values::Kept | Values::Packed => String::new(),
            Values::Positions { target, form } => format!("{} of {}", form.word(), display_path(target)),
            Values::LabelNumbers { labels } => format!("numbers of {}", display_path(labels)),
            Values::Unique => "all different".to_owned(),
            Values::Codes { categories } => format!("codes of {}", display_path(categories)),
            Values::Categories { .. } => "categories of all inputs".to_owned(),
            Values::Time(_) | Values::TimeOf { .. } => "time in the units of the output".to_owned(),
        };
        let labels = self
            .labels
            .as_ref()
            .map_or(String::new(), |labels| format!("axis {} by {}", labels.axis, display_path(&labels.path)));
        [placement, values, labels].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}
