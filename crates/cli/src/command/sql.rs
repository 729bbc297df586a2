//! `raddle sql`: an error that names the Python package, which handles the command before it starts this program.

use crate::exit::Exit;
use raddle::Error;
use std::ffi::OsString;

/// Options of `raddle sql`, which the Python package parses.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SqlArgs {
    /// Query and options
    #[arg(value_name = "QUERY", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

const EXAMPLES: &str = "\
Queries run in the Python package, with DataFusion: pip install 'raddle[sql]'. Its command has \
more options: raddle sql --help.";

/// Refuses the query: the program that contains this command has no engine.
pub fn run() -> Result<Exit, Error> {
    Err(Error::usage("queries of SQL run in the Python package")
        .hint("pip install 'raddle[sql]' installs it, with a command that has sql"))
}
