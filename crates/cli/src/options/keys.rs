//! Options of partition keys.

use raddle_merge::keys::{KeyDatasets, KeyScope, KeySpec, RepeatedIds};
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

/// Options for creating keys.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Partition keys")]
pub struct KeyArgs {
    /// Key datasets to make
    #[arg(long, value_name = "WHICH", value_enum, value_delimiter = ',', default_value = "seq,seq-cnt,offsets")]
    pub key_datasets: Vec<Dataset>,

    /// Scope in which ids are unique
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = Scope::File)]
    pub key_scope: Scope,

    /// What to do if several rows of the index group have the same ids
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Repeated::Refuse)]
    pub repeated_ids: Repeated,

    /// Make no keys in groups whose path matches; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub key_skip: Vec<String>,
}

impl KeyArgs {
    /// Returns the specification of keys for these id columns.
    pub fn spec(&self, columns: &[String], replace: bool) -> KeySpec {
        KeySpec {
            columns: columns.to_vec(),
            datasets: KeyDatasets {
                seq: self.key_datasets.contains(&Dataset::Seq),
                counts: self.key_datasets.contains(&Dataset::SeqCnt),
                offsets: self.key_datasets.contains(&Dataset::Offsets),
            },
            scope: match self.key_scope {
                Scope::File => KeyScope::File,
                Scope::Input => KeyScope::Input,
            },
            repeated: match self.repeated_ids {
                Repeated::Refuse => RepeatedIds::Refuse,
                Repeated::First => RepeatedIds::First,
            },
            skip: self.key_skip.clone(),
            replace,
        }
    }
}

/// A key dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Dataset {
    /// NAME.seq: the event of each row
    Seq,
    /// NAME.seq_cnt: events that have rows, with the number of rows
    SeqCnt,
    /// NAME.offsets: number of rows before each event
    Offsets,
}

/// Scope in which ids are unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scope {
    /// In the whole file
    File,
    /// In the rows from one input
    Input,
}

/// Treatment of repeated ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Repeated {
    /// Stop and name them
    Refuse,
    /// Assign rows to the first of them
    First,
}
