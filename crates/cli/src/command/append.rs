//! `raddle append`: adds rows to an existing file, in place and atomically.

use super::print;
use crate::exit::Exit;
use crate::options::inputs::StandardInputArgs;
use crate::options::printing::PrintArgs;
use crate::options::running::VerbosityArgs;
use crate::ranks::Ranks;
use crate::render::{escape, json, quantity, report};
use crate::session::Session;
use raddle::Error;
use raddle::append::PlannedAppend;
use raddle::{AppendRequest, Context};
use raddle_merge::append::redo::Recovery;
use raddle_merge::plan::MergePlan;

/// Options of `raddle append`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct AppendArgs {
    #[command(flatten)]
    request: AppendRequest,
    #[command(flatten)]
    standard_input: StandardInputArgs,
    #[command(flatten)]
    printing: PrintArgs,
    #[command(flatten)]
    verbosity: VerbosityArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle append run11981.h5 today/
      the files of a folder, after the existing rows
  raddle append all.h5 @new.txt -n
      only show what would be done
  raddle append all.h5 subrun7.h5 --again
      even if its rows are already in the file

Datasets grow along their first axis, with their existing chunks and filters; raddle merge --extendible makes \
files in which all datasets can grow. Partition keys are extended. Readers see the old file until the append \
is complete. If the run is interrupted, the next raddle command that opens the file completes the append or \
rolls it back.";

/// Collective. Appends the inputs.
pub fn run(arguments: &AppendArgs, team: &Ranks) -> Result<Exit, Error> {
    let AppendArgs { request, standard_input, printing, verbosity } = arguments;
    let files = team.paths_of_first(|| standard_input.expand(&request.inputs))?;
    let session = Session::start_collective(team, verbosity, "append", files.iter().chain([&request.file]))?;
    session.run(team, |context| {
        let planned = request.plan_files(files, context)?;
        if team.leads() {
            print_recovery(planned.recovery(), &session);
        }
        let Some(plan) = planned.plan() else {
            if team.leads() {
                print_completed(arguments)?;
            }
            return Ok(Exit::Done);
        };
        if team.leads() {
            super::merge::print_bridged(plan, &session);
            planned.warnings().iter().for_each(|warning| session.warn(warning));
        }
        let exit = if plan.skipped.is_empty() { Exit::Done } else { Exit::InputsSkipped };
        match printing.dry_run {
            true if team.leads() => print_plan(arguments, &planned, plan)?,
            true => {}
            false => execute(arguments, &planned, context)?,
        }
        Ok(exit)
    })
}

/// Reports that an interrupted append of the same inputs was completed when the file was opened.
fn print_completed(arguments: &AppendArgs) -> Result<(), Error> {
    let file = &arguments.request.file;
    if arguments.printing.json {
        let output = file.to_string_lossy();
        print(&json(&serde_json::json!({ "output": output, "inputs": 0, "grown_datasets": 0 })))
    } else if !arguments.verbosity.quiet {
        print(&format!("{}: has the rows of all inputs\n", escape::path(file)))
    } else {
        Ok(())
    }
}

/// Prints what would be appended.
fn print_plan(arguments: &AppendArgs, planned: &PlannedAppend, plan: &MergePlan) -> Result<(), Error> {
    let summary = planned.summary();
    arguments.verbosity.write_report(&summary)?;
    if arguments.printing.json {
        return print(&json(&summary));
    }
    let growth = planned.growth();
    print(&format!(
        "{}: {} to append, {} would grow by up to {} rows\n",
        escape::path(&arguments.request.file),
        quantity::counted(plan.inputs.len() as u64 - 1, "file"),
        quantity::counted(growth.grown_datasets, "dataset"),
        quantity::count(growth.most_rows),
    ))
}

/// Collective. Appends the rows; the first rank reports.
fn execute(arguments: &AppendArgs, planned: &PlannedAppend, context: &Context<'_>) -> Result<(), Error> {
    let Some(appended) = planned.run(context)? else { return Ok(()) };
    arguments.verbosity.write_report(&appended)?;
    if arguments.printing.json {
        print(&json(&appended))?;
    } else if !arguments.verbosity.quiet {
        print(&report::appended(&arguments.request.file, &appended.report))?;
    }
    Ok(())
}

fn print_recovery(recovery: Recovery, session: &Session) {
    match recovery {
        Recovery::Nothing => {}
        Recovery::Discarded => session.warn("an interrupted append to the file was rolled back"),
        Recovery::Completed => session.warn("an interrupted append to the file was completed"),
    }
}
