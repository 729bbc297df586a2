//! `raddle idx read`: reads a box of a dataset as an array, with threads and ranks.

use crate::exit::Exit;
use crate::options::running::VerbosityArgs;
use crate::ranks::Ranks;
use crate::session::Session;
use raddle::Error;
use raddle::options::output::check_output;
use raddle_core::ranks::shares::even_share;
use raddle_core::report::peak_rss_bytes;
use raddle_idx::read::npy::NpyHead;
use raddle_idx::request::ReadRequest;
use raddle_idx::targets::open_dataset;
use raddle_idx::{Dataset, Readers};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::NamedTempFile;

/// Options of `raddle idx read`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ReadArgs {
    /// The .idx file
    #[arg(value_name = "IN.idx")]
    input: PathBuf,

    /// File to write: NAME.npy, or raw little-endian numbers if the name ends otherwise
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Replace the output if it exists
    #[arg(short, long)]
    force: bool,

    #[command(flatten)]
    request: ReadRequest,

    #[command(flatten)]
    verbosity: VerbosityArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle idx read flow.idx -o rho.npy
      the first field, whole
  raddle idx read flow.idx -o small.npy --resolution 12
      every n-th sample along each axis
  raddle idx read flow.idx -o plane.npy --field v --step 3 --box z=7:8
  mpirun -n 4 raddle idx read flow.idx -o rho.npy
      each rank reads and writes its share

A missing block is an error unless --missing-as-default is given; a damaged block always is.";

/// Collective. Reads the box and writes the array.
pub fn run(arguments: &ReadArgs, team: &Ranks) -> Result<Exit, Error> {
    let session =
        Session::start_collective(team, &arguments.verbosity, "idx read", [&arguments.input, &arguments.output])?;
    session.conclude(|watch| {
        let started = Instant::now();
        let opened =
            open_dataset(&arguments.input).and_then(|dataset| Ok((arguments.request.query(&dataset)?, dataset)));
        let (query, dataset) = team.agree("open the dataset", opened.map_err(Error::from))?;
        let checked = if team.leads() { check_apart(&arguments.output, &dataset, arguments.force) } else { Ok(()) };
        team.agree("look at the output", checked)?;
        let ranks = team.ranks();
        let failed = |error| Error::of_idx(&error);
        let grid = dataset.grid(&query).map_err(failed)?;
        let rows = even_share(grid.counts[grid.slowest_axis()], ranks.rank() as u64, ranks.size() as u64);
        let (part, before) = query.rows(&grid, &rows);
        let jobs = arguments.request.jobs.map_or(team.default_jobs(), NonZeroUsize::get);
        let readers = Readers { jobs, cancel: watch.cancel };
        let samples = match ranks.size() {
            1 => dataset.read_by(&query, &readers),
            _ => dataset.read_collective(&part, &readers, ranks),
        };
        let samples = samples.map_err(failed)?;
        let sample = dataset.header().fields[query.field].sample;
        let is_npy = arguments.output.extension().is_some_and(|ending| ending == "npy");
        let head = if is_npy { NpyHead::to_bytes(sample.number, &dataset.shape(&query)) } else { Vec::new() };
        let offset = head.len() as u64 + before * sample.len_bytes() as u64;
        let mut parts = vec![(offset, samples.as_slice())];
        parts.extend(team.leads().then_some((0, head.as_slice())));
        put_collective(team, &arguments.output, arguments.force, &parts)?;
        if team.leads() {
            let shape = dataset.shape(&query);
            arguments.verbosity.write_report(&ReadReport {
                output: &arguments.output,
                field: &dataset.header().fields[query.field].name,
                time: query.time,
                resolution: query.resolution,
                sample_len_bytes: grid.sample_count().unwrap_or(0).saturating_mul(sample.len_bytes() as u64),
                shape,
                ranks: ranks.size(),
                jobs,
                elapsed_s: started.elapsed().as_secs_f64(),
                peak_rss_bytes: peak_rss_bytes(),
            })?;
        }
        Ok(Exit::Done)
    })
}

/// Report of a run.
#[derive(Debug, Serialize)]
struct ReadReport<'a> {
    output: &'a Path,
    field: &'a str,
    time: Option<u64>,
    resolution: u32,
    /// Shape of the array, slowest axis first, components last.
    shape: Vec<u64>,
    sample_len_bytes: u64,
    ranks: usize,
    /// Number of threads of each rank.
    jobs: usize,
    elapsed_s: f64,
    /// Largest resident set of the first rank, if the system reports it.
    peak_rss_bytes: Option<u64>,
}

/// Fails if `output` cannot be written, or is one of the dataset's own files.
pub fn check_apart(output: &Path, dataset: &Dataset, replace: bool) -> Result<(), Error> {
    check_output(output, &[dataset.path().to_path_buf()], replace)?;
    if output.exists() && dataset.owns(output) {
        let what = format!("{}: is one of the files of {}", output.display(), dataset.path().display());
        return Err(Error::new(Exit::Output, &what).hint("name another output"));
    }
    Ok(())
}

/// Writes a file that appears under its name only when it is complete.
///
/// # Errors
/// If it exists and must not be replaced, or cannot be written.
pub fn put(path: &Path, replace: bool, bytes: &[u8]) -> Result<(), Error> {
    put_collective(&Ranks::alone(), path, replace, &[(0, bytes)])
}

/// Collective. Like [`put`], but each rank writes `parts` at their offsets.
fn put_collective(team: &Ranks, path: &Path, replace: bool, parts: &[(u64, &[u8])]) -> Result<(), Error> {
    let failed = |cause: std::io::Error| Error::writing(path, &cause);
    let create = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        tempfile::Builder::new().permissions(permissions()).tempfile_in(folder).map_err(failed)
    };
    let created = team.agree("create the output", team.leads().then(create).transpose())?;
    let name = team.paths_of_first(|| Ok(created.iter().map(|file| file.path().to_path_buf()).collect()))?;
    let write = || {
        let file = std::fs::OpenOptions::new().write(true).open(&name[0])?;
        parts.iter().try_for_each(|(offset, bytes)| file.write_all_at(bytes, *offset))?;
        file.sync_all()
    };
    team.agree("write the output", write().map_err(failed))?;
    let named = created.map_or(Ok(()), |file| give_name(file, path, replace));
    team.agree("name the output", named)
}

fn give_name(file: NamedTempFile, path: &Path, replace: bool) -> Result<(), Error> {
    let named = if replace { file.persist(path) } else { file.persist_noclobber(path) };
    match named {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(Error::new(Exit::Output, &format!("{}: exists", path.display())).hint("replace it with --force"))
        }
        Err(error) => Err(Error::writing(path, &error.error)),
    }
}

/// Returns the permissions of a new file, which respect the user's umask.
fn permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}
