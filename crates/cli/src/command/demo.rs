//! `raddle demo`: runs everything once on generated data: generate, plan, merge, verify, compare.

use super::print;
use crate::exit::Exit;
use crate::options::running::RuntimeArgs;
use crate::render::plan::{Detail, text};
use crate::render::quantity;
use crate::render::table::{CellAlign, Columns};
use crate::session::Session;
use crate::text_file::NO_FILES;
use raddle::Error;
use raddle::summary::Summary;
use raddle_core::report::progress::{Event, RunningStage, Stage};
use raddle_demo::generate::{GenerateProgress, generate};
use raddle_demo::h5py;
use raddle_demo::workload::Workload;
use raddle_merge::options::{Compress, MergeOptions, Watch};
use raddle_merge::plan::prediction::{Sample, predict};
use raddle_merge::write::MergeReport;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Options of `raddle demo`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// Files to generate: tiny (seconds), small (58 MB), wide (414 MB) or nova (8 files of 16,000 datasets)
    #[arg(long, value_name = "NAME", default_value = "small", value_parser = parse_workload)]
    workload: Workload,

    /// Keep the files in FOLDER instead of a temporary one
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,

    /// Generate the files and stop (with --keep)
    #[arg(long, requires = "keep")]
    only_generate: bool,

    /// Seed of the generated values
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Compression of the merged file
    #[arg(short = 'c', long, value_name = "HOW", default_value_t = Compress::default())]
    compress: Compress,

    /// Skip the comparison with an h5py loop
    #[arg(long)]
    no_h5py: bool,

    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle demo
      58 MB of temporary files, merged, verified, compared
  raddle demo --workload tiny --keep demo/
      a few small files to play with

The comparison runs an h5py loop with the same chunks and gzip level 6, if python3 (or the Python given by \
RADDLE_PYTHON) has h5py. Its values are compared with raddle's.";

fn parse_workload(name: &str) -> Result<Workload, String> {
    let known = Workload::ALL.map(|workload| workload.name).join(", ");
    Workload::named(name).ok_or_else(|| format!("known workloads are {known}"))
}

/// Generates the files and demonstrates what raddle does with them.
pub fn run(arguments: &DemoArgs) -> Result<Exit, Error> {
    let session = Session::start(&arguments.running.verbosity, "demo", NO_FILES)?;
    session.conclude(|watch| {
        // Kept until the end, because dropping it removes the files.
        let temporary;
        let folder = match &arguments.keep {
            Some(folder) => {
                std::fs::create_dir_all(folder).map_err(|cause| Error::writing(folder, &cause))?;
                folder.as_path()
            }
            None => {
                let created = tempfile::Builder::new().prefix("raddle-demo-").tempdir();
                temporary = created.map_err(|cause| Error::writing(&std::env::temp_dir(), &cause))?;
                temporary.path()
            }
        };
        let inputs = make_files(arguments, folder, watch)?;
        if arguments.only_generate {
            return Ok(Exit::Done);
        }
        show(arguments, &inputs, &folder.join("merged.h5"), watch, &session)
    })
}

fn make_files(arguments: &DemoArgs, folder: &Path, watch: &Watch<'_>) -> Result<Vec<PathBuf>, Error> {
    let workload = &arguments.workload;
    narrate(arguments, &format!("Making {}: {}.\n", workload.name, workload.about))?;
    let jobs = arguments.running.execution.jobs.or_else(|| NonZeroUsize::new(raddle_core::engine::default_jobs()));
    let creating = RunningStage::start(watch.observer, Stage::Create, None);
    let mut reported = 0;
    let mut progress = |generated: &GenerateProgress| {
        let bytes = generated.raw_len_bytes - reported;
        reported = generated.raw_len_bytes;
        watch.observer.event(&Event::Advanced { stage: Stage::Create, bytes, items: 0 });
    };
    let jobs = jobs.unwrap_or(NonZeroUsize::MIN);
    let generated = generate(folder, workload, arguments.seed, jobs, watch.cancel, &mut progress);
    creating.finish();
    generated.map_err(|error| {
        if watch.cancel.is_cancelled() { stopped() } else { Error::new(Exit::Output, &format!("{error:#}")) }
    })
}

/// Creates the failure for a signal that arrived while no merge was running.
fn stopped() -> Error {
    Error::new(Exit::Interrupted, "stopped before the end")
}

/// Plans, merges, verifies, compares, and prints the table.
fn show(
    arguments: &DemoArgs,
    inputs: &[PathBuf],
    merged: &Path,
    watch: &Watch<'_>,
    session: &Session,
) -> Result<Exit, Error> {
    let failed = |error| Error::of_merge(&error, inputs);
    let mut options = MergeOptions::new(merged);
    arguments.running.apply(&mut options);
    options.compress = arguments.compress;
    options.force = true;

    narrate(arguments, "\n$ raddle plan\n")?;
    let plan = raddle_merge::plan::plan(inputs, &options, watch).map_err(failed)?;
    let predicted = predict(&plan, Sample::QUICK).map_err(failed)?;
    narrate(arguments, &text(&Summary::of(&plan, Some(predicted)), Detail::Groups))?;

    narrate(arguments, "\n$ raddle merge\n")?;
    let report = raddle_merge::write::merge(&plan, watch).map_err(failed)?;
    arguments.running.write_report(&report)?;
    narrate(arguments, &crate::render::report::merged(&report))?;

    narrate(arguments, "\n$ raddle verify\n")?;
    let verified = raddle_merge::verify::verify(merged, inputs, &options, watch).map_err(failed)?;
    narrate(arguments, &crate::render::report::verified(&verified))?;
    if !verified.mismatches.is_empty() {
        return Ok(Exit::Mismatch);
    }

    let looped = match (arguments.no_h5py, h5py::find_python()) {
        (true, _) => None,
        (false, None) => {
            session.warn("no Python with h5py found; install h5py or set RADDLE_PYTHON to see the comparison");
            None
        }
        (false, Some(python)) => {
            narrate(arguments, "\nThe same with a loop over h5py, gzip level 6 (this takes a while) ...\n")?;
            let output = merged.with_file_name("h5py-loop.h5");
            let looped = h5py::run(&python, merged, &output, inputs, watch.cancel);
            let looped = looped.map_err(|error| Error::new(Exit::Internal, &format!("{error:#}")))?;
            Some(looped.ok_or_else(stopped)?)
        }
    };
    narrate(arguments, &comparison(&report, arguments.compress, looped.as_ref()))?;
    let differ = looped.is_some_and(|looped| !looped.different.is_empty());
    Ok(if differ { Exit::Mismatch } else { Exit::Done })
}

/// Formats the final table.
fn comparison(report: &MergeReport, compress: Compress, looped: Option<&h5py::Loop>) -> String {
    let titles = [
        ("", CellAlign::Left),
        ("time", CellAlign::Right),
        ("speed", CellAlign::Right),
        ("output", CellAlign::Right),
        ("of the inputs", CellAlign::Right),
    ];
    let mut columns = Columns::new(&titles);
    let mut row = |name: &str, elapsed_s: f64, len_bytes: u64| {
        columns.row(&[
            name.to_owned(),
            quantity::seconds(elapsed_s),
            quantity::rate(report.logical_len_bytes, elapsed_s),
            quantity::size(len_bytes),
            quantity::share(len_bytes, report.input_len_bytes),
        ]);
    };
    row(
        &format!("raddle merge -c {compress}, {} threads", report.engine.jobs),
        report.elapsed_s,
        report.output_len_bytes,
    );
    if let Some(looped) = looped {
        row(
            &format!("loop over h5py {} (HDF5 {}), gzip 6", looped.h5py, looped.hdf5),
            looped.elapsed_s,
            looped.len_bytes,
        );
    }
    let mut text = format!("\n{}", columns.render());
    if let Some(looped) = looped {
        text.push_str(&format!("\nraddle is {:.1} times as fast. ", looped.elapsed_s / report.elapsed_s));
        text.push_str(&match looped.different.as_slice() {
            [] => format!(
                "h5py reads the same values from both: {} datasets compared.\n",
                quantity::count(looped.datasets)
            ),
            different => {
                format!("h5py reads DIFFERENT values in {} datasets, first {}\n", different.len(), different[0])
            }
        });
    }
    text
}

/// Prints a step of the demo (not with `--quiet`).
fn narrate(arguments: &DemoArgs, text: &str) -> Result<(), Error> {
    if arguments.running.verbosity.quiet { Ok(()) } else { print(text) }
}
