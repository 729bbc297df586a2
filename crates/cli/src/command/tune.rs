//! `raddle tune`: measures, searches, and writes what helps into a profile.

use super::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::measuring::MeasuringArgs;
use crate::options::running::TellingArgs;
use crate::options::size::Size;
use crate::render::{self, measurement};
use crate::watching::Watching;
use raddle_tune::knob::Reader;
use raddle_tune::measurement::{Measurement, profile_path};
use raddle_tune::profile::{Profile, own_folder};
use raddle_tune::search::Limits;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Options of `raddle tune`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TuneArgs {
    /// What to measure: a workload of raddle's (see raddle bench --list), or a TOML file
    #[arg(default_value = "tables")]
    workload: String,

    #[command(flatten)]
    measuring: MeasuringArgs,

    /// Profile to write [default: one of the workload's name among the user's profiles, where apply and merge find it]
    #[arg(short, long, value_name = "PROFILE")]
    output: Option<PathBuf>,

    /// Replace the profile that --output names if it exists
    #[arg(short, long, requires = "output")]
    force: bool,

    /// Most that files may grow, as a ratio to what they are with the defaults
    #[arg(long, value_name = "RATIO", default_value_t = Limits::default().max_inflation, value_parser = ratio, help_heading = "Limits")]
    max_inflation: f64,

    /// Most memory that a run may take
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    max_memory: Option<Size>,

    /// The oldest HDF5 that must be able to read the files
    #[arg(long, value_name = "VERSION", default_value = "1.10", value_parser = reader, help_heading = "Limits")]
    readable_by: Reader,

    /// Print all of it as JSON, every run included
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    telling: TellingArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle tune                                          tables, as merge writes them; at most ten minutes
  raddle tune --scratch /scratch/me --sync             the file system that the data will be on, disks included
  raddle tune occam-2005 -o mine.toml --report run.json && raddle report run.json
  raddle tune --hdf5 libhdf5_serial.so.103 -o debian.toml && raddle apply debian.toml -- ./sim

Settings that help alone are combined; what wins is measured once more against the defaults, on
other values. Only what wins again, within the limits, is written. Where nothing does, no profile
is written, and that is no failure.";

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse::<f64>().ok().filter(|ratio| ratio.is_finite() && *ratio >= 1.0);
    ratio.ok_or_else(|| "a ratio is a number from 1 on, for example 1.1".to_owned())
}

fn reader(text: &str) -> Result<Reader, String> {
    text.parse::<Reader>().map_err(|error| error.to_string())
}

/// Measures, searches, writes the profile.
pub fn run(arguments: &TuneArgs) -> Result<Exit, Failure> {
    let workload = arguments.measuring.workload(&arguments.workload)?;
    let path = arguments.path(&workload.name)?;
    let limits = Limits {
        max_inflation: arguments.max_inflation,
        memory_bytes: arguments.max_memory.map(|size| size.0),
        readable_by: Some(arguments.readable_by),
    };
    let watching = Watching::start_telling(&arguments.telling, "tune")?;
    watching.conclude(|watch| {
        let done = arguments.measuring.measure(&workload, Some(&limits), &watching, watch)?;
        arguments.telling.write_report(&done)?;
        let profile = profile_of(&done);
        if let Some(profile) = &profile {
            profile.write(&path).map_err(|error| Failure::of_tune(&error))?;
        }
        print(&if arguments.json {
            render::json(&done)
        } else {
            measurement::text(&done) + &measurement::profile(profile.as_ref(), &path)
        })?;
        Ok(Exit::Done)
    })
}

fn profile_of(done: &Measurement) -> Option<Profile> {
    let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    done.profile(concat!("raddle ", env!("CARGO_PKG_VERSION")), now_unix_s)
}

impl TuneArgs {
    /// Where the profile goes, which can be written there: asked before minutes are spent on it.
    fn path(&self, workload: &str) -> Result<PathBuf, Failure> {
        let path = match &self.output {
            Some(path) if path.exists() && !self.force => {
                return Err(Failure::new(Exit::Output, &format!("{} exists", path.display()))
                    .hint("replace it with --force, or name another with -o"));
            }
            Some(path) => path.clone(),
            None => {
                let folder = own_folder().ok_or_else(|| {
                    Failure::usage("there is no home folder for profiles").hint("name the profile with -o")
                })?;
                std::fs::create_dir_all(&folder).map_err(|cause| Failure::writing(&folder, &cause))?;
                profile_path(&folder, workload)
            }
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        tempfile::tempfile_in(folder).map_err(|cause| Failure::writing(&path, &cause))?;
        Ok(path)
    }
}
