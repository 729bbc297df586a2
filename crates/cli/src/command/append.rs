//! `raddle append`: adds rows to an existing file, in place and atomically.

use super::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::compression::Compression;
use crate::options::inputs::{InputArgs, SortArgs};
use crate::options::running::RuntimeArgs;
use crate::ranks::Ranks;
use crate::render::plan::{Input, Summary};
use crate::render::{escape, json, quantity, report};
use crate::session::Session;
use raddle_merge::MergeError;
use raddle_merge::append::redo::Recovery;
use raddle_merge::append::{AppendLock, AppendReport, append_collective, open_for_append_collective, plan_collective};
use raddle_merge::inputs::selection::Selection;
use raddle_merge::options::{MergeOptions, Watch};
use raddle_merge::plan::MergePlan;
use raddle_merge::schema::join::{AttributePolicy, Join as JoinPolicy, ScalarPolicy};
use std::path::PathBuf;

/// Options of `raddle append`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct AppendArgs {
    /// HDF5 file to append to; at any time it holds either the old or the new content
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Files whose rows are appended.
    #[command(flatten)]
    pub inputs: InputArgs,

    /// Order of the inputs.
    #[command(flatten)]
    pub sorting: SortArgs,

    /// Append inputs even if the file already has their rows
    #[arg(long, help_heading = "Inputs")]
    pub again: bool,

    /// What to do if an input lacks a dataset of the file [default: as the file was merged]
    #[arg(long, value_enum, help_heading = "Where inputs differ")]
    join: Option<Join>,

    /// Datasets of a single value (scalars) that differ from the file's [default: as the file was merged]
    #[arg(long, value_enum, help_heading = "Where inputs differ")]
    scalars: Option<Scalars>,

    /// Attributes that differ from the file's [default: as the file was merged]
    #[arg(long, value_enum, help_heading = "Where inputs differ")]
    attributes: Option<Attributes>,

    /// Do not append to datasets whose path matches; they must be equal in all inputs
    #[arg(long, value_name = "GLOB", help_heading = "Where inputs differ")]
    keep: Vec<String>,

    /// Leave out inputs that cannot be read; the run then ends with exit code 4
    #[arg(long, help_heading = "Where inputs differ")]
    skip_bad: bool,

    /// Follow virtual datasets and external storage even outside of the input's folder
    #[arg(long, help_heading = "Where inputs differ")]
    follow_foreign_files: bool,

    /// Compression effort for datasets that the file compresses with deflate (fast, balanced, small, gzip:1-9) or
    /// Zstandard (zstd:1-22); keep, and all other datasets: as in the file
    #[arg(short = 'c', long, value_name = "HOW", default_value_t = Compression::default(), help_heading = "Layout")]
    compress: Compression,

    /// Show what would be appended without writing anything
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Print the report, or the failure, as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle append run11981.h5 today/                      the files of a folder, after the existing rows
  raddle append all.h5 @new.txt -n                      only show what would be done
  raddle append all.h5 subrun7.h5 --again               even if its rows are already in the file

Datasets grow along their first axis, with their existing chunks and filters; raddle merge --extendible makes \
files in which all datasets can grow. Partition keys are extended. Readers see the old file until the append \
is complete. If the run is interrupted, the next raddle command that opens the file completes the append or \
rolls it back.";

impl AppendArgs {
    /// Returns the options of the append.
    ///
    /// # Errors
    /// If a pattern is not a valid glob.
    pub fn options(&self) -> Result<MergeOptions, Failure> {
        let mut options = MergeOptions::new(&self.file);
        options.selection = Selection::new(&[], &[], &self.keep).map_err(|error| Failure::of_merge(&error, &[]))?;
        options.join.join = match self.join {
            None | Some(Join::Exact) => JoinPolicy::Exact,
            Some(Join::Outer) => JoinPolicy::Outer,
        };
        options.join.scalars = match self.scalars {
            None | Some(Scalars::Equal) => ScalarPolicy::Equal,
            Some(Scalars::First) => ScalarPolicy::First,
        };
        options.join.attributes = match self.attributes {
            None | Some(Attributes::First) => AttributePolicy::First,
            Some(Attributes::Error) => AttributePolicy::Error,
        };
        let given = [
            ("join", self.join.is_some()),
            ("scalars", self.scalars.is_some()),
            ("attributes", self.attributes.is_some()),
        ];
        options.explicit = given.into_iter().filter(|one| one.1).map(|one| one.0).collect();
        options.skip_bad = self.skip_bad;
        options.follow_foreign_files = self.follow_foreign_files;
        self.compress.apply(&mut options);
        self.running.apply(&mut options);
        Ok(options)
    }

    /// Converts the error of an append; differences are reported with the file as the first input.
    pub fn failure(&self, error: &MergeError, inputs: &[PathBuf]) -> Failure {
        let all: Vec<PathBuf> = std::iter::once(&self.file).chain(inputs).cloned().collect();
        match error {
            MergeError::Differences { .. } => Failure::of_merge(error, &all),
            _ => Failure::of_merge(error, inputs),
        }
    }
}

/// Requirement on the datasets of each input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Join {
    /// All inputs must have exactly the objects of the file
    Exact,
    /// Datasets that an input lacks get rows with the fill value
    Outer,
}

/// Treatment of scalar datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Scalars {
    /// They must be equal; otherwise stop
    Equal,
    /// Keep those of the file
    First,
}

/// Treatment of attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Attributes {
    /// Keep those of the file and report how many differ
    First,
    /// Stop if any differs
    Error,
}

/// Collective. Appends the inputs.
pub fn run(arguments: &AppendArgs, team: &Ranks) -> Result<Exit, Failure> {
    let inputs = team.paths_of_first(|| arguments.inputs.expand(&mut std::io::stdin().lock()))?;
    let mut options = arguments.options()?;
    arguments.running.apply_collective(team, &mut options);
    let watching =
        Session::start_collective(team, &arguments.running, "append", inputs.iter().chain([&arguments.file]))?;
    watching.conclude(|watch| {
        let inputs = team.paths_of_first(|| arguments.sorting.sort(inputs, &options, watch))?;
        let failed = |error: MergeError| arguments.failure(&error, &inputs);
        let held = open_for_append_collective(&arguments.file, team.ranks()).map_err(failed)?;
        if team.leads() {
            print_recovery(&held, &watching);
        }
        let plan = match plan_collective(&held, &inputs, arguments.again, &options, watch, team.ranks()) {
            // The interrupted run was a run of this same command.
            Err(MergeError::Repeated { repeated, .. })
                if held.settled == Recovery::Completed && repeated.len() == inputs.len() =>
            {
                if !team.leads() {
                    return Ok(Exit::Done);
                }
                if arguments.json {
                    let output = arguments.file.to_string_lossy();
                    print(&json(&serde_json::json!({ "output": output, "inputs": 0, "grown_datasets": 0 })))?;
                } else if !arguments.running.telling.quiet {
                    print(&format!("{}: has the rows of all inputs\n", escape::path(&arguments.file)))?;
                }
                return Ok(Exit::Done);
            }
            outcome => outcome.map_err(failed)?,
        };
        options.selection.check_matched(team.ranks(), watch).map_err(failed)?;
        if team.leads() {
            print_bridged(&plan, &watching);
        }
        let exit = if plan.skipped.is_empty() { Exit::Done } else { Exit::InputsSkipped };
        execute(arguments, &plan, &held, watch, team).map_err(|error| match error {
            Stopped::Merge(error) => failed(error),
            Stopped::Failed(failure) => failure,
        })?;
        Ok(exit)
    })
}

/// Plan of an append.
#[derive(serde::Serialize)]
struct Planned {
    /// Summary of the plan, with the file as the first of the inputs. No data is encoded on trial, so no cost is
    /// predicted.
    #[serde(flatten)]
    summary: Summary,
    /// Number of datasets that would get rows.
    grown_datasets: u64,
    /// Maximum number of rows that a dataset would get.
    most_rows: u64,
}

impl Planned {
    fn of(plan: &MergePlan) -> Self {
        let columns = plan.growth.iter().flat_map(|growth| &growth.columns);
        let new_rows = columns.map(|column| column.new_rows).filter(|&rows| rows > 0);
        let (grown_datasets, most_rows) = new_rows.fold((0, 0), |(count, most), rows| (count + 1, rows.max(most)));
        Self { summary: Summary::of(plan, None), grown_datasets, most_rows }
    }
}

/// Report of an append, with the file.
#[derive(serde::Serialize)]
struct Appended<'a> {
    #[serde(flatten)]
    report: &'a AppendReport,
    input_files: Vec<Input>,
}

enum Stopped {
    Merge(MergeError),
    Failed(Failure),
}

/// Collective. Executes the plan, or prints it with `--dry-run`; the first rank reports.
fn execute(
    arguments: &AppendArgs,
    plan: &MergePlan,
    held: &AppendLock,
    watch: &Watch<'_>,
    team: &Ranks,
) -> Result<(), Stopped> {
    if arguments.dry_run && !team.leads() {
        return Ok(());
    }
    if arguments.dry_run {
        let planned = Planned::of(plan);
        arguments.running.write_report(&planned).map_err(Stopped::Failed)?;
        if arguments.json {
            return print(&json(&planned)).map_err(Stopped::Failed);
        }
        let text = format!(
            "{}: {} to append, {} would grow by up to {} rows\n",
            escape::path(&arguments.file),
            quantity::counted(plan.inputs.len() as u64 - 1, "file"),
            quantity::counted(planned.grown_datasets, "dataset"),
            quantity::count(planned.most_rows),
        );
        return print(&text).map_err(Stopped::Failed);
    }
    let Some(done) = append_collective(plan, held, watch, team.ranks()).map_err(Stopped::Merge)? else { return Ok(()) };
    let done = Appended { report: &done, input_files: Input::of(plan).split_off(1) };
    arguments.running.write_report(&done).map_err(Stopped::Failed)?;
    if arguments.json {
        print(&json(&done)).map_err(Stopped::Failed)?;
    } else if !arguments.running.telling.quiet {
        print(&report::appended(&arguments.file, done.report)).map_err(Stopped::Failed)?;
    }
    Ok(())
}

fn print_recovery(held: &AppendLock, watching: &Session) {
    match held.settled {
        Recovery::Nothing => {}
        Recovery::Discarded => watching.warn("an interrupted append to the file was rolled back"),
        Recovery::Completed => watching.warn("an interrupted append to the file was completed"),
    }
}

fn print_bridged(plan: &MergePlan, watching: &Session) {
    super::merge::print_bridged(plan, watching);
    let unfiltered = plan.columns.iter().filter(|column| column.skipped_filters != 0).count() as u64;
    if unfiltered > 0 {
        let count = quantity::counted(unfiltered, "dataset");
        watching.warn(&format!("{count} with filters that raddle does not write: new chunks are stored without them"));
    }
}
