//! Through which interface ranks write the output.

use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// Options for writing on several ranks.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Parallel file systems")]
pub struct IoArgs {
    /// How ranks write chunks; the output is the same
    #[arg(long, value_name = "INTERFACE", value_enum, default_value_t = Io::Posix)]
    pub io: Io,

    /// Hints for MPI-IO: a file of lines KEY = VALUE, for example romio_cb_write = enable
    ///
    /// Keys are those of your MPI library; it leaves out those that it does not know. --report tells which ones it goes
    /// by. Values may be quoted, and a line that begins with # is a remark.
    #[arg(long, value_name = "FILE")]
    pub io_hints: Option<PathBuf>,
}

/// Interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Io {
    /// Each thread of each rank by itself, with pwrite
    #[default]
    Posix,
    /// All ranks together, with the collective writes of MPI-IO; needs mpirun or srun
    Mpiio,
}

impl IoArgs {
    /// The hints, if all ranks are to write together.
    ///
    /// # Errors
    /// If the file of hints cannot be read or makes no sense, or is given for the other interface.
    pub fn hints(&self) -> Result<Option<Vec<(String, String)>>, Failure> {
        match (self.io, &self.io_hints) {
            (Io::Posix, None) => Ok(None),
            (Io::Posix, Some(_)) => Err(Failure::usage("--io-hints is for --io mpiio")),
            (Io::Mpiio, None) => Ok(Some(Vec::new())),
            (Io::Mpiio, Some(path)) => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|cause| Failure::usage(&format!("{}: {cause}", path.display())))?;
                parse(&text).map(Some).map_err(|line| not_a_hint(path, line, &text))
            }
        }
    }
}

fn not_a_hint(path: &Path, line: usize, text: &str) -> Failure {
    let found = text.lines().nth(line - 1).unwrap_or_default().trim();
    let failure = Failure::usage(&format!("{}, line {line}: {found:?} is no hint", path.display()));
    failure.hint("write a line KEY = VALUE for each, for example cb_nodes = 4")
}

/// The hints in a text, or the number of the first line that is none. Such lines are also those of TOML.
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

/// What quotation marks hold, or all of a text that has none; `None` for a mark without its other.
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
