//! Parameters of [`Kernel::Events`](crate::kernel::Kernel::Events): synthetic events and the format they are written
//! in.
//!
//! This module holds plain data, with which the writers run. Formats and options are those of the test framework in
//! Bashyal and others (2024).

use crate::error::WorkloadFault;
use serde::{Deserialize, Serialize};

/// Events, and how they are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// Number of processes that share the events: MPI ranks if this raddle supports MPI, otherwise threads.
    #[serde(default = "one")]
    pub processes: u64,
    /// Number of threads of each process.
    #[serde(default = "one")]
    pub threads: u64,
    /// Number of events of all processes.
    pub events: u64,
    /// Number of products per event.
    pub products: u64,
    /// Mean bytes of a product; lengths are exponentially distributed.
    pub product_len_bytes: u64,
    /// Number of distinct events, which are repeated from memory.
    #[serde(default = "kept")]
    pub kept: u64,
    /// Format, as named by `raddle events bench --sinks`.
    pub format: String,
    /// Number of events per batch.
    #[serde(default = "batch")]
    pub batch: u64,
    /// Level of gzip in HDF5; 0 means no compression.
    #[serde(default = "level")]
    pub gzip: u8,
    /// Length of an HDF5 chunk before compression.
    #[serde(default = "chunk_len_bytes")]
    pub chunk_len_bytes: u64,
}

fn one() -> u64 {
    1
}

/// Returns the default number of distinct events, which have more bytes than the window of any compressor.
fn kept() -> u64 {
    4000
}

/// Returns the paper's number of events per batch.
fn batch() -> u64 {
    100
}

/// Returns the paper's level of gzip.
fn level() -> u8 {
    6
}

/// Returns the paper's length of an HDF5 chunk.
fn chunk_len_bytes() -> u64 {
    10 << 20
}

/// Maximum number of threads of a process, and of processes.
const MAX_THREADS: u64 = 1024;

impl Events {
    /// Returns the named parameters whose product is the number of bytes written.
    pub(crate) fn factors(&self) -> Vec<(&'static str, u64)> {
        vec![("events", self.events), ("products", self.products), ("product_len_bytes", self.product_len_bytes)]
    }

    /// Checks the parameters; zeros are found elsewhere.
    ///
    /// # Errors
    /// If a parameter is out of range.
    pub(crate) fn check(&self) -> Result<(), WorkloadFault> {
        let is_of = |count: u64, most: u64| (1..=most).contains(&count);
        if !is_of(self.processes, MAX_THREADS) {
            return Err(WorkloadFault::Size("processes"));
        }
        if !is_of(self.threads, MAX_THREADS) {
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
            return Err(WorkloadFault::Size("gzip (at most 9)"));
        }
        Ok(())
    }
}
