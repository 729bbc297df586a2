//! Selection of input files: paths, quoted globs, folders, lists.

use crate::failure::Failure;
use raddle_merge::inputs::order::sort_by_first_values;
use raddle_merge::inputs::{DuplicatePolicy, InputOrder, InputSpec, expand, parse_list};
use raddle_merge::options::{MergeOptions, Watch};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Inputs as positional arguments.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Inputs")]
pub struct InputArgs {
    /// Files, folders, quoted globs, @LIST, or - for a list on standard input
    ///
    /// A folder stands for its HDF5 files (*.h5 *.hdf5 *.hdf *.he5 *.nc *.nc4 *.h5ad *.nwb *.nxs), a glob in quotes
    /// ('run*/sub*.h5', '**/*.h5' at any depth) for the files that match, @LIST for the paths in the text file LIST,
    /// one per line.
    #[arg(value_name = "INPUT", help_heading = None::<&str>)]
    pub inputs: Vec<OsString>,

    /// Options for listing the inputs.
    #[command(flatten)]
    pub listing: ListingArgs,
}

/// Options for listing the inputs.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Inputs")]
pub struct ListingArgs {
    /// Read paths from a text file, one per line; empty lines and lines that begin with # are skipped
    #[arg(short = 'i', long = "list", value_name = "FILE")]
    pub lists: Vec<PathBuf>,

    /// Paths on standard input are NUL-terminated (`find -print0`)
    #[arg(short = '0', long)]
    pub null: bool,

    /// Order of the inputs and so of the rows in the output; lists always keep their order
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Order::Natural)]
    pub order: Order,

    /// What to do with a file that is given twice
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Duplicates::Refuse)]
    pub duplicates: Duplicates,
}

/// Options for sorting the inputs by their contents.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Inputs")]
pub struct SortArgs {
    /// Sort the inputs by the first values of these datasets, for example /spill/run,/spill/subrun
    ///
    /// Inputs with equal values keep the order defined by --order and lists. An input in which one of the datasets is
    /// missing or empty is refused.
    #[arg(long, value_name = "DATASETS", value_delimiter = ',')]
    pub sort_by: Vec<String>,
}

/// Order of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Order {
    /// Natural order of numbers: run2 before run10
    #[default]
    Natural,
    /// As given on the command line
    Given,
}

/// Treatment of a file that is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Duplicates {
    /// Stop, because rows would be duplicated
    #[default]
    #[value(alias = "error")]
    Refuse,
    /// Use its rows twice
    Keep,
    /// Use its rows once
    Drop,
}

impl InputArgs {
    /// Returns the named files, in order. `standard_input` is read if the inputs contain a `-`.
    pub fn expand(&self, standard_input: &mut dyn Read) -> Result<Vec<PathBuf>, Failure> {
        self.listing.expand(&self.inputs, standard_input)
    }
}

impl ListingArgs {
    /// Returns the files named by `names` and the lists, in order. `standard_input` is read if a name is `-`.
    pub fn expand(&self, names: &[OsString], standard_input: &mut dyn Read) -> Result<Vec<PathBuf>, Failure> {
        if names.is_empty() && self.lists.is_empty() {
            let hint = "name files, a folder, a glob in quotes, or a list with -i";
            return Err(Failure::usage("no inputs given").hint(hint));
        }
        let mut specs = Vec::with_capacity(names.len() + self.lists.len());
        for name in names {
            specs.push(match name.as_bytes() {
                b"-" => InputSpec::Listed(self.read_list(standard_input)?),
                [b'@', list @ ..] if !list.is_empty() => InputSpec::List(OsStr::from_bytes(list).into()),
                _ => InputSpec::Path(name.into()),
            });
        }
        specs.extend(self.lists.iter().cloned().map(InputSpec::List));
        let order = match self.order {
            Order::Natural => InputOrder::Natural,
            Order::Given => InputOrder::Given,
        };
        let duplicates = match self.duplicates {
            Duplicates::Refuse => DuplicatePolicy::Refuse,
            Duplicates::Keep => DuplicatePolicy::Keep,
            Duplicates::Drop => DuplicatePolicy::Drop,
        };
        expand(&specs, order, duplicates).map_err(|error| Failure::of_merge(&error, &[]))
    }

    fn read_list(&self, standard_input: &mut dyn Read) -> Result<Vec<PathBuf>, Failure> {
        let mut bytes = Vec::new();
        standard_input.read_to_end(&mut bytes).map_err(|cause| Failure::standard_input(&cause))?;
        Ok(parse_list(&bytes, self.null))
    }
}

impl SortArgs {
    /// Sorts `inputs` according to `--sort-by`.
    pub fn sort(
        &self,
        inputs: Vec<PathBuf>,
        options: &MergeOptions,
        watch: &Watch<'_>,
    ) -> Result<Vec<PathBuf>, Failure> {
        if self.sort_by.is_empty() {
            return Ok(inputs);
        }
        let datasets: Vec<Vec<u8>> = self.sort_by.iter().map(|path| path.clone().into_bytes()).collect();
        sort_by_first_values(&inputs, &datasets, options, watch).map_err(|error| Failure::of_merge(&error, &inputs))
    }
}
