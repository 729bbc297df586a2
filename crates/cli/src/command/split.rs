//! `raddle split`: merges files into several outputs.

use super::merge::print_bridged;
use super::print;
use crate::exit::Exit;
use crate::options::inputs::StandardInputArgs;
use crate::options::printing::PrintArgs;
use crate::options::running::VerbosityArgs;
use crate::ranks::Ranks;
use crate::render::{json, quantity, split};
use crate::session::Session;
use raddle::{Error, SplitRequest};

/// Options of `raddle split`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SplitArgs {
    #[command(flatten)]
    request: SplitRequest,
    #[command(flatten)]
    standard_input: StandardInputArgs,
    #[command(flatten)]
    printing: PrintArgs,
    #[command(flatten)]
    verbosity: VerbosityArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle split 'model/*.nc' --by variable --dir series/ --for timeseries
      one file per variable, with all times, chunked for time series
  raddle split 'model/*.nc' --by variable --size-per-file 4GiB --dir series/
      tas_0001.nc, tas_0002.nc, … if a variable is larger
  raddle split 'days/*.nc' --rows-per-file 365 --dir years/ --name tas
      tas_0001.nc with the first 365 times, and so on
  raddle split run11981/ --size-per-file 10GiB --dir merged/
      as many whole inputs in a file as fit";

/// Writes the outputs.
pub fn run(arguments: &SplitArgs, team: &Ranks) -> Result<Exit, Error> {
    let SplitArgs { request, standard_input, printing, verbosity } = arguments;
    let files = team.paths_of_first(|| standard_input.expand(&request.inputs))?;
    let session = Session::start_collective(team, verbosity, "split", files.iter().chain([&request.dir]))?;
    session.run(team, |context| {
        let planned = request.plan_files(files, context)?;
        if planned.done_before() > 0 {
            let done = quantity::counted(planned.done_before(), "file");
            session.say(&format!("resuming an interrupted run: {done} done before"));
        }
        print_bridged(planned.plan(), &session);
        raddle::merge::layout_warnings(planned.plan()).iter().for_each(|warning| session.warn(warning));
        planned.warning_of_other_parts().iter().for_each(|warning| session.warn(warning));
        let exit = if planned.plan().skipped.is_empty() { Exit::Done } else { Exit::InputsSkipped };
        if printing.dry_run {
            let summary = planned.summary();
            verbosity.write_report(&summary)?;
            print(&if printing.json { json(&summary) } else { split::planned(&summary) })?;
            return Ok(exit);
        }
        let report = planned.run(context)?;
        verbosity.write_report(&report)?;
        match (printing.json, verbosity.quiet) {
            (true, _) => print(&json(&report))?,
            (false, true) => {}
            (false, false) => print(&split::written(&report))?,
        }
        Ok(exit)
    })
}
