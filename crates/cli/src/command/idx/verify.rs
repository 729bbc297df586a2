//! `raddle idx verify`: checks that every block exists, and optionally compares the samples with the inputs.

use super::compare::{Compared, Comparison, Stored, compare};
use super::inputs::ArrayArgs;
use super::place::open;
use crate::arrays::file_of;
use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::running::RuntimeArgs;
use crate::render::{idx, zarr};
use crate::session::Session;
use raddle_core::engine::default_jobs;
use raddle_core::report::progress::Watch;
use raddle_idx::Readers;
use raddle_idx::read::check::DatasetCheck;
use raddle_idx::zarr::{ImageCheck, Images, is_zarr};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Options of `raddle idx verify`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// The .idx file, or the OME-Zarr folder
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// Inputs from which the dataset was made, in the same order and with the same options as for write
    ///
    /// Samples are compared bit by bit. Fields of zfp:accuracy=X may differ by X, those of zfp:precision=N by any
    /// finite number; the actual differences are reported.
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    against: Vec<String>,

    #[command(flatten)]
    arrays: ArrayArgs,
    #[command(flatten)]
    running: RuntimeArgs,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  raddle idx verify flow.idx                                  every block exists and decodes
  raddle idx verify flow.idx --against rho.npy v.npy --name rho,v
  raddle idx verify flow.zarr                                 every shard decodes, every level matches the one before

Exit code 0: complete and, with --against, equal to the inputs in all its contents. 8: blocks or time steps \
are missing or damaged, samples differ, or there are fields or time steps for which no input was given.";

/// Result of a verification.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// State of the blocks, by field and time step.
    #[serde(flatten)]
    pub check: DatasetCheck,
    /// Comparison of fields with their inputs.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// Whether there were inputs to compare with.
    pub is_compared: bool,
}

impl Outcome {
    /// Whether no error was found.
    pub fn is_good(&self) -> bool {
        self.check.is_whole() && self.comparison.is_equal()
    }
}

/// Verifies and prints the result.
pub fn run(arguments: &VerifyArgs) -> Result<Exit, Failure> {
    let inputs = arguments.against.iter().map(|input| file_of(input));
    let files = inputs.chain([arguments.input.as_path()]);
    let watching = Session::start(&arguments.running, "idx verify", files)?;
    watching.conclude(|watch| {
        if is_zarr(&arguments.input) {
            return run_zarr(arguments, watch);
        }
        let dataset = open(&arguments.input)?;
        let failed = |error| Failure::of_idx(&error);
        let jobs = arguments.running.execution.jobs.map_or_else(default_jobs, NonZeroUsize::get);
        let readers = Readers { jobs, cancel: watch.cancel };
        let steps = dataset.steps().map_err(failed)?;
        let check = dataset.check_all(&steps, &readers).map_err(failed)?;
        let is_compared = !arguments.against.is_empty();
        let stored = Stored { dataset: &dataset, steps: &steps };
        let comparison = if check.is_whole() { arguments.compare(&stored, &readers)? } else { Comparison::default() };
        let outcome = Outcome { check, comparison, is_compared };
        arguments.tell(&outcome, outcome.is_good(), || idx::verified(&arguments.input, &outcome))
    })
}

/// Result of verifying an OME-Zarr folder.
#[derive(Debug, Serialize)]
pub struct ZarrOutcome {
    /// Checks of the folder's images.
    pub checks: Vec<ImageCheck>,
    /// Comparison of fields with their inputs.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// Whether there were inputs to compare with.
    pub is_compared: bool,
}

impl ZarrOutcome {
    /// Whether no error was found.
    pub fn is_good(&self) -> bool {
        self.comparison.is_equal() && self.checks.iter().all(|check| check.bad.is_empty())
    }
}

fn run_zarr(arguments: &VerifyArgs, watch: &Watch<'_>) -> Result<Exit, Failure> {
    let failed = |error| Failure::of_idx(&error);
    let images = Images::open(&arguments.input).map_err(failed)?;
    let jobs = arguments.running.execution.jobs.map_or_else(default_jobs, NonZeroUsize::get);
    let readers = Readers { jobs, cancel: watch.cancel };
    let mut checks = Vec::new();
    for image in &images.images {
        checks.push(image.check(jobs, watch.cancel).map_err(failed)?);
    }
    let is_whole = checks.iter().all(|check| check.bad.is_empty());
    let comparison = if is_whole { arguments.compare(&images, &readers)? } else { Comparison::default() };
    let outcome = ZarrOutcome { checks, comparison, is_compared: !arguments.against.is_empty() };
    arguments.tell(&outcome, outcome.is_good(), || zarr::verified(&arguments.input, &outcome))
}

impl VerifyArgs {
    /// Compares fields with the inputs, if any were given.
    fn compare(&self, dataset: &dyn Compared, readers: &Readers<'_>) -> Result<Comparison, Failure> {
        if self.against.is_empty() {
            return Ok(Comparison::default());
        }
        let inputs = self.arrays.open(&self.against, &self.running.execution.reader)?;
        compare(&self.input, dataset, &inputs, readers)
    }

    /// Prints the result.
    fn tell(&self, outcome: &impl Serialize, is_good: bool, text: impl Fn() -> String) -> Result<Exit, Failure> {
        self.running.write_report(outcome)?;
        if self.json {
            print(&crate::render::json(outcome))?;
        } else if !self.running.telling.quiet || !is_good {
            print(&text())?;
        }
        Ok(if is_good { Exit::Done } else { Exit::Mismatch })
    }
}
