//! What to do where inputs differ.

use super::conventions::ConventionArgs;
use super::size::Size;
use crate::failure::Failure;
use raddle_merge::join::{AttributePolicy, Join as JoinPolicy, ScalarPolicy};
use raddle_merge::options::MergeOptions;
use raddle_merge::selection::Selection;

/// Options that decide how the objects of several inputs become one.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Where inputs differ")]
pub struct SchemaArgs {
    /// Which datasets the output has when not every input has them
    #[arg(id = "join", long, value_enum, default_value_t = Join::Exact)]
    pub join: Join,

    /// Datasets of a single value (scalars) that differ between inputs
    #[arg(long, value_enum, default_value_t = Scalars::Equal)]
    pub scalars: Scalars,

    /// Attributes that differ between inputs
    #[arg(long, value_enum, default_value_t = Attributes::First)]
    pub attributes: Attributes,

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
        options.join.join = match self.join {
            Join::Exact => JoinPolicy::Exact,
            Join::Inner => JoinPolicy::Inner,
            Join::Outer => JoinPolicy::Outer,
            Join::Union => JoinPolicy::Union,
        };
        options.join.scalars = match self.scalars {
            Scalars::Equal => ScalarPolicy::Equal,
            Scalars::First => ScalarPolicy::First,
            Scalars::Stack => ScalarPolicy::Stack,
        };
        options.join.attributes = match self.attributes {
            Attributes::First => AttributePolicy::First,
            Attributes::Identical => AttributePolicy::Identical,
            Attributes::Error => AttributePolicy::Error,
        };
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
}
