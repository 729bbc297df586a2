//! `raddle inspect`: where the bytes of files went.

use super::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::reader::ReaderArgs;
use crate::render::inspection::{self, Detail};
use raddle_hdf5::inspect::{Inspection, inspect};
use raddle_hdf5::native::ReadLimits;
use raddle_hdf5::source::InputFile;
use serde::Serialize;
use std::path::PathBuf;

/// Options of `raddle inspect`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct InspectArgs {
    /// Files to look at
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Print statistics of every group and dataset as JSON, one object per file
    #[arg(long)]
    json: bool,

    /// Groups and datasets to list, the largest first
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    #[command(flatten)]
    reader: ReaderArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle inspect run11981.h5              sizes, chunk sizes, the ten largest groups and datasets, advice
  raddle inspect run11981.h5 --top 1000   longer lists
  raddle inspect *.h5 --json | jq .space.metadata_len_bytes

Only metadata is read, no values. \"unused\" are bytes that no object of the file leads to.";

#[derive(Serialize)]
struct Named<'a> {
    file: String,
    #[serde(flatten)]
    inspection: &'a Inspection,
}

/// Inspects each file; a file that cannot be read does not hide the others.
pub fn run(arguments: &InspectArgs) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    // What the native reader does not know is asked of libhdf5 in a child process, as a merge does.
    let library = arguments.reader.child();
    let inspect_file = |path: &PathBuf| inspect(&InputFile::open(path)?, &ReadLimits::default(), library.as_ref());
    for (place, path) in arguments.files.iter().enumerate() {
        let settled = raddle_merge::append::redo::settle(path);
        let settled = settled.map_err(|error| Failure::of_merge(&error, std::slice::from_ref(path)));
        let inspected = settled.and_then(|_| inspect_file(path).map_err(|error| Failure::of_input(&error)));
        let inspection = match inspected {
            Ok(inspection) => inspection,
            Err(failure) => {
                anstream::eprint!("{}", failure.render());
                exit = failure.exit;
                continue;
            }
        };
        if !inspection.faults.is_empty() {
            exit = Exit::InputRefused;
        }
        if arguments.json {
            let file = path.to_string_lossy().into_owned();
            print(&crate::render::json(&Named { file, inspection: &inspection }))?;
        } else {
            let gap = if place > 0 { "\n" } else { "" };
            print(&format!("{gap}{}", inspection::text(path, &inspection, Detail { longest_table: arguments.top })))?;
        }
    }
    Ok(exit)
}
