//! `raddle idx verify`: checks that every block exists, and optionally compares the samples with the inputs.

use crate::command::print;
use crate::exit::Exit;
use crate::options::running::RuntimeArgs;
use crate::render::targets;
use crate::session::Session;
use raddle::Error;
use raddle::arrays::{self, file_of};
use raddle_core::engine::default_jobs;
use raddle_idx::Readers;
use raddle_idx::request::InputRequest;
use raddle_idx::verify::verify;
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
    arrays: InputRequest,
    #[command(flatten)]
    running: RuntimeArgs,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  raddle idx verify flow.idx
      every block exists and decodes
  raddle idx verify flow.idx --against rho.npy v.npy --name rho,v
  raddle idx verify flow.zarr
      every shard decodes, every level matches the one before

Exit code 0: complete and, with --against, equal to the inputs in all its contents. 8: blocks or time steps \
are missing or damaged, samples differ, or there are fields or time steps for which no input was given.";

/// Verifies and prints the result.
pub fn run(arguments: &VerifyArgs) -> Result<Exit, Error> {
    let inputs = arguments.against.iter().map(|input| file_of(input));
    let files = inputs.chain([arguments.input.as_path()]);
    let session = Session::start(&arguments.running.verbosity, "idx verify", files)?;
    session.conclude(|watch| {
        let jobs = arguments.running.execution.jobs.map_or_else(default_jobs, NonZeroUsize::get);
        let readers = Readers { jobs, cancel: watch.cancel };
        let open = || arrays::open(&arguments.arrays, &arguments.against, &arguments.running.execution.reader);
        let open = (!arguments.against.is_empty()).then_some(open);
        let outcome = verify(&arguments.input, open, &readers)?;
        arguments.running.write_report(&outcome)?;
        if arguments.json {
            print(&crate::render::json(&outcome))?;
        } else if !arguments.running.verbosity.quiet || !outcome.is_good() {
            print(&targets::verified(&arguments.input, &outcome))?;
        }
        Ok(if outcome.is_good() { Exit::Done } else { Exit::Mismatch })
    })
}
