//! Merging of files into several outputs: one per variable, or of limited length, or both.
//!
//! Each output is a separate merge of all or some of the inputs. `planning` divides the merge and names the outputs,
//! `writing` writes them one after the other.

mod planning;
mod writing;

pub use planning::{PlannedPart, PlannedSplit, SplitSummary};
pub use writing::{SplitPart, SplitReport};

use crate::error::Error;
use crate::options::{ExecutionOptions, Inputs, LayoutOptions, SchemaOptions, SortOptions, WritingOptions};
use raddle_core::size::Size;
use raddle_merge::division::{Criteria, RowLimit};
use raddle_merge::options::MergeOptions;
use raddle_merge::schema::join::AttributePolicy;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Request to merge files into several outputs.
///
/// Fields are the options of `raddle split`.
///
/// ```
/// use raddle::split::{Division, SplitRequest};
/// use raddle::Context;
/// # use raddle_testing::plain::make_columns;
/// # let folder = tempfile::tempdir()?;
/// # let (a, b, parts) = (folder.path().join("a.h5"), folder.path().join("b.h5"), folder.path().join("parts"));
/// # make_columns(&a, &[("/rec/energy", &[1.0, 2.0])])?;
/// # make_columns(&b, &[("/rec/energy", &[3.0])])?;
///
/// let division = Division { rows_per_file: Some(2), ..Division::default() };
/// let request = SplitRequest { division, ..SplitRequest::new([a, b], parts) };
/// let report = request.plan(&Context::default())?.run(&Context::default())?;
/// assert_eq!(report.files.len(), 2);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct SplitRequest {
    /// Files to merge.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub inputs: Inputs,
    /// Order of the inputs.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub sorting: SortOptions,
    /// Division into outputs.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub division: Division,
    /// Write the files to this folder, which is created if necessary
    #[cfg_attr(feature = "clap", arg(long, value_name = "FOLDER", help_heading = "Output"))]
    pub dir: PathBuf,
    /// Prefix of the file names that contain no variable [default: part]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", help_heading = "Output"))]
    pub name: Option<String>,
    /// Options of writing.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub writing: WritingOptions,
    /// Treatment of differences between inputs.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub schema: SchemaOptions,
    /// Chunks, compression and format.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub layout: LayoutOptions,
    /// Use of the machine.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub execution: ExecutionOptions,
}

/// How a merge is divided into outputs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Division"), group(required = true, multiple = true))]
pub struct Division {
    /// Write one file per variable, with its coordinates and everything else that describes it
    ///
    /// In netCDF these are the coordinates of its dimensions, and the variables that attributes name, such as
    /// coordinates, bounds, cell_measures, grid_mapping, formula_terms, geometry and mesh. Scalars that nothing names are
    /// in every file.
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub by: Option<SplitUnit>,

    /// Write files of at most N rows
    ///
    /// Rows are counted along the dimension of concatenation. Without such a dimension, as in event files, whose tables
    /// have different numbers of rows, files are divided between inputs: each takes whole inputs, up to N rows of its
    /// longest table.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..)))]
    pub rows_per_file: Option<u64>,

    /// Write files whose values have at most this size before compression, such as 4GiB
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE", conflicts_with = "rows_per_file"))]
    pub size_per_file: Option<Size>,
}

/// Unit of which each output holds one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SplitUnit {
    /// A variable: a dataset that describes no other one.
    Variable,
}

impl Division {
    /// Returns the criteria that the options state.
    ///
    /// # Errors
    /// If there are none, or they contradict each other.
    fn criteria(&self) -> Result<Criteria, Error> {
        let limit = match (self.rows_per_file, self.size_per_file) {
            (Some(_), Some(_)) => {
                return Err(Error::usage(
                    "--rows-per-file and --size-per-file exclude each other: leave out one of them",
                ));
            }
            (Some(0), None) | (None, Some(Size(0))) => return Err(Error::usage("a file holds at least one row")),
            (Some(rows), None) => Some(RowLimit::Rows(rows)),
            (None, Some(size)) => Some(RowLimit::LenBytes(size.0)),
            (None, None) => None,
        };
        let by_variable = self.by == Some(SplitUnit::Variable);
        match (by_variable, limit) {
            (false, None) => Err(Error::usage("no division: use --by variable, --rows-per-file or --size-per-file")),
            _ => Ok(Criteria { by_variable, limit }),
        }
    }
}

impl SplitRequest {
    /// Creates a request with default options, to which a division must be added.
    pub fn new(inputs: impl Into<Inputs>, dir: impl Into<PathBuf>) -> Self {
        Self { inputs: inputs.into(), dir: dir.into(), ..Self::default() }
    }

    /// Returns the options that the merges of all outputs share.
    ///
    /// # Errors
    /// If options conflict, a pattern is not a valid glob, or a file of options cannot be read.
    fn options(&self, default_jobs: usize) -> Result<MergeOptions, Error> {
        let mut options =
            MergeOptions { divides_variables: self.division.by.is_some(), ..MergeOptions::new(&self.dir) };
        self.writing.apply(&mut options);
        self.schema.apply(&mut options)?;
        self.layout.apply(&mut options)?;
        self.execution.apply(&mut options, default_jobs);
        crate::merge::check_axis(&options)?;
        crate::merge::check_subset(&options)?;
        let gives_columns = !options.join.add_columns.is_empty() || options.join.attributes == AttributePolicy::Stack;
        if self.division.by.is_some() && gives_columns {
            return Err(Error::usage(
                "--add-column and --attributes stack make datasets that no input has: leave out --by, or merge first",
            ));
        }
        Ok(options)
    }
}
