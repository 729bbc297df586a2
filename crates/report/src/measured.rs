//! What was measured of HDF5, as `--report` of `bench` and `tune` tells of it.
//!
//! What a report does not have is absent here, as in [`crate::run`].

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
    /// One line on it.
    pub title: String,
    /// Its scale.
    pub scale: String,
    /// Where it was measured.
    pub machine: Machine,
    /// What was written to.
    pub file_system: FileSystem,
    /// The HDF5 that was measured.
    pub hdf5: Library,
    /// Elapsed seconds.
    pub elapsed_s: Option<f64>,
    /// Experiments.
    pub experiments: Vec<Experiment>,
    /// A line on each of them, next to the paper's.
    pub summary: Vec<Line>,
    /// Numbers that were planned, next to the paper's.
    pub planned: Vec<Planned>,
}

/// What came out of an experiment, next to what a paper found.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Line {
    /// Name of the experiment.
    pub experiment: String,
    /// Where the paper has it.
    pub place: Option<String>,
    /// What the paper found.
    pub paper: Option<String>,
    /// Median seconds of the default; absent where it was not measured.
    pub default_s: Option<f64>,
    /// Its bytes per second.
    pub bytes_per_s: Option<f64>,
    /// The setting that differs most from its default.
    pub setting: Option<String>,
    /// By how much.
    pub estimate: Option<Estimate>,
    /// Its verdict.
    pub verdict: Option<String>,
    /// Why it was left out.
    pub reason: Option<String>,
}

/// A table of planned numbers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Planned {
    /// Name.
    pub name: String,
    /// One line on it.
    pub title: String,
    /// What the paper found.
    pub paper: Option<String>,
    /// Rows.
    pub rows: Vec<PlannedRow>,
}

/// A row of planned numbers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PlannedRow {
    /// Name.
    pub name: String,
    /// The command that gave them.
    pub command: String,
    /// Numbers by name.
    pub here: BTreeMap<String, f64>,
    /// Those of the paper.
    pub paper: BTreeMap<String, f64>,
    /// `equal`, `differs` or `predicted`.
    pub verdict: String,
}

/// A machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Processor.
    pub processor: String,
    /// Cores.
    pub cores: u64,
    /// Operating system.
    pub system: String,
}

/// A file system.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct FileSystem {
    /// Its kind.
    pub kind: String,
}

/// A libhdf5.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Library {
    /// Version.
    pub version: String,
    /// File, or `bundled`.
    pub library: String,
}

/// An experiment.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Experiment {
    /// Name.
    pub name: String,
    /// One line on it.
    pub title: String,
    /// What a paper found.
    pub paper: Option<String>,
    /// Each setting against the default.
    pub sweep: Findings,
    /// The winner of a search against the default, on other values.
    pub proof: Option<Findings>,
}

/// What was found.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Findings {
    /// What was compared: `wall_s` or `cpu_s`.
    pub metric: String,
    /// Variation of elapsed times of equal runs.
    pub wall_variation: f64,
    /// Effects below this share are none; 0 where it is not said.
    pub margin: f64,
    /// Where equal runs differed, the factor below which nothing is told.
    pub doubt: Option<f64>,
    /// Halves of runs that write and read.
    pub phases: Vec<Phase>,
    /// Share of the bytes read that came from storage.
    pub cold_share: Option<f64>,
    /// The default, then what was compared with it.
    pub arms: Vec<Finding>,
}

/// A half of runs that write and read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Phase {
    /// `write` or `read`.
    pub phase: String,
    /// As of [`Findings`].
    pub metric: String,
    /// As of [`Findings`].
    pub doubt: Option<f64>,
}

/// What was found of a half of a setting's runs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PhaseFinding {
    /// `write` or `read`.
    pub phase: String,
    /// Median seconds.
    pub time_s: f64,
    /// As of [`Finding`].
    pub estimate: Option<Estimate>,
    /// As of [`Finding`].
    pub verdict: Option<String>,
}

/// A setting and what was found of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// What was run.
    pub arm: Arm,
    /// Ratio to the default; absent of the default, and where too little was run.
    pub estimate: Option<Estimate>,
    /// `better`, `worse`, `no_effect` or `cannot_tell`; absent of the default.
    pub verdict: Option<String>,
    /// What the verdict would be if nothing else were compared.
    pub alone: Option<String>,
    /// Its halves.
    pub phases: Vec<PhaseFinding>,
}

/// What was run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Arm {
    /// Its name.
    pub candidate: Candidate,
    /// One per block.
    pub runs: Vec<Option<Outcome>>,
    /// Why it was not run, or not any more.
    pub fault: Option<Fault>,
}

/// Why something was not run.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// It is not to be had.
    NotApplicable(String),
    /// A run failed.
    Failed(String),
}

/// A candidate.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Candidate {
    /// What differs from the default.
    pub name: String,
    /// The case whose default it is compared with.
    pub case: Option<String>,
    /// Ranks that share a run.
    pub ranks: Option<u32>,
}

/// A ratio to the default.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Estimate {
    /// Median.
    pub ratio: f64,
    /// Bounds of its 95 % confidence interval.
    pub interval: [f64; 2],
}

/// One run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// Stages.
    pub stages: Vec<StageTime>,
    /// Bytes of values.
    pub len_bytes: u64,
    /// Length of the file.
    pub file_len_bytes: u64,
    /// Read and write calls.
    pub calls: Option<Calls>,
    /// Stages of each rank; empty where a process was alone.
    pub ranks: Vec<Vec<StageTime>>,
}

/// A stage of a run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct StageTime {
    /// Name.
    pub stage: String,
    /// `write` or `read` of runs that do both.
    pub phase: Option<String>,
    /// Elapsed seconds.
    pub wall_s: f64,
    /// Processor seconds.
    pub cpu_s: f64,
}

/// Calls of a run.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Calls {
    /// Reading.
    pub read: u64,
    /// Writing.
    pub write: u64,
}

/// Whether `text` is a report of `bench` or `tune`, not of a run that has stages.
pub fn is_measurement(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        experiments: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<Kind>(text).is_ok_and(|kind| kind.experiments.is_some())
}

impl Measurement {
    /// The report that `text` is; `path` is for messages.
    ///
    /// # Errors
    /// If it is none.
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
    /// Seconds of a run, of what was compared.
    pub fn seconds(&self, outcome: &Outcome) -> f64 {
        seconds(&self.metric, None, outcome)
    }

    /// Sorted seconds of the runs of an arm, those that can be drawn.
    pub fn times(&self, finding: &Finding) -> Vec<f64> {
        drawable(finding.arm.runs.iter().flatten().map(|outcome| self.seconds(outcome)))
    }
}

impl Phase {
    /// Sorted seconds of this half of the runs of an arm, those that can be drawn.
    pub fn times(&self, finding: &Finding) -> Vec<f64> {
        let of = |outcome| seconds(&self.metric, Some(&self.phase), outcome);
        drawable(finding.arm.runs.iter().flatten().map(of))
    }
}

fn seconds(metric: &str, phase: Option<&str>, outcome: &Outcome) -> f64 {
    let stages = outcome.stages.iter().filter(|stage| phase.is_none() || stage.phase.as_deref() == phase);
    stages.map(|stage| if metric == "cpu_s" { stage.cpu_s } else { stage.wall_s }).sum()
}

/// The times that a logarithmic scale can show, sorted.
pub(crate) fn drawable(times: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut times: Vec<f64> = times.filter(|time| time.is_finite() && *time > 0.0).collect();
    times.sort_by(f64::total_cmp);
    times
}

impl Estimate {
    /// Whether it is a ratio that can be drawn.
    pub fn is_fit(&self) -> bool {
        [self.ratio, self.interval[0], self.interval[1]].iter().all(|value| value.is_finite() && *value > 0.0)
    }
}
