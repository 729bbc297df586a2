//! [`Kernel::Events`](crate::kernel::Kernel::Events) in numbers: made events, and the format that they are written in.
//!
//! Values only; the program that has the writers carries them out. The formats and choices are those of the test framework in
//! Bashyal and others (2024).

use crate::error::WorkloadFault;
use serde::{Deserialize, Serialize};

/// Events and how they are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// Processes that share the events: ranks of MPI where this raddle has it, threads otherwise.
    #[serde(default = "one")]
    pub processes: u64,
    /// Threads of each process.
    #[serde(default = "one")]
    pub threads: u64,
    /// Events of all processes.
    pub events: u64,
    /// Products of an event.
    pub products: u64,
    /// Mean bytes of a product; lengths are distributed exponentially.
    pub product_len_bytes: u64,
    /// Events that are made, and repeated from memory.
    #[serde(default = "kept")]
    pub kept: u64,
    /// Format, by the name that `raddle events bench --sinks` gives it.
    pub format: String,
    /// Events of a batch.
    #[serde(default = "batch")]
    pub batch: u64,
    /// Level of gzip in HDF5; 0 is none.
    #[serde(default = "level")]
    pub gzip: u8,
    /// Bytes of an HDF5 chunk before compression.
    #[serde(default = "chunk_len_bytes")]
    pub chunk_len_bytes: u64,
}

fn one() -> u64 {
    1
}

/// More bytes than compressors look back for.
fn kept() -> u64 {
    4000
}

/// As in the paper.
fn batch() -> u64 {
    100
}

/// As in the paper.
fn level() -> u8 {
    6
}

/// As in the paper.
fn chunk_len_bytes() -> u64 {
    10 << 20
}

/// Most threads of a process, and most processes.
const MOST_THREADS: u64 = 1024;

impl Events {
    /// Numbers that multiply to what is written, with names.
    pub(crate) fn factors(&self) -> Vec<(&'static str, u64)> {
        vec![("events", self.events), ("products", self.products), ("product_len_bytes", self.product_len_bytes)]
    }

    /// Whether it can be carried out; numbers that are 0 are found elsewhere.
    ///
    /// # Errors
    /// If not, with what is wrong.
    pub(crate) fn check(&self) -> Result<(), WorkloadFault> {
        let is_of = |count: u64, most: u64| (1..=most).contains(&count);
        if !is_of(self.processes, MOST_THREADS) {
            return Err(WorkloadFault::Size("processes"));
        }
        if !is_of(self.threads, MOST_THREADS) {
            return Err(WorkloadFault::Size("threads"));
        }
        if self.kept == 0 {
            return Err(WorkloadFault::Size("kept"));
        }
        if self.batch == 0 {
            return Err(WorkloadFault::Size("batch"));
        }
        if self.chunk_len_bytes == 0 {
            return Err(WorkloadFault::Size("chunk_len_bytes"));
        }
        if self.gzip > 9 {
            return Err(WorkloadFault::Size("gzip above 9, which"));
        }
        Ok(())
    }
}
