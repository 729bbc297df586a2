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
    /// What the engine did.
    pub engine: Engine,
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
    /// Bytes of chunks and values.
    pub stored_len_bytes: Option<u64>,
    /// Bytes of metadata.
    pub metadata_len_bytes: Option<u64>,
    /// Time of execution.
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

impl Run {
    /// The report that `text` is; `path` is for messages.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self> {
        let run: Self =
            serde_json::from_slice(text).map_err(|source| ReportError::Json { path: path.to_path_buf(), source })?;
        if run.all_stages().next().is_none() {
            return Err(ReportError::NoStages { path: path.to_path_buf() });
        }
        Ok(run)
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
        let run = r#"{"stages": [{"stage": "scan", "wall_s": 1}], "something": "newer"}"#;
        assert_eq!(Run::parse(Path::new("run.json"), run.as_bytes()).unwrap().all_stages().count(), 1);
    }
}
