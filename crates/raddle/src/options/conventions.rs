//! Meaning of values: the convention of the inputs, and its options.

use crate::error::Error;
use raddle_merge::conventions::{
    Choice, ConcatAxis, ConventionOptions, MergePolicy, Overlap, Packing, Tiles, Times, Units,
};
use raddle_merge::rules::user::UserRule;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Options of conventions and rules.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Conventions"))]
pub struct ConventionChoices {
    /// Convention that all inputs follow [default: as recognised]
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "NAME"))]
    pub convention: Option<Choice>,

    /// Custom rule for datasets whose path matches; may be given several times
    ///
    /// 'PATTERN: once' keeps one copy, which must be equal in all inputs. 'PATTERN: concatenate' concatenates rows;
    /// 'PATTERN: along 1' concatenates along that axis. 'PATTERN: rows of TARGET' is for row numbers of another
    /// dataset, which are converted to those of the merged one; negative numbers are kept. 'starts of' is for the first
    /// row of each group, 'ends of' for the row after each group, 'bounds of' for one more position than groups, from 0
    /// to the number of rows. A TARGET without a slash is in the same group.
    #[cfg_attr(feature = "clap", arg(long, value_name = "RULE"))]
    #[serde(with = "super::text::list")]
    pub rule: Vec<UserRule>,

    /// TOML file with rules: a table `[rules]` of "PATTERN" = "RULE"
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub rules: Option<PathBuf>,

    /// Dimension along which files are concatenated, by the name of its dimension scale [default: the unlimited one]
    ///
    /// The dimension may be any axis of a dataset. Datasets without it are kept once and must be equal in all inputs.
    /// Of several names, separated by commas, each dataset is concatenated along the dimension that it has: the stations
    /// and the observations of a ragged array, for example. A name that contains commas must be the only one. This is
    /// for netCDF, and for other HDF5 files with dimension scales.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub dim: Option<String>,

    /// Make each file one record along a new first dimension, with the scalar dataset NAME as its coordinate
    ///
    /// In netCDF and other files with dimension scales, variables of the grid are kept once, and the scalar NAME must
    /// exist. In other HDF5 files every dataset gets a new first axis, which is labelled NAME, and scalar datasets
    /// become one-dimensional.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub new_dim: Option<String>,

    /// Join files that each hold a tile of a larger grid, for netCDF and other HDF5 files with dimension scales
    ///
    /// A tile is placed by attributes, domain_decomposition of a coordinate (GFDL's FMS) or
    /// WEST-EAST_PATCH_START_UNSTAG and its like (WRF), or else by the values of its coordinates. Elements that no tile
    /// covers get the fill value and are counted. Where tiles overlap, they must agree. Variables without a tiled
    /// dimension are kept once. --tiles='tile_{y}_{x}.nc' places tiles by file name: each {dimension} stands for a
    /// number or a word, and the sorted values give the order. --tiles=@FILE places them by a table with a line per
    /// file, 'path,start,start', counted from 0, after a line that names the dimensions, 'path,y,x'.
    #[cfg_attr(feature = "clap", arg(long, value_name = "PLACES", num_args = 0..=1, require_equals = true))]
    #[serde(with = "super::text::flag")]
    pub tiles: Option<Option<String>>,

    /// netCDF: units of times in the output, such as 'hours since 1970-01-01' [default: those of the first input]
    #[cfg_attr(feature = "clap", arg(long, value_name = "UNITS"))]
    pub time_units: Option<String>,

    /// netCDF: what to do if a time has no exact counterpart in the units of the output [default: exact]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub times: Option<Times>,

    /// netCDF: what to do if inputs pack values differently (scale_factor, add_offset, _FillValue) [default: refuse]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub packing: Option<Packing>,

    /// netCDF: what to do if units of values differ between inputs [default: refuse]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub units: Option<Units>,

    /// netCDF: what to do if times of inputs overlap [default: refuse]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub overlap: Option<Overlap>,

    /// Axis along which datasets are concatenated: its number, from 0, or -1 for the last; for AnnData obs or var
    /// [default: 0]
    ///
    /// Datasets that have no such axis are kept once and must be equal in all inputs. Dimension scales are concatenated
    /// with the axes that they describe. In AnnData, obs (0) are the rows of X and var (1) the columns; the other axis
    /// is matched by name.
    #[cfg_attr(feature = "clap", arg(long, value_name = "AXIS", allow_negative_numbers = true))]
    #[serde(with = "super::text::optional")]
    pub axis: Option<ConcatAxis>,

    /// AnnData: keep pairwise arrays of that axis (obsp, varp) as diagonal blocks
    #[cfg_attr(feature = "clap", arg(long))]
    pub pairwise: bool,

    /// AnnData: elements to keep that do not belong to the axis (columns of var, varm, varp, uns) [default: same]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub merge: Option<MergePolicy>,

    /// AnnData: make names along the axis unique by appending SEPARATOR and the number of the input, from 0
    #[cfg_attr(feature = "clap", arg(long, value_name = "SEPARATOR"))]
    pub index_unique: Option<String>,

    /// Tolerated difference between copies of values that are kept once, such as recomputed grids [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIFFERENCE"))]
    pub tolerance: Option<f64>,

    /// Attributes of the root group that must be equal in all inputs, separated by commas
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAMES", value_delimiter = ','))]
    #[serde(with = "super::text::commas")]
    pub require_equal: Vec<String>,
}

impl ConventionChoices {
    /// Returns the names of the options that have a default value, each with whether it is set.
    pub fn explicit_flags(&self) -> [(&'static str, bool); 7] {
        [
            ("axis", self.axis.is_some()),
            ("times", self.times.is_some()),
            ("packing", self.packing.is_some()),
            ("units", self.units.is_some()),
            ("overlap", self.overlap.is_some()),
            ("merge", self.merge.is_some()),
            ("tolerance", self.tolerance.is_some()),
        ]
    }

    /// Returns the files from which options are read.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let table = self.tiles.iter().flatten().filter_map(|places| places.strip_prefix('@')).map(PathBuf::from);
        self.rules.iter().cloned().chain(table).collect()
    }

    /// Returns the options that determine how inputs are joined, each with whether it is given.
    pub(crate) fn given(&self) -> [(&'static str, bool); 16] {
        [
            ("--rule", !self.rule.is_empty()),
            ("--rules", self.rules.is_some()),
            ("--dim", self.dim.is_some()),
            ("--new-dim", self.new_dim.is_some()),
            ("--tiles", self.tiles.is_some()),
            ("--time-units", self.time_units.is_some()),
            ("--times", self.times.is_some()),
            ("--packing", self.packing.is_some()),
            ("--units", self.units.is_some()),
            ("--overlap", self.overlap.is_some()),
            ("--axis", self.axis.is_some()),
            ("--pairwise", self.pairwise),
            ("--merge", self.merge.is_some()),
            ("--index-unique", self.index_unique.is_some()),
            ("--tolerance", self.tolerance.is_some()),
            ("--require-equal", !self.require_equal.is_empty()),
        ]
    }

    /// Converts the options to plain values.
    ///
    /// # Errors
    /// If the file of rules cannot be read.
    pub fn options(&self) -> Result<ConventionOptions, Error> {
        if self.dim.is_some() && self.new_dim.is_some() {
            return Err(Error::usage(
                "--new-dim makes a dimension, and --dim names an existing one: leave out one of them",
            ));
        }
        if self.axis.is_some_and(|axis| matches!(axis, ConcatAxis::Number(_)))
            && let Some(option) = [(self.dim.is_some(), "--dim"), (self.new_dim.is_some(), "--new-dim")]
                .into_iter()
                .find_map(|(is_set, option)| is_set.then_some(option))
        {
            return Err(Error::usage(&format!("--axis and {option} both choose an axis: leave out one of them")));
        }
        self.check_tiles()?;
        if let Some(tolerance) = self.tolerance.filter(|tolerance| !(0.0..f64::INFINITY).contains(tolerance)) {
            return Err(Error::usage(&format!("--tolerance {tolerance}: expected a number from 0")));
        }
        let mut rules = Vec::new();
        if let Some(path) = &self.rules {
            let text =
                std::fs::read_to_string(path).map_err(|error| Error::usage(&format!("{}: {error}", path.display())))?;
            let of_file = UserRule::parse_file(&text);
            rules.extend(of_file.map_err(|error| Error::usage(&format!("{}: {error}", path.display())))?);
        }
        // The last rule wins, which is that of the command line.
        rules.extend(self.rule.iter().cloned());
        Ok(ConventionOptions {
            convention: self.convention,
            rules,
            dim: self.dim.clone(),
            new_dim: self.new_dim.clone(),
            tiles: self.tiles.as_ref().map(|places| tiles_of(places.as_deref())).transpose()?,
            time_units: self.time_units.clone(),
            times: self.times.unwrap_or_default(),
            packing: self.packing.unwrap_or_default(),
            units: self.units.unwrap_or_default(),
            overlap: self.overlap.unwrap_or_default(),
            tolerance: self.tolerance.unwrap_or(0.0),
            require_equal: self.require_equal.clone(),
            axis: self.axis.unwrap_or_default(),
            pairwise: self.pairwise,
            merge: self.merge.unwrap_or_default(),
            index_unique: self.index_unique.clone(),
        })
    }

    /// Refuses options that have no effect on tiles.
    fn check_tiles(&self) -> Result<(), Error> {
        let refused = [
            (self.dim.is_some(), "--dim"),
            (self.new_dim.is_some(), "--new-dim"),
            (self.axis.is_some(), "--axis"),
            (self.time_units.is_some(), "--time-units"),
            (self.times.is_some(), "--times"),
            (self.packing.is_some(), "--packing"),
            (self.units.is_some(), "--units"),
            (self.overlap.is_some(), "--overlap"),
        ];
        match refused.into_iter().find(|(is_set, _)| self.tiles.is_some() && *is_set) {
            Some((_, option)) => {
                Err(Error::usage(&format!("--tiles joins the values of tiles as they are stored: leave out {option}")))
            }
            None => Ok(()),
        }
    }
}

/// Parses the value of `--tiles`: a pattern of file names, or `@` and the path of a table.
fn tiles_of(places: Option<&str>) -> Result<Tiles, Error> {
    let Some(places) = places else { return Ok(Tiles::Contents) };
    let Some(path) = places.strip_prefix('@') else {
        let pattern = places.parse().map_err(|error: String| Error::usage(&format!("--tiles: {error}")))?;
        return Ok(Tiles::Names(pattern));
    };
    let fault = |error: &dyn std::fmt::Display| Error::usage(&format!("--tiles: {path}: {error}"));
    let text = std::fs::read_to_string(path).map_err(|error| fault(&error))?;
    Ok(Tiles::Table(text.parse().map_err(|error: String| fault(&error))?))
}
