//! What to do where inputs differ.

use super::conventions::ConventionArgs;
use super::size::Size;
use crate::failure::Failure;
use raddle_merge::join::{AddedColumn, AttributePolicy, Join as JoinPolicy, JoinOptions, ScalarPolicy};
use raddle_merge::options::MergeOptions;
use raddle_merge::selection::Selection;

/// Options that decide how the objects of several inputs become one.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Where inputs differ")]
pub struct SchemaArgs {
    /// Which datasets the output has when not every input has them [default: exact]
    #[arg(id = "join", long, value_enum)]
    pub join: Option<Join>,

    /// Datasets of a single value (scalars) that differ between inputs [default: equal]
    #[arg(long, value_enum)]
    pub scalars: Option<Scalars>,

    /// Attributes that differ between inputs [default: first]
    #[arg(long, value_enum)]
    pub attributes: Option<Attributes>,

    /// Add a column with an attribute of each input in all rows that come from it (run=@run); may be given several times
    ///
    /// A NAME without a slash is added to every group whose datasets have rows, a path to its group only. @ATTRIBUTE is an
    /// attribute of the root, OBJECT@ATTRIBUTE one of another object. An input without the attribute is refused.
    #[arg(long, value_name = "NAME=@ATTRIBUTE", value_parser = AddedColumn::parse)]
    pub add_column: Vec<AddedColumn>,

    /// Take only objects whose path matches, with the groups that lead to them; may be given several times
    ///
    /// A pattern with a slash counts from the root ('/rec.*/evt'), one without matches a name at any depth; * stays inside
    /// a name, ** crosses groups. A group that matches stands for all that is in it.
    #[arg(long, value_name = "GLOB", help_heading = "Objects")]
    pub include: Vec<String>,

    /// Leave out objects whose path matches, and all that is in them; may be given several times
    #[arg(long, value_name = "GLOB", help_heading = "Objects")]
    pub exclude: Vec<String>,

    /// Carry datasets whose path matches once instead of concatenating them; they must be equal in all inputs
    #[arg(long, value_name = "GLOB", help_heading = "Objects")]
    pub keep: Vec<String>,

    /// Leave out inputs that cannot be read; the run then ends with exit code 4
    #[arg(long)]
    pub skip_bad: bool,

    /// Read virtual datasets and external storage also where they lead out of the input's folder
    #[arg(long)]
    pub follow_foreign_files: bool,

    /// Largest uncompressed output, for example 10TB; more is refused [default: 1TiB, or 2,000 times the inputs]
    #[arg(long, value_name = "SIZE")]
    pub max_output: Option<Size>,

    /// What values mean.
    #[command(flatten)]
    pub conventions: ConventionArgs,
}

impl SchemaArgs {
    /// Writes these options into those of a merge.
    ///
    /// # Errors
    /// If a pattern is none.
    pub fn apply(&self, options: &mut MergeOptions) -> Result<(), Failure> {
        options.selection =
            Selection::new(&self.include, &self.exclude, &self.keep).map_err(|error| Failure::of_merge(&error, &[]))?;
        options.join = JoinOptions {
            join: match self.join {
                None | Some(Join::Exact) => JoinPolicy::Exact,
                Some(Join::Inner) => JoinPolicy::Inner,
                Some(Join::Outer) => JoinPolicy::Outer,
                Some(Join::Union) => JoinPolicy::Union,
            },
            scalars: match self.scalars {
                None | Some(Scalars::Equal) => ScalarPolicy::Equal,
                Some(Scalars::First) => ScalarPolicy::First,
                Some(Scalars::Stack) => ScalarPolicy::Stack,
            },
            attributes: match self.attributes {
                None | Some(Attributes::First) => AttributePolicy::First,
                Some(Attributes::Identical) => AttributePolicy::Identical,
                Some(Attributes::Error) => AttributePolicy::Error,
                Some(Attributes::Stack) => AttributePolicy::Stack,
            },
            add_columns: self.add_column.clone(),
        };
        let given = [
            ("join", self.join.is_some()),
            ("scalars", self.scalars.is_some()),
            ("attributes", self.attributes.is_some()),
        ];
        options.explicit =
            given.into_iter().chain(self.conventions.given()).filter(|one| one.1).map(|one| one.0).collect();
        options.conventions = self.conventions.options()?;
        options.skip_bad = self.skip_bad;
        options.follow_foreign_files = self.follow_foreign_files;
        if let Some(limit) = self.max_output {
            options.max_output_len_bytes = Some(limit.0);
        }
        Ok(())
    }
}

/// How schemas are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Join {
    /// All inputs must have the same objects; else show every difference and stop
    Exact,
    /// Objects that all inputs have
    Inner,
    /// Objects that any input has; missing rows get the fill value
    Outer,
    /// Objects that any input has, each dataset in one input only: nothing is concatenated
    Union,
}

/// What becomes of scalar datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scalars {
    /// Must be equal; else stop
    Equal,
    /// Take the value of the first input
    First,
    /// Make one dimension with an element per input, where they differ
    Stack,
}

/// What becomes of attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Attributes {
    /// Take those of the first input and say how many differ
    First,
    /// Keep those that are identical in all inputs
    Identical,
    /// Stop if any differs
    Error,
    /// Make a dataset with a row per input of each that differs: ATTRIBUTE in its group, DATASET.ATTRIBUTE next to its dataset
    Stack,
}
