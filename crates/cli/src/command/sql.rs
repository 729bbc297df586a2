//! `raddle sql`: reports an error that names the Python package, which handles the command before it starts this
//! program.

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
Queries run in the Python package, with DataFusion. Install it with pip install 'raddle[sql]'; then \
raddle sql --help lists more options.";

/// Refuses the query: the program that contains this command has no engine.
pub fn run() -> Result<Exit, Error> {
    Err(Error::usage("raddle sql needs the Python package")
        .hint("install it with pip install 'raddle[sql]', and use the command raddle that it installs"))
}
