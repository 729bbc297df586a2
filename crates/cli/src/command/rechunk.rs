//! `raddle rechunk`: rewrites files with a new layout, each as a merge of a single input.

use super::merge::OutputCommand;
use super::print;
use crate::exit::Exit;
use crate::options::inputs::StandardInputArgs;
use crate::options::io::IoArgs;
use crate::options::printing::PrintArgs;
use crate::options::running::VerbosityArgs;
use crate::ranks::Ranks;
use crate::render::{differences, json, quantity, rechunk};
use crate::session::Session;
use raddle::rechunk::PlannedFiles;
use raddle::{Context, Error, RechunkRequest};
use std::path::PathBuf;

/// Options of `raddle rechunk`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RechunkArgs {
    #[command(flatten)]
    request: RechunkRequest,
    #[command(flatten)]
    standard_input: StandardInputArgs,
    #[command(flatten)]
    printing: PrintArgs,
    #[command(flatten)]
    io: IoArgs,
    #[command(flatten)]
    verbosity: VerbosityArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle rechunk old.h5 -o new.h5
      chunks for reading by events
  raddle rechunk old.h5 -o new.h5 --for scan -c small
      large chunks, smallest size
  raddle rechunk old.h5 -o new.h5 --chunk 128x1024
      this shape for every two-dimensional dataset
  raddle rechunk maps.nc -o series.nc --for timeseries
      chunks that are long in time and small in space
  raddle rechunk old.h5 -o new.h5 --layout '/tas: chunk=time=365, filter=zstd:3'
      other chunks and filters for one dataset
  raddle rechunk old.h5 -o new.h5 --rank-1
      columns of N x 1 elements as N elements
  raddle rechunk runs/ --dir rechunked/ --for scan
      each file of a folder to a file of the same name
  raddle rechunk 'cmip7/**/*.nc' --in-place --for cmip7
      each file is replaced; run again to continue after an interruption";

/// Collective. Rewrites the file, or many files.
pub fn run(arguments: &RechunkArgs, team: &Ranks) -> Result<Exit, Error> {
    let RechunkArgs { request, standard_input, printing, io, verbosity } = arguments;
    let (names, listing) = (&request.inputs.inputs, request.inputs.listing());
    let files = team.paths_of_first(|| standard_input.expand_names(names, &listing))?;
    let io = io.open(team, false, request.preview.preview.is_some() || request.indexing.index)?;
    let Some(path) = &request.destination.output else {
        return run_files(arguments, team, files);
    };
    let output = OutputCommand { path, printing: *printing, io, verbosity, command: "rechunk" };
    output.write(team, files, |files, context| request.plan_inputs(files, context))
}

/// Rewrites files to a folder or in place.
fn run_files(arguments: &RechunkArgs, team: &Ranks, files: Vec<PathBuf>) -> Result<Exit, Error> {
    let RechunkArgs { request, printing, verbosity, .. } = arguments;
    let session = Session::start_collective(team, verbosity, "rechunk", files.iter())?;
    session.run(team, |context| {
        let planned = request.plan_files(files, context)?;
        if !planned.skipped().is_empty() {
            session.warn(&format!("{} left out", quantity::counted(planned.skipped().len() as u64, "file")));
            session.say(&differences::failed_files(planned.skipped()));
        }
        if planned.done_before() > 0 {
            let done = quantity::counted(planned.done_before(), "file");
            session.say(&format!("resuming an interrupted run: {done} done before"));
        }
        match printing.dry_run {
            true => print_plan(&planned, arguments),
            false => write(planned, context, arguments),
        }
    })
}

/// Prints what would be written.
fn print_plan(planned: &PlannedFiles, arguments: &RechunkArgs) -> Result<Exit, Error> {
    let summary = planned.summary();
    arguments.verbosity.write_report(&summary)?;
    print(&if arguments.printing.json { json(&summary) } else { rechunk::planned(&summary) })?;
    Ok(if planned.skipped().is_empty() { Exit::Done } else { Exit::InputsSkipped })
}

fn write(planned: PlannedFiles, context: &Context<'_>, arguments: &RechunkArgs) -> Result<Exit, Error> {
    let RechunkArgs { printing, verbosity, .. } = arguments;
    let report = planned.run(context)?;
    verbosity.write_report(&report)?;
    match (printing.json, verbosity.quiet) {
        (true, _) => print(&json(&report))?,
        (false, true) => {}
        (false, false) => print(&rechunk::written(&report))?,
    }
    Ok(if report.skipped.is_empty() { Exit::Done } else { Exit::InputsSkipped })
}
