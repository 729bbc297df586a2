//! Times and counts of one run, stage by stage; what is between stages, such as making values, does not count.
//!
//! Calls are those that the system counts for the process (`/proc/self/io`): reads and writes of files, without the ones
//! that asking takes.

use crate::error::Result;
use raddle_core::report::process_cpu_ns;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
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

/// What a stage took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    /// Stage.
    pub stage: Stage,
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

/// A run being measured.
#[derive(Debug, Default)]
pub(super) struct Clock {
    stages: Vec<StageTime>,
}

impl Clock {
    /// Does `work` and adds its time to `stage`.
    pub(super) fn time<T>(&mut self, stage: Stage, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let (started, cpu_ns) = (Instant::now(), process_cpu_ns());
        let done = work();
        let (wall_s, cpu_s) = (started.elapsed().as_secs_f64(), (process_cpu_ns() - cpu_ns) as f64 * 1e-9);
        match self.stages.iter_mut().find(|time| time.stage == stage) {
            Some(time) => (time.wall_s, time.cpu_s) = (time.wall_s + wall_s, time.cpu_s + cpu_s),
            None => self.stages.push(StageTime { stage, wall_s, cpu_s }),
        }
        done
    }

    /// The stages in the order in which they began.
    pub(super) fn into_stages(self) -> Vec<StageTime> {
        self.stages
    }
}

/// Counts calls from its start on.
#[derive(Debug)]
pub(super) struct CallCounter {
    at_start: Option<Calls>,
    /// What looking takes, which each look counts for the next one.
    of_looking: Calls,
}

impl CallCounter {
    pub(super) fn start() -> Self {
        let (first, second) = (calls(), calls());
        let of_looking = first.zip(second).map(|(first, second)| second.less(first)).unwrap_or_default();
        Self { at_start: second, of_looking }
    }

    /// Calls since the start; `None` where the system does not count them.
    pub(super) fn stop(&self) -> Option<Calls> {
        let now = calls();
        Some(now?.less(self.at_start?).less(self.of_looking))
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

fn calls() -> Option<Calls> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some(Calls { read: field("syscr:")?, write: field("syscw:")? })
}
