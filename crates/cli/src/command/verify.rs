//! `raddle verify`: does the output hold what the inputs hold?

use super::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::{inputs::ListingArgs, running::RunningArgs, schema::SchemaArgs};
use crate::render::report;
use crate::watching::Watching;
use raddle_merge::options::MergeOptions;
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of `raddle verify`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// The merged file
    #[arg(value_name = "MERGED")]
    output: PathBuf,

    /// The files it was made from, as for merge: files, folders, quoted globs, @LIST, or - for standard input
    #[arg(long, value_name = "INPUT", num_args = 1.., required_unless_present = "lists")]
    against: Vec<OsString>,

    #[command(flatten)]
    listing: ListingArgs,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    running: RunningArgs,

    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  raddle verify run11981.h5 --against run11981/
  raddle verify all.h5 -i list.txt --join inner

Every object is compared and every value read from both sides; give the same inputs in the same order, and the same
--join, as for the merge. Exit code 0: equal, 8: they differ.";

/// Compares and prints the outcome.
pub fn run(arguments: &VerifyArgs) -> Result<Exit, Failure> {
    let inputs = arguments.listing.expand(&arguments.against, &mut std::io::stdin().lock())?;
    let mut options = MergeOptions::new(&arguments.output);
    arguments.schema.apply(&mut options)?;
    arguments.running.apply(&mut options);
    let watching = Watching::start(&arguments.running, "verify")?;
    watching.conclude(|watch| {
        let inputs = arguments.listing.sort(inputs, &options, watch)?;
        let verified = raddle_merge::verify::verify(&arguments.output, &inputs, &options, watch)
            .map_err(|error| Failure::of_merge(&error, &inputs))?;
        arguments.running.write_report(&verified)?;
        if arguments.json {
            print(&crate::render::json(&verified))?;
        } else if !arguments.running.quiet || !verified.mismatches.is_empty() {
            print(&report::verified(&verified))?;
        }
        Ok(if verified.mismatches.is_empty() { Exit::Done } else { Exit::Mismatch })
    })
}
