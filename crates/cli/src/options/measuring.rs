//! Options of measurements: workload, place, duration, and HDF5 version.

use crate::exit::Exit;
use crate::render::{escape, quantity};
use crate::session::Session;
use raddle::Error;
use raddle_core::cancel::CancelToken;
use raddle_core::report::progress::Watch;
use raddle_inject::install::{Objects, default_folder};
use raddle_inject::measure::Programs;
use raddle_tune::campaign::{Bench, TrialConditions};
use raddle_tune::kernel::Kernel;
use raddle_tune::knob::{Knob, SettingValue};
use raddle_tune::measurement::{MeasuredExperiment, Measurement, measure, needed_len_bytes};
use raddle_tune::runner::{Executor, LAUNCHER, Scratch, Workers};
use raddle_tune::search::SearchLimits;
use raddle_tune::statistics::{DEFAULT_MARGIN, StopRule};
use raddle_tune::worker::{Answer, Request};
use raddle_tune::workload::{self, Workload};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Options of commands that measure HDF5.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Measuring")]
pub struct MeasurementArgs {
    /// Size of runs: tiny (a few megabytes), small (tens of megabytes) or full (as in the papers, where one machine
    /// can)
    #[arg(long, value_name = "SCALE", value_enum, default_value_t = Scale::Small)]
    scale: Scale,

    /// Measure only this experiment of the workload; may be given several times
    #[arg(long, value_name = "EXPERIMENT")]
    only: Vec<String>,

    /// libhdf5 to measure, 1.10 or later: a path, or a name known to the system's loader; if repeated, each is compared
    /// with the first in every experiment [default: raddle's own]
    #[arg(long, value_name = "LIBRARY")]
    hdf5: Vec<PathBuf>,

    /// Launcher of MPI ranks, from the same MPI as the libhdf5
    #[arg(long, value_name = "LAUNCHER", default_value = LAUNCHER)]
    mpirun: PathBuf,

    /// Number of ranks that share a run, in experiments with ranks; if each has separate work, runs grow with their
    /// number [default: that of the workload]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    ranks: Option<u32>,

    /// Also measure gzip with this zlib (a libz.so.1 such as zlib-ng's); needs --hdf5; may be given several times
    #[arg(long, value_name = "LIBRARY", requires = "hdf5")]
    zlib: Vec<PathBuf>,

    /// Folder for the files of runs, which are removed afterwards; its file system is what is measured
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    scratch: PathBuf,

    /// Include the time to sync to disk
    #[arg(long)]
    sync: bool,

    /// Time limit in seconds; settings not reached are reported as undecided [default: 600, at tiny scale 30, at full
    /// scale none]
    #[arg(long, value_name = "SECONDS")]
    time: Option<u64>,

    /// Effects below this percentage are reported as none
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_MARGIN * 100.0, value_parser = margin)]
    margin: f64,

    /// Maximum number of times a setting is measured; no verdict is possible below 5
    #[arg(long, value_name = "N", default_value_t = max_blocks())]
    blocks: NonZeroUsize,

    /// Seed for the order of runs and for values
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Size of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Scale {
    /// A few megabytes: to check that it works
    Tiny,
    /// Tens of megabytes: takes minutes on a workstation
    Small,
    /// As in the papers, where one machine can
    Full,
}

fn max_blocks() -> NonZeroUsize {
    NonZeroUsize::new(StopRule::default().max_blocks).unwrap_or(NonZeroUsize::MIN)
}

fn margin(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (1.0..=50.0).contains(percent));
    percent.ok_or_else(|| "a percentage from 1 to 50".to_owned())
}

/// Default time limit; a shorter one at the tiny scale, which only serves to check that everything works.
const DEFAULT_TIME: Duration = Duration::from_secs(600);
const TINY_TIME: Duration = Duration::from_secs(30);

/// Minimum plausible rate: a slower run is considered hung.
const SLOWEST_BYTES_PER_S: u64 = 64 << 10;
/// Time limit of the shortest run.
const MIN_LIMIT: Duration = Duration::from_secs(300);

/// Executor for raddle's kernels and for other programs.
struct AnyRun {
    workers: Workers,
    /// Folder for the libraries that are loaded into programs.
    objects: Option<PathBuf>,
    limit: Duration,
}

impl Executor for AnyRun {
    fn run(&self, request: &Request, cancel: &CancelToken) -> raddle_tune::Result<Answer> {
        if request.kernel.local_processes().is_some() {
            return self.run_raddle_kernel(request, cancel);
        }
        if !matches!(request.kernel, Kernel::Program { .. }) {
            return self.workers.run(request, cancel);
        }
        let folder = self.objects.clone().map_or_else(default_folder, Ok);
        match folder.and_then(|folder| Objects::within(&folder)) {
            Ok(objects) => Programs::new(objects, self.limit).run(request, cancel),
            Err(error) => Ok(Answer::Failed(error.to_string())),
        }
    }
}

impl AnyRun {
    /// Executes a run with MPI ranks if this raddle supports MPI and a launcher is used, otherwise with threads.
    fn run_raddle_kernel(&self, request: &Request, cancel: &CancelToken) -> raddle_tune::Result<Answer> {
        if cfg!(feature = "mpi") && request.ranks > 1 {
            match self.workers.run(request, cancel)? {
                Answer::NotApplicable(_) => {}
                answer => return Ok(answer),
            }
        }
        self.workers.run(&Request { ranks: 1, ..request.clone() }, cancel)
    }
}

/// Returns the path of a zlib in a form in which worker processes find it.
fn zlib(path: &Path) -> Result<SettingValue, Error> {
    let unfit = |cause: &dyn std::fmt::Display| Error::usage(&format!("--zlib {}: {cause}", path.display()));
    let path = std::fs::canonicalize(path).map_err(|cause| unfit(&cause))?;
    let value = SettingValue::Text(path.to_string_lossy().into_owned());
    Knob::Zlib.check(&value).map_err(|error| unfit(&error)).map(|()| value)
}

impl MeasurementArgs {
    /// Returns the workload of this name, restricted to the requested experiments.
    ///
    /// # Errors
    /// If it does not exist, or none of its experiments is selected.
    pub fn workload(&self, name: &str) -> Result<Workload, Error> {
        let scale = match self.scale {
            Scale::Tiny => workload::Scale::Tiny,
            Scale::Small => workload::Scale::Small,
            Scale::Full => workload::Scale::Full,
        };
        let mut workload = Workload::named(name, scale).map_err(|error| Error::of_tune(&error))?;
        let names: Vec<String> = workload.experiments.iter().map(|experiment| experiment.name.clone()).collect();
        let names: Vec<String> =
            names.into_iter().chain(workload.planned.iter().map(|table| table.name.clone())).collect();
        if let Some(unknown) = self.only.iter().find(|only| !names.contains(only)) {
            return Err(Error::usage(&format!("--only {unknown}: {name} has no such experiment"))
                .hint(&format!("it has {}", names.join(", "))));
        }
        if !self.only.is_empty() {
            let source = workload.experiments.get(workload.profile_from).map(|experiment| experiment.name.clone());
            workload.experiments.retain(|experiment| self.only.contains(&experiment.name));
            workload.planned.retain(|table| self.only.contains(&table.name));
            let place = workload.experiments.iter().position(|experiment| Some(&experiment.name) == source.as_ref());
            // The first of the remaining experiments.
            workload.profile_from = place.unwrap_or(0);
        }
        for experiment in &mut workload.experiments {
            if let Some(ranks) = self.ranks.filter(|_| experiment.ranks > 1) {
                experiment.set_ranks(ranks);
            }
            if let [_, others @ ..] = self.libraries()?.as_slice()
                && !others.is_empty()
            {
                experiment.compare_libraries(others);
            }
            if experiment.cases[0].base.whole(Knob::Gzip).is_some_and(|level| level > 0) {
                let zlib = self.zlib.iter().map(|path| zlib(path)).collect::<Result<Vec<_>, _>>()?;
                experiment.knobs.entry(Knob::Zlib).or_default().extend(zlib);
            }
            experiment.check().map_err(|fault| Error::usage(&format!("{}: {fault}", experiment.name)))?;
        }
        Ok(workload)
    }

    /// Measures a workload and, with `limits`, also searches for the best settings. Prints each finished experiment.
    ///
    /// # Errors
    /// If there is no space for the files, a run fails, or the measurement is stopped.
    pub fn measure(
        &self,
        workload: &Workload,
        limits: Option<&SearchLimits>,
        session: &Session,
        watch: &Watch<'_>,
    ) -> Result<Measurement, Error> {
        let failed = |error| Error::of_tune(&error);
        let scratch = Scratch::in_folder(&self.scratch, needed_len_bytes(workload)).map_err(failed)?;
        let longest = Duration::from_secs(workload.largest_run_len_bytes() / SLOWEST_BYTES_PER_S).max(MIN_LIMIT);
        let executor = AnyRun {
            workers: Workers::of_this_program(longest, self.mpirun.clone()).map_err(failed)?,
            objects: std::env::var_os("RADDLE_APPLY_FOLDER").map(PathBuf::from),
            limit: self.time.map_or(longest, |time| longest.max(Duration::from_secs(time))),
        };
        let bench = Bench { executor: &executor, scratch: &scratch, observer: watch.observer, cancel: watch.cancel };
        let conditions = TrialConditions { library: self.libraries()?.into_iter().next(), ..self.conditions() };
        let mut report = |done: &MeasuredExperiment| {
            let runs = quantity::counted(done.search.sweep.runs() as u64, "run");
            session.say(&format!("{}: {runs}, {}", escape::text(&done.name), quantity::seconds(done.elapsed_s)));
        };
        measure(workload, limits, &conditions, &bench, &mut report).map_err(failed)
    }

    /// Returns the maximum number of times that a setting is measured.
    pub fn max_blocks(&self) -> usize {
        self.blocks.get()
    }

    fn conditions(&self) -> TrialConditions {
        let time = match (self.time, self.scale) {
            (Some(time), _) => Some(Duration::from_secs(time)),
            (None, Scale::Full) => None,
            (None, Scale::Tiny) => Some(TINY_TIME),
            (None, _) => Some(DEFAULT_TIME),
        };
        let max_blocks = self.max_blocks();
        TrialConditions {
            library: None,
            seed: self.seed,
            syncs: self.sync,
            rule: StopRule { max_blocks, margin: self.margin / 100.0, ..StopRule::default() },
            // A time beyond the range of the clock means no limit.
            deadline: time.and_then(|time| Instant::now().checked_add(time)),
        }
    }

    /// Returns the paths of the libraries as workers find them: workers run in the same folder, but a name without a
    /// slash is resolved by the loader.
    fn libraries(&self) -> Result<Vec<PathBuf>, Error> {
        let of = |library: &PathBuf| {
            if library.is_dir() {
                let what = format!("--hdf5 {}: a folder; name the library in it", library.display());
                return Err(Error::new(Exit::Usage, &what));
            }
            let is_file = library.is_file();
            let path = if is_file { std::path::absolute(library) } else { Ok(library.clone()) };
            path.map_err(|cause| Error::usage(&format!("--hdf5 {}: {cause}", library.display())))
        };
        self.hdf5.iter().map(of).collect()
    }
}
