//! CPU time limit of the child, renewed for each answer: libhdf5 follows some damaged structures in an endless loop.
//!
//! The system ends a process that exceeds it (`SIGXCPU`), whatever the process is doing. Invariant: a small file can
//! use a few seconds; the limit for a long file, or for many values, grows with their length.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::io;

/// Minimum rate at which libhdf5 reads metadata, in bytes of the file per second: a tenth of the rate measured on small
/// objects.
const METADATA_BYTES_PER_S: u64 = 2 << 20;

/// Minimum rate at which libhdf5 decodes values, in bytes per second. It is below the rate of bzip2, the slowest of the
/// usual filters.
const VALUES_BYTES_PER_S: u64 = 8 << 20;

/// CPU time allowed for answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuTime {
    /// Seconds for an empty file.
    base_s: u64,
    /// Additional seconds for the metadata of this file.
    metadata_s: u64,
}

impl CpuTime {
    /// Computes the limits for answers about a file of `file_len_bytes`.
    pub(super) fn new(base_s: u64, file_len_bytes: u64) -> Self {
        Self { base_s, metadata_s: file_len_bytes / METADATA_BYTES_PER_S }
    }

    /// Sets the limit for the answer that begins now.
    pub(super) fn allow_metadata(self) -> io::Result<()> {
        Self::allow(self.base_s.saturating_add(self.metadata_s))
    }

    /// Sets the limit for the rest of an answer with `len_bytes` of values.
    pub(super) fn allow_values(self, len_bytes: u64) -> io::Result<()> {
        Self::allow(self.base_s.saturating_add(self.metadata_s).saturating_add(len_bytes / VALUES_BYTES_PER_S))
    }

    fn allow(seconds: u64) -> io::Result<()> {
        let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.unsigned_abs();
        let maximum = getrlimit(Resource::Cpu).maximum;
        // The limit is in whole seconds, including the one that has begun.
        let wanted = used.saturating_add(1).saturating_add(seconds);
        let current = Some(maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        Ok(setrlimit(Resource::Cpu, Rlimit { current, maximum })?)
    }
}
