//! `raddle self-test`: checks that this raddle works on this machine, on generated files.

use super::print;
use crate::exit::Exit;
use crate::options::running::{VerbosityArgs, Visibility, Warnings};
use crate::render::{escape, quantity};
use crate::self_test::{self, FailedStep, Step};
use crate::session::Session;
use crate::text_file::NO_FILES;
use raddle::{Context, Error};
use raddle_core::engine::default_jobs;
use raddle_core::report::progress::{Silent, Watch};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Options of `raddle self-test`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SelfTestArgs {
    /// Folder in which to create a temporary folder [default: the one for temporary files]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Number of worker threads in multithreaded steps [default: the cores available to this process]
    #[arg(short, long, value_name = "N", env = "RADDLE_JOBS", hide_env_values = true)]
    jobs: Option<NonZeroUsize>,

    /// Print only errors
    #[arg(short, long)]
    quiet: bool,

    /// Write the steps and their times to FILE as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  raddle self-test
      in the folder for temporary files, in a few seconds
  raddle self-test --folder /scratch/me
      on the file system on which outputs will be written

Files of a few megabytes are generated, merged with one and with several threads, compared, appended, given \
partition keys, rechunked, damaged, and written as IDX and as events. All of them are removed at the end, also after a \
failure or Ctrl-C.
Exit code 0: all steps succeeded, 8: a result is wrong, 5: the folder cannot be written to.";

/// Page on which failures are reported.
const ISSUES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/issues");

/// Report of a run.
#[derive(Serialize)]
struct SelfTest {
    steps: Vec<Step>,
    elapsed_s: f64,
    /// Length of all files at the end.
    files_len_bytes: u64,
}

/// Runs all steps and prints a line for each.
pub fn run(arguments: &SelfTestArgs) -> Result<Exit, Error> {
    let SelfTestArgs { folder, jobs, quiet, report } = arguments;
    let verbosity = VerbosityArgs {
        progress: Visibility::Never,
        quiet: *quiet,
        verbose: 0,
        log_json: None,
        report: report.clone(),
        warnings: Warnings::default(),
    };
    let session = Session::start(&verbosity, "self-test", NO_FILES)?;
    session.conclude(|watch| {
        let parent = folder.clone().unwrap_or_else(std::env::temp_dir);
        if parent.to_str().is_none() {
            // Datasets are named by text: FILE:/DATASET.
            return Err(Error::usage("the path of the folder is not text").hint("name another one with --folder"));
        }
        // Kept until the end, because dropping it removes the files.
        let scratch = tempfile::Builder::new().prefix("raddle-self-test-").tempdir_in(&parent);
        let scratch = scratch.map_err(|cause| {
            Error::writing(&parent, &cause).hint("name a folder that can be written to with --folder")
        })?;
        let watch = Watch { observer: &Silent, cancel: watch.cancel };
        let context =
            Context { default_jobs: jobs.map_or_else(default_jobs, NonZeroUsize::get), ..Context::new(watch) };
        let (started, mut steps) = (Instant::now(), Vec::new());
        let tested = self_test::run(scratch.path(), &context, &mut |step| {
            steps.push(step.clone());
            if *quiet { Ok(()) } else { print(&line("ok", step.name, &step.done, Some(step.elapsed_s))) }
        });
        let (elapsed_s, files_len_bytes) = (started.elapsed().as_secs_f64(), len_bytes_below(scratch.path()));
        tested.map_err(|failed| explained(failed, *quiet))?;
        if !quiet {
            let (steps, elapsed) = (quantity::counted(steps.len() as u64, "step"), quantity::seconds(elapsed_s));
            print(&format!("{steps} succeeded in {elapsed}, with {} of files\n", quantity::size(files_len_bytes)))?;
        }
        verbosity.write_report(&SelfTest { steps, elapsed_s, files_len_bytes })?;
        // Reports what cannot be removed, which dropping would not.
        let path = scratch.path().to_path_buf();
        scratch.close().map_err(|cause| {
            Error::new(Exit::Output, &format!("{}: cannot be removed: {cause}", escape::path(&path)))
        })?;
        Ok(Exit::Done)
    })
}

/// Formats the line of a step.
fn line(mark: &str, name: &str, text: &str, elapsed_s: Option<f64>) -> String {
    let elapsed = elapsed_s.map(quantity::seconds).unwrap_or_default();
    let line = format!("  {mark:<6}  {name:<8}  {text:<49}  {elapsed:>8}");
    format!("{}\n", line.trim_end())
}

/// Adds the name of the step, and what to do about the failure.
fn explained(failed: FailedStep, quiet: bool) -> Error {
    let FailedStep { name, error } = failed;
    if !quiet && error.exit != Exit::Done {
        // The failure is more important than one of printing.
        let _ = print(&line("failed", name, "", None));
    }
    match error.exit {
        // Failures of the machine, which have their own advice, and a closed standard output.
        Exit::Output | Exit::Limit | Exit::Locked | Exit::Usage | Exit::Interrupted | Exit::Done => *error,
        exit => Error::new(exit, &format!("self-test, step {name}: {}", error.message())).hint(&format!(
            "report this message and the output of raddle doctor at {ISSUES}, and do not rely on this raddle"
        )),
    }
}

/// Returns the sum of the lengths of all files below a folder.
fn len_bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => len_bytes_below(&entry.path()),
            found => found.map_or(0, |found| found.len()),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_result_is_to_be_reported_and_a_full_disk_is_not() {
        let of =
            |exit| explained(FailedStep { name: "merge", error: Box::new(Error::new(exit, "no").hint("own")) }, true);
        for exit in [Exit::Mismatch, Exit::Internal, Exit::InputRefused] {
            let error = of(exit);
            let hint = error.explanation().1.unwrap_or_default().to_owned();
            assert!(hint.contains("raddle doctor") && hint.contains(ISSUES), "{hint}");
            assert_eq!((error.exit, error.message()), (exit, "self-test, step merge: no"));
        }
        for exit in [Exit::Output, Exit::Limit, Exit::Interrupted] {
            let error = of(exit);
            assert_eq!((error.exit, error.message(), error.explanation().1), (exit, "no", Some("own")));
        }
    }
}
