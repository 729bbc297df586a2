//! Scales, at which the same workload runs for seconds, minutes or as long as in its paper.

use serde::{Deserialize, Serialize};

/// Size of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// A few megabytes: for checking that it works.
    Tiny,
    /// Tens of megabytes: some minutes on a workstation.
    Small,
    /// Sizes of the papers.
    Full,
    /// Size determined by a program, not by raddle.
    Own,
}

impl Scale {
    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Small => "small",
            Self::Full => "full",
            Self::Own => "own",
        }
    }
}
