//! `raddle merge`: plans, warns, executes and reports.

use super::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::compression::readers_need;
use crate::options::{
    inputs::{InputArgs, SortArgs},
    io::{Interface, IoArgs},
    keys::KeyArgs,
    layout::LayoutArgs,
    output::OutputArgs,
    placing::PlacementArgs,
    preview::PreviewArgs,
    running::RuntimeArgs,
    schema::SchemaArgs,
    stripes::StripesArgs,
};
use crate::preview::{self, MergePreview, ReportWithPreview};
use crate::ranks::Ranks;
use crate::render::plan::{Detail, Input, Summary, prediction};
use crate::render::{differences, json, keys, preview as preview_text, quantity, report};
use crate::session::Session;
use raddle_codec::KnownFilter;
use raddle_merge::keys::DerivedSpec;
use raddle_merge::options::{Compress, Empty, MergeOptions};
use raddle_merge::plan::prediction::{Prediction, Sample, predict};
use raddle_merge::plan::{MergePlan, Route};
use raddle_merge::write::bridged;
use raddle_merge::write::parts::{Part, merge_part};
use raddle_merge::{IoBackend, MergeContext, Reading, TileObserver, check_output, published_path};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options of `raddle merge`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    /// Files to merge.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Order of the inputs.
    #[command(flatten)]
    pub sorting: SortArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    stripes: StripesArgs,
    #[command(flatten)]
    io: IoArgs,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    layout: LayoutArgs,
    /// Add partition keys: id columns of the group with one row per event, most significant first
    ///
    /// Every group that has columns with these names gets NAME.seq, NAME.seq_cnt and NAME.offsets, where NAME is the
    /// last of them. Existing keys of the inputs are replaced.
    #[arg(
        long,
        value_name = "COLUMNS",
        value_delimiter = ',',
        conflicts_with = "union",
        help_heading = "Partition keys"
    )]
    keys: Vec<String>,
    #[command(flatten)]
    making: KeyArgs,
    #[command(flatten)]
    placing: PlacementArgs,
    /// Preview of the output.
    #[command(flatten)]
    pub preview: PreviewArgs,
    /// Write only part I of N: for N processes, on any machines, that share the output's folder
    ///
    /// All parts must have the same inputs and options, and can run concurrently or one after the other. The part that
    /// finds all others done publishes the output, which is identical to that of a single process. An interrupted part
    /// resumes when it is run again.
    #[arg(long, value_name = "I/N", value_parser = part, conflicts_with_all = ["dry_run", "unordered", "align"], help_heading = "Running")]
    pub part: Option<Part>,
    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle merge run11981/ -o run11981.h5                    all files of a folder
  raddle merge 'run*/*.h5' -o all.h5 -c fast -j 8          fastest, eight threads
  raddle merge -i list.txt -o all.h5 --memory 512MiB       the files of a list, in its order
  find . -name '*.h5' -print0 | raddle merge -0 - -o all.h5
  raddle merge run11981/ -o run11981.h5 --dry-run          only show what would be done
  raddle merge tracks.h5 hits.h5 -o run.h5 --union         distinct datasets, chunks kept as stored
  raddle merge run11981/ -o view.h5 --link virtual         no copy: reads like the merged file
  raddle merge run11981/ -o run11981.h5 --keys /spill/run,/spill/subrun,/spill/evt

Rows of the output are the rows of the first input, then those of the second, and so on. Datasets are matched \
by their path, never by position. The output appears under its name only when it is complete.";

impl MergeArgs {
    /// Returns the options of the merge.
    ///
    /// # Errors
    /// If options conflict or a pattern is not a valid glob.
    pub fn options(&self) -> Result<MergeOptions, Failure> {
        let mut options = MergeOptions::new(&self.output.output);
        self.output.apply(&mut options);
        self.stripes.apply(&mut options);
        self.schema.apply(&mut options)?;
        self.layout.apply(&mut options)?;
        if self.part.is_some() {
            // Parts do not know each other's addresses; a profile shared with other merges may request alignment.
            options.align = None;
        }
        if !self.keys.is_empty() {
            options.made.push(DerivedSpec::Keys(self.making.spec(&self.keys, true)));
        }
        self.placing.apply(&mut options);
        if options.link.is_external() && !options.made.is_empty() {
            return Err(Failure::usage(
                "an output of external links has no datasets to make keys for: leave out --keys",
            ));
        }
        if options.empty == Empty::Null && !options.made.is_empty() {
            return Err(Failure::usage(
                "--empty null leaves tables without columns to make keys for: leave out --keys",
            ));
        }
        self.running.apply(&mut options);
        Ok(options)
    }

    /// Refuses options that require ranks, for a caller that is a single process.
    ///
    /// # Errors
    /// If the chunks are to be written through MPI.
    pub fn check_alone(&self) -> Result<(), Failure> {
        match self.io.interface()? {
            Interface::Posix => Ok(()),
            Interface::MpiIo(hints) => Ranks::alone().files(&hints).map(drop),
            Interface::Collective(library) => Ranks::alone().datasets(library).map(drop),
        }
    }
}

/// Collective. Merges the inputs.
pub fn run(arguments: &MergeArgs, team: &Ranks) -> Result<Exit, Failure> {
    let inputs = team.paths_of_first(|| arguments.inputs.expand(&mut std::io::stdin().lock()))?;
    let mut options = arguments.options()?;
    if arguments.part.is_some() && team.ranks().size() > 1 {
        return Err(Failure::usage("--part is for independent processes, not for MPI ranks"));
    }
    arguments.running.apply_collective(team, &mut options);
    let how = MergeMode {
        dry_run: arguments.output.dry_run,
        json: arguments.output.json,
        part: arguments.part,
        io: &arguments.io,
        preview: &arguments.preview,
    };
    merge(team, inputs, &arguments.sorting, &options, how, &arguments.running, "merge")
}

/// Merge report together with the plan's prediction.
#[derive(serde::Serialize)]
struct ReportWithPrediction<'a> {
    #[serde(flatten)]
    accompanied: &'a ReportWithPreview<'a>,
    prediction: Option<Prediction>,
    input_files: Vec<Input>,
}

/// Parameters of carrying out a merge.
#[derive(Debug, Clone, Copy)]
pub(super) struct MergeMode<'a> {
    /// Whether only the plan is printed.
    pub dry_run: bool,
    /// Whether the report is printed as JSON.
    pub json: bool,
    /// Part to write, if several processes share the merge.
    pub part: Option<Part>,
    /// Options for reading and writing on several ranks.
    pub io: &'a IoArgs,
    /// Options for the preview.
    pub preview: &'a PreviewArgs,
}

/// Parses a part: 2/3.
fn part(text: &str) -> Result<Part, String> {
    let (number, count) = text.split_once('/').unwrap_or_default();
    let part = number.parse().ok().zip(count.parse().ok()).and_then(|(number, count)| Part::new(number, count));
    part.ok_or_else(|| "a part is I/N with I from 1 to N, for example 2/8".to_owned())
}

/// Collective. Plans and executes a merge of `inputs`; used by `merge` and `rechunk`.
pub(super) fn merge(
    team: &Ranks,
    inputs: Vec<PathBuf>,
    sorting: &SortArgs,
    options: &MergeOptions,
    how: MergeMode<'_>,
    running: &RuntimeArgs,
    command: &str,
) -> Result<Exit, Failure> {
    let interface = team.agree("look at how to write", how.io.interface())?;
    if interface != Interface::Posix && how.part.is_some() {
        return Err(Failure::usage("--io mpiio and --io collective are for ranks, not for --part"));
    }
    let (mut files, mut datasets) = (None, None);
    let io = match interface {
        Interface::Posix => IoBackend::Posix,
        Interface::MpiIo(hints) => IoBackend::Shared(&**files.insert(team.files(&hints)?)),
        Interface::Collective(_) if options.align.is_some() => {
            return Err(Failure::usage(
                "--align is for chunks that raddle places; --io collective leaves that to HDF5",
            ));
        }
        Interface::Collective(_) if how.preview.folder(&options.output).is_some() => {
            return Err(Failure::usage(
                "--preview is of values that raddle moves; --io collective leaves that to HDF5",
            ));
        }
        Interface::Collective(library) => {
            IoBackend::Collective(&**datasets.insert(team.agree("load HDF5", team.datasets(library))?))
        }
    };
    let watching = Session::start_collective(team, running, command, inputs.iter().chain([&options.output]))?;
    watching.conclude(|watch| {
        // Checked before the scan, which may take minutes, and again when writing starts.
        let check = || {
            check_output(&options.output, &inputs, options.force).map_err(|error| Failure::of_merge(&error, &inputs))
        };
        team.agree("look at the output", if team.leads() { check() } else { Ok(()) })?;
        let options = &MergeOptions { output: published_path(&options.output), ..options.clone() };
        let check = || preview::check(how.preview, options, how.part.is_some());
        team.agree("look at the preview", if team.leads() { check() } else { Ok(()) })?;
        let inputs = team.paths_of_first(|| sorting.sort(inputs, options, watch))?;
        let failed = |error| Failure::of_merge(&error, &inputs);
        let plan = raddle_merge::plan_collective(&inputs, options, watch, team.ranks()).map_err(failed)?;
        options.selection.check_matched(team.ranks(), watch).map_err(failed)?;
        let mut preview = team.agree("plan the preview", MergePreview::of(how.preview, &plan))?;
        let exit = if plan.skipped.is_empty() { Exit::Done } else { Exit::InputsSkipped };
        if how.dry_run {
            if team.leads() {
                print_reserialized(&plan, &watching);
                print_needs(&plan, &watching);
                let predicted = predict(&plan, Sample::THOROUGH).map_err(failed)?;
                let preview = preview.map_or(String::new(), |preview| preview_text::planned(preview.plan()));
                let summary = Summary::of(&plan, Some(predicted));
                running.write_report(&summary)?;
                print(&if how.json { json(&summary) } else { summary.text(Detail::Groups) + &preview })?;
            }
            return Ok(exit);
        }
        let tell = || {
            print_bridged(&plan, &watching);
            print_reserialized(&plan, &watching);
            print_needs(&plan, &watching);
            keys::warnings(&plan.made).iter().for_each(|warning| watching.warn(warning));
            preview.iter().flat_map(MergePreview::warnings).for_each(|warning| watching.warn(&warning));
            let predicted = predict(&plan, Sample::QUICK).map_err(failed)?;
            if predicted.grows() {
                watching.warn(&format!("the output will be larger than the inputs: {}", prediction(&predicted)));
            }
            Ok(Some(predicted))
        };
        let predicted = team.agree("predict the output", if team.leads() { tell() } else { Ok(None) })?;
        if let Some(part) = how.part {
            let done = merge_part(plan, part, watch).map_err(failed)?;
            running.write_report(&done)?;
            if how.json {
                print(&json(&done))?;
            } else if !running.telling.quiet {
                print(&report::part(&done))?;
            }
            return Ok(exit);
        }
        if let Some(preview) = &mut preview {
            let begun = if team.leads() { preview.begin(options) } else { Ok(()) };
            team.agree("begin the preview", begun)?;
        }
        let tile_observer = preview.as_ref().map(|preview| preview as &dyn TileObserver);
        let reading = Reading { strategy: how.io.strategy, machines: team.machines() };
        let through = MergeContext { io, reading, tile_observer };
        let done = raddle_merge::merge_through(&plan, watch, team.ranks(), through).map_err(failed)?;
        let Some(done) = done else { return Ok(exit) };
        let accompanied = ReportWithPreview::new(&done, preview.as_ref());
        let reported =
            ReportWithPrediction { accompanied: &accompanied, prediction: predicted, input_files: Input::of(&plan) };
        running.write_report(&reported)?;
        if how.json {
            print(&json(&reported))?;
        } else if !running.telling.quiet {
            let made = keys::made(&plan.made);
            let made = if made.is_empty() { made } else { format!("  {made}\n") };
            let preview = accompanied.preview().map_or(String::new(), preview_text::written);
            print(&(report::merged(&done) + &made + &preview))?;
        }
        Ok(exit)
    })
}

/// Warns about filters that readers of the output may lack.
pub(super) fn print_needs(plan: &MergePlan, watching: &Session) {
    let compresses = plan.columns.iter().any(|planned| matches!(planned.route, Route::Encoded { .. }));
    if compresses && let Some(need) = readers_need(plan.options.compress.compression()) {
        watching.warn(&need);
    }
}

/// Warns about datasets that were to keep filters that raddle cannot write and whose chunks cannot be moved as stored,
/// because they are not aligned with the rows of the inputs or other chunks were requested.
pub(super) fn print_reserialized(plan: &MergePlan, watching: &Session) {
    if plan.options.compress != Compress::Keep {
        return;
    }
    let mut lost = BTreeMap::new();
    for (planned, column) in plan.columns.iter().zip(&plan.schema.columns) {
        if let Route::Encoded { .. } = planned.route {
            let is_kept = |id: u16| planned.filters.iter().any(|filter| filter.id == id);
            for filter in column.model().filters.iter().filter(|filter| !is_kept(filter.id)) {
                *lost.entry(filter.id).or_insert(0_u64) += 1;
            }
        }
    }
    for (id, datasets) in lost {
        let name = KnownFilter::from_id(id).map_or_else(|| format!("filter {id}"), |filter| filter.name().to_owned());
        let count = quantity::counted(datasets, "dataset");
        watching.warn(&format!(
            "{count} cannot keep {name}, which raddle does not write: chunks that cannot be moved as stored are deflated"
        ));
    }
}

/// Reports which inputs are left out and which differences the join resolves.
pub(super) fn print_bridged(plan: &MergePlan, watching: &Session) {
    if !plan.skipped.is_empty() {
        let count = quantity::counted(plan.skipped.len() as u64, "input");
        let because = if plan.skipped.len() == 1 { "it cannot" } else { "they cannot" };
        watching.warn(&format!("{count} left out because {because} be read"));
        watching.say(&differences::bad_inputs(&plan.skipped));
    }
    if plan.schema.is_anndata() {
        watching.say(
            "note: no /_raddle group, which anndata cannot read: use verify --against to compare the output with its inputs",
        );
    }
    watching.note_differences(bridged(plan));
    if !plan.warnings.is_empty() {
        let count = quantity::counted(plan.warnings.len() as u64, "difference");
        watching.warn(&format!("{count} between inputs that the merge accepts"));
        let inputs: Vec<PathBuf> = plan.inputs.iter().map(|input| input.path.clone()).collect();
        watching.say(&differences::table(&plan.warnings, &inputs));
    }
}
