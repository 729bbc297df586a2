//! Times and counts of one run, stage by stage; what is between stages, such as making values, does not count.
//!
//! Calls are those that the system counts for the process (`/proc/self/io`): reads and writes of files, without the ones
//! that asking takes. The same file tells how many of the bytes read came from storage, not from the page cache.

use crate::error::Result;
use raddle_core::report::process_cpu_ns;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Opening inputs and asking for the sizes of their datasets.
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
    /// All of a program.
    Program,
}

/// A half of a run that writes a file and reads it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Writing, up to the closed file.
    Write,
    /// Reading, from opening the file again.
    Read,
}

impl Phase {
    /// Both, in their order.
    pub const ALL: [Self; 2] = [Self::Write, Self::Read];

    /// Its name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// What a stage took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    /// Stage.
    pub stage: Stage,
    /// Half of the run; absent where a run only writes or only reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Elapsed seconds.
    pub wall_s: f64,
    /// Processor time, user and system.
    pub cpu_s: f64,
}

/// Calls of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// Reading.
    pub read: u64,
    /// Writing.
    pub write: u64,
}

/// What the reads of a run gave, and how much of it the system had to fetch: whether reads were cold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    /// Bytes that read calls returned.
    pub len_bytes: u64,
    /// Bytes that the system fetched from storage meanwhile, read ahead included.
    pub from_storage_len_bytes: u64,
}

/// A run being measured.
#[derive(Debug, Default)]
pub(super) struct Clock {
    stages: Vec<StageTime>,
    phase: Option<Phase>,
}

impl Clock {
    /// Counts what follows as part of `phase`.
    pub(super) fn enter(&mut self, phase: Phase) {
        self.phase = Some(phase);
    }

    /// Does `work` and adds its time to `stage`.
    pub(super) fn time<T>(&mut self, stage: Stage, work: impl FnOnce() -> Result<T>) -> Result<T> {
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

    /// The stages in the order in which they began.
    pub(super) fn into_stages(self) -> Vec<StageTime> {
        self.stages
    }
}

/// Counts calls, and bytes read, from its start on.
#[derive(Debug)]
pub struct CallCounter {
    at_start: Option<Counts>,
    /// What looking takes, which each look counts for the next one.
    of_looking: Counts,
}

/// What the system counts for the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls.
    pub calls: Calls,
    /// What reading gave.
    pub reads: Reads,
}

impl CallCounter {
    /// Begins to count.
    pub fn start() -> Self {
        let (first, second) = (counts(), counts());
        let of_looking = first.zip(second).map(|(first, second)| second.less(first)).unwrap_or_default();
        Self { at_start: second, of_looking }
    }

    /// Counts since the start; `None` where the system does not count.
    pub fn stop(&self) -> Option<Counts> {
        let now = counts();
        Some(now?.less(self.at_start?).less(self.of_looking))
    }
}

impl Counts {
    fn less(self, other: Self) -> Self {
        Self { calls: self.calls.less(other.calls), reads: self.reads.less(other.reads) }
    }
}

impl Calls {
    /// Of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { read: self.read + other.read, write: self.write + other.write }
    }

    fn less(self, other: Self) -> Self {
        Self { read: self.read.saturating_sub(other.read), write: self.write.saturating_sub(other.write) }
    }
}

impl Reads {
    /// Of both.
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

    /// Share of the bytes that came from storage; `None` where nothing was read.
    pub fn cold_share(self) -> Option<f64> {
        // The system reads ahead, so that more may have come than was asked for.
        (self.len_bytes > 0).then(|| (self.from_storage_len_bytes as f64 / self.len_bytes as f64).min(1.0))
    }
}

fn counts() -> Option<Counts> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some(Counts {
        calls: Calls { read: field("syscr:")?, write: field("syscw:")? },
        reads: Reads { len_bytes: field("rchar:")?, from_storage_len_bytes: field("read_bytes:")? },
    })
}
