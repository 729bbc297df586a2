//! Which partition keys to make.

use raddle_merge::keys::{KeyDatasets, KeyScope, KeySpec, RepeatedIds};
use std::path::PathBuf;

/// A file with partition keys.
#[derive(Debug, Clone, clap::Args)]
pub struct KeyedFileArgs {
    /// File with keys
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Key of the index group
    #[arg(short = 'd', long, value_name = "DATASET", default_value = "/spill/evt.seq")]
    pub key: String,
}

/// Options that say how keys are made.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Partition keys")]
pub struct KeyMakingArgs {
    /// Key datasets to make
    #[arg(long, value_name = "WHICH", value_enum, value_delimiter = ',', default_value = "seq,seq-cnt,offsets")]
    pub key_datasets: Vec<Dataset>,

    /// Where ids are unique
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = Scope::File)]
    pub key_scope: Scope,

    /// Ids that several rows of the index group have
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Repeated::Refuse)]
    pub repeated_ids: Repeated,

    /// Make no keys in groups whose paths match; can be given several times
    #[arg(long, value_name = "GLOB")]
    pub key_skip: Vec<String>,
}

impl KeyMakingArgs {
    /// The keys for these id columns.
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
    /// NAME.seq_cnt: events with rows, and how many
    SeqCnt,
    /// NAME.offsets: rows before each event
    Offsets,
}

/// Where ids are unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scope {
    /// In the whole file
    File,
    /// In the rows that came from one input
    Input,
}

/// What becomes of repeated ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Repeated {
    /// Stop and name them
    Refuse,
    /// Rows belong to the first of them
    First,
}
