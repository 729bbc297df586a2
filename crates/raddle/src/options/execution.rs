//! Use of the machine: threads, memory, and the process that runs libhdf5.

use super::reader::ReaderOptions;
use raddle_core::size::Size;
use raddle_merge::options::MergeOptions;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Options of everything that processes data.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Running"))]
pub struct ExecutionOptions {
    /// Number of worker threads [default: the cores available to this process]
    #[cfg_attr(feature = "clap", arg(short, long, value_name = "N", env = "RADDLE_JOBS", hide_env_values = true))]
    pub jobs: Option<NonZeroUsize>,

    /// Memory for buffers, for example 512MiB or 2GB [default: 1GiB]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE", env = "RADDLE_MEMORY", hide_env_values = true))]
    pub memory: Option<Size>,

    /// Options of the reader process.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub reader: ReaderOptions,
}

impl ExecutionOptions {
    /// Applies these options to the options of a merge by a process whose share of the cores is `default_jobs`.
    pub fn apply(&self, options: &mut MergeOptions, default_jobs: usize) {
        options.jobs = self.jobs.map_or(default_jobs, NonZeroUsize::get);
        if let Some(memory) = self.memory {
            options.memory_limit_bytes = memory.0;
        }
        self.reader.apply(options);
    }
}
