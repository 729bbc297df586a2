//! HDF5 measurements, as in the `--report` files of `bench` and `tune`.
//!
//! Values missing in a report are absent here, as in [`crate::run`]. Pages of merges need nothing in this folder.

mod axis;
pub mod comparisons;
mod curves;
mod papers;
mod scaling;
mod stage_times;
pub(crate) mod verdicts;

use crate::error::{ReportError, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A workload that was measured.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Measurement {
    /// Program and version.
    pub program: Option<String>,
    /// The command line.
    pub invocation: Vec<String>,
    /// Name of the workload.
    pub workload: String,
    /// One-line title.
    pub title: String,
    /// Scale of the workload.
    pub scale: String,
    /// Machine of the measurement.
    pub machine: Machine,
    /// File system that was written to.
    pub file_system: FileSystem,
    /// HDF5 library that was measured.
    pub hdf5: MeasuredLibrary,
    /// Elapsed time in seconds.
    pub elapsed_s: Option<f64>,
    /// Experiments of the workload, in order.
    pub experiments: Vec<Experiment>,
    /// One summary line per experiment, with the paper's result.
    pub summary: Vec<Line>,
    /// Planned numbers, with the paper's.
    pub planned: Vec<PlannedTable>,
}

/// Result of an experiment, with the paper's result.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Line {
    /// Name of the experiment.
    pub experiment: String,
    /// Place in the paper.
    pub place: Option<String>,
    /// Result of the paper.
    pub paper: Option<String>,
    /// Median seconds of the default; absent if it was not measured.
    pub default_s: Option<f64>,
    /// Bytes per second with the default.
    pub bytes_per_s: Option<f64>,
    /// The setting that differs most from its default.
    pub setting: Option<String>,
    /// Ratio of that setting to its default.
    pub estimate: Option<Estimate>,
    /// Verdict on the setting that differs most.
    pub verdict: Option<String>,
    /// Reason for leaving the experiment out.
    pub reason: Option<String>,
}

/// A table of planned numbers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PlannedTable {
    /// Name of the table.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// Result of the paper.
    pub paper: Option<String>,
    /// Rows of the table.
    pub rows: Vec<PlannedRow>,
}

/// A row of planned numbers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PlannedRow {
    /// Name of the row.
    pub name: String,
    /// Command that reported the numbers.
    pub command: String,
    /// Reported numbers by name.
    pub here: BTreeMap<String, f64>,
    /// The paper's numbers.
    pub paper: BTreeMap<String, f64>,
    /// `equal`, `differs` or `predicted`.
    pub verdict: String,
}

/// Description of a machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Number of cores.
    pub cores: u64,
    /// Operating system.
    pub system: String,
}

/// Type of a file system.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct FileSystem {
    /// Type of the file system.
    pub kind: String,
}

/// Version and file of a libhdf5.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct MeasuredLibrary {
    /// Version of the library.
    pub version: String,
    /// File, or `bundled`.
    pub library: String,
}

/// An experiment and its findings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Experiment {
    /// Name of the experiment.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// Result of a paper.
    pub paper: Option<String>,
    /// Each setting compared with the default.
    pub sweep: Findings,
    /// The winner of a search compared with the default, on other values.
    pub proof: Option<Findings>,
}

/// Findings of an experiment.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Findings {
    /// Metric that was compared: `wall_s` or `cpu_s`.
    pub metric: String,
    /// Coefficient of variation of the elapsed times of equal runs.
    pub wall_variation: f64,
    /// Effects below this share count as none; 0 if unknown.
    pub margin: f64,
    /// Factor below which effects cannot be resolved; present if equal runs differed.
    pub doubt: Option<f64>,
    /// Phases of runs that write and read.
    pub phases: Vec<Phase>,
    /// Share of the bytes read that came from storage.
    pub cold_share: Option<f64>,
    /// The default, followed by the arms compared with it.
    pub arms: Vec<Finding>,
}

/// A phase of runs that write and read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Phase {
    /// `write` or `read`.
    pub phase: String,
    /// Metric that was compared, as in [`Findings::metric`].
    pub metric: String,
    /// Doubt about small effects, as in [`Findings::doubt`].
    pub doubt: Option<f64>,
}

/// Findings of one phase of a setting.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PhaseFinding {
    /// `write` or `read`.
    pub phase: String,
    /// Median time in seconds.
    pub time_s: f64,
    /// Ratio to the default in this phase, as in [`Finding`].
    pub estimate: Option<Estimate>,
    /// Verdict on this phase, as in [`Finding`].
    pub verdict: Option<String>,
}

/// Findings of a setting.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// Arm that was run.
    pub arm: Arm,
    /// Ratio to the default; absent for the default, and if there were too few runs.
    pub estimate: Option<Estimate>,
    /// `better`, `worse`, `no_effect` or `cannot_tell`; absent for the default.
    pub verdict: Option<String>,
    /// Verdict if nothing else had been compared.
    pub alone: Option<String>,
    /// Findings of the run's phases.
    pub phases: Vec<PhaseFinding>,
}

/// An arm of an experiment.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Arm {
    /// Candidate that was run.
    pub candidate: MeasuredCandidate,
    /// One outcome per block.
    pub runs: Vec<Option<MeasuredRun>>,
    /// Reason why the arm was not run, or why its runs ended.
    pub fault: Option<ArmFailure>,
}

/// Reason why an arm was not run.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmFailure {
    /// A setting is not available.
    NotApplicable(String),
    /// A run failed, with this message.
    Failed(String),
}

/// Setting that was compared with the default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct MeasuredCandidate {
    /// Difference from the default.
    pub name: String,
    /// The case whose default it is compared with.
    pub case: Option<String>,
    /// Number of ranks that share a run.
    pub ranks: Option<u32>,
}

/// A ratio to the default.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Estimate {
    /// Median of the ratios.
    pub ratio: f64,
    /// Bounds of its 95 % confidence interval.
    pub interval: [f64; 2],
}

/// Result of one run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct MeasuredRun {
    /// Times of the stages.
    pub stages: Vec<StageTime>,
    /// Length of the values.
    pub len_bytes: u64,
    /// Length of the file.
    pub file_len_bytes: u64,
    /// Read and write calls.
    pub calls: Option<Calls>,
    /// Stages of each rank; empty for a single process.
    pub ranks: Vec<Vec<StageTime>>,
}

/// A stage of a run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct StageTime {
    /// Name of the stage.
    pub stage: String,
    /// `write` or `read`, for runs that do both.
    pub phase: Option<String>,
    /// Elapsed time in seconds.
    pub wall_s: f64,
    /// Processor time in seconds.
    pub cpu_s: f64,
}

/// Calls of a run.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Calls {
    /// Number of read calls.
    pub read: u64,
    /// Number of write calls.
    pub write: u64,
}

/// Returns whether `text` is a report of `bench` or `tune`, rather than of a run with stages.
pub fn is_measurement(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        experiments: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<Kind>(text).is_ok_and(|kind| kind.experiments.is_some())
}

impl Measurement {
    /// Parses a report; `path` is used in messages.
    ///
    /// # Errors
    /// If it is not a valid report.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self> {
        let done: Self =
            serde_json::from_slice(text).map_err(|source| ReportError::Json { path: path.to_path_buf(), source })?;
        if done.experiments.iter().all(|experiment| experiment.sweep.arms.is_empty()) {
            return Err(ReportError::NoStages { path: path.to_path_buf() });
        }
        Ok(done)
    }
}

impl Findings {
    /// Returns the seconds of a run, in the metric that was compared.
    pub fn seconds(&self, outcome: &MeasuredRun) -> f64 {
        seconds(&self.metric, None, outcome)
    }

    /// Returns the sorted seconds of an arm's runs that can be drawn.
    pub fn times(&self, finding: &Finding) -> Vec<f64> {
        drawable(finding.arm.runs.iter().flatten().map(|outcome| self.seconds(outcome)))
    }
}

impl Phase {
    /// Returns the sorted seconds of this phase of an arm's runs that can be drawn.
    pub fn times(&self, finding: &Finding) -> Vec<f64> {
        let of = |outcome| seconds(&self.metric, Some(&self.phase), outcome);
        drawable(finding.arm.runs.iter().flatten().map(of))
    }
}

fn seconds(metric: &str, phase: Option<&str>, outcome: &MeasuredRun) -> f64 {
    let stages = outcome.stages.iter().filter(|stage| phase.is_none() || stage.phase.as_deref() == phase);
    stages.map(|stage| if metric == "cpu_s" { stage.cpu_s } else { stage.wall_s }).sum()
}

/// Returns the times that a logarithmic scale can show, sorted.
pub(crate) fn drawable(times: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut times: Vec<f64> = times.filter(|time| time.is_finite() && *time > 0.0).collect();
    times.sort_by(f64::total_cmp);
    times
}

impl Estimate {
    /// Returns whether ratio and interval are positive and finite, so that they can be drawn.
    pub fn is_fit(&self) -> bool {
        [self.ratio, self.interval[0], self.interval[1]].iter().all(|value| value.is_finite() && *value > 0.0)
    }
}
