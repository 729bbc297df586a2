//! The process that runs libhdf5 on files that the native reader does not support.

use raddle_hdf5::child::{ChildReader, ReaderCommand};
use raddle_merge::options::MergeOptions;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

/// Default time limit of a request to libhdf5, in seconds.
const DEFAULT_TIMEOUT_S: NonZeroU64 = NonZeroU64::new(60).expect("not zero");

/// Options of the reader process.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Running"))]
pub struct ReaderOptions {
    /// Time limit in seconds for each request to libhdf5, for files that only it can read; the file is then refused
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT_S))]
    pub reader_timeout: NonZeroU64,

    /// Program to run instead of raddle itself when libhdf5 must read a file, such as a wrapper that sandboxes raddle
    ///
    /// It is called with one argument, and must pass this and its standard input on to raddle.
    #[cfg_attr(feature = "clap", arg(long, value_name = "PROGRAM", hide_short_help = true))]
    pub reader: Option<PathBuf>,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self { reader_timeout: DEFAULT_TIMEOUT_S, reader: None }
    }
}

impl ReaderOptions {
    /// Applies these options to the options of a merge.
    pub fn apply(&self, options: &mut MergeOptions) {
        options.reader = self.command();
        options.reader_timeout = Duration::from_secs(self.reader_timeout.get());
    }

    /// Returns the program. Without one, inputs that only libhdf5 can read are refused by name.
    fn command(&self) -> Option<ReaderCommand> {
        self.reader.clone().map(ReaderCommand::from).or_else(ReaderCommand::of_this_program)
    }

    /// Creates a separate reader for commands that do not merge.
    pub fn child(&self) -> Option<ChildReader> {
        let timeout = Duration::from_secs(self.reader_timeout.get());
        self.command().map(|command| ChildReader::new(command, timeout))
    }
}
