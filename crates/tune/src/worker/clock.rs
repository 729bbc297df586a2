//! Times and counts of one run by stage; work between stages, such as generating values, does not count.
//!
//! Calls are those that the system counts for the process (`/proc/self/io`): reads and writes of files, without those
//! needed to read the counters. The same file reports how many of the bytes read came from storage instead of the page
//! cache.

use crate::error::Result;
use raddle_core::report::process_cpu_ns;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStage {
    /// Opening inputs and querying the sizes of their datasets.
    Collect,
    /// Creating or opening the file.
    Open,
    /// Creating or opening datasets and attributes.
    Objects,
    /// Writing values.
    Write,
    /// Reading values.
    Read,
    /// Closing the file.
    Close,
    /// Waiting for the disk.
    Sync,
    /// The whole run of a program.
    Program,
}

/// A half of a run that writes a file and reads it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Writing, until the file is closed.
    Write,
    /// Reading, from reopening the file.
    Read,
}

impl Phase {
    /// Both phases, in order.
    pub const ALL: [Self; 2] = [Self::Write, Self::Read];

    /// Returns the name used in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// Time of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    /// Stage that was timed.
    pub stage: RunStage,
    /// Phase of the run; absent if a run only writes or only reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Elapsed time in seconds.
    pub wall_s: f64,
    /// Processor time, user and system, in seconds.
    pub cpu_s: f64,
}

/// Calls of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// Number of read calls.
    pub read: u64,
    /// Number of write calls.
    pub write: u64,
}

/// Number of bytes read in a run, and how many of them the system had to fetch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    /// Number of bytes that read calls returned.
    pub len_bytes: u64,
    /// Number of bytes that the system fetched from storage during the run, including readahead.
    pub from_storage_len_bytes: u64,
}

/// A run being measured.
#[derive(Debug, Default)]
pub(super) struct Clock {
    stages: Vec<StageTime>,
    phase: Option<Phase>,
}

impl Clock {
    /// Attributes the following stages to `phase`.
    pub(super) fn enter(&mut self, phase: Phase) {
        self.phase = Some(phase);
    }

    /// Runs `work` and adds its time to `stage`.
    pub(super) fn time<T>(&mut self, stage: RunStage, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let (started, cpu_ns) = (Instant::now(), process_cpu_ns());
        let done = work();
        let (wall_s, cpu_s) = (started.elapsed().as_secs_f64(), (process_cpu_ns() - cpu_ns) as f64 * 1e-9);
        let phase = self.phase;
        match self.stages.iter_mut().find(|time| (time.stage, time.phase) == (stage, phase)) {
            Some(time) => (time.wall_s, time.cpu_s) = (time.wall_s + wall_s, time.cpu_s + cpu_s),
            None => self.stages.push(StageTime { stage, phase, wall_s, cpu_s }),
        }
        done
    }

    /// Returns the stages in the order in which they began.
    pub(super) fn into_stages(self) -> Vec<StageTime> {
        self.stages
    }
}

/// Counter of calls and bytes read since its creation.
#[derive(Debug)]
pub struct CallCounter {
    at_start: Option<ProcessCounters>,
    /// Cost of reading the counters once, which is subtracted.
    of_looking: ProcessCounters,
}

/// Counters of the process, as kept by the system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessCounters {
    /// Number of calls.
    pub calls: Calls,
    /// Number of bytes read.
    pub reads: Reads,
}

impl CallCounter {
    /// Starts counting.
    pub fn start() -> Self {
        let (first, second) = (counts(), counts());
        let of_looking = first.zip(second).map(|(first, second)| second.less(first)).unwrap_or_default();
        Self { at_start: second, of_looking }
    }

    /// Returns the counts since the start; `None` if the system does not count.
    pub fn stop(&self) -> Option<ProcessCounters> {
        let now = counts();
        Some(now?.less(self.at_start?).less(self.of_looking))
    }
}

impl ProcessCounters {
    fn less(self, other: Self) -> Self {
        Self { calls: self.calls.less(other.calls), reads: self.reads.less(other.reads) }
    }
}

impl Calls {
    /// Returns the sum of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { read: self.read + other.read, write: self.write + other.write }
    }

    fn less(self, other: Self) -> Self {
        Self { read: self.read.saturating_sub(other.read), write: self.write.saturating_sub(other.write) }
    }
}

impl Reads {
    /// Returns the sum of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            len_bytes: self.len_bytes.saturating_add(other.len_bytes),
            from_storage_len_bytes: self.from_storage_len_bytes.saturating_add(other.from_storage_len_bytes),
        }
    }

    fn less(self, other: Self) -> Self {
        Self {
            len_bytes: self.len_bytes.saturating_sub(other.len_bytes),
            from_storage_len_bytes: self.from_storage_len_bytes.saturating_sub(other.from_storage_len_bytes),
        }
    }

    /// Returns the share of the bytes that came from storage; `None` if nothing was read.
    pub fn cold_share(self) -> Option<f64> {
        // Because of readahead, more bytes may have been fetched than were requested.
        (self.len_bytes > 0).then(|| (self.from_storage_len_bytes as f64 / self.len_bytes as f64).min(1.0))
    }
}

fn counts() -> Option<ProcessCounters> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some(ProcessCounters {
        calls: Calls { read: field("syscr:")?, write: field("syscw:")? },
        reads: Reads { len_bytes: field("rchar:")?, from_storage_len_bytes: field("read_bytes:")? },
    })
}
