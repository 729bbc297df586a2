//! Option for an index that is made in the same pass as the output.

use serde::{Deserialize, Serialize};

/// Option about the index of the output.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct MergeIndexOptions {
    /// Write an index of the output in the same pass (OUT.stats), which lets searches skip blocks of rows
    ///
    /// The index is the one that raddle index writes: the smallest and the largest value of each block of rows, and the
    /// values if few are distinct. raddle append keeps it up to date.
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Output"))]
    pub index: bool,
}
