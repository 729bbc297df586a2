//! How a run uses the machine and what it says while it runs.

use super::reader::ReaderArgs;
use super::size::Size;
use crate::failure::{Failure, ToldFailure};
use crate::team::Team;
use crate::text_file::{self, Text};
use raddle_merge::options::MergeOptions;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

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

    /// What was warned of, for the report.
    #[arg(skip)]
    pub warnings: Warnings,
}

/// Warnings of a run; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// A run that warns of each of its inputs is told by its first warnings.
    const MOST: usize = 1000;

    /// Adds one.
    pub fn push(&self, text: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < Self::MOST {
            all.push(text.to_owned());
        }
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
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
        let report = Reported {
            program: concat!("raddle ", env!("CARGO_PKG_VERSION")),
            invocation: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            finished_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64()),
            warnings: self.warnings.all(),
            report,
        };
        std::fs::write(path, crate::render::json(&report)).map_err(|cause| Failure::writing(path, &cause))
    }

    /// Writes why the command failed to the file that `--report` names, if it does.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_failure(&self, failure: &Failure) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct Failed<'a> {
            error: ToldFailure<'a>,
        }
        self.write_report(&Failed { error: failure.told() })
    }
}

/// A report with what it takes to make it again.
#[derive(Serialize)]
struct Reported<'a, T> {
    program: &'static str,
    invocation: Vec<String>,
    /// Name of the machine.
    host: String,
    /// When it was written, in seconds since 1970.
    finished_unix_s: f64,
    warnings: Vec<String>,
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
