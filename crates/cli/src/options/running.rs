//! Options for the use of the machine, and for output during a run.

use crate::text_file::{self, Text};
use raddle::Error;
use raddle::error::ErrorRecord;
use raddle::options::ExecutionOptions;
use raddle_core::engine::default_jobs;
use raddle_events::request::Resources;
use raddle_merge::options::MergeOptions;
use serde::Serialize;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Command line of this run, for reports. It may differ from the command line of the process, which may be a Python
/// program.
static INVOCATION: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Records the command line of this run; the first word is the program's name.
pub fn record_invocation(words: &[OsString]) {
    let words = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    *INVOCATION.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

/// Options of every command that processes data.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Running")]
pub struct RuntimeArgs {
    /// Use of the machine.
    #[command(flatten)]
    pub execution: ExecutionOptions,

    /// Options for messages.
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// Options for messages and logs of a run.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Running")]
pub struct VerbosityArgs {
    /// Show progress bars; auto: bars on a terminal, one line per stage elsewhere
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Visibility::Auto)]
    pub progress: Visibility,

    /// Print only errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print more; twice for details
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,

    /// Write every event of the run to FILE, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub log_json: Option<PathBuf>,

    /// Write a report of the run to FILE as JSON: times, bytes, memory, predicted and actual values
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Warnings so far, for the report.
    #[arg(skip)]
    pub warnings: Warnings,
}

/// Warnings of a run; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Maximum number of warnings kept: for a run that warns about each of its inputs, the first ones suffice.
    const MAX: usize = 1000;

    /// Adds a warning.
    pub fn push(&self, text: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < Self::MAX {
            all.push(text.to_owned());
        }
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl RuntimeArgs {
    /// Applies these options to the options of a merge by a single process.
    pub fn apply(&self, options: &mut MergeOptions) {
        self.execution.apply(options, default_jobs());
    }

    /// Returns the threads and memory for events, with `jobs` threads unless another number is given.
    pub fn resources(&self, jobs: usize) -> Resources {
        Resources { jobs: self.execution.jobs.or_else(|| NonZeroUsize::new(jobs)), memory: self.execution.memory }
    }

    /// Applies these options to the options of a merge by a rank with `default_jobs` threads, unless another number is
    /// given.
    pub fn apply_to_rank(&self, default_jobs: usize, options: &mut MergeOptions) {
        self.execution.apply(options, default_jobs);
    }

    /// Writes `report` to the file given by `--report`, if any.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_report(&self, report: &impl Serialize) -> Result<(), Error> {
        self.verbosity.write_report(report)
    }
}

impl VerbosityArgs {
    /// Refuses a log or report that would overwrite one of the `files` that the command reads or writes, or any other
    /// file that is not a log or report.
    ///
    /// # Errors
    /// If such a file is refused. The error names it and the reason.
    pub fn check(&self, files: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<(), Error> {
        let mut files: Vec<PathBuf> = files.into_iter().map(|file| file.as_ref().to_path_buf()).collect();
        for (option, path) in [("--log-json", &self.log_json), ("--report", &self.report)] {
            if let Some(path) = path {
                text_file::check(path, option, Text::Json, &files)?;
                files.push(path.clone());
            }
        }
        Ok(())
    }

    /// Writes `report` to the file given by `--report`, if any.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_report(&self, report: &impl Serialize) -> Result<(), Error> {
        let Some(path) = &self.report else { return Ok(()) };
        let report = ReportEnvelope {
            program: concat!("raddle ", env!("CARGO_PKG_VERSION")),
            invocation: INVOCATION.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            finished_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64()),
            warnings: self.warnings.all(),
            report,
        };
        std::fs::write(path, crate::render::json(&report)).map_err(|cause| Error::writing(path, &cause))
    }

    /// Writes the reason for the command's failure to the file given by `--report`, if any.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_failure(&self, failure: &Error) -> Result<(), Error> {
        #[derive(Serialize)]
        struct FailureReport<'a> {
            error: ErrorRecord<'a>,
        }
        self.write_report(&FailureReport { error: failure.record() })
    }

    /// Writes the failure of another rank, given as JSON, to the file given by `--report`, if any.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_failure_of_rank(&self, json: &str) -> Result<(), Error> {
        let failure: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json).unwrap_or_default();
        self.write_report(&failure)
    }
}

/// A report with the information needed to reproduce it.
#[derive(Serialize)]
struct ReportEnvelope<'a, T> {
    program: &'static str,
    invocation: Vec<String>,
    /// Name of the machine.
    host: String,
    /// Time of writing, in seconds since 1970.
    finished_unix_s: f64,
    warnings: Vec<String>,
    #[serde(flatten)]
    report: &'a T,
}

/// Condition for showing something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Visibility {
    /// If output is a terminal
    Auto,
    /// Even if output is not a terminal
    Always,
    /// Never
    Never,
}
