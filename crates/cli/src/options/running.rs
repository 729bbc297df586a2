//! How a run uses the machine and what it says while it runs.

use super::reader::ReaderArgs;
use super::size::Size;
use crate::failure::Failure;
use crate::team::Team;
use crate::text_file::{self, Text};
use raddle_merge::options::MergeOptions;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Options of every command that does work.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Running")]
pub struct RunningArgs {
    /// Worker threads [default: the cores this process may use]
    #[arg(short, long, value_name = "N", env = "RADDLE_JOBS", hide_env_values = true)]
    pub jobs: Option<NonZeroUsize>,

    /// Memory for buffers, for example 512MiB or 2GB [default: 1GiB]
    #[arg(long, value_name = "SIZE", env = "RADDLE_MEMORY", hide_env_values = true)]
    pub memory: Option<Size>,

    /// What is said.
    #[command(flatten)]
    pub telling: TellingArgs,

    /// Who reads what raddle itself does not know
    #[command(flatten)]
    pub reader: ReaderArgs,
}

/// What a run says while it runs, and where.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Running")]
pub struct TellingArgs {
    /// Progress bars; auto: bars on a terminal, one line per stage elsewhere
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    pub progress: When,

    /// Say nothing but errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Say more; twice for details
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,

    /// Write every event of the run to FILE, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub log_json: Option<PathBuf>,

    /// Write a report of the run to FILE as JSON: times, bytes, memory, predictions against what happened
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

impl RunningArgs {
    /// Writes these options into those of a merge.
    pub fn apply(&self, options: &mut MergeOptions) {
        if let Some(jobs) = self.jobs {
            options.jobs = jobs.get();
        }
        if let Some(memory) = self.memory {
            options.memory_limit_bytes = memory.0;
        }
        self.reader.apply(options);
    }

    /// Writes these options into those of a merge by the ranks of `team`.
    pub fn apply_among(&self, team: &Team, options: &mut MergeOptions) {
        options.jobs = team.default_jobs();
        self.apply(options);
    }

    /// Writes `report` to the file that `--report` names, if it does.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_report(&self, report: &impl Serialize) -> Result<(), Failure> {
        self.telling.write_report(report)
    }
}

impl TellingArgs {
    /// Refuses a log or report that would replace one of the `files` that the command reads or writes, or any other file
    /// that is none.
    ///
    /// # Errors
    /// A failure that says why.
    pub fn check(&self, files: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<(), Failure> {
        let mut files: Vec<PathBuf> = files.into_iter().map(|file| file.as_ref().to_path_buf()).collect();
        for (option, path) in [("--log-json", &self.log_json), ("--report", &self.report)] {
            if let Some(path) = path {
                text_file::check(path, option, Text::Json, &files)?;
                files.push(path.clone());
            }
        }
        Ok(())
    }

    /// Writes `report` to the file that `--report` names, if it does.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_report(&self, report: &impl Serialize) -> Result<(), Failure> {
        let Some(path) = &self.report else { return Ok(()) };
        let invocation: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let report =
            Reported { program: concat!("raddle ", env!("CARGO_PKG_VERSION")), invocation: &invocation, report };
        std::fs::write(path, crate::render::json(&report)).map_err(|cause| Failure::writing(path, &cause))
    }
}

/// A report with what it takes to make it again.
#[derive(Serialize)]
struct Reported<'a, T> {
    program: &'static str,
    invocation: &'a [String],
    #[serde(flatten)]
    report: &'a T,
}

/// When to show something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum When {
    /// Where it makes sense
    Auto,
    /// Also where output is no terminal
    Always,
    /// Not at all
    Never,
}
