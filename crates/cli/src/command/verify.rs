//! `raddle verify`: checks that the output matches its inputs or, without inputs, the recorded digests.

use super::print;
use crate::exit::Exit;
use crate::options::inputs::StandardInputArgs;
use crate::options::running::VerbosityArgs;
use crate::ranks::Ranks;
use crate::render::report;
use crate::session::Session;
use raddle::Error;
use raddle::VerifyRequest;
use raddle_merge::verify::VerifyReport;

/// Options of `raddle verify`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    #[command(flatten)]
    request: VerifyRequest,
    #[command(flatten)]
    standard_input: StandardInputArgs,
    #[command(flatten)]
    verbosity: VerbosityArgs,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  raddle verify run11981.h5                       compare with its own digests
  raddle verify run11981.h5 --against run11981/   compare with the inputs
  raddle verify all.h5 -i list.txt                the files of a list

Without inputs, every value is read and compared with the digests that the merge stored in the file; damage is \
reported with dataset, rows and the input from which they came. With inputs, every object is compared and \
every value is read from both sides; give the same inputs in the same order as for the merge. The other \
options of the merge (--join, --scalars, --exclude and so on) are recorded in the file; an option given here \
overrides the recorded one.
Exit code 0: equal, 8: not equal, 3: the file cannot be read or holds no digests.";

/// Result of a verification, with the path of the file.
#[derive(serde::Serialize)]
struct VerifyOutput<'a> {
    file: String,
    /// Number of inputs compared with; 0 if the file was compared with its own digests.
    against: u64,
    #[serde(flatten)]
    report: &'a VerifyReport,
}

/// Collective. Compares the file; the first rank prints the result.
pub fn run(arguments: &VerifyArgs, team: &Ranks) -> Result<Exit, Error> {
    let VerifyArgs { request, standard_input, verbosity, json } = arguments;
    let has_inputs = request.has_inputs();
    let files = team.paths_of_first(|| match has_inputs {
        true => standard_input.expand_names(&request.against, &request.listing),
        false => Ok(Vec::new()),
    })?;
    let session = Session::start_collective(team, verbosity, "verify", files.iter().chain([&request.file]))?;
    session.run(team, |context| {
        let against = files.len() as u64;
        let report = request.run_with(files, context)?;
        let exit = if report.mismatches.is_empty() { Exit::Done } else { Exit::Mismatch };
        if !team.leads() {
            return Ok(exit);
        }
        let record = VerifyOutput { file: request.file.to_string_lossy().into_owned(), against, report: &report };
        verbosity.write_report(&record)?;
        if *json {
            print(&crate::render::json(&record))?;
        } else if !verbosity.quiet || exit == Exit::Mismatch {
            print(&if has_inputs { report::verified(&report) } else { report::checked(&report) })?;
        }
        Ok(exit)
    })
}
