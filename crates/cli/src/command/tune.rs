//! `raddle tune`: measures, searches, and writes settings that help to a profile.

use super::apply::of_inject;
use super::print;
use crate::exit::Exit;
use crate::options::measuring::MeasurementArgs;
use crate::options::running::VerbosityArgs;
use crate::options::setting::Setting;
use crate::options::size::Size;
use crate::render::{self, measurement};
use crate::session::Session;
use crate::text_file::{self, Text};
use raddle::Error;
use raddle_inject::measure::usual_knobs;
use raddle_tune::kernel::Verify;
use raddle_tune::knob::{Knob, LibraryVersion, SettingValue};
use raddle_tune::measurement::{Measurement, profile_path};
use raddle_tune::profile::{Profile, user_profile_folder};
use raddle_tune::search::SearchLimits;
use raddle_tune::workload::Workload;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Options of `raddle tune`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TuneArgs {
    /// Workload to measure: one of raddle's (see raddle bench --list) or a TOML file [default: tables]
    #[arg(conflicts_with = "command")]
    workload: Option<String>,

    /// Program to measure, with its arguments, first unchanged and then with one setting at a time. It runs in a new
    /// folder, or gets the path of that folder in place of {scratch} in its arguments
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["scale", "only", "hdf5", "ranks", "zlib"])]
    command: Vec<OsString>,

    #[command(flatten)]
    measuring: MeasurementArgs,

    /// Try this setting of COMMAND instead of the usual ones; may be given several times
    #[arg(long = "try", value_name = "NAME=VALUE", requires = "command", help_heading = "Programs")]
    tried: Vec<Setting>,

    /// Also try settings that change the contents of COMMAND's files: filters, format, pages
    #[arg(long, requires = "command", help_heading = "Programs")]
    allow_layout: bool,

    /// Compare the values that COMMAND writes with all settings: if two plain runs write the same (auto), always or
    /// never
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ValueCheck::Auto, requires = "command", help_heading = "Programs")]
    verify: ValueCheck,

    /// Profile to write [default: named after the workload, in the user's profile folder, where apply and merge find
    /// it]
    #[arg(short, long, value_name = "PROFILE")]
    output: Option<PathBuf>,

    /// Replace the profile given by --output if it exists
    #[arg(short, long, requires = "output")]
    force: bool,

    /// Maximum growth of files, as a ratio to their size with the defaults
    #[arg(long, value_name = "RATIO", default_value_t = SearchLimits::default().max_inflation, value_parser = ratio, help_heading = "Limits")]
    max_inflation: f64,

    /// Maximum memory of a run
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    max_memory: Option<Size>,

    /// Oldest HDF5 that must be able to read the files
    #[arg(long, value_name = "VERSION", default_value = "1.10", value_parser = reader, help_heading = "Limits")]
    readable_by: LibraryVersion,

    /// Print the result as JSON, with every run
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    verbosity: VerbosityArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle tune
      tables, as merge writes them; at most ten minutes
  raddle tune --scratch /scratch/me --sync
      the file system of the data, with its disks
  raddle tune occam-2005 -o mine.toml --report run.json \\
    && raddle report run.json
  raddle tune --hdf5 libhdf5_serial.so.103 -o debian.toml \\
    && raddle apply debian.toml -- ./sim
  raddle tune -o sim.toml -- ./sim input.nml {scratch}/out.h5
      your own program, unchanged

Settings that help individually are combined; the best combination is measured again against the defaults, on \
other values. It is only written if it wins again, within the limits. If no combination wins, no profile is \
written and the exit code is 0.";

/// Whether to compare the values that a program writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ValueCheck {
    /// If two plain runs write the same values
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse::<f64>().ok().filter(|ratio| ratio.is_finite() && *ratio >= 1.0);
    ratio.ok_or_else(|| "a ratio is a number from 1 on, for example 1.1".to_owned())
}

fn reader(text: &str) -> Result<LibraryVersion, String> {
    text.parse::<LibraryVersion>().map_err(|error| error.to_string())
}

/// Measures, searches and writes the profile.
pub fn run(arguments: &TuneArgs) -> Result<Exit, Error> {
    let workload = arguments.workload()?;
    let path = arguments.path(&workload.name)?;
    let limits = SearchLimits {
        max_inflation: arguments.max_inflation,
        memory_bytes: arguments.max_memory.map(|size| size.0),
        readable_by: Some(arguments.readable_by),
    };
    let session = Session::start(&arguments.verbosity, "tune", [&path])?;
    session.conclude(|watch| {
        let done = arguments.measuring.measure(&workload, Some(&limits), &session, watch)?;
        arguments.verbosity.write_report(&done)?;
        let profile = profile_of(&done);
        if let Some(profile) = &profile {
            profile.write(&path).map_err(|error| Error::of_tune(&error))?;
        }
        print(&if arguments.json {
            render::json(&done)
        } else {
            measurement::text(&done, arguments.measuring.max_blocks())
                + &measurement::profile(&done, profile.as_ref(), &path)
        })?;
        Ok(Exit::Done)
    })
}

fn profile_of(done: &Measurement) -> Option<Profile> {
    let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    done.profile(concat!("raddle ", env!("CARGO_PKG_VERSION")), now_unix_s)
}

impl TuneArgs {
    fn workload(&self) -> Result<Workload, Error> {
        if self.command.is_empty() {
            return self.measuring.workload(self.workload.as_deref().unwrap_or("tables"));
        }
        let utf8 = |word: &OsString| {
            let lossy = word.to_string_lossy();
            word.to_str()
                .map(str::to_owned)
                .ok_or_else(|| Error::usage(&format!("{lossy}: arguments of a measured command must be UTF-8")))
        };
        let command = self.command.iter().map(utf8).collect::<Result<Vec<_>, _>>()?;
        let verify = match self.verify {
            ValueCheck::Auto => Verify::Auto,
            ValueCheck::Always => Verify::Always,
            ValueCheck::Never => Verify::Never,
        };
        Workload::of_program(command.clone(), verify, self.knobs(&command)?).map_err(|error| Error::of_tune(&error))
    }

    /// Returns the values to try for a program.
    fn knobs(&self, command: &[String]) -> Result<BTreeMap<Knob, Vec<SettingValue>>, Error> {
        let usual = usual_knobs(command, self.allow_layout).map_err(|error| of_inject(&error))?;
        if self.tried.is_empty() {
            return Ok(usual);
        }
        let mut knobs: BTreeMap<Knob, Vec<SettingValue>> = BTreeMap::new();
        for Setting { knob, value } in &self.tried {
            if knob.changes_layout() && !self.allow_layout {
                return Err(Error::usage(&format!("--try {knob}={value}: this changes the contents of files"))
                    .hint("allow it with --allow-layout"));
            }
            let values = knobs.entry(*knob).or_default();
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        Ok(knobs)
    }

    /// Returns the path of the profile. Checks that it is writable, before minutes are spent measuring.
    fn path(&self, workload: &str) -> Result<PathBuf, Error> {
        let path = match &self.output {
            Some(path) if path.exists() && !self.force => {
                return Err(Error::new(Exit::Output, &format!("{} exists", path.display()))
                    .hint("replace it with --force, or name another with -o"));
            }
            Some(path) => {
                let workload = self.workload.iter().filter(|name| Path::new(name).is_file());
                text_file::check(path, "--output", Text::Profile, workload)?;
                path.clone()
            }
            None => {
                let folder = user_profile_folder()
                    .ok_or_else(|| Error::usage("no home folder for profiles").hint("name the profile with -o"))?;
                std::fs::create_dir_all(&folder).map_err(|cause| Error::writing(&folder, &cause))?;
                profile_path(&folder, workload)
            }
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        tempfile::tempfile_in(folder).map_err(|cause| Error::writing(&path, &cause))?;
        Ok(path)
    }
}
