//! Requests to open, convert, merge, write or inspect: plain data with methods that carry them out.
//!
//! Fields have the names and words of the command's options, also as JSON. Every field has a default; fields that are
//! missing in JSON keep it. Every `run` is collective: all ranks call it with the same request.

mod bench;
mod convert;
mod entries;
mod inspect;
mod merge;
mod selection;
mod write;

pub use bench::{BenchRequest, BenchSink, BenchSinkError, MeasuredConversion};
pub use convert::ConvertRequest;
pub use entries::{EntryRange, EntryRangeError};
pub use inspect::{EventsInspection, InspectRequest, InspectedProduct};
pub use merge::EventsMergeRequest;
pub use selection::{OpenedInputs, Selection};
pub use write::WriteRequest;

use crate::convert::ConvertOptions;
use crate::error::{EventsError, Result};
use raddle_core::engine::jobs_per_rank;
use raddle_core::size::Size;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Refuses options that contradict each other.
fn check_bytes(raw: bool, whole: bool) -> Result<()> {
    match raw && whole {
        true => Err(EventsError::option("whole", "it cannot be used with --raw")),
        false => Ok(()),
    }
}

/// Use of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Number of threads of each rank. If `None`, it is the number of cores available to the process, divided by the
    /// number of ranks.
    pub jobs: Option<NonZeroUsize>,
    /// Memory for buffers of each rank; 1 GiB if `None`.
    pub memory: Option<Size>,
}

impl Resources {
    /// Returns the options of a conversion by this number of ranks.
    pub fn options(&self, ranks: usize) -> ConvertOptions {
        let mut options =
            ConvertOptions { jobs: self.jobs.unwrap_or_else(|| jobs_per_rank(ranks)), ..ConvertOptions::default() };
        if let Some(Size(len_bytes)) = self.memory {
            options.memory_len_bytes = len_bytes;
        }
        options
    }
}
