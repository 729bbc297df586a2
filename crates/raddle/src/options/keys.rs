//! Options of partition keys.

use raddle_merge::keys::{KeyDatasets, KeyScope, KeySpec, RepeatedIds};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Options for creating keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Partition keys"))]
pub struct KeyOptions {
    /// Key datasets to make
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "WHICH", value_enum, value_delimiter = ',', default_value = "seq,seq-cnt,offsets")
    )]
    #[serde(with = "super::text::commas")]
    pub key_datasets: Vec<KeyDataset>,

    /// Scope in which ids are unique
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHERE", value_enum, default_value_t = KeyScope::File))]
    pub key_scope: KeyScope,

    /// What to do if several rows of the index group have the same ids
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT", value_enum, default_value_t = RepeatedIds::Refuse))]
    pub repeated_ids: RepeatedIds,

    /// Make no keys in groups whose path matches; may be given several times
    #[cfg_attr(feature = "clap", arg(long, value_name = "GLOB"))]
    #[serde(with = "super::text::list")]
    pub key_skip: Vec<String>,
}

impl Default for KeyOptions {
    fn default() -> Self {
        Self {
            key_datasets: vec![KeyDataset::Seq, KeyDataset::SeqCnt, KeyDataset::Offsets],
            key_scope: KeyScope::default(),
            repeated_ids: RepeatedIds::default(),
            key_skip: Vec::new(),
        }
    }
}

impl KeyOptions {
    /// Returns the specification of keys for these id columns.
    pub fn spec(&self, columns: &[String], replace: bool) -> KeySpec {
        KeySpec {
            columns: columns.to_vec(),
            datasets: KeyDatasets {
                seq: self.key_datasets.contains(&KeyDataset::Seq),
                counts: self.key_datasets.contains(&KeyDataset::SeqCnt),
                offsets: self.key_datasets.contains(&KeyDataset::Offsets),
            },
            scope: self.key_scope,
            repeated: self.repeated_ids,
            skip: self.key_skip.clone(),
            replace,
        }
    }
}

/// A key dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum KeyDataset {
    /// NAME.seq: the event of each row
    Seq,
    /// NAME.seq_cnt: events that have rows, with the number of rows
    SeqCnt,
    /// NAME.offsets: number of rows before each event
    Offsets,
}

impl FromStr for KeyDataset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "seq" => Ok(Self::Seq),
            "seq-cnt" => Ok(Self::SeqCnt),
            "offsets" => Ok(Self::Offsets),
            _ => Err(format!("unknown key dataset {text:?}, expected seq, seq-cnt or offsets")),
        }
    }
}

impl fmt::Display for KeyDataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seq => "seq",
            Self::SeqCnt => "seq-cnt",
            Self::Offsets => "offsets",
        })
    }
}
