//! A run as its `--report` file tells of it, and the file that it wrote as `inspect --json` does.
//!
//! What a report does not have is absent here, so that reports of other commands and versions can be shown as far as they go.

use crate::error::{ReportError, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Program and version.
    pub program: Option<String>,
    /// The command line.
    pub invocation: Vec<String>,
    /// Name of the machine.
    pub host: Option<String>,
    /// When it ended, in seconds since 1970.
    pub finished_unix_s: Option<f64>,
    /// What was warned of.
    pub warnings: Vec<String>,
    /// How inputs differ.
    pub differences: Vec<Difference>,
    /// The inputs.
    pub input_files: Vec<InputFile>,
    /// Inputs that were left out.
    pub skipped: Vec<SkippedFile>,
    /// The file that was written.
    pub output: Option<PathBuf>,
    /// Number of inputs.
    pub inputs: Option<u64>,
    /// Datasets.
    pub datasets: Option<u64>,
    /// Bytes of all inputs.
    pub input_len_bytes: Option<u64>,
    /// Bytes of the output.
    pub output_len_bytes: Option<u64>,
    /// Bytes of its metadata.
    pub metadata_len_bytes: Option<u64>,
    /// Uncompressed bytes.
    pub logical_len_bytes: Option<u64>,
    /// Wall time.
    pub elapsed_s: Option<f64>,
    /// Digest of all values.
    pub digest: Option<String>,
    /// Memory.
    pub memory: Memory,
    /// What was foretold.
    pub prediction: Option<Prediction>,
    /// Stages outside of the engine.
    pub stages: Vec<Stage>,
    /// What the engine did; nothing if it was not asked.
    #[serde(deserialize_with = "or_default")]
    pub engine: Engine,
    /// What samples went through between ranks, of runs of idx.
    pub phases: Option<String>,
    /// Ranks.
    pub ranks: Option<u64>,
    /// Bytes of the samples.
    pub sample_len_bytes: Option<u64>,
    /// Bytes of the blocks as stored.
    pub stored_len_bytes: Option<u64>,
    /// Messages that brought samples into power-of-two boxes, by rank.
    pub restructure_messages: Vec<Messages>,
    /// Messages that brought parts of blocks to those that write them, by rank.
    pub aggregate_messages: Vec<Messages>,
    /// Memory of every rank.
    pub rank_memory: Vec<Memory>,
    /// Time steps, each reported as a run.
    pub steps: Vec<Run>,
}

/// How inputs differ.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Difference {
    /// Path of the object.
    pub path: String,
    /// Kind.
    pub kind: String,
    /// What the output follows.
    pub expected: String,
    /// What the inputs below have.
    pub found: String,
    /// The inputs.
    pub inputs: Vec<String>,
}

/// An input.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct InputFile {
    /// Its path as it was given.
    pub path: String,
    /// Its length.
    pub len_bytes: u64,
}

/// An input that was left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SkippedFile {
    /// Its path as it was given.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// Commands whose reports are those of runs; reports of `bench` and `tune` are [`Measurement`](crate::measured::Measurement)s.
pub const DRAWN: [&str; 6] = ["merge", "rechunk", "append", "keys add", "keys spill-index", "idx write"];

/// What a report says first: who wrote it, and whether that failed.
#[derive(Deserialize)]
struct Origin {
    #[serde(default)]
    invocation: Vec<String>,
    error: Option<Failed>,
}

/// Why a run failed.
#[derive(Deserialize)]
struct Failed {
    message: String,
}

/// The command of raddle that wrote a report, if it tells.
pub(crate) fn command_of(text: &[u8]) -> Option<String> {
    let Origin { invocation, .. } = serde_json::from_slice(text).ok()?;
    let mut words = invocation.into_iter().skip(1).take_while(|word| !word.starts_with('-'));
    let command = words.next()?;
    match command.as_str() {
        "keys" | "idx" | "events" => Some(format!("{command} {}", words.next()?)),
        _ => Some(command),
    }
}

/// The default in place of `null`.
fn or_default<'d, T: Default + Deserialize<'d>, D: serde::Deserializer<'d>>(
    from: D,
) -> std::result::Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Messages of a rank.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Messages {
    /// How many it sent.
    pub messages: u64,
    /// Their bytes.
    pub len_bytes: u64,
    /// How many from each power of two of bytes to the next.
    pub by_log2_len: Vec<u64>,
}

impl Messages {
    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.messages = self.messages.saturating_add(other.messages);
        self.len_bytes = self.len_bytes.saturating_add(other.len_bytes);
        self.by_log2_len.resize(self.by_log2_len.len().max(other.by_log2_len.len()), 0);
        for (mine, theirs) in self.by_log2_len.iter_mut().zip(&other.by_log2_len) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// Of all ranks.
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
    /// The budget.
    pub budget_bytes: Option<u64>,
    /// Most that was taken of it.
    pub budget_peak_bytes: Option<u64>,
    /// Largest resident set.
    pub peak_rss_bytes: Option<u64>,
}

impl Memory {
    /// The most of both.
    fn raise(&mut self, other: &Self) {
        self.budget_bytes = self.budget_bytes.max(other.budget_bytes);
        self.budget_peak_bytes = self.budget_peak_bytes.max(other.budget_peak_bytes);
        self.peak_rss_bytes = self.peak_rss_bytes.max(other.peak_rss_bytes);
    }
}

/// What the engine did.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Engine {
    /// Tiles.
    pub tiles: Option<u64>,
    /// Threads of all ranks.
    pub jobs: Option<u64>,
    /// Wall time.
    pub elapsed_s: Option<f64>,
    /// Stages of all ranks.
    pub stages: Vec<Stage>,
}

/// One stage on one rank.
#[derive(Debug, Clone, Deserialize)]
pub struct Stage {
    /// Rank.
    #[serde(default)]
    pub rank: u32,
    /// Name.
    pub stage: String,
    /// Wall time, summed over threads.
    pub wall_s: f64,
    /// Processor time, summed over threads.
    #[serde(default)]
    pub cpu_s: f64,
    /// Bytes.
    #[serde(default)]
    pub bytes: u64,
    /// Calls.
    #[serde(default)]
    pub calls: u64,
}

/// What a plan foretold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Prediction {
    /// Bytes of chunks.
    pub stored_len_bytes: Option<u64>,
    /// Bytes of everything else.
    pub metadata_len_bytes: Option<u64>,
    /// Uncertainty of the sum of both, as a share of it.
    pub size_error: Option<f64>,
    /// Wall time.
    pub elapsed_s: Option<f64>,
    /// Memory of buffers.
    pub memory_len_bytes: Option<u64>,
}

/// An HDF5 file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct File {
    /// Its length.
    pub file_len_bytes: u64,
    /// Stored bytes of all datasets.
    pub stored_len_bytes: u64,
    /// Its chunks.
    pub chunks: Chunks,
    /// Its datasets.
    pub datasets: Vec<Dataset>,
}

/// Sizes of chunks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Chunks {
    /// Before compression.
    pub by_logical_len: Vec<Bucket>,
    /// As stored.
    pub by_stored_len: Vec<Bucket>,
}

/// Chunks of a size from this power of two to the next.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub struct Bucket {
    /// Least size.
    pub from_len_bytes: u64,
    /// Chunks.
    pub count: u64,
}

/// A dataset.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Dataset {
    /// Path.
    pub path: String,
    /// Uncompressed bytes.
    pub logical_len_bytes: u64,
    /// Stored bytes.
    pub stored_len_bytes: u64,
}

/// The group in which raddle keeps what it records of a merge.
const PROVENANCE: &str = "/_raddle/";

impl File {
    /// The datasets of the user's.
    pub fn user_datasets(&self) -> impl Iterator<Item = &Dataset> {
        self.datasets.iter().filter(|dataset| !dataset.path.starts_with(PROVENANCE))
    }

    /// Stored bytes of what raddle recorded.
    pub fn provenance_len_bytes(&self) -> u64 {
        let own = self.datasets.iter().filter(|dataset| dataset.path.starts_with(PROVENANCE));
        own.fold(0, |sum, dataset| sum.saturating_add(dataset.stored_len_bytes))
    }
}

impl Run {
    /// The report that `text` is; `path` is for messages.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self> {
        if let Ok(Origin { error: Some(Failed { message }), .. }) = serde_json::from_slice(text) {
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

    /// Adds a time step: times, bytes and messages of all steps together, the most memory of any.
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

    /// Its stages, of the engine and outside.
    pub fn all_stages(&self) -> impl Iterator<Item = &Stage> {
        self.stages.iter().chain(&self.engine.stages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_report_is_refused_by_name() {
        let refused = |text: &str| Run::parse(Path::new("run.json"), text.as_bytes()).unwrap_err().to_string();
        assert!(refused("[").starts_with("run.json: no report of a run: EOF"));
        assert_eq!(refused("{}"), "run.json: no report of a run: it tells of no stages");
        let other = r#"{"invocation": ["raddle", "keys", "sort", "a.h5"], "inputs": ["a.h5"]}"#;
        assert_eq!(refused(other), "run.json: is a report of raddle keys sort, of which there is nothing to draw");
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
