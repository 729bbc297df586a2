//! Options for reading the inputs and writing the output with several ranks.

use crate::ranks::Ranks;
use raddle::Error;
use raddle::merge::RankIo;
use raddle_core::engine::SharedFiles;
use raddle_core::ranks::datasets::SharedDatasets;
use raddle_merge::plan::MergePlan;
use raddle_merge::{IoBackend, Reading, Strategy};
use std::path::{Path, PathBuf};

/// Options for reading and writing on several ranks.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Parallel file systems")]
pub struct IoArgs {
    /// How ranks read the inputs; does not affect the output
    ///
    /// tiles: each rank reads what its part of the output needs, so nearly every rank opens nearly every input. files:
    /// each rank reads a share of the inputs and sends the values to the others, which saves opens where opening is
    /// slow. files divides the inputs over the ranks of each machine or over all ranks, whichever is predicted to be
    /// faster; files=16 divides them within groups of 16 ranks. auto uses files if it is predicted to take less than
    /// half the time of tiles, based on the time the inputs took to open during the scan. --report contains the
    /// prediction.
    #[arg(long, value_name = "WAY", value_parser = strategy, default_value = "auto")]
    pub strategy: Strategy,

    /// How ranks write chunks; only collective affects the output, and only its layout
    #[arg(long, value_name = "INTERFACE", value_enum, default_value_t = Io::Posix)]
    pub io: Io,

    /// File with hints for MPI-IO: lines KEY = VALUE, for example romio_cb_write = enable
    ///
    /// Keys are those of the MPI library, which ignores unknown ones. --report lists the hints in effect. Values may be
    /// quoted, and lines that begin with # are comments.
    #[arg(long, value_name = "FILE")]
    pub io_hints: Option<PathBuf>,

    /// Parallel libhdf5 to load for --io collective [default: one with a usual name, such as libhdf5_openmpi.so]
    #[arg(long, value_name = "LIBRARY")]
    pub hdf5: Option<PathBuf>,
}

/// Parses a strategy.
///
/// # Errors
/// If the text is not one of the valid values. The message lists them.
pub fn strategy(text: &str) -> Result<Strategy, String> {
    match text {
        "auto" => Ok(Strategy::Auto),
        "tiles" => Ok(Strategy::Tiles),
        "files" => Ok(Strategy::Files(None)),
        _ => match text.strip_prefix("files=").map(str::parse) {
            Some(Ok(ranks)) => Ok(Strategy::Files(Some(ranks))),
            _ => Err("write auto, tiles, files, or files=RANKS with a number above 0".to_owned()),
        },
    }
}

/// Interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Io {
    /// Each thread of each rank separately, with pwrite
    #[default]
    Posix,
    /// All ranks together, with collective MPI-IO writes; needs mpirun or srun
    Mpiio,
    /// All ranks together, with collective writes of a parallel libhdf5, one dataset after the other, as a baseline for
    /// comparison; needs mpirun or srun, and such a library
    Collective,
}

/// Interface selected by the options.
#[derive(Debug, PartialEq, Eq)]
pub enum Interface<'a> {
    /// POSIX calls.
    Posix,
    /// MPI-IO with these hints.
    MpiIo(Vec<(String, String)>),
    /// The parallel libhdf5 at a path, or with a usual name.
    Collective(Option<&'a Path>),
}

impl IoArgs {
    /// Returns the interface with its parameters.
    ///
    /// # Errors
    /// If the file of hints cannot be read or is invalid, or an option is given that belongs to another interface.
    pub fn interface(&self) -> Result<Interface<'_>, Error> {
        if self.io == Io::Collective && matches!(self.strategy, Strategy::Files(_)) {
            return Err(Error::usage("--io collective reads rows in order; leave out --strategy files"));
        }
        match (self.io, &self.io_hints, &self.hdf5) {
            (Io::Posix | Io::Mpiio, _, Some(_)) => Err(Error::usage("--hdf5 is for --io collective")),
            (Io::Posix | Io::Collective, Some(_), _) => Err(Error::usage("--io-hints is for --io mpiio")),
            (Io::Posix, None, None) => Ok(Interface::Posix),
            (Io::Collective, None, library) => Ok(Interface::Collective(library.as_deref())),
            (Io::Mpiio, None, None) => Ok(Interface::MpiIo(Vec::new())),
            (Io::Mpiio, Some(path), None) => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|cause| Error::usage(&format!("{}: {cause}", path.display())))?;
                parse(&text).map(Interface::MpiIo).map_err(|line| not_a_hint(path, line, &text))
            }
        }
    }
}

/// Interface that was opened for the ranks.
pub struct OpenIo<'a> {
    strategy: Strategy,
    files: Option<Box<dyn SharedFiles + 'a>>,
    datasets: Option<Box<dyn SharedDatasets + 'a>>,
}

impl IoArgs {
    /// Collective. Opens the interface.
    ///
    /// # Errors
    /// If options conflict, or the interface is not available.
    pub fn open<'a>(&self, team: &'a Ranks, is_part: bool, is_observed: bool) -> Result<OpenIo<'a>, Error> {
        let interface = team.agree("look at how to write", self.interface())?;
        if interface != Interface::Posix && is_part {
            return Err(Error::usage("--io mpiio and --io collective are for ranks, not for --part"));
        }
        let mut open = OpenIo { strategy: self.strategy, files: None, datasets: None };
        match interface {
            Interface::Posix => {}
            Interface::MpiIo(hints) => open.files = Some(team.files(&hints)?),
            Interface::Collective(_) if is_observed => {
                return Err(Error::usage(
                    "--preview and --index are of values that raddle moves; --io collective leaves that to HDF5",
                ));
            }
            Interface::Collective(library) => {
                open.datasets = Some(team.agree("load HDF5", team.datasets(library))?);
            }
        }
        Ok(open)
    }
}

impl OpenIo<'_> {
    /// Refuses a plan that the interface cannot write.
    ///
    /// # Errors
    /// If chunks are to be aligned and HDF5 places them.
    pub fn check_plan(&self, plan: &MergePlan) -> Result<(), Error> {
        if self.datasets.is_some() && plan.options.align.is_some() {
            return Err(Error::usage("--align is for chunks that raddle places; --io collective leaves that to HDF5"));
        }
        Ok(())
    }

    /// Returns how the ranks read and write.
    pub fn of_ranks<'s>(&'s self, team: &'s Ranks) -> RankIo<'s> {
        let backend = match (&self.files, &self.datasets) {
            (Some(files), _) => IoBackend::Shared(&**files),
            (None, Some(datasets)) => IoBackend::Collective(&**datasets),
            (None, None) => IoBackend::Posix,
        };
        RankIo { backend, reading: Reading { strategy: self.strategy, machines: team.machines() } }
    }
}

fn not_a_hint(path: &Path, line: usize, text: &str) -> Error {
    let found = text.lines().nth(line - 1).unwrap_or_default().trim();
    let failure = Error::usage(&format!("{}, line {line}: {found:?} is not a hint", path.display()));
    failure.hint("write a line KEY = VALUE for each, for example cb_nodes = 4")
}

/// Parses hints; on failure, returns the number of the first invalid line. Such lines are also valid TOML.
fn parse(text: &str) -> Result<Vec<(String, String)>, usize> {
    let is_hint = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let lines = (1..).zip(text.lines()).filter(|(_, line)| is_hint(line));
    lines.map(|(number, line)| pair(line).ok_or(number)).collect()
}

fn pair(line: &str) -> Option<(String, String)> {
    let (key, value) = line.split_once('=')?;
    let (key, value) = (unquoted(key.trim())?, unquoted(value.trim())?);
    let is_word = |key: &str| !key.is_empty() && !key.contains(char::is_whitespace);
    (is_word(key) && !value.is_empty()).then(|| (key.to_owned(), value.to_owned()))
}

/// Removes quotation marks, if any; `None` if one is unmatched.
fn unquoted(text: &str) -> Option<&str> {
    for mark in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(mark) {
            return rest.strip_suffix(mark).filter(|inner| !inner.contains(mark));
        }
    }
    (!text.ends_with(['"', '\''])).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_name_how_many_ranks_share_the_inputs() {
        assert_eq!(strategy("auto"), Ok(Strategy::Auto));
        assert_eq!(strategy("files"), Ok(Strategy::Files(None)));
        assert_eq!(strategy("files=16"), Ok(Strategy::Files(std::num::NonZeroUsize::new(16))));
        for text in ["", "files=", "files=0", "files=-1", "Files", "tiles=2"] {
            assert!(strategy(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn hints_are_lines_of_keys_and_values() {
        let text = "# collective buffering\nromio_cb_write = enable\n\n  striping_unit=1048576\n\"cb_nodes\" = \"4\"\n";
        let pairs = [("romio_cb_write", "enable"), ("striping_unit", "1048576"), ("cb_nodes", "4")];
        assert_eq!(parse(text), Ok(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()));
        assert_eq!(parse(""), Ok(vec![]));
        for (text, line) in
            [("cb_nodes", 1), ("[io]\na = 1", 1), ("a = 1\n= 2", 2), ("a =", 1), ("a = \"1", 1), ("a b = 1", 1)]
        {
            assert_eq!(parse(text), Err(line), "{text:?}");
        }
    }
}
