//! A reported difference between inputs: its kind, its path, both sides, and the inputs.
//!
//! Plain values; whether a difference is an error or a warning is decided elsewhere.

use raddle_core::report::InputDifference;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Kind of a difference between inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum DifferenceKind {
    /// Present in the model's input, absent in others.
    Missing,
    /// Absent in the first input, present in others.
    Extra,
    /// Objects of different kinds, such as a group and a dataset.
    Kind,
    /// Datatypes differ.
    Datatype,
    /// Ranks differ.
    Rank,
    /// Dimensions other than the first one differ.
    TrailingDimensions,
    /// Link targets differ.
    LinkTarget,
    /// Values of a scalar dataset differ.
    Value,
    /// Values of a dataset that is stored once (a dimension scale, or a dataset of `--keep`) differ.
    Scale,
    /// Coordinates that are stored once differ, so elements of other datasets would get other places.
    Coordinate,
    /// More than one input has the dataset, and datasets are not to be concatenated.
    Repeated,
    /// Attributes differ.
    Attributes,
    /// References point to objects that their file does not have.
    Dangling,
    /// A fill value cannot be kept.
    FillValue,
    /// An absent column could belong to tables with different numbers of rows.
    Rows,
    /// A file has a user block before its own bytes, which is not copied.
    UserBlock,
    /// Values have a different meaning under the convention of the inputs.
    Meaning,
    /// The inputs follow different conventions, or one that cannot be merged.
    Convention,
    /// An index refers to the rows of its own file; it is left out.
    Index,
    /// The convention of the inputs leaves the object out of the output.
    LeftOut,
    /// Names that should be unique are repeated.
    Repetition,
    /// An attribute of all inputs cannot be made into a dataset.
    AttributeColumn,
    /// Inputs have different values at one place of the output.
    Overlap,
    /// Elements of the output are in no input.
    Hole,
}

impl DifferenceKind {
    /// Returns the machine-readable name of the kind, which is stable.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::Kind => "kind",
            Self::Datatype => "datatype",
            Self::Rank => "rank",
            Self::TrailingDimensions => "trailing_dimensions",
            Self::LinkTarget => "link_target",
            Self::Value => "value",
            Self::Scale => "scale",
            Self::Coordinate => "coordinate",
            Self::Repeated => "repeated",
            Self::Attributes => "attributes",
            Self::Dangling => "dangling",
            Self::FillValue => "fill_value",
            Self::Rows => "rows",
            Self::UserBlock => "user_block",
            Self::Meaning => "meaning",
            Self::Convention => "convention",
            Self::LeftOut => "left_out",
            Self::Index => "index",
            Self::Repetition => "repetition",
            Self::AttributeColumn => "attribute_column",
            Self::Overlap => "overlap",
            Self::Hole => "hole",
        }
    }

    /// Returns the kind in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Extra => "only in some inputs",
            Self::Kind => "different kind of object",
            Self::Datatype => "different datatype",
            Self::Rank => "different rank",
            Self::TrailingDimensions => "different trailing dimensions",
            Self::LinkTarget => "different link target",
            Self::Value => "different value",
            Self::Scale => "different values of a shared dataset",
            Self::Coordinate => "different coordinates",
            Self::Repeated => "in more than one input",
            Self::Attributes => "different attributes",
            Self::Dangling => "dangling references",
            Self::FillValue => "different fill value",
            Self::Rows => "unclear number of rows",
            Self::UserBlock => "not copied",
            Self::Meaning => "different meaning",
            Self::Convention => "convention",
            Self::Index => "an index of rows",
            Self::LeftOut => "left out",
            Self::Repetition => "repeated names",
            Self::AttributeColumn => "attribute cannot be a dataset",
            Self::Overlap => "different value at the same place",
            Self::Hole => "holes",
        }
    }
}

/// A difference, with every input in which it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Path of the object, escaped for display.
    pub path: String,
    /// Kind of the difference.
    pub kind: DifferenceKind,
    /// Description of the object in the model.
    pub expected: String,
    /// Description of the object in the inputs listed below.
    pub found: String,
    /// Numbers of the inputs, ascending: for [`DifferenceKind::Missing`] those that lack the object, for
    /// [`DifferenceKind::Extra`] those that have it.
    pub inputs: Vec<u32>,
}

impl Difference {
    /// Returns the difference with paths of the inputs instead of their numbers.
    pub fn of_inputs<P: AsRef<Path>>(&self, inputs: &[P]) -> InputDifference {
        let path = |&number: &u32| inputs.get(number as usize).map(|path| path.as_ref().to_string_lossy().into_owned());
        InputDifference {
            path: self.path.clone(),
            kind: self.kind.name().to_owned(),
            expected: self.expected.clone(),
            found: self.found.clone(),
            inputs: self.inputs.iter().filter_map(path).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_named() {
        let (path, kind) = ("/x".to_owned(), DifferenceKind::TrailingDimensions);
        let difference = Difference { path, kind, expected: "3".into(), found: "4".into(), inputs: vec![0, 2] };
        let named = difference.of_inputs(&["a.h5", "b.h5", "c.h5"]);
        assert_eq!(
            (named.kind.as_str(), named.inputs),
            ("trailing_dimensions", vec!["a.h5".to_owned(), "c.h5".into()])
        );
    }
}
