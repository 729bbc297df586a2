//! `raddle report`: creates a page with figures of runs.

use super::print;
use crate::exit::Exit;
use crate::rasterise::Rasteriser;
use crate::render::escape;
use crate::text_file::{self, Text};
use raddle::Error;
use raddle::options::ReaderOptions;
use raddle_hdf5::inspect::inspect;
use raddle_hdf5::native::ReadLimits;
use raddle_hdf5::source::InputFile;
use raddle_report::ReportError;
use raddle_report::measured::{Measurement, is_measurement};
use raddle_report::page::{NamedReport, NamedRun, Subject, page};
use raddle_report::run::{DRAWN, FileResult, Run};
use raddle_report::svg::{Figure, WIDTH};
use raddle_report::verified::{Verification, is_verification};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Options of `raddle report`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// Reports written by --report of other commands
    #[arg(value_name = "RUN.json", required = true)]
    runs: Vec<PathBuf>,

    /// Page to write: a single file without scripts that needs no network
    #[arg(short, long, value_name = "HTML", default_value = "report.html")]
    output: PathBuf,

    /// Replace the page and figures if they exist
    #[arg(short, long)]
    force: bool,

    /// Also write each figure to FOLDER as SVG
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,

    /// Also write each figure to FOLDER as PNG; needs rsvg-convert or chromium
    #[arg(long, value_name = "FOLDER")]
    png: Option<PathBuf>,

    /// Do not open the files that the runs wrote, which otherwise provide sizes and chunks
    #[arg(long)]
    no_files: bool,

    #[command(flatten)]
    reader: ReaderOptions,
}

const EXAMPLES: &str = "\
Examples:
  raddle merge run11981/ -o run11981.h5 --report run.json \\
    && raddle report run.json
  raddle report fast.json small.json -o compared.html
  raddle verify run11981.h5 --report ok.json && raddle report run.json ok.json
  raddle report run.json --svg figures/
  raddle tune --report tuned.json && raddle report tuned.json

Accepts reports of merge, rechunk, append, keys add, idx write, verify, bench and tune. Several runs are \
compared at the top of the page; a report of verify is shown with the run that wrote the file.

For bench and tune, the page shows verdicts, sweeps with intervals, rates and distributions. For other runs, it \
shows date and host, inputs, warnings and differences, the time of every stage and rank, predictions, the \
command that repeats the run and, for the output, the use of its bytes, its chunk sizes and the compression \
ratios of its datasets.";

/// Writes the page.
pub fn run(arguments: &ReportArgs) -> Result<Exit, Error> {
    check_ending(&arguments.output)?;
    // Checked before reading the files of the runs, which may take long.
    let mut files = arguments.runs.clone();
    check(arguments, &arguments.output, "--output", Text::Page, &mut files)?;
    let reports = arguments.runs.iter().map(|path| read_report(arguments, path)).collect::<Result<Vec<_>, _>>()?;
    let figures = figures(arguments, &reports);
    for (folder, option, text) in [(&arguments.svg, "--svg", Text::Page), (&arguments.png, "--png", Text::Picture)] {
        // A folder that does not exist yet is empty.
        for folder in folder.iter().filter(|folder| folder.is_dir()) {
            for (name, _) in &figures {
                check(arguments, &folder.join(format!("{name}.{}", &option[2..])), option, text, &mut files)?;
            }
        }
    }
    write(&arguments.output, page(&reports).as_bytes(), arguments.force)?;
    let mut written = vec![escape::path(&arguments.output)];
    write_figures(arguments, &figures, &mut written)?;
    print(&written.iter().map(|path| format!("{path}\n")).collect::<String>())?;
    Ok(Exit::Done)
}

/// Refuses a page whose file name has a misleading extension.
fn check_ending(output: &Path) -> Result<(), Error> {
    let ending = output.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let what = format!("-o writes an HTML page, which does not match the name {}", escape::path(output));
    match ending.as_str() {
        "svg" => Err(Error::usage(&what).hint("write figures with --svg FOLDER, or name a page: -o report.html")),
        "png" => Err(Error::usage(&what).hint("write figures with --png FOLDER, or name a page: -o report.html")),
        "pdf" => Err(Error::usage(&what).hint("print the page from a browser, or name a page: -o report.html")),
        "jpg" | "jpeg" | "json" | "md" | "txt" | "csv" => Err(Error::usage(&what).hint("name a page: -o report.html")),
        _ => Ok(()),
    }
}

/// Checks that writing to `path`, given by `option`, does not overwrite one of `files` or anything else that must not
/// be replaced; adds it to `files`.
fn check(arguments: &ReportArgs, path: &Path, option: &str, text: Text, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    text_file::check(path, option, text, &*files)?;
    if !arguments.force && path.is_file() {
        return Err(exists(path));
    }
    files.push(path.to_path_buf());
    Ok(())
}

/// Returns all figures, each with its file name without extension; empty if no figures are requested.
fn figures(arguments: &ReportArgs, reports: &[NamedReport]) -> Vec<(String, Figure)> {
    if arguments.svg.is_none() && arguments.png.is_none() {
        return Vec::new();
    }
    let prefix = |place: usize| if reports.len() > 1 { format!("{}-", place + 1) } else { String::new() };
    let of = |(place, report): (usize, &NamedReport)| {
        report.subject.figures().into_iter().map(move |figure| (format!("{}{}", prefix(place), figure.name), figure))
    };
    reports.iter().enumerate().flat_map(of).collect()
}

/// Writes figures to separate files, if requested.
fn write_figures(arguments: &ReportArgs, figures: &[(String, Figure)], written: &mut Vec<String>) -> Result<(), Error> {
    let create_folder = |folder: &Path| std::fs::create_dir_all(folder).map_err(|cause| Error::writing(folder, &cause));
    if let Some(folder) = &arguments.svg {
        create_folder(folder)?;
        for (name, figure) in figures {
            let path = folder.join(format!("{name}.svg"));
            write(&path, figure.file().as_bytes(), arguments.force)?;
            written.push(escape::path(&path));
        }
    }
    if let Some(folder) = &arguments.png {
        let rasteriser = Rasteriser::find().ok_or_else(|| {
            Error::usage(&format!("--png: none of {} is on PATH", Rasteriser::known()))
                .hint("install one of them, or use --svg")
        })?;
        create_folder(folder)?;
        let scratch = tempfile::tempdir().map_err(|cause| Error::writing(&std::env::temp_dir(), &cause))?;
        let (svg, png) = (scratch.path().join("figure.svg"), scratch.path().join("figure.png"));
        for (name, figure) in figures {
            let path = folder.join(format!("{name}.png"));
            let picture = std::fs::write(&svg, figure.file())
                .and_then(|()| rasteriser.make(&svg, &png, WIDTH, figure.height()))
                .and_then(|()| std::fs::read(&png));
            write(&path, &picture.map_err(|cause| Error::writing(&path, &cause))?, arguments.force)?;
            written.push(escape::path(&path));
        }
    }
    Ok(())
}

/// Reads the report at `path`.
fn read_report(arguments: &ReportArgs, path: &Path) -> Result<NamedReport, Error> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let text =
        std::fs::read(path).map_err(|source| of_report(&ReportError::Io { path: path.to_path_buf(), source }))?;
    if is_verification(&text) {
        let done = Verification::parse(path, &text).map_err(|error| of_report(&error))?;
        return Ok(NamedReport { name, subject: Subject::Verification(Box::new(done)) });
    }
    if is_measurement(&text) {
        let done = Measurement::parse(path, &text).map_err(|error| of_report(&error))?;
        return Ok(NamedReport { name, subject: Subject::Measurement(Box::new(done)) });
    }
    let run = Run::parse(path, &text).map_err(|error| of_report(&error))?;
    let (file, file_missing) = match run
        .output
        .as_deref()
        .filter(|_| !arguments.no_files && run.phases.is_none())
        .map(|output| look(arguments, output))
    {
        Some(Ok(file)) => match changed(&run, &file) {
            Some(reason) => (None, Some(reason)),
            None => (Some(file), None),
        },
        Some(Err(reason)) => (None, Some(reason)),
        None => (None, None),
    };
    Ok(NamedReport { name, subject: Subject::Run(Box::new(NamedRun { run, file, file_missing })) })
}

/// Returns why the file with the name of the run's output is not the one that the run wrote, if its length shows that.
fn changed(run: &Run, file: &FileResult) -> Option<String> {
    let written_len_bytes = run.output_len_bytes.filter(|&len_bytes| len_bytes != file.file_len_bytes)?;
    Some(format!("the run wrote {written_len_bytes} bytes, but the file with this name has {}", file.file_len_bytes))
}

/// Inspects the file at `path` for figures; on failure, returns the reason as text.
fn look(arguments: &ReportArgs, path: &Path) -> Result<FileResult, String> {
    let looked = InputFile::open(path)
        .and_then(|file| inspect(&file, &ReadLimits::default(), arguments.reader.child().as_ref()));
    let inspection = looked.map_err(|error| error.to_string())?;
    // Converted through the JSON of `inspect --json`, from which figures are drawn.
    serde_json::to_value(&inspection).and_then(serde_json::from_value).map_err(|error| error.to_string())
}

fn write(path: &Path, bytes: &[u8], force: bool) -> Result<(), Error> {
    let file = if force { std::fs::File::create(path) } else { std::fs::File::create_new(path) };
    let written = file.and_then(|mut file| file.write_all(bytes));
    written.map_err(|cause| match cause.kind() {
        std::io::ErrorKind::AlreadyExists => exists(path),
        _ => Error::writing(path, &cause),
    })
}

fn exists(path: &Path) -> Error {
    Error::new(Exit::Output, &format!("{} exists", escape::path(path)))
        .hint("replace it with --force, or name another with -o")
}

fn of_report(error: &ReportError) -> Error {
    Error::new(Exit::InputRefused, &error.to_string())
        .hint(&format!("name files that --report of {}, verify, bench or tune wrote", DRAWN.join(", ")))
}
