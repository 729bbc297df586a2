//! `raddle idx verify`: is every block there, and are the samples those of the inputs?

use super::compare::{Unequal, compare};
use super::inputs::ArrayArgs;
use super::place::open;
use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::running::RunningArgs;
use crate::render::idx;
use crate::watching::Watching;
use raddle_core::engine::default_jobs;
use raddle_idx::Readers;
use raddle_idx::check::FieldCheck;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Options of `raddle idx verify`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// The .idx file
    #[arg(value_name = "IN.idx")]
    input: PathBuf,

    /// The inputs it was made of, in their order; the options about them as for write
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    against: Vec<String>,

    #[command(flatten)]
    arrays: ArrayArgs,
    #[command(flatten)]
    running: RunningArgs,

    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  raddle idx verify flow.idx                                  every block is there and decodes
  raddle idx verify flow.idx --against rho.npy v.npy --name rho,v

Exit code 0: whole and equal, 8: blocks are missing or damaged, or samples differ.";

/// What was found.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Blocks, by field and time step.
    pub checks: Vec<FieldCheck>,
    /// Fields that differ from their inputs.
    pub unequal: Vec<Unequal>,
    /// Whether there were inputs to compare with.
    pub is_compared: bool,
}

impl Outcome {
    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.unequal.is_empty() && self.checks.iter().all(|check| check.bad.is_empty()) && !self.checks.is_empty()
    }
}

/// Checks and prints the outcome.
pub fn run(arguments: &VerifyArgs) -> Result<Exit, Failure> {
    let watching = Watching::start(&arguments.running, "idx verify")?;
    watching.conclude(|watch| {
        let dataset = open(&arguments.input)?;
        let failed = |error| Failure::of_idx(&error);
        let jobs = arguments.running.jobs.map_or_else(default_jobs, NonZeroUsize::get);
        let readers = Readers { jobs, cancel: watch.cancel };
        let mut checks = Vec::new();
        for step in dataset.steps().map_err(failed)? {
            for field in 0..dataset.header().fields.len() {
                checks.push(dataset.check(field, step, &readers).map_err(failed)?);
            }
        }
        let is_compared = !arguments.against.is_empty();
        let is_whole = checks.iter().all(|check| check.bad.is_empty());
        let unequal = match is_compared && is_whole {
            true => {
                let inputs = arguments.arrays.open(&arguments.against, &arguments.running.reader)?;
                compare(&dataset, &inputs, &readers)?
            }
            false => Vec::new(),
        };
        let outcome = Outcome { checks, unequal, is_compared };
        arguments.running.write_report(&outcome)?;
        if arguments.json {
            print(&crate::render::json(&outcome))?;
        } else if !arguments.running.telling.quiet || !outcome.is_good() {
            print(&idx::verified(&arguments.input, &outcome))?;
        }
        Ok(if outcome.is_good() { Exit::Done } else { Exit::Mismatch })
    })
}
