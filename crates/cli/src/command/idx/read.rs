//! `raddle idx read`: a box of a dataset as an array.

use super::place::{PlaceArgs, open};
use crate::exit::Exit;
use crate::failure::Failure;
use raddle_idx::Dataset;
use raddle_idx::npy::NpyHead;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Options of `raddle idx read`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ReadArgs {
    /// The .idx file
    #[arg(value_name = "IN.idx")]
    input: PathBuf,

    /// File to write: NAME.npy, or raw little-endian numbers under any other name
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Replace the output if it exists
    #[arg(short, long)]
    force: bool,

    #[command(flatten)]
    place: PlaceArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle idx read flow.idx -o rho.npy                                  the first field, whole
  raddle idx read flow.idx -o small.npy --resolution 12                every so many samples along each axis
  raddle idx read flow.idx -o plane.npy --field v --step 3 --box z=7:8

A block that is missing is an error unless --missing-as-default is given; a damaged one always is.";

/// Reads and writes.
pub fn run(arguments: &ReadArgs) -> Result<Exit, Failure> {
    let dataset = open(&arguments.input)?;
    let query = arguments.place.query(&dataset)?;
    let failed = |error| Failure::of_idx(&error);
    let (samples, shape) = (dataset.read(&query).map_err(failed)?, shape(&dataset, &query)?);
    let sample = dataset.header().fields[query.field].sample;
    let is_npy = arguments.output.extension().is_some_and(|ending| ending == "npy");
    let head = if is_npy { NpyHead::to_bytes(sample.number, &shape) } else { Vec::new() };
    put(&arguments.output, arguments.force, &[&head, &samples])?;
    Ok(Exit::Done)
}

/// Shape of what a query gives, slowest axis first, components last.
pub fn shape(dataset: &Dataset, query: &raddle_idx::Query) -> Result<Vec<u64>, Failure> {
    let header = dataset.header();
    let grid = dataset.grid(query).map_err(|error| Failure::of_idx(&error))?;
    let mut shape: Vec<u64> = grid.counts[..header.rank].iter().rev().copied().collect();
    let components = header.fields[query.field].sample.count;
    if components > 1 {
        shape.push(components as u64);
    }
    Ok(shape)
}

/// Writes a file that appears under its name when it is whole.
///
/// # Errors
/// If it exists and must not be replaced, or cannot be written.
pub fn put(path: &Path, replace: bool, parts: &[&[u8]]) -> Result<(), Failure> {
    let failed = |cause: std::io::Error| Failure::writing(path, &cause);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().permissions(permissions()).tempfile_in(folder).map_err(failed)?;
    parts.iter().try_for_each(|part| file.write_all(part)).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    let named = if replace { file.persist(path) } else { file.persist_noclobber(path) };
    match named {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(Failure::new(Exit::Output, &format!("{}: exists", path.display())).hint("replace it with --force"))
        }
        Err(error) => Err(failed(error.error)),
    }
}

/// Those of any new file: the user's mask takes off what it takes.
fn permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}
