//! `raddle merge`: plans, warns, executes and reports.

use super::print;
use crate::exit::Exit;
use crate::options::inputs::StandardInputArgs;
use crate::options::io::{IoArgs, OpenIo};
use crate::options::printing::PrintArgs;
use crate::options::running::VerbosityArgs;
use crate::ranks::Ranks;
use crate::render::plan::{Detail, prediction, text};
use crate::render::{differences, escape, json, keys, preview as preview_text, quantity, report};
use crate::session::Session;
use raddle::Error;
use raddle::merge::FinishedMerge;
use raddle::summary::Input;
use raddle::{Context, MergeRequest, PlannedMerge};
use raddle_merge::plan::MergePlan;
use raddle_merge::plan::prediction::{Prediction, Sample};
use raddle_merge::write::bridged;
use std::path::PathBuf;

/// Options of `raddle merge`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    #[command(flatten)]
    request: MergeRequest,
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
  raddle merge run11981/ -o run11981.h5
      all files of a folder
  raddle merge 'run*/*.h5' -o all.h5 -c fast -j 8
      fastest, eight threads
  raddle merge -i list.txt -o all.h5 --memory 512MiB
      the files of a list, in its order
  find . -name '*.h5' -print0 | raddle merge -0 - -o all.h5
  raddle merge run11981/ -o run11981.h5 --dry-run
      only show what would be done
  raddle merge tracks.h5 hits.h5 -o run.h5 --union
      distinct datasets, chunks kept as stored
  raddle merge run11981/ -o view.h5 --link virtual
      no copy: reads like the merged file
  raddle merge run11981/ -o run11981.h5 \\
    --keys /spill/run,/spill/subrun,/spill/evt

Rows of the output are the rows of the first input, then those of the second, and so on. Datasets are matched \
by their path, never by position. The output appears under its name only when it is complete.";

/// Collective. Merges the inputs.
pub fn run(arguments: &MergeArgs, team: &Ranks) -> Result<Exit, Error> {
    let MergeArgs { request, standard_input, printing, io, verbosity } = arguments;
    if printing.dry_run && request.part.is_some() {
        return Err(Error::usage("--part writes its share of a merge: leave out --dry-run, or use raddle plan"));
    }
    let files = team.paths_of_first(|| standard_input.expand(&request.inputs))?;
    let io = io.open(team, request.part.is_some(), request.preview.preview.is_some() || request.indexing.index)?;
    let output = OutputCommand { path: &request.output.output, printing: *printing, io, verbosity, command: "merge" };
    output.write(team, files, |files, context| request.plan_files(files, context))
}

/// A file that a command writes.
pub(super) struct OutputCommand<'a> {
    /// Path of the file.
    pub path: &'a PathBuf,
    /// Options for printing.
    pub printing: PrintArgs,
    /// Input and output of ranks.
    pub io: OpenIo<'a>,
    /// Options for messages.
    pub verbosity: &'a VerbosityArgs,
    /// Name of the command.
    pub command: &'static str,
}

/// Report of a merge as JSON.
#[derive(serde::Serialize)]
struct MergeRecord<'a> {
    #[serde(flatten)]
    merged: &'a FinishedMerge,
    prediction: Option<Prediction>,
    input_files: Vec<Input>,
}

impl OutputCommand<'_> {
    /// Collective. Plans the file with `plan`, then writes or only describes it.
    pub fn write(
        &self,
        team: &Ranks,
        files: Vec<PathBuf>,
        plan: impl FnOnce(Vec<PathBuf>, &Context<'_>) -> Result<PlannedMerge, Error>,
    ) -> Result<Exit, Error> {
        let session = Session::start_collective(team, self.verbosity, self.command, files.iter().chain([self.path]))?;
        session.run(team, |context| {
            let planned = plan(files, context)?;
            self.io.check_plan(planned.plan())?;
            let exit = if planned.plan().skipped.is_empty() { Exit::Done } else { Exit::InputsSkipped };
            if self.printing.dry_run {
                self.print_plan(&planned, &session, team)?;
                return Ok(exit);
            }
            let warn = || if team.leads() { print_warnings(&planned, &session).map(Some) } else { Ok(None) };
            let predicted = team.agree("predict the output", warn())?;
            if planned.part().is_some() {
                self.write_part(planned, context)?;
            } else {
                self.write_whole(planned, predicted, context, team)?;
            }
            Ok(exit)
        })
    }

    /// Prints what would be written, on the first rank.
    fn print_plan(&self, planned: &PlannedMerge, session: &Session, team: &Ranks) -> Result<(), Error> {
        if !team.leads() {
            return Ok(());
        }
        raddle::merge::layout_warnings(planned.plan()).iter().for_each(|warning| session.warn(warning));
        let summary = planned.summary()?;
        let space = summary.predicted.as_ref().and_then(|predicted| planned.space_warning(predicted));
        space.iter().for_each(|warning| session.warn(warning));
        let preview = planned.preview().map_or(String::new(), preview_text::planned);
        self.verbosity.write_report(&summary)?;
        print(&if self.printing.json { json(&summary) } else { text(&summary, Detail::of(&summary)) + &preview })
    }

    fn write_part(&self, planned: PlannedMerge, context: &Context<'_>) -> Result<(), Error> {
        let Some(written) = planned.run_part(context)? else { return Ok(()) };
        self.verbosity.write_report(&written)?;
        match (self.printing.json, self.verbosity.quiet) {
            (true, _) => print(&json(&written)),
            (false, true) => Ok(()),
            (false, false) => print(&report::part(&written)),
        }
    }

    /// Collective. Writes the file; the first rank reports.
    fn write_whole(
        &self,
        planned: PlannedMerge,
        prediction: Option<Prediction>,
        context: &Context<'_>,
        team: &Ranks,
    ) -> Result<(), Error> {
        let (input_files, keys_summary) = (planned.inputs(), keys::summary(&planned.plan().derived));
        let Some(merged) = planned.run_with(context, self.io.of_ranks(team))? else { return Ok(()) };
        let record = MergeRecord { merged: &merged, prediction, input_files };
        self.verbosity.write_report(&record)?;
        match (self.printing.json, self.verbosity.quiet) {
            (true, _) => print(&json(&record)),
            (false, true) => Ok(()),
            (false, false) => {
                let selected = merged.events.map_or(String::new(), |events| {
                    let of = quantity::counted(events.of, "event");
                    format!("  {} of {of} selected\n", quantity::count(events.selected))
                });
                let keys_summary = if keys_summary.is_empty() { keys_summary } else { format!("  {keys_summary}\n") };
                let preview = merged.preview.as_ref().map_or(String::new(), preview_text::written);
                let index =
                    merged.index.as_deref().map_or(String::new(), |path| format!("  index {}\n", escape::path(path)));
                print(&(report::merged(&merged.report) + &selected + &keys_summary + &index + &preview))
            }
        }
    }
}

/// Prints warnings about a merge that is about to start, and returns its predicted cost.
fn print_warnings(planned: &PlannedMerge, session: &Session) -> Result<Prediction, Error> {
    print_bridged(planned.plan(), session);
    planned.warnings().iter().for_each(|warning| session.warn(warning));
    let predicted = planned.predict(Sample::QUICK)?;
    if predicted.grows() {
        session.warn(&format!("the output will be larger than the inputs: {}", prediction(&predicted)));
    }
    planned.space_warning(&predicted).iter().for_each(|warning| session.warn(warning));
    Ok(predicted)
}

/// Reports which inputs are left out and which differences the join resolves.
pub(super) fn print_bridged(plan: &MergePlan, session: &Session) {
    if !plan.skipped.is_empty() {
        let count = quantity::counted(plan.skipped.len() as u64, "input");
        let because = if plan.skipped.len() == 1 { "it cannot" } else { "they cannot" };
        session.warn(&format!("{count} left out because {because} be read"));
        session.say(&differences::bad_inputs(&plan.skipped));
    }
    if let Some(reader) = plan.schema.reader_without_provenance() {
        session.say(&format!(
            "note: no /_raddle group, which {reader} cannot read: to compare the output with its inputs, use verify --against with the options of this merge",
        ));
    }
    session.note_differences(bridged(plan));
    if !plan.warnings.is_empty() {
        let count = quantity::counted(plan.warnings.len() as u64, "difference");
        session.warn(&format!("{count} between inputs that the merge accepts"));
        let inputs: Vec<PathBuf> = plan.inputs.iter().map(|input| input.path.clone()).collect();
        session.say(&differences::table(&plan.warnings, &inputs));
    }
}
