//! Treatment of differences between inputs.

use super::conventions::ConventionArgs;
use super::size::Size;
use crate::failure::Failure;
use raddle_merge::inputs::selection::Selection;
use raddle_merge::options::MergeOptions;
use raddle_merge::schema::join::{AddedColumn, AttributePolicy, Join as JoinPolicy, JoinOptions, ScalarPolicy};

/// Options that determine how the objects of several inputs are combined.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Where inputs differ")]
pub struct SchemaArgs {
    /// Datasets of the output if some inputs lack them [default: exact]
    #[arg(id = "join", long, value_enum)]
    pub join: Option<Join>,

    /// What to do if datasets of a single value (scalars) differ between inputs [default: equal]
    #[arg(long, value_enum)]
    pub scalars: Option<Scalars>,

    /// What to do if attributes differ between inputs [default: first]
    #[arg(long, value_enum)]
    pub attributes: Option<Attributes>,

    /// Add a column with an attribute of each input, repeated in all of its rows (run=@run); may be given several times
    ///
    /// A NAME without a slash is added to every group whose datasets have rows, a path only to its group. @ATTRIBUTE is
    /// an attribute of the root, OBJECT@ATTRIBUTE an attribute of another object. An input without the attribute is
    /// refused.
    #[arg(long, value_name = "NAME=@ATTRIBUTE", value_parser = AddedColumn::parse)]
    pub add_column: Vec<AddedColumn>,

    /// Only include objects whose path matches, and the groups that lead to them; may be given several times
    ///
    /// A pattern with a slash starts at the root ('/rec.*/evt'), one without matches a name at any depth; * stays
    /// inside a name, ** crosses groups. A matching group includes everything in it.
    #[arg(long, value_name = "GLOB", help_heading = "Objects")]
    pub include: Vec<String>,

    /// Exclude objects whose path matches, with everything in them; may be given several times
    #[arg(long, value_name = "GLOB", help_heading = "Objects")]
    pub exclude: Vec<String>,

    /// Keep one copy of datasets whose path matches instead of concatenating them; they must be equal in all inputs
    #[arg(long, value_name = "GLOB", help_heading = "Objects")]
    pub keep: Vec<String>,

    /// Leave out inputs that cannot be read; the run then ends with exit code 4
    #[arg(long)]
    pub skip_bad: bool,

    /// Follow virtual datasets and external storage even outside of the input's folder
    #[arg(long)]
    pub follow_foreign_files: bool,

    /// Maximum uncompressed size of the output, for example 10TB [default: 1TiB, or 2,000 times the inputs]
    #[arg(long, value_name = "SIZE")]
    pub max_output: Option<Size>,

    /// Options of conventions.
    #[command(flatten)]
    pub conventions: ConventionArgs,
}

impl SchemaArgs {
    /// Applies these options to those of a merge.
    ///
    /// # Errors
    /// If a pattern is not a valid glob.
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

/// Join of the schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Join {
    /// All inputs must have the same objects; otherwise show all differences and stop
    Exact,
    /// Objects that all inputs have
    Inner,
    /// Objects that any input has; missing rows are filled with the fill value
    Outer,
    /// Objects that any input has, each dataset in only one of them; nothing is concatenated
    Union,
}

/// Treatment of scalar datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scalars {
    /// They must be equal; otherwise stop
    Equal,
    /// Use the value of the first input
    First,
    /// Where they differ, add a dimension with one element per input
    Stack,
}

/// Treatment of attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Attributes {
    /// Use those of the first input and report how many differ
    First,
    /// Keep those that are identical in all inputs
    Identical,
    /// Stop if any differs
    Error,
    /// Store each that differs as a dataset with one row per input: ATTRIBUTE in its group, DATASET.ATTRIBUTE next to
    /// its dataset
    Stack,
}
