//! The process that runs libhdf5 on files that the native reader does not support.

use raddle_hdf5::child::{ChildReader, ReaderCommand};
use raddle_merge::options::MergeOptions;
use std::path::PathBuf;
use std::time::Duration;

/// Options of the reader process.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Running")]
pub struct ReaderArgs {
    /// Time limit in seconds for each request to libhdf5, for files that only it can read; the file is then refused
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub reader_timeout: u64,

    /// Program to run instead of raddle itself when libhdf5 must read a file, such as a wrapper that sandboxes raddle
    ///
    /// It is called with one argument, and must pass this and its standard input on to raddle.
    #[arg(long, value_name = "PROGRAM", hide_short_help = true)]
    pub reader: Option<PathBuf>,
}

impl ReaderArgs {
    /// Applies these options to those of a merge.
    pub fn apply(&self, options: &mut MergeOptions) {
        options.reader = self.command();
        options.reader_timeout = Duration::from_secs(self.reader_timeout);
    }

    /// Returns the program. Without one, inputs that only libhdf5 can read are refused by name.
    fn command(&self) -> Option<ReaderCommand> {
        self.reader.clone().map(ReaderCommand::from).or_else(ReaderCommand::own)
    }

    /// Creates a separate reader for commands that do not merge.
    pub fn child(&self) -> Option<ChildReader> {
        let timeout = Duration::from_secs(self.reader_timeout);
        self.command().map(|command| ChildReader::new(command, timeout))
    }
}
