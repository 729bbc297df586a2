//! Treatment of differences between inputs.

use super::conventions::ConventionChoices;
use crate::error::Error;
use raddle_core::size::Size;
use raddle_merge::inputs::selection::Selection;
use raddle_merge::options::MergeOptions;
use raddle_merge::schema::join::{AddedColumn, AttributePolicy, Join, JoinOptions, ScalarPolicy};
use raddle_merge::subset::DimensionRanges;
use serde::{Deserialize, Serialize};

/// Options that determine how the objects of several inputs are combined.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Where inputs differ"))]
pub struct SchemaOptions {
    /// Datasets of the output if some inputs lack them [default: exact]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub join: Option<Join>,

    /// What to do if datasets of a single value (scalars) differ between inputs [default: equal]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub scalars: Option<ScalarPolicy>,

    /// What to do if attributes differ between inputs [default: first]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub attributes: Option<AttributePolicy>,

    /// Add a column with an attribute of each input, repeated in all of its rows (run=@run); may be given several times
    ///
    /// A NAME without a slash is added to every group whose datasets have rows, a path only to its group. @ATTRIBUTE is
    /// an attribute of the root, OBJECT@ATTRIBUTE an attribute of another object. An input without the attribute is
    /// refused.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME=@ATTRIBUTE"))]
    #[serde(with = "super::text::list")]
    pub add_column: Vec<AddedColumn>,

    /// Only include objects whose path matches, and the groups that lead to them; may be given several times
    ///
    /// A pattern with a slash starts at the root ('/rec.*/evt'), one without matches a name at any depth; * stays
    /// inside a name, ** crosses groups. A matching group includes everything in it.
    #[cfg_attr(feature = "clap", arg(long, value_name = "GLOB", help_heading = "Objects"))]
    #[serde(with = "super::text::list")]
    pub include: Vec<String>,

    /// Exclude objects whose path matches, with everything in them; may be given several times
    #[cfg_attr(feature = "clap", arg(long, value_name = "GLOB", help_heading = "Objects"))]
    #[serde(with = "super::text::list")]
    pub exclude: Vec<String>,

    /// Keep one copy of datasets whose path matches instead of concatenating them; they must be equal in all inputs
    #[cfg_attr(feature = "clap", arg(long, value_name = "GLOB", help_heading = "Objects"))]
    #[serde(with = "super::text::list")]
    pub keep: Vec<String>,

    /// Restrict dimensions to ranges, separated by commas: 'time=0:100, lat=-30..30'
    ///
    /// START:END selects elements by number, END not included: numbers count from 0 in the merged output, negative ones
    /// from its end. FROM..TO selects elements by the values of the coordinate, both included: numbers, or dates such as
    /// 2001-01..2001-12, where a year or month stands for all of it. Either limit may be omitted. A dimension is named as
    /// in netCDF, by its dimension scale, or by its label. A comma that follows no range belongs to a name.
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIMENSION=RANGE", help_heading = "Objects"))]
    #[serde(with = "super::text::list")]
    pub select: Vec<DimensionRanges>,

    /// Leave out inputs that cannot be read; the run then ends with exit code 4
    #[cfg_attr(feature = "clap", arg(long))]
    pub skip_bad: bool,

    /// Follow virtual datasets and external storage even outside of the input's folder
    #[cfg_attr(feature = "clap", arg(long))]
    pub follow_foreign_files: bool,

    /// Maximum uncompressed size of the output, for example 10TB [default: 1TiB, or 2,000 times the inputs]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE"))]
    pub max_output: Option<Size>,

    /// Options of conventions.
    #[serde(flatten)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub conventions: ConventionChoices,
}

impl SchemaOptions {
    /// Applies these options to the options of a merge.
    ///
    /// # Errors
    /// If a pattern is not a valid glob.
    pub fn apply(&self, options: &mut MergeOptions) -> Result<(), Error> {
        options.selection =
            Selection::new(&self.include, &self.exclude, &self.keep).map_err(|error| Error::of_merge(&error, &[]))?;
        options.subset = self.select.iter().flat_map(|ranges| ranges.0.iter().cloned()).collect();
        options.join = JoinOptions {
            join: self.join.unwrap_or_default(),
            united: None,
            scalars: self.scalars.unwrap_or_default(),
            attributes: self.attributes.unwrap_or_default(),
            add_columns: self.add_column.clone(),
        };
        let explicit_flags = [
            ("join", self.join.is_some()),
            ("scalars", self.scalars.is_some()),
            ("attributes", self.attributes.is_some()),
        ];
        options.explicit = explicit_flags
            .into_iter()
            .chain(self.conventions.explicit_flags())
            .filter(|one| one.1)
            .map(|one| one.0)
            .collect();
        options.conventions = self.conventions.options()?;
        options.skip_bad = self.skip_bad;
        options.follow_foreign_files = self.follow_foreign_files;
        if let Some(limit) = self.max_output {
            options.max_output_len_bytes = Some(limit.0);
        }
        Ok(())
    }
}
