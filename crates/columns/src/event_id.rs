//! Run, subrun and number of an event.

use serde::{Deserialize, Serialize};

/// Identification of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct EventId {
    /// Number of the run.
    pub run: u32,
    /// Number of the subrun, or luminosity block.
    pub lumi: u32,
    /// Number of the event.
    pub event: u64,
}
