//! `raddle report`: a page with figures of what runs did.

use super::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::reader::ReaderArgs;
use crate::rasterise::Rasteriser;
use crate::render::escape;
use raddle_hdf5::inspect::inspect;
use raddle_hdf5::native::ReadLimits;
use raddle_hdf5::source::InputFile;
use raddle_report::ReportError;
use raddle_report::measured::{Measurement, is_measurement};
use raddle_report::page::{Shown, ShownRun, Subject, page};
use raddle_report::run::{DRAWN, File, Run};
use raddle_report::svg::{Figure, WIDTH};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Options of `raddle report`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// Reports, as --report of other commands writes them
    #[arg(value_name = "RUN.json", required = true)]
    runs: Vec<PathBuf>,

    /// Page to write: one file, without scripts, that needs no network
    #[arg(short, long, value_name = "HTML", default_value = "report.html")]
    output: PathBuf,

    /// Replace the page and figures if they exist
    #[arg(short, long)]
    force: bool,

    /// Write each figure to FOLDER as well, as SVG
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,

    /// Write each figure to FOLDER as well, as PNG; takes rsvg-convert or chromium
    #[arg(long, value_name = "FOLDER")]
    png: Option<PathBuf>,

    /// Do not look at the files that the runs wrote, which are asked for sizes and chunks
    #[arg(long)]
    no_files: bool,

    #[command(flatten)]
    reader: ReaderArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle merge run11981/ -o run11981.h5 --report run.json && raddle report run.json
  raddle report fast.json small.json -o compared.html
  raddle report run.json --svg figures/
  raddle tune --report tuned.json && raddle report tuned.json

It takes reports of merge, rechunk, append, keys add, idx write, bench and tune.

Of bench and tune, the page shows verdicts, sweeps with intervals, rates and distributions. Of
other runs, it shows the time of every stage and rank, what was foretold beside what happened, the
command that repeats the run, and, of the file that it wrote, where its bytes are, the sizes of its
chunks and how well its datasets compress.";

/// Writes the page.
pub fn run(arguments: &ReportArgs) -> Result<Exit, Failure> {
    let shown = arguments.runs.iter().map(|path| shown(arguments, path)).collect::<Result<Vec<_>, _>>()?;
    write(&arguments.output, page(&shown).as_bytes(), arguments.force)?;
    let mut written = vec![escape::path(&arguments.output)];
    for (place, shown) in shown.iter().enumerate() {
        let prefix = if arguments.runs.len() > 1 { format!("{}-", place + 1) } else { String::new() };
        write_figures(arguments, &prefix, &shown.subject.figures(), &mut written)?;
    }
    print(&written.iter().map(|path| format!("{path}\n")).collect::<String>())?;
    Ok(Exit::Done)
}

/// Writes figures by themselves, where that is asked for.
fn write_figures(
    arguments: &ReportArgs,
    prefix: &str,
    figures: &[Figure],
    written: &mut Vec<String>,
) -> Result<(), Failure> {
    let made = |folder: &Path| std::fs::create_dir_all(folder).map_err(|cause| Failure::writing(folder, &cause));
    if let Some(folder) = &arguments.svg {
        made(folder)?;
        for figure in figures {
            let path = folder.join(format!("{prefix}{}.svg", figure.name));
            write(&path, figure.file().as_bytes(), arguments.force)?;
            written.push(escape::path(&path));
        }
    }
    if let Some(folder) = &arguments.png {
        let rasteriser = Rasteriser::find().ok_or_else(|| {
            Failure::usage(&format!("--png: none of {} is on PATH", Rasteriser::known()))
                .hint("install one of them, or take --svg")
        })?;
        made(folder)?;
        let own = tempfile::tempdir().map_err(|cause| Failure::writing(&std::env::temp_dir(), &cause))?;
        let (svg, png) = (own.path().join("figure.svg"), own.path().join("figure.png"));
        for figure in figures {
            let path = folder.join(format!("{prefix}{}.png", figure.name));
            let picture = std::fs::write(&svg, figure.file())
                .and_then(|()| rasteriser.make(&svg, &png, WIDTH, figure.height()))
                .and_then(|()| std::fs::read(&png));
            write(&path, &picture.map_err(|cause| Failure::writing(&path, &cause))?, arguments.force)?;
            written.push(escape::path(&path));
        }
    }
    Ok(())
}

/// What the report at `path` tells of.
fn shown(arguments: &ReportArgs, path: &Path) -> Result<Shown, Failure> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let text =
        std::fs::read(path).map_err(|source| of_report(&ReportError::Io { path: path.to_path_buf(), source }))?;
    if is_measurement(&text) {
        let done = Measurement::parse(path, &text).map_err(|error| of_report(&error))?;
        return Ok(Shown { name, subject: Subject::Measurement(Box::new(done)) });
    }
    let run = Run::parse(path, &text).map_err(|error| of_report(&error))?;
    let (file, file_missing) = match run
        .output
        .as_deref()
        .filter(|_| !arguments.no_files && run.phases.is_none())
        .map(|output| look(arguments, output))
    {
        Some(Ok(file)) => (Some(file), None),
        Some(Err(reason)) => (None, Some(reason)),
        None => (None, None),
    };
    Ok(Shown { name, subject: Subject::Run(Box::new(ShownRun { run, file, file_missing })) })
}

/// The file at `path` as figures need it; why not, in words.
fn look(arguments: &ReportArgs, path: &Path) -> Result<File, String> {
    let looked = InputFile::open(path)
        .and_then(|file| inspect(&file, &ReadLimits::default(), arguments.reader.child().as_ref()));
    let inspection = looked.map_err(|error| error.to_string())?;
    // Through the form that `inspect --json` has, which is what figures are made of.
    serde_json::to_value(&inspection).and_then(serde_json::from_value).map_err(|error| error.to_string())
}

fn write(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    let file = if force { std::fs::File::create(path) } else { std::fs::File::create_new(path) };
    let written = file.and_then(|mut file| file.write_all(bytes));
    written.map_err(|cause| match cause.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::new(Exit::Output, &format!("{} exists", path.display()))
            .hint("replace it with --force, or name another with -o"),
        _ => Failure::writing(path, &cause),
    })
}

fn of_report(error: &ReportError) -> Failure {
    Failure::new(Exit::InputRefused, &error.to_string())
        .hint(&format!("name files that --report of {}, bench or tune wrote", DRAWN.join(", ")))
}
