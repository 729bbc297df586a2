//! A run as in its `--report` file, and its output file as in `inspect --json`.
//!
//! Values missing in a report are absent here, so that reports of other commands and versions can be shown in part.

use crate::error::{ReportError, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A finished run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Program and version.
    pub program: Option<String>,
    /// The command line.
    pub invocation: Vec<String>,
    /// Name of the machine.
    pub host: Option<String>,
    /// Time when it ended, in seconds since 1970.
    pub finished_unix_s: Option<f64>,
    /// Warnings of the run.
    pub warnings: Vec<String>,
    /// Differences between the inputs.
    pub differences: Vec<Difference>,
    /// Files that were read.
    pub input_files: Vec<InputFile>,
    /// Inputs that were left out.
    pub skipped: Vec<SkippedFile>,
    /// Output file.
    pub output: Option<PathBuf>,
    /// Number of inputs.
    pub inputs: Option<u64>,
    /// Number of datasets.
    pub datasets: Option<u64>,
    /// Length of all inputs.
    pub input_len_bytes: Option<u64>,
    /// Length of the output.
    pub output_len_bytes: Option<u64>,
    /// Length of the output's metadata.
    pub metadata_len_bytes: Option<u64>,
    /// Uncompressed length of the output.
    pub logical_len_bytes: Option<u64>,
    /// Wall time in seconds.
    pub elapsed_s: Option<f64>,
    /// Digest of all values.
    pub digest: Option<String>,
    /// Memory use of the run.
    pub memory: Memory,
    /// Prediction of the plan.
    pub prediction: Option<RunPrediction>,
    /// Stages outside of the engine.
    pub stages: Vec<StageResult>,
    /// Report of the engine; empty if it was not used.
    #[serde(deserialize_with = "or_default")]
    pub engine: Engine,
    /// Phases of writing, for runs of idx.
    pub phases: Option<String>,
    /// Number of ranks.
    pub ranks: Option<u64>,
    /// Length of the samples.
    pub sample_len_bytes: Option<u64>,
    /// Stored length of the blocks.
    pub stored_len_bytes: Option<u64>,
    /// Messages that moved samples to power-of-two boxes, indexed by rank.
    pub restructure_messages: Vec<Messages>,
    /// Messages that moved parts of blocks to the ranks that write them, indexed by rank.
    pub aggregate_messages: Vec<Messages>,
    /// Memory of every rank.
    pub rank_memory: Vec<Memory>,
    /// Time steps, each reported as a run.
    pub steps: Vec<Run>,
}

/// A difference between inputs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Difference {
    /// Path of the object.
    pub path: String,
    /// Kind of the difference.
    pub kind: String,
    /// Value that the output follows.
    pub expected: String,
    /// Value of the inputs below.
    pub found: String,
    /// Inputs with this value.
    pub inputs: Vec<String>,
}

/// Path and length of an input.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct InputFile {
    /// Path as passed by the user.
    pub path: String,
    /// Length in bytes.
    pub len_bytes: u64,
}

/// An input that was left out, with the reason.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SkippedFile {
    /// Path as passed by the user.
    pub path: String,
    /// Reason why the file was left out.
    pub reason: String,
}

/// Commands whose reports contain a run; reports of `bench` and `tune` are
/// [`Measurement`](crate::measured::Measurement)s.
pub const DRAWN: [&str; 6] = ["merge", "rechunk", "append", "keys add", "keys spill-index", "idx write"];

/// Origin of a report: the command that wrote it, and whether it failed.
#[derive(Deserialize)]
struct Origin {
    #[serde(default)]
    invocation: Vec<String>,
    error: Option<RunError>,
}

/// Error of a failed run.
#[derive(Deserialize)]
struct RunError {
    message: String,
}

/// Returns the command of raddle that wrote a report; `None` if it is not recorded.
pub(crate) fn command_of(text: &[u8]) -> Option<String> {
    let Origin { invocation, .. } = serde_json::from_slice(text).ok()?;
    let mut words = invocation.into_iter().skip(1).take_while(|word| !word.starts_with('-'));
    let command = words.next()?;
    match command.as_str() {
        "keys" | "idx" | "events" => Some(format!("{command} {}", words.next()?)),
        _ => Some(command),
    }
}

/// Returns the command of a command line, for example `merge`.
pub(crate) fn command(invocation: &[String]) -> Option<&str> {
    invocation.get(1).map(String::as_str)
}

/// Deserialises `null` as the default value.
fn or_default<'d, T: Default + Deserialize<'d>, D: serde::Deserializer<'d>>(
    from: D,
) -> std::result::Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Messages sent by a rank.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Messages {
    /// Number of messages.
    pub messages: u64,
    /// Number of bytes sent.
    pub len_bytes: u64,
    /// Number of messages by the base-2 logarithm of their length, rounded down.
    pub by_log2_len: Vec<u64>,
}

impl Messages {
    /// Adds the counts of another rank.
    pub fn add(&mut self, other: &Self) {
        self.messages = self.messages.saturating_add(other.messages);
        self.len_bytes = self.len_bytes.saturating_add(other.len_bytes);
        self.by_log2_len.resize(self.by_log2_len.len().max(other.by_log2_len.len()), 0);
        for (mine, theirs) in self.by_log2_len.iter_mut().zip(&other.by_log2_len) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// Returns the sum across all ranks.
    pub fn sum(all: &[Self]) -> Self {
        let mut sum = Self::default();
        all.iter().for_each(|of_rank| sum.add(of_rank));
        sum
    }
}

/// Memory of a run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Memory budget.
    pub budget_bytes: Option<u64>,
    /// Peak use of the budget.
    pub budget_peak_bytes: Option<u64>,
    /// Peak resident set size.
    pub peak_rss_bytes: Option<u64>,
}

impl Memory {
    /// Raises both peaks to the peaks of `other`.
    fn raise(&mut self, other: &Self) {
        self.budget_bytes = self.budget_bytes.max(other.budget_bytes);
        self.budget_peak_bytes = self.budget_peak_bytes.max(other.budget_peak_bytes);
        self.peak_rss_bytes = self.peak_rss_bytes.max(other.peak_rss_bytes);
    }
}

/// Report of the engine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Engine {
    /// Number of tiles.
    pub tiles: Option<u64>,
    /// Number of threads of all ranks.
    pub jobs: Option<u64>,
    /// Wall time in seconds.
    pub elapsed_s: Option<f64>,
    /// Stages of all ranks.
    pub stages: Vec<StageResult>,
}

/// One stage on one rank.
#[derive(Debug, Clone, Deserialize)]
pub struct StageResult {
    /// Number of the rank.
    #[serde(default)]
    pub rank: u32,
    /// Name of the stage.
    pub stage: String,
    /// Wall time, summed over threads.
    pub wall_s: f64,
    /// Processor time, summed over threads.
    #[serde(default)]
    pub cpu_s: f64,
    /// Number of bytes processed.
    #[serde(default)]
    pub bytes: u64,
    /// Number of calls.
    #[serde(default)]
    pub calls: u64,
}

/// Prediction of a plan.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RunPrediction {
    /// Stored length of all chunks.
    pub stored_len_bytes: Option<u64>,
    /// Length of everything else.
    pub metadata_len_bytes: Option<u64>,
    /// Uncertainty of the sum of both, as a share of the sum.
    pub size_error: Option<f64>,
    /// Wall time in seconds.
    pub elapsed_s: Option<f64>,
    /// Memory of buffers.
    pub memory_len_bytes: Option<u64>,
}

/// Sizes and chunks of an HDF5 file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct FileResult {
    /// Length in bytes.
    pub file_len_bytes: u64,
    /// Stored length of all datasets.
    pub stored_len_bytes: u64,
    /// Sizes of the file's chunks.
    pub chunks: Chunks,
    /// Datasets of the file.
    pub datasets: Vec<DatasetResult>,
}

/// Sizes of chunks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Chunks {
    /// Chunks grouped by their length before compression.
    pub by_logical_len: Vec<Bucket>,
    /// Chunks grouped by their stored length.
    pub by_stored_len: Vec<Bucket>,
}

/// Chunks whose size is between this power of two and the next.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub struct Bucket {
    /// Lower bound of the size.
    pub from_len_bytes: u64,
    /// Number of chunks.
    pub count: u64,
}

/// Path and sizes of a dataset.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DatasetResult {
    /// Path of the dataset.
    pub path: String,
    /// Uncompressed length of the dataset.
    pub logical_len_bytes: u64,
    /// Stored length of the dataset.
    pub stored_len_bytes: u64,
}

/// Group in which raddle records the provenance of a merge.
const PROVENANCE: &str = "/_raddle/";

impl FileResult {
    /// Returns the user's datasets, without raddle's own.
    pub fn user_datasets(&self) -> impl Iterator<Item = &DatasetResult> {
        self.datasets.iter().filter(|dataset| !dataset.path.starts_with(PROVENANCE))
    }

    /// Returns the stored bytes of the datasets recorded by raddle.
    pub fn provenance_len_bytes(&self) -> u64 {
        let provenance = self.datasets.iter().filter(|dataset| dataset.path.starts_with(PROVENANCE));
        provenance.fold(0, |sum, dataset| sum.saturating_add(dataset.stored_len_bytes))
    }
}

impl Run {
    /// Parses a report; `path` is used in messages.
    ///
    /// # Errors
    /// If it is not a valid report of a run.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self> {
        if let Ok(Origin { error: Some(RunError { message }), .. }) = serde_json::from_slice(text) {
            return Err(ReportError::Failed { path: path.to_path_buf(), message });
        }
        let refused = |else_error: ReportError| match command_of(text) {
            Some(command) => ReportError::OtherCommand { path: path.to_path_buf(), command },
            None => else_error,
        };
        let mut run: Self = serde_json::from_slice(text)
            .map_err(|source| refused(ReportError::Json { path: path.to_path_buf(), source }))?;
        for step in std::mem::take(&mut run.steps) {
            run.add_step(step);
        }
        if run.all_stages().next().is_none() {
            return Err(refused(ReportError::NoStages { path: path.to_path_buf() }));
        }
        Ok(run)
    }

    /// Adds a time step: times, bytes and messages are summed, memory is the maximum.
    fn add_step(&mut self, step: Self) {
        fn add<T: Copy + Default + std::ops::Add<Output = T>>(sum: &mut Option<T>, more: Option<T>) {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or_default() + more);
            }
        }
        add(&mut self.elapsed_s, step.elapsed_s);
        add(&mut self.sample_len_bytes, step.sample_len_bytes);
        add(&mut self.stored_len_bytes, step.stored_len_bytes);
        self.stages.extend(step.stages);
        self.engine.stages.extend(step.engine.stages);
        self.engine.jobs = self.engine.jobs.max(step.engine.jobs);
        self.output = self.output.take().or(step.output);
        self.phases = self.phases.take().or(step.phases);
        self.ranks = self.ranks.max(step.ranks);
        self.memory.raise(&step.memory);
        let of_ranks = [
            (&mut self.restructure_messages, step.restructure_messages),
            (&mut self.aggregate_messages, step.aggregate_messages),
        ];
        for (all, more) in of_ranks {
            all.resize(all.len().max(more.len()), Messages::default());
            all.iter_mut().zip(&more).for_each(|(mine, more)| mine.add(more));
        }
        self.rank_memory.resize(self.rank_memory.len().max(step.rank_memory.len()), Memory::default());
        self.rank_memory.iter_mut().zip(&step.rank_memory).for_each(|(mine, more)| mine.raise(more));
    }

    /// Returns all stages, of the engine and outside.
    pub fn all_stages(&self) -> impl Iterator<Item = &StageResult> {
        self.stages.iter().chain(&self.engine.stages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_but_a_report_is_refused_by_name() {
        let refused = |text: &str| Run::parse(Path::new("run.json"), text.as_bytes()).unwrap_err().to_string();
        assert!(refused("[").starts_with("run.json: not a report of a run: EOF"));
        assert_eq!(refused("{}"), "run.json: not a report of a run: it contains no stages");
        let other = r#"{"invocation": ["raddle", "keys", "sort", "a.h5"], "inputs": ["a.h5"]}"#;
        assert_eq!(refused(other), "run.json: is a report of raddle keys sort, which contains nothing to draw");
        let failed = r#"{"invocation": ["raddle", "merge"], "error": {"message": "the inputs differ", "kind": "x"}}"#;
        assert_eq!(refused(failed), "run.json: reports a run that failed: the inputs differ");
        let run = r#"{"stages": [{"stage": "scan", "wall_s": 1}], "something": "newer"}"#;
        assert_eq!(Run::parse(Path::new("run.json"), run.as_bytes()).unwrap().all_stages().count(), 1);
        let step = r#"{"elapsed_s": 2, "phases": "three", "stages": [{"stage": "restructure", "wall_s": 1}],
            "engine": null, "aggregate_messages": [{"messages": 3, "len_bytes": 12, "by_log2_len": [0, 0, 3]}],
            "rank_memory": [{"peak_rss_bytes": 7}]}"#;
        let steps = Run::parse(Path::new("run.json"), format!(r#"{{"steps": [{step}, {step}]}}"#).as_bytes()).unwrap();
        assert_eq!(
            (steps.elapsed_s, steps.phases.as_deref(), steps.all_stages().count()),
            (Some(4.0), Some("three"), 2)
        );
        assert_eq!((steps.aggregate_messages[0].messages, steps.aggregate_messages[0].by_log2_len[2]), (6, 6));
        assert_eq!(steps.rank_memory[0].peak_rss_bytes, Some(7));
    }
}
