//! `raddle keys sort`: lists files sorted by the first values of datasets.

use crate::exit::Exit;
use crate::options::inputs::StandardInputArgs;
use crate::options::running::RuntimeArgs;
use crate::render::escape;
use crate::session::Session;
use crate::text_file::{self, Text};
use raddle::Error;
use raddle::options::Inputs;
use raddle_merge::inputs::format_list;
use raddle_merge::options::MergeOptions;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Options of `raddle keys sort`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SortArgs {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    standard_input: StandardInputArgs,

    /// Datasets whose first values are compared, most significant first
    #[arg(
        short = 'k',
        long = "by",
        value_name = "DATASETS",
        value_delimiter = ',',
        default_value = "/spill/run,/spill/subrun"
    )]
    by: Vec<String>,

    /// Sort in descending order
    #[arg(short, long)]
    descending: bool,

    /// Write the list to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle keys sort run11981/ > list.txt
  raddle keys sort @list.txt -k /spill/run,/spill/subrun -o sorted.txt \\
    && raddle merge -i sorted.txt -o all.h5

Files without rows come last, in the order given.";

/// Report of a sort.
#[derive(Debug, Serialize)]
struct SortReport<'a> {
    /// Datasets whose first values were compared.
    by: &'a [String],
    /// Sorted files.
    files: Vec<String>,
    /// Files without rows, which are sorted last.
    without_rows: Vec<String>,
}

/// Sorts the files and writes the list.
pub fn run(arguments: &SortArgs) -> Result<Exit, Error> {
    let inputs = arguments.standard_input.expand(&arguments.inputs)?;
    if let Some(path) = &arguments.output {
        text_file::check(path, "--output", Text::List, &inputs)?;
    }
    let mut options = MergeOptions::new("");
    arguments.running.apply(&mut options);
    let session = Session::start(&arguments.running.verbosity, "keys sort", inputs.iter().chain(&arguments.output))?;
    session.conclude(|watch| {
        let by: Vec<Vec<u8>> = arguments.by.iter().map(|path| path.clone().into_bytes()).collect();
        let failed = |error| Error::of_merge(&error, &inputs);
        let sorted =
            raddle_merge::inputs::order::sort(&inputs, &by, arguments.descending, &options, watch).map_err(failed)?;
        for path in &sorted.without_rows {
            session.warn(&format!("{}: has no rows, so it comes last", escape::path(path)));
        }
        let list = format_list(&sorted.paths).map_err(failed)?;
        match &arguments.output {
            Some(path) => std::fs::write(path, list).map_err(|cause| Error::writing(path, &cause))?,
            None => {
                let mut out = std::io::stdout().lock();
                out.write_all(&list).and_then(|()| out.flush()).map_err(Error::standard_output)?;
            }
        }
        let names = |paths: &[PathBuf]| paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        arguments.running.write_report(&SortReport {
            by: &arguments.by,
            files: names(&sorted.paths),
            without_rows: names(&sorted.without_rows),
        })?;
        Ok(Exit::Done)
    })
}
