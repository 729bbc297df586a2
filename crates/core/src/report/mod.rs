//! Parts of the report of a run: time, bytes and calls per stage and rank, memory, and differences between inputs.
//!
//! They contain values only; the caller writes them as JSON or HTML. Times of worker threads are summed: `wall_s` of a
//! stage is the time that threads spent in it, so with two threads it may exceed the elapsed time of the run.

pub mod progress;
pub mod spread;

use crate::error::Result;
use crate::ranks::message::MessageReader;
use crate::report::progress::Stage;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A difference between inputs, in the form shared by reports, logs and errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputDifference {
    /// Path of the object, escaped for display.
    pub path: String,
    /// Kind of the difference, in snake case: `missing`, `datatype`, `value`, `attributes` and so on.
    pub kind: String,
    /// Description of the value that the output follows.
    pub expected: String,
    /// Description of the value in the inputs listed below.
    pub found: String,
    /// Paths of the inputs, in order.
    pub inputs: Vec<String>,
}

/// Cost of one stage on one rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// Number of the rank.
    pub rank: u32,
    /// Stage.
    pub stage: Stage,
    /// Wall time, summed over threads.
    pub wall_s: f64,
    /// Processor time, summed over threads.
    pub cpu_s: f64,
    /// Number of bytes: before encoding for regroup and encode, stored bytes for read, decode and place.
    pub bytes: u64,
    /// Number of calls: files, tiles, writes or arrays.
    pub calls: u64,
}

/// Adds the stages in `more` to `reports`, each to the entry of its rank.
pub fn add_stages(reports: &mut Vec<StageReport>, more: Vec<StageReport>) {
    for stage in more {
        match reports.iter_mut().find(|known| (known.rank, known.stage) == (stage.rank, stage.stage)) {
            Some(known) => {
                known.wall_s += stage.wall_s;
                known.cpu_s += stage.cpu_s;
                known.bytes += stage.bytes;
                known.calls += stage.calls;
            }
            None => reports.push(stage),
        }
    }
}

/// Counters of one stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageTotals {
    /// Wall time.
    pub wall_ns: u64,
    /// Processor time.
    pub cpu_ns: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Number of calls.
    pub calls: u64,
}

impl StageTotals {
    /// Adds another count of the same stage.
    pub fn add(&mut self, other: &Self) {
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.calls = self.calls.saturating_add(other.calls);
    }
}

/// Counters of all stages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageTable {
    totals: [StageTotals; Stage::ALL.len()],
}

impl StageTable {
    /// Returns the counters of `stage`.
    pub fn get(&self, stage: Stage) -> &StageTotals {
        &self.totals[stage as usize]
    }

    /// Returns the counters of `stage`.
    pub fn get_mut(&mut self, stage: Stage) -> &mut StageTotals {
        &mut self.totals[stage as usize]
    }

    /// Adds the counters of another thread.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.totals.iter_mut().zip(&other.totals) {
            mine.add(theirs);
        }
    }

    /// Converts the stages that ran to a report of `rank`.
    pub fn reports(&self, rank: u32) -> Vec<StageReport> {
        Stage::ALL
            .iter()
            .map(|stage| (stage, self.get(*stage)))
            .filter(|(_, totals)| totals.calls > 0 || totals.wall_ns > 0)
            .map(|(stage, totals)| StageReport {
                rank,
                stage: *stage,
                wall_s: totals.wall_ns as f64 * 1e-9,
                cpu_s: totals.cpu_ns as f64 * 1e-9,
                bytes: totals.bytes,
                calls: totals.calls,
            })
            .collect()
    }

    /// Encodes the counters for another rank.
    pub fn to_words(self) -> impl Iterator<Item = u64> {
        self.totals.into_iter().flat_map(|t| [t.wall_ns, t.cpu_ns, t.bytes, t.calls])
    }

    /// Decodes the counters of another rank.
    ///
    /// # Errors
    /// If there are too few words.
    pub fn from_words(words: &mut MessageReader<'_>) -> Result<Self> {
        let mut table = Self::default();
        for totals in &mut table.totals {
            let [wall_ns, cpu_ns, bytes, calls] = words.words()?;
            *totals = StageTotals { wall_ns, cpu_ns, bytes, calls };
        }
        Ok(table)
    }
}

/// Timer of a stage that the calling thread executes, such as scan or plan.
#[derive(Debug)]
pub struct StageTimer {
    started: Instant,
    cpu_ns: u64,
}

impl StageTimer {
    /// Starts measuring.
    pub fn start() -> Self {
        Self { started: Instant::now(), cpu_ns: thread_cpu_ns() }
    }

    /// Returns the wall time so far.
    pub fn elapsed_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Returns the totals since the start.
    pub fn totals(&self, bytes: u64, calls: u64) -> StageTotals {
        StageTotals { wall_ns: elapsed_ns(self.started), cpu_ns: thread_cpu_ns() - self.cpu_ns, bytes, calls }
    }
}

pub(crate) fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the processor time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

/// Returns the processor time of the process, summed over all threads.
pub fn process_cpu_ns() -> u64 {
    clock_ns(ClockId::ProcessCPUTime)
}

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Returns the largest resident set of the process so far (`VmHWM`); `None` if the system does not report it.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Memory use of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryReport {
    /// Memory budget.
    pub budget_bytes: u64,
    /// Maximum number of bytes for which permits were held at any time.
    pub budget_peak_bytes: u64,
    /// Largest resident set of the process, if the system reports it.
    pub peak_rss_bytes: Option<u64>,
}

impl MemoryReport {
    /// Encodes the numbers for another rank.
    pub fn to_words(&self) -> [u64; 3] {
        [self.budget_bytes, self.budget_peak_bytes, self.peak_rss_bytes.unwrap_or(0)]
    }

    /// Decodes the numbers of another rank.
    pub fn from_words([budget_bytes, budget_peak_bytes, peak_rss_bytes]: [u64; 3]) -> Self {
        // Every process that reports its size has pages in memory, so 0 stands for `None`.
        Self { budget_bytes, budget_peak_bytes, peak_rss_bytes: Some(peak_rss_bytes).filter(|bytes| *bytes > 0) }
    }

    /// Returns the current memory use.
    pub fn of(budget: &crate::memory::MemoryBudget) -> Self {
        Self {
            budget_bytes: budget.limit_bytes(),
            budget_peak_bytes: budget.peak_bytes(),
            peak_rss_bytes: peak_rss_bytes(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn tables_travel_between_ranks() {
        let mut table = StageTable::default();
        *table.get_mut(Stage::Scan) = StageTotals { wall_ns: 1, cpu_ns: 2, bytes: 3, calls: 4 };
        *table.get_mut(Stage::Verify) = StageTotals { wall_ns: u64::MAX, cpu_ns: 6, bytes: 1 << 40, calls: 8 };
        let message = crate::ranks::message::encode_u64s(table.to_words());
        assert_eq!(StageTable::from_words(&mut MessageReader::new("a test", &message)).unwrap(), table);
        let mut twice = table;
        twice.add(&table);
        assert_eq!(twice.get(Stage::Verify).wall_ns, u64::MAX);
        assert_eq!(twice.get(Stage::Scan).calls, 8);
        assert_eq!(
            table.reports(3).iter().map(|r| (r.rank, r.stage)).collect::<Vec<_>>(),
            [(3, Stage::Scan), (3, Stage::Verify)]
        );
    }

    #[test]
    fn clocks_and_memory_are_there() {
        let timer = StageTimer::start();
        let mut sum = 0u64;
        while timer.elapsed_s() < 0.01 {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        let totals = timer.totals(sum, 1);
        assert!(totals.wall_ns >= 10_000_000);
        assert!(totals.cpu_ns > 0 && totals.cpu_ns <= totals.wall_ns + 10_000_000);
        assert!(process_cpu_ns() >= totals.cpu_ns);
        assert!(peak_rss_bytes().is_none_or(|bytes| bytes > 1 << 20));
    }
}
