//! `raddle index`: writes statistics with which searches skip blocks of rows.

use super::print;
use crate::exit::Exit;
use crate::options::running::VerbosityArgs;
use crate::ranks::Ranks;
use crate::render::{escape, json, quantity};
use crate::session::Session;
use raddle::{Error, IndexRequest};

/// Options of `raddle index`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct IndexArgs {
    #[command(flatten)]
    request: IndexRequest,
    /// Print the report, or the failure, as JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    verbosity: VerbosityArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle index all.h5
      writes all.h5.stats, which raddle.scan(\"all.h5\") finds
  raddle index /data/all.h5 -o all.stats
      for raddle.scan(\"/data/all.h5\", index=\"all.stats\")

The index has the smallest and the largest value of each block of rows, the values themselves if at most 16 are \
distinct, and sums of integers. After a change of the file, write the index again.";

/// Writes the index.
pub fn run(arguments: &IndexArgs, team: &Ranks) -> Result<Exit, Error> {
    let IndexArgs { request, json: is_json, verbosity } = arguments;
    let named = [&request.file].into_iter().chain(&request.output);
    let session = Session::start_collective(team, verbosity, "index", named)?;
    session.run(team, |context| {
        let report = request.run(context)?;
        verbosity.write_report(&report)?;
        match (*is_json, verbosity.quiet) {
            (true, _) => print(&json(&report))?,
            (false, true) => {}
            (false, false) => print(&format!(
                "{}: {} of {} ({})\n  {} in {} ({})\n{}",
                escape::path(&report.output),
                quantity::counted(report.values, "value"),
                quantity::counted(report.columns, "dataset"),
                quantity::size(report.value_len_bytes),
                quantity::size(report.output_len_bytes),
                quantity::seconds(report.elapsed_s),
                quantity::rate(report.value_len_bytes, report.elapsed_s),
                without_statistics(report.virtual_datasets),
            ))?,
        }
        Ok(Exit::Done)
    })
}

/// Returns a line about virtual datasets; empty if there are none.
fn without_statistics(virtual_datasets: u64) -> String {
    match virtual_datasets {
        0 => String::new(),
        count => format!("  {} without statistics\n", quantity::counted(count, "virtual dataset")),
    }
}
