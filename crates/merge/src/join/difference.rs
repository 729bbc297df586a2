//! What is reported of inputs that are not alike: kind, path, both sides, and the inputs.
//!
//! Plain values; whether a difference is an error or a warning is not known here.

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
    /// A group here, a dataset there, and the like.
    Kind,
    /// Datatypes differ.
    Datatype,
    /// Ranks differ.
    Rank,
    /// Dimensions other than the first differ.
    TrailingDimensions,
    /// A link leads elsewhere.
    LinkTarget,
    /// A scalar dataset has another value.
    Value,
    /// A dimension scale, or a dataset of `--keep`, is kept once and has other values.
    Scale,
    /// More than one input has the dataset, and none is to be concatenated.
    Repeated,
    /// Attributes differ.
    Attributes,
    /// References lead to no object of their file.
    Dangling,
    /// A fill value cannot be kept.
    FillValue,
    /// An absent column could belong to tables of different lengths.
    Rows,
    /// A file has bytes of its user's before its own, which are not copied.
    UserBlock,
    /// Under the convention of the inputs, values mean something else.
    Meaning,
    /// The inputs follow different conventions, or one that cannot be merged.
    Convention,
    /// An index says where the rows of its own file are; it is left out.
    Index,
    /// Under the convention of the inputs, the output does not have it.
    LeftOut,
    /// Names that should be unique are there more than once.
    Repetition,
    /// No dataset can be made of an attribute of all inputs.
    AttributeColumn,
}

impl DifferenceKind {
    /// The kind for programs; a promise.
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
        }
    }

    /// The kind in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Extra => "only in some inputs",
            Self::Kind => "another kind of object",
            Self::Datatype => "another datatype",
            Self::Rank => "another rank",
            Self::TrailingDimensions => "other trailing dimensions",
            Self::LinkTarget => "another link target",
            Self::Value => "another value",
            Self::Scale => "other values of what is kept once",
            Self::Repeated => "in more than one input",
            Self::Attributes => "other attributes",
            Self::Dangling => "references to nothing",
            Self::FillValue => "another fill value",
            Self::Rows => "unclear number of rows",
            Self::UserBlock => "not copied",
            Self::Meaning => "another meaning",
            Self::Convention => "convention",
            Self::Index => "an index of rows",
            Self::LeftOut => "left out",
            Self::Repetition => "repeated names",
            Self::AttributeColumn => "no dataset of attributes",
        }
    }
}

/// A difference, with every input in which it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Path of the object, escaped for display.
    pub path: String,
    /// Kind.
    pub kind: DifferenceKind,
    /// What the model has.
    pub expected: String,
    /// What the inputs below have.
    pub found: String,
    /// Numbers of the inputs, ascending: of [`DifferenceKind::Missing`] those that lack the object, of
    /// [`DifferenceKind::Extra`] those that have it.
    pub inputs: Vec<u32>,
}

impl Difference {
    /// The difference with the paths of the inputs instead of their numbers.
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
