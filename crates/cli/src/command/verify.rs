//! `raddle verify`: checks that the output matches its inputs or, without inputs, the recorded digests.

use super::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::{
    inputs::{ListingArgs, SortArgs},
    running::RuntimeArgs,
    schema::SchemaArgs,
};
use crate::ranks::Ranks;
use crate::render::report;
use crate::session::Session;
use raddle_merge::error::MergeError;
use raddle_merge::options::{MergeOptions, Watch};
use raddle_merge::verify::VerifyReport;
use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;

/// Options of `raddle verify`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// The merged file
    #[arg(value_name = "MERGED")]
    output: PathBuf,

    /// Files from which it was made, as for merge: files, folders, quoted globs, @LIST, or - for standard input
    ///
    /// Without inputs, the file is checked against the digests it holds.
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    against: Vec<OsString>,

    #[command(flatten)]
    listing: ListingArgs,
    #[command(flatten)]
    sorting: SortArgs,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    running: RuntimeArgs,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  raddle verify run11981.h5                            is it still what was written?
  raddle verify run11981.h5 --against run11981/        is it what the inputs hold?
  raddle verify all.h5 -i list.txt                     the files of a list

Without inputs, every value is read and compared with the digests that the merge stored in the file; damage is \
reported with dataset, rows and the input from which they came. With inputs, every object is compared and \
every value is read from both sides; give the same inputs in the same order as for the merge. The other \
options of the merge (--join, --scalars, --exclude and so on) are recorded in the file; an option given here \
overrides the recorded one.
Exit code 0: equal, 8: not equal, 3: the file cannot be read or holds no digests.";

impl VerifyArgs {
    /// Returns the inputs to compare with; `None` to compare with the digests. `standard_input` is read if an input is
    /// `-`.
    ///
    /// # Errors
    /// If an input does not exist.
    pub fn inputs(&self, standard_input: &mut dyn Read) -> Result<Option<Vec<PathBuf>>, Failure> {
        if !self.has_inputs() {
            return Ok(None);
        }
        self.listing.expand(&self.against, standard_input).map(Some)
    }

    fn has_inputs(&self) -> bool {
        !(self.against.is_empty() && self.listing.lists.is_empty())
    }

    /// Compares the file.
    ///
    /// # Errors
    /// If files cannot be read or inputs do not fit together; a mismatch is part of the report.
    pub fn verify(&self, inputs: Option<Vec<PathBuf>>, watch: &Watch<'_>) -> Result<VerifyReport, Failure> {
        self.verify_collective(inputs, watch, &Ranks::alone())
    }

    /// Collective. Compares the file; the ranks of `ranks` share the work.
    ///
    /// # Errors
    /// As for [`verify`](Self::verify).
    fn verify_collective(
        &self,
        inputs: Option<Vec<PathBuf>>,
        watch: &Watch<'_>,
        team: &Ranks,
    ) -> Result<VerifyReport, Failure> {
        let mut options = MergeOptions::new(&self.output);
        self.schema.apply(&mut options)?;
        self.running.apply_collective(team, &mut options);
        let Some(inputs) = inputs else {
            return raddle_merge::verify::digests::check::check_collective(&self.output, &options, watch, team.ranks())
                .map_err(|error| Failure::of_merge(&error, std::slice::from_ref(&self.output)));
        };
        let inputs = team.paths_of_first(|| self.sorting.sort(inputs, &options, watch))?;
        let verified = raddle_merge::verify::verify_collective(&self.output, &inputs, &options, watch, team.ranks());
        let verified = verified.map_err(|error| match &error {
            // The file to verify counts as an input here, although it is not one of those it is compared with.
            MergeError::Hdf5(source) => Failure::of_input(source),
            error => Failure::of_merge(error, &inputs),
        })?;
        let matched = options.selection.check_matched(team.ranks(), watch);
        matched.map_err(|error| Failure::of_merge(&error, &inputs))?;
        Ok(verified)
    }
}

/// Result of a verification, with the path of the file.
#[derive(serde::Serialize)]
struct Verified<'a> {
    file: String,
    /// Number of inputs compared with; 0 if the file was compared with its own digests.
    against: u64,
    #[serde(flatten)]
    report: &'a VerifyReport,
}

/// Collective. Compares the file; the first rank prints the result.
pub fn run(arguments: &VerifyArgs, team: &Ranks) -> Result<Exit, Failure> {
    let has_inputs = arguments.has_inputs();
    let expand = || Ok(arguments.inputs(&mut std::io::stdin().lock())?.unwrap_or_default());
    let inputs = team.paths_of_first(expand)?;
    let files = inputs.iter().chain([&arguments.output]);
    let watching = Session::start_collective(team, &arguments.running, "verify", files)?;
    watching.conclude(|watch| {
        let count = inputs.len() as u64;
        let verified = arguments.verify_collective(has_inputs.then_some(inputs), watch, team)?;
        let exit = if verified.mismatches.is_empty() { Exit::Done } else { Exit::Mismatch };
        if !team.leads() {
            return Ok(exit);
        }
        let reported =
            Verified { file: arguments.output.to_string_lossy().into_owned(), against: count, report: &verified };
        arguments.running.write_report(&reported)?;
        if arguments.json {
            print(&crate::render::json(&reported))?;
        } else if !arguments.running.telling.quiet || !verified.mismatches.is_empty() {
            print(&if has_inputs { report::verified(&verified) } else { report::checked(&verified) })?;
        }
        Ok(exit)
    })
}
