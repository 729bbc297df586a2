//! `raddle inspect`: shows how the bytes of files are used.

use super::print;
use crate::exit::Exit;
use crate::print_error::render;
use crate::ranks::Ranks;
use crate::render::escape;
use crate::render::inspection::{self, Detail};
use crate::standard_error;
use raddle::Error;
use raddle::error::ErrorRecord;
use raddle::options::ReaderOptions;
use raddle::references::write_references;
use raddle_core::ranks::communicator::{AgreedError, CommunicatorExt};
use raddle_hdf5::child::ChildReader;
use raddle_hdf5::inspect::{Inspection, Sum};
use raddle_hdf5::references::OmittedObject;
use raddle_merge::inputs::{DuplicatePolicy, InputOrder, InputSpec, expand};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Options of `raddle inspect`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct InspectArgs {
    /// Files to inspect; a folder stands for its HDF5 files, as in raddle merge
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Print statistics of every group and dataset as JSON, one object per file
    #[arg(long)]
    json: bool,

    /// Print only the sum over all files
    #[arg(long, conflicts_with = "refs")]
    total: bool,

    /// Number of groups and datasets to list, largest first
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// Write the location of every chunk, as references for Zarr readers (kerchunk JSON)
    #[arg(long, value_name = "JSON", conflicts_with = "json")]
    refs: Option<PathBuf>,

    /// URL or other name of the file in the references [default: its absolute path]
    #[arg(long, value_name = "URL", requires = "refs")]
    refs_url: Option<String>,

    #[command(flatten)]
    reader: ReaderOptions,
}

const EXAMPLES: &str = "\
Examples:
  raddle inspect run11981.h5
      sizes, chunk sizes, the ten largest groups and datasets, advice
  raddle inspect run11981.h5 --top 1000
      longer lists
  raddle inspect run11981/ --total
      the sum over thousands of files; mpirun shares them between ranks
  raddle inspect run11981/ --json | jq .space.metadata_len_bytes
  raddle inspect run11981.h5 --refs run11981.json
      Zarr, xarray and fsspec read the file through these

Only metadata is read, no values. Bytes counted as \"unused\" belong to no object of the file.";

#[derive(Serialize)]
struct NamedReport<'a> {
    file: String,
    #[serde(flatten)]
    inspection: &'a Inspection,
}

/// A file that cannot be read.
#[derive(Serialize)]
struct RefusedFile<'a> {
    file: String,
    error: ErrorRecord<'a>,
}

/// Output for one file.
#[derive(Default, Serialize, Deserialize)]
struct FileOutput {
    out: String,
    err: String,
    exit_code: u8,
}

/// Collective. Inspects each file and continues after files that cannot be read. Ranks share the files; the first
/// prints.
pub fn run(arguments: &InspectArgs, team: &Ranks) -> Result<Exit, Error> {
    if let Some(output) = &arguments.refs {
        let written = if team.leads() { write_references_file(arguments, output) } else { Ok(Exit::Done) };
        return team.agree("write references", written);
    }
    let specs: Vec<InputSpec> = arguments.files.iter().cloned().map(InputSpec::Path).collect();
    let files = team.paths_of_first(|| {
        let files = expand(&specs, InputOrder::Given, DuplicatePolicy::Keep);
        files.map_err(|error| Error::of_merge(&error, &arguments.files))
    })?;
    // Anything the native reader does not support is read with libhdf5 in a child process, as in a merge.
    let library = arguments.reader.child();
    let (mut exit, mut sum) = (Exit::Done, Sum::default());
    let ranks = team.ranks();
    // Each rank inspects one file per round, so that output appears in the order of the files.
    for (round, of_round) in files.chunks(ranks.size()).enumerate() {
        let local_path = of_round.get(ranks.rank());
        let local_output =
            local_path.map(|path| inspect_file(arguments, path, library.as_ref(), &mut sum)).unwrap_or_default();
        for (place, printed) in of_all(team, &local_output)?.into_iter().take(of_round.len()).enumerate() {
            if printed.exit_code != Exit::Done.code() {
                exit = Exit::of_code(printed.exit_code);
            }
            if !team.leads() {
                continue;
            }
            standard_error::print(format_args!("{}", printed.err));
            if !printed.out.is_empty() {
                let gap = if arguments.json || (round, place) == (0, 0) { "" } else { "\n" };
                print(&format!("{gap}{}", printed.out))?;
            }
        }
    }
    let mut total = Sum::default();
    of_all(team, &sum)?.iter().for_each(|sum| total.unite(sum));
    if team.leads() && (arguments.total || files.len() > 1 && !arguments.json) {
        let gap = if arguments.total { "" } else { "\n" };
        print(&match arguments.json {
            true => crate::render::json(&total),
            false => format!("{gap}{}", inspection::total(&total)),
        })?;
    }
    Ok(exit)
}

/// Collective. Returns the values of all ranks, in rank order.
fn of_all<T: Serialize + DeserializeOwned>(team: &Ranks, local: &T) -> Result<Vec<T>, Error> {
    team.ranks().all_gather_values("inspect the files", local).map_err(Error::of_ranks)
}

fn inspect_file(arguments: &InspectArgs, path: &Path, library: Option<&ChildReader>, sum: &mut Sum) -> FileOutput {
    let file = || path.to_string_lossy().into_owned();
    match raddle::inspect(path, library) {
        Ok(inspection) => {
            sum.add(&inspection);
            let exit = if inspection.faults.is_empty() { Exit::Done } else { Exit::InputRefused };
            let out = match (arguments.total, arguments.json) {
                (true, _) => String::new(),
                (false, true) => crate::render::json(&NamedReport { file: file(), inspection: &inspection }),
                (false, false) => inspection::text(path, &inspection, Detail { longest_table: arguments.top }),
            };
            FileOutput { out, err: String::new(), exit_code: exit.code() }
        }
        Err(failure) => {
            let reported = || crate::render::json(&RefusedFile { file: file(), error: failure.record() });
            let out = if arguments.json && !arguments.total { reported() } else { String::new() };
            FileOutput { out, err: render(&failure), exit_code: failure.exit.code() }
        }
    }
}

fn write_references_file(arguments: &InspectArgs, output: &Path) -> Result<Exit, Error> {
    let [path] = arguments.files.as_slice() else {
        return Err(Error::usage(
            "--refs accepts a single file; combine the references of several files in the reader",
        ));
    };
    if output.extension().is_some_and(|extension| extension == "parquet") {
        return Err(Error::usage("--refs writes JSON")
            .hint("in Python: raddle.references(\"file.h5\", \"file.parquet\"), or give a name that ends with .json"));
    }
    let absolute_path = std::path::absolute(path).map_err(|cause| Error::writing(output, &cause))?;
    let url = arguments.refs_url.clone().unwrap_or_else(|| absolute_path.to_string_lossy().into_owned());
    let file = std::fs::File::create_new(output).map_err(|cause| Error::writing(output, &cause))?;
    let written = write_references(path, &url, arguments.reader.child().as_ref(), &mut BufWriter::new(file));
    let left_out = written.inspect_err(|_| {
        // An incomplete file is not valid JSON and is of no use to anyone.
        let _ = std::fs::remove_file(output);
    })?;
    for OmittedObject { path, reason } in &left_out {
        standard_error::print_line(format_args!(
            "note: {} is left out: {}",
            escape::text(&String::from_utf8_lossy(path)),
            escape::text(reason)
        ));
    }
    Ok(Exit::Done)
}
