//! Meaning of values: the convention of the inputs, and its options.

use crate::failure::Failure;
use raddle_merge::conventions::{self, Choice, ConventionOptions};
use raddle_merge::rules::user::UserRule;
use std::path::PathBuf;

/// Options of conventions and rules.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Conventions")]
pub struct ConventionArgs {
    /// Convention that all inputs follow [default: as recognised]
    #[arg(long, value_enum, value_name = "NAME")]
    pub convention: Option<ConventionName>,

    /// Custom rule for datasets whose path matches; may be given several times
    ///
    /// 'PATTERN: once' keeps one copy, which must be equal in all inputs. 'PATTERN: concatenate' concatenates rows;
    /// 'PATTERN: along 1' concatenates along that axis. 'PATTERN: rows of TARGET' is for row numbers of another
    /// dataset, which are converted to those of the merged one; negative numbers are kept. 'starts of' is for the first
    /// row of each group, 'ends of' for the row after each group, 'bounds of' for one more position than groups, from 0
    /// to the number of rows. A TARGET without a slash is in the same group.
    #[arg(long, value_name = "RULE", value_parser = UserRule::parse)]
    pub rule: Vec<UserRule>,

    /// TOML file with rules: a table `[rules]` of "PATTERN" = "RULE"
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,

    /// netCDF: dimension along which files are concatenated [default: the unlimited one]
    #[arg(long, value_name = "NAME")]
    pub dim: Option<String>,

    /// netCDF: make each file one record along a new dimension, with the scalar variable NAME as its coordinate
    #[arg(long, value_name = "NAME", conflicts_with = "dim")]
    pub new_dim: Option<String>,

    /// netCDF: units of times in the output, such as 'hours since 1970-01-01' [default: those of the first input]
    #[arg(long, value_name = "UNITS")]
    pub time_units: Option<String>,

    /// netCDF: what to do if inputs pack values differently (scale_factor, add_offset, _FillValue) [default: refuse]
    #[arg(long, value_enum)]
    pub packing: Option<Packing>,

    /// netCDF: what to do if units of values differ between inputs [default: refuse]
    #[arg(long, value_enum)]
    pub units: Option<Units>,

    /// netCDF: what to do if times of inputs overlap [default: refuse]
    #[arg(long, value_enum)]
    pub overlap: Option<Overlap>,

    /// AnnData: axis to concatenate, observations or variables; the other axis is matched by name [default: obs]
    #[arg(long, value_enum)]
    pub axis: Option<Axis>,

    /// AnnData: keep pairwise arrays of that axis (obsp, varp) as diagonal blocks
    #[arg(long)]
    pub pairwise: bool,

    /// AnnData: elements to keep that do not belong to the axis (columns of var, varm, varp, uns) [default: same]
    #[arg(long, value_enum)]
    pub merge: Option<MergePolicy>,

    /// AnnData: make names along the axis unique by appending SEPARATOR and the number of the input, from 0
    #[arg(long, value_name = "SEPARATOR")]
    pub index_unique: Option<String>,

    /// Tolerated difference between copies of values that are kept once, such as recomputed grids [default: 0]
    #[arg(long, value_name = "DIFFERENCE")]
    pub tolerance: Option<f64>,

    /// Attributes of the root group that must be equal in all inputs, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub require_equal: Vec<String>,
}

impl ConventionArgs {
    /// Returns the options that have a default value, with whether they were given.
    pub fn given(&self) -> [(&'static str, bool); 6] {
        [
            ("axis", self.axis.is_some()),
            ("packing", self.packing.is_some()),
            ("units", self.units.is_some()),
            ("overlap", self.overlap.is_some()),
            ("merge", self.merge.is_some()),
            ("tolerance", self.tolerance.is_some()),
        ]
    }

    /// Converts the options to plain values.
    ///
    /// # Errors
    /// If the file of rules cannot be read.
    pub fn options(&self) -> Result<ConventionOptions, Failure> {
        let mut rules = Vec::new();
        if let Some(path) = &self.rules {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(&format!("{}: {error}", path.display())))?;
            let of_file = UserRule::parse_file(&text);
            rules.extend(of_file.map_err(|error| Failure::usage(&format!("{}: {error}", path.display())))?);
        }
        // The last rule wins, which is that of the command line.
        rules.extend(self.rule.iter().cloned());
        Ok(ConventionOptions {
            convention: self.convention.map(ConventionName::choice),
            rules,
            dim: self.dim.clone(),
            new_dim: self.new_dim.clone(),
            time_units: self.time_units.clone(),
            packing: match self.packing {
                None | Some(Packing::Refuse) => conventions::Packing::Refuse,
                Some(Packing::Unpack) => conventions::Packing::Unpack,
                Some(Packing::Repack) => conventions::Packing::Repack,
            },
            units: match self.units {
                None | Some(Units::Refuse) => conventions::Units::Refuse,
                Some(Units::Convert) => conventions::Units::Convert,
            },
            overlap: match self.overlap {
                None | Some(Overlap::Refuse) => conventions::Overlap::Refuse,
                Some(Overlap::First) => conventions::Overlap::First,
                Some(Overlap::Last) => conventions::Overlap::Last,
            },
            tolerance: self.tolerance.unwrap_or(0.0),
            require_equal: self.require_equal.clone(),
            axis: match self.axis {
                None | Some(Axis::Obs) => conventions::Axis::Obs,
                Some(Axis::Var) => conventions::Axis::Var,
            },
            pairwise: self.pairwise,
            merge: match self.merge {
                None | Some(MergePolicy::Same) => conventions::MergePolicy::Same,
                Some(MergePolicy::Unique) => conventions::MergePolicy::Unique,
                Some(MergePolicy::First) => conventions::MergePolicy::First,
                Some(MergePolicy::Only) => conventions::MergePolicy::Only,
            },
            index_unique: self.index_unique.clone(),
        })
    }
}

/// Name of a convention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ConventionName {
    /// CF and netCDF-4
    Cf,
    /// AnnData (.h5ad)
    Anndata,
    /// NeXus
    Nexus,
    /// NWB and other files of HDMF
    Nwb,
    /// Tables of pandas and PyTables
    Pandas,
    /// Concatenate datasets as they are, whatever their meaning
    None,
}

impl ConventionName {
    fn choice(self) -> Choice {
        match self {
            Self::Cf => Choice::Cf,
            Self::Anndata => Choice::Anndata,
            Self::Nexus => Choice::Nexus,
            Self::Nwb => Choice::Nwb,
            Self::Pandas => Choice::Pandas,
            Self::None => Choice::None,
        }
    }
}

/// Treatment of values that inputs pack differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Packing {
    /// Stop
    Refuse,
    /// Write them unpacked, as floats
    Unpack,
    /// Repack them with one scale and offset for all inputs, which reads them twice; the largest error is reported
    Repack,
}

/// Treatment of values whose units differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Units {
    /// Stop
    Refuse,
    /// Convert them to those of the first input, if a linear conversion is known
    Convert,
}

/// Treatment of inputs whose times overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Overlap {
    /// Stop
    Refuse,
    /// Use the record of the earlier input
    First,
    /// Use the record of the later input
    Last,
}

/// Axis along which AnnData files are concatenated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Axis {
    /// Observations (cells), the rows of X
    Obs,
    /// Variables (genes), the columns of X
    Var,
}

/// Elements to keep that do not belong to the axis of concatenation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MergePolicy {
    /// Those that are the same in all inputs
    Same,
    /// Those that have the same value in all inputs that have them
    Unique,
    /// The first of each name
    First,
    /// Those that only one input has
    Only,
}
