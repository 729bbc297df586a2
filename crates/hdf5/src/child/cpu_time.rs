//! The child's limit of CPU time, set anew for each answer: libhdf5 follows some damaged structures in a circle.
//!
//! The system ends a process that reaches it (`SIGXCPU`), whatever it is doing. Invariant: what a small file can take is a few
//! seconds; what a long one, or many values, can take grows with their length.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::io;

/// Bytes of a file whose metadata libhdf5 reads per second, at least: a tenth of what was measured on small objects.
const METADATA_BYTES_PER_S: u64 = 2 << 20;

/// Bytes of values that libhdf5 decodes per second, at least: less than bzip2, the slowest of the usual filters.
const VALUES_BYTES_PER_S: u64 = 8 << 20;

/// What answers may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuTime {
    /// About an empty file.
    base_s: u64,
    /// For the metadata of this one.
    metadata_s: u64,
}

impl CpuTime {
    /// Limits for answers about a file of `file_len_bytes`.
    pub(super) fn new(base_s: u64, file_len_bytes: u64) -> Self {
        Self { base_s, metadata_s: file_len_bytes / METADATA_BYTES_PER_S }
    }

    /// Limits the answer that begins now.
    pub(super) fn allow_metadata(self) -> io::Result<()> {
        Self::allow(self.base_s.saturating_add(self.metadata_s))
    }

    /// Limits the rest of an answer of this many bytes of values.
    pub(super) fn allow_values(self, len_bytes: u64) -> io::Result<()> {
        Self::allow(self.base_s.saturating_add(self.metadata_s).saturating_add(len_bytes / VALUES_BYTES_PER_S))
    }

    fn allow(seconds: u64) -> io::Result<()> {
        let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.unsigned_abs();
        let maximum = getrlimit(Resource::Cpu).maximum;
        // The limit is in whole seconds, of which the one that has begun counts.
        let wanted = used.saturating_add(1).saturating_add(seconds);
        let current = Some(maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        Ok(setrlimit(Resource::Cpu, Rlimit { current, maximum })?)
    }
}
