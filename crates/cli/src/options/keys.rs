//! Options that name the file and the key, for commands on partition keys.

use std::path::PathBuf;

/// A file with partition keys.
#[derive(Debug, Clone, clap::Args)]
pub struct KeyedFileArgs {
    /// File that has partition keys
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Key of the index group
    #[arg(short = 'd', long, value_name = "DATASET", default_value = "/spill/evt.seq")]
    pub key: String,
}
