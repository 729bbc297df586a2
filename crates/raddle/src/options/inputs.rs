//! Selection of input files: paths, globs, folders, lists.

use crate::error::Error;
use crate::exit::Exit;
use raddle_core::ranks::communicator::{AgreedError, Communicator, CommunicatorExt};
use raddle_merge::inputs::order::sort_by_first_values;
use raddle_merge::inputs::{DuplicatePolicy, InputOrder, InputSpec, expand};
use raddle_merge::options::{MergeOptions, Watch};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Files to read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Inputs"))]
pub struct Inputs {
    /// Files, folders, quoted globs, @LIST, or - for a list on standard input
    ///
    /// A folder stands for its HDF5 files (*.h5 *.hdf5 *.hdf *.he5 *.nc *.nc4 *.h5ad *.nwb *.nxs), a glob in quotes
    /// ('run*/sub*.h5', '**/*.h5' at any depth) for the files that match, @LIST for the paths in the text file LIST,
    /// one per line.
    #[cfg_attr(feature = "clap", arg(value_name = "INPUT", help_heading = None::<&str>))]
    #[serde(skip)]
    pub inputs: Vec<PathBuf>,

    /// Options for listing the inputs.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub listing: ListingOptions,
}

/// Options for listing the inputs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Inputs"))]
pub struct ListingOptions {
    /// Read paths from a text file, one per line; empty lines and lines that begin with # are skipped
    #[cfg_attr(feature = "clap", arg(short = 'i', long = "list", value_name = "FILE"))]
    #[serde(skip)]
    pub lists: Vec<PathBuf>,

    /// Order of the inputs and so of the rows in the output; lists always keep their order
    #[cfg_attr(feature = "clap", arg(long, value_name = "ORDER", value_enum, default_value_t = InputOrder::Natural))]
    pub order: InputOrder,

    /// What to do with a file that is given twice
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT", value_enum, default_value_t = DuplicatePolicy::Refuse))]
    pub duplicates: DuplicatePolicy,

    /// Paths for which the name `-` stands.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(skip)]
    pub listed: Vec<PathBuf>,
}

/// Options for sorting the inputs by their contents.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Inputs"))]
pub struct SortOptions {
    /// Sort the inputs by the first values of these datasets, for example /spill/run,/spill/subrun
    ///
    /// Inputs with equal values keep the order defined by --order and lists. An input in which one of the datasets is
    /// missing or empty is refused.
    #[cfg_attr(feature = "clap", arg(long, value_name = "DATASETS", value_delimiter = ','))]
    #[serde(with = "super::text::commas")]
    pub sort_by: Vec<String>,
}

/// Files that are processed one by one, so that their order does not matter.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Inputs"))]
pub struct FileInputs {
    /// Files, folders, quoted globs, @LIST, or - for a list on standard input
    ///
    /// A folder stands for its HDF5 files (*.h5 *.hdf5 *.hdf *.he5 *.nc *.nc4 *.h5ad *.nwb *.nxs), a glob in quotes
    /// ('run*/sub*.h5', '**/*.h5' at any depth) for the files that match, @LIST for the paths in the text file LIST,
    /// one per line.
    #[cfg_attr(feature = "clap", arg(value_name = "INPUT", help_heading = None::<&str>))]
    #[serde(skip)]
    pub inputs: Vec<PathBuf>,

    /// Read paths from a text file, one per line; empty lines and lines that begin with # are skipped
    #[cfg_attr(feature = "clap", arg(short = 'i', long = "list", value_name = "FILE"))]
    #[serde(skip)]
    pub lists: Vec<PathBuf>,
}

impl<P: Into<PathBuf>, I: IntoIterator<Item = P>> From<I> for FileInputs {
    fn from(paths: I) -> Self {
        Self { inputs: paths.into_iter().map(Into::into).collect(), lists: Vec::new() }
    }
}

impl FileInputs {
    /// Returns the options by which the files are listed. A file that is named twice is listed twice.
    pub fn listing(&self) -> ListingOptions {
        let (lists, duplicates) = (self.lists.clone(), DuplicatePolicy::Keep);
        ListingOptions { lists, duplicates, ..ListingOptions::default() }
    }

    /// Collective. Returns the files named on the first rank, on every rank.
    ///
    /// # Errors
    /// As for [`Inputs::expand`].
    pub fn expand_collective(&self, ranks: &dyn Communicator) -> Result<Vec<PathBuf>, Error> {
        paths_of_first(ranks, || self.listing().expand(&self.inputs))
    }
}

impl<P: Into<PathBuf>, I: IntoIterator<Item = P>> From<I> for Inputs {
    fn from(paths: I) -> Self {
        Self { inputs: paths.into_iter().map(Into::into).collect(), listing: ListingOptions::default() }
    }
}

impl Inputs {
    /// Returns the named files, in order.
    ///
    /// # Errors
    /// If no inputs are given, or one of them cannot be listed.
    pub fn expand(&self) -> Result<Vec<PathBuf>, Error> {
        self.listing.expand(&self.inputs)
    }

    /// Collective. Returns the files named on the first rank, on every rank.
    ///
    /// # Errors
    /// As for [`Inputs::expand`].
    pub fn expand_collective(&self, ranks: &dyn Communicator) -> Result<Vec<PathBuf>, Error> {
        paths_of_first(ranks, || self.expand())
    }

    /// Returns the lists from which paths are read.
    pub fn list_files(&self) -> Vec<PathBuf> {
        self.listing.list_files(&self.inputs)
    }
}

impl ListingOptions {
    /// Returns the files named by `names` and the lists, in order.
    ///
    /// # Errors
    /// As for [`Inputs::expand`].
    pub fn expand(&self, names: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
        if names.is_empty() && self.lists.is_empty() {
            let hint = "name files, a folder, a glob in quotes, or @LIST for a list of files";
            return Err(Error::usage("no inputs given").hint(hint));
        }
        let spec = |name: &PathBuf| match (name.as_os_str().as_bytes(), named_list(name)) {
            (b"-", _) => InputSpec::Listed(self.listed.clone()),
            (_, Some(list)) => InputSpec::List(list.to_path_buf()),
            (_, None) => InputSpec::Path(name.clone()),
        };
        let lists = self.lists.iter().cloned().map(InputSpec::List);
        let specs: Vec<InputSpec> = names.iter().map(spec).chain(lists).collect();
        expand(&specs, self.order, self.duplicates).map_err(|error| Error::of_merge(&error, &[]))
    }

    /// Returns the lists from which paths are read: those that `names` name as @LIST, and those of the options.
    pub fn list_files(&self, names: &[PathBuf]) -> Vec<PathBuf> {
        let named = names.iter().filter_map(|name| named_list(name)).map(Path::to_path_buf);
        named.chain(self.lists.iter().cloned()).collect()
    }

    /// Returns whether one of the names stands for a list on standard input.
    pub fn is_on_standard_input(names: &[PathBuf]) -> bool {
        names.iter().any(|name| name == Path::new("-"))
    }
}

/// Endings of files of events that a folder does not stand for.
const OTHER_EVENTS: [&str; 2] = ["root", "pds"];

/// Refuses folders that hold files of events other than HDF5 files, which would be left out without a message.
///
/// # Errors
/// If one of the names is such a folder.
pub fn refuse_folders_of_other_events(names: &[PathBuf]) -> Result<(), Error> {
    for folder in names.iter().filter(|name| name.is_dir()) {
        // A folder that cannot be listed fails when its files are.
        let paths = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let ending = |path: &Path| {
            let is_hidden = path.file_name()?.as_bytes().starts_with(b".");
            let ending = path.extension().and_then(OsStr::to_str).filter(|_| !is_hidden)?;
            OTHER_EVENTS.into_iter().find(|other| *other == ending)
        };
        let others = paths.filter_map(|path| ending(&path).map(|ending| (path, ending)));
        if let Some((path, ending)) = others.min() {
            let what = format!("{}: a folder stands only for its HDF5 files", path.display());
            let hint = format!("name the files by a pattern, such as '{}/*.{ending}'", folder.display());
            return Err(Error::new(Exit::InputRefused, &what).hint(&hint));
        }
    }
    Ok(())
}

/// Returns the path of the list that @LIST names.
fn named_list(name: &Path) -> Option<&Path> {
    let list = name.as_os_str().as_bytes().strip_prefix(b"@")?;
    (!list.is_empty()).then(|| Path::new(OsStr::from_bytes(list)))
}

impl SortOptions {
    /// Collective. Sorts `inputs` by the first values of the datasets, if any are given.
    ///
    /// # Errors
    /// If an input cannot be read or has no value to sort by.
    pub fn sort_collective(
        &self,
        inputs: Vec<PathBuf>,
        options: &MergeOptions,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<Vec<PathBuf>, Error> {
        if self.sort_by.is_empty() {
            return Ok(inputs);
        }
        let datasets: Vec<Vec<u8>> = self.sort_by.iter().map(|path| path.clone().into_bytes()).collect();
        paths_of_first(ranks, || {
            sort_by_first_values(&inputs, &datasets, options, watch).map_err(|error| Error::of_merge(&error, &inputs))
        })
    }
}

/// Collective. Returns the paths computed by the first rank, on every rank.
///
/// # Errors
/// If the first rank fails, on every rank.
pub fn paths_of_first(
    ranks: &dyn Communicator,
    compute: impl FnOnce() -> Result<Vec<PathBuf>, Error>,
) -> Result<Vec<PathBuf>, Error> {
    if ranks.size() == 1 {
        return compute();
    }
    let computed = if ranks.rank() == 0 { compute() } else { Ok(Vec::new()) };
    let computed = ranks.agree("list the inputs", computed)?;
    // Paths contain no zero byte.
    let joined: Vec<u8> =
        computed.iter().flat_map(|path| [path.as_os_str().as_bytes(), &[0]]).flatten().copied().collect();
    let received = ranks.broadcast(0, &joined).map_err(Error::of_ranks)?;
    let paths = received.split_inclusive(|byte| *byte == 0).map(|path| path.strip_suffix(&[0]).unwrap_or(path));
    Ok(paths.map(|path| OsString::from_vec(path.to_vec()).into()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_core::ranks::threads::Threads;

    #[test]
    fn all_ranks_get_the_paths_of_the_first() {
        let paths = vec![PathBuf::from("a"), OsString::from_vec(vec![b'b', 0xff]).into()];
        let received = Threads::run(3, |ranks| {
            let compute = || if ranks.rank() == 0 { Ok(paths.clone()) } else { Err(Error::usage("not the first")) };
            paths_of_first(ranks, compute).unwrap()
        });
        assert!(received.iter().all(|received| *received == paths));
    }

    #[test]
    fn inputs_are_required() {
        let error = Inputs::default().expand().unwrap_err();
        assert_eq!(error.message(), "no inputs given");
    }
}
