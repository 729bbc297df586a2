//! What is measured, where, how long, and with which HDF5.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{escape, quantity};
use crate::watching::Watching;
use raddle_core::cancel::CancelToken;
use raddle_core::progress::Watch;
use raddle_inject::install::{Objects, default_folder};
use raddle_inject::measure::Programs;
use raddle_tune::campaign::{Bench, Conditions};
use raddle_tune::kernel::Kernel;
use raddle_tune::knob::{Knob, Value};
use raddle_tune::measurement::{MeasuredExperiment, Measurement, measure, needed_len_bytes};
use raddle_tune::runner::{Executor, LAUNCHER, Scratch, Workers};
use raddle_tune::search::Limits;
use raddle_tune::statistics::{DEFAULT_MARGIN, StopRule};
use raddle_tune::worker::{Answer, Request};
use raddle_tune::workload::{self, Workload};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Options of commands that measure HDF5.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Measuring")]
pub struct MeasuringArgs {
    /// How large runs are: tiny (a few megabytes), small (tens of megabytes) or full (as in the papers, where one machine can)
    #[arg(long, value_name = "SCALE", value_enum, default_value_t = Scale::Small)]
    scale: Scale,

    /// Measure only this experiment of the workload; can be given several times
    #[arg(long, value_name = "EXPERIMENT")]
    only: Vec<String>,

    /// The libhdf5 to measure, 1.10 or later: a path, or a name that the system's loader finds; given again, others to compare with the first in every experiment [default: raddle's own]
    #[arg(long, value_name = "LIBRARY")]
    hdf5: Vec<PathBuf>,

    /// What starts ranks of MPI, of the same MPI as the libhdf5
    #[arg(long, value_name = "LAUNCHER", default_value = LAUNCHER)]
    mpirun: PathBuf,

    /// How many ranks share a run, in experiments that are for ranks; where each has work of its own, runs grow with them [default: what the workload says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    ranks: Option<u32>,

    /// Measure gzip with this zlib too (a libz.so.1 such as zlib-ng's); takes --hdf5; can be given several times
    #[arg(long, value_name = "LIBRARY", requires = "hdf5")]
    zlib: Vec<PathBuf>,

    /// Folder for the files of runs, which are removed: what is measured is its file system
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    scratch: PathBuf,

    /// Count waiting for the disk as well
    #[arg(long)]
    sync: bool,

    /// Most seconds for all of it; settings not reached are reported as undecided [default: 600, at tiny scale 30, at full scale none]
    #[arg(long, value_name = "SECONDS")]
    time: Option<u64>,

    /// Effects below this are called none, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_MARGIN * 100.0, value_parser = margin)]
    margin: f64,

    /// Most times that a setting is measured; below 5 nothing can be told
    #[arg(long, value_name = "N", default_value_t = most_blocks())]
    blocks: NonZeroUsize,

    /// Decides on the order of runs and on values
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// How large runs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Scale {
    /// A few megabytes: to see that it works
    Tiny,
    /// Tens of megabytes: a workstation, minutes
    Small,
    /// As in the papers, where one machine can
    Full,
}

fn most_blocks() -> NonZeroUsize {
    NonZeroUsize::new(StopRule::default().most_blocks).unwrap_or(NonZeroUsize::MIN)
}

fn margin(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (1.0..=50.0).contains(percent));
    percent.ok_or_else(|| "a number of percent from 1 to 50".to_owned())
}

/// Time for all of it where none is given; at the tiny scale, which is for seeing that it works.
const DEFAULT_TIME: Duration = Duration::from_secs(600);
const TINY_TIME: Duration = Duration::from_secs(30);

/// Slower than this no run is: then it hangs.
const SLOWEST_BYTES_PER_S: u64 = 64 << 10;
/// Time that the shortest run is given.
const LEAST_LIMIT: Duration = Duration::from_secs(300);

/// Runs of raddle's kernels, and of other programs.
struct AnyRun {
    workers: Workers,
    /// Folder for the objects that programs are given.
    objects: Option<PathBuf>,
    limit: Duration,
}

impl Executor for AnyRun {
    fn run(&self, request: &Request, cancel: &CancelToken) -> raddle_tune::Result<Answer> {
        if request.kernel.own_processes().is_some() {
            return self.run_own(request, cancel);
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
    /// A run of processes that are ranks of MPI where this raddle has it and a launcher starts them, threads elsewhere.
    fn run_own(&self, request: &Request, cancel: &CancelToken) -> raddle_tune::Result<Answer> {
        if cfg!(feature = "mpi") && request.ranks > 1 {
            match self.workers.run(request, cancel)? {
                Answer::NotApplicable(_) => {}
                answer => return Ok(answer),
            }
        }
        self.workers.run(&Request { ranks: 1, ..request.clone() }, cancel)
    }
}

/// A zlib as workers find it.
fn zlib(path: &Path) -> Result<Value, Failure> {
    let unfit = |cause: &dyn std::fmt::Display| Failure::usage(&format!("--zlib {}: {cause}", path.display()));
    let path = std::fs::canonicalize(path).map_err(|cause| unfit(&cause))?;
    let value = Value::Text(path.to_string_lossy().into_owned());
    Knob::Zlib.check(&value).map_err(|error| unfit(&error)).map(|()| value)
}

impl MeasuringArgs {
    /// The workload of this name, as far as it is to be measured.
    ///
    /// # Errors
    /// If there is none, or none of its experiments is asked for.
    pub fn workload(&self, name: &str) -> Result<Workload, Failure> {
        let scale = match self.scale {
            Scale::Tiny => workload::Scale::Tiny,
            Scale::Small => workload::Scale::Small,
            Scale::Full => workload::Scale::Full,
        };
        let mut workload = Workload::named(name, scale).map_err(|error| Failure::of_tune(&error))?;
        let names: Vec<String> = workload.experiments.iter().map(|experiment| experiment.name.clone()).collect();
        let names: Vec<String> =
            names.into_iter().chain(workload.planned.iter().map(|table| table.name.clone())).collect();
        if let Some(unknown) = self.only.iter().find(|only| !names.contains(only)) {
            return Err(Failure::usage(&format!("--only {unknown}: {name} has no such experiment"))
                .hint(&format!("it has {}", names.join(", "))));
        }
        if !self.only.is_empty() {
            let source = workload.experiments.get(workload.profile_from).map(|experiment| experiment.name.clone());
            workload.experiments.retain(|experiment| self.only.contains(&experiment.name));
            workload.planned.retain(|table| self.only.contains(&table.name));
            let place = workload.experiments.iter().position(|experiment| Some(&experiment.name) == source.as_ref());
            // Of those that are left, the first one.
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
            experiment.check().map_err(|fault| Failure::usage(&format!("{}: {fault}", experiment.name)))?;
        }
        Ok(workload)
    }

    /// Measures; with `limits`, searches as well. Tells of each experiment that is done.
    ///
    /// # Errors
    /// If the files have no place, runs fail, or all of it is stopped.
    pub fn measure(
        &self,
        workload: &Workload,
        limits: Option<&Limits>,
        watching: &Watching,
        watch: &Watch<'_>,
    ) -> Result<Measurement, Failure> {
        let failed = |error| Failure::of_tune(&error);
        let scratch = Scratch::in_folder(&self.scratch, needed_len_bytes(workload)).map_err(failed)?;
        let longest = Duration::from_secs(workload.largest_run_len_bytes() / SLOWEST_BYTES_PER_S).max(LEAST_LIMIT);
        let executor = AnyRun {
            workers: Workers::own(longest, self.mpirun.clone()).map_err(failed)?,
            objects: std::env::var_os("RADDLE_APPLY_FOLDER").map(PathBuf::from),
            limit: self.time.map_or(longest, |time| longest.max(Duration::from_secs(time))),
        };
        let bench = Bench { executor: &executor, scratch: &scratch, observer: watch.observer, cancel: watch.cancel };
        let conditions = Conditions { library: self.libraries()?.into_iter().next(), ..self.conditions() };
        let mut tell = |done: &MeasuredExperiment| {
            let runs = quantity::counted(done.search.sweep.runs() as u64, "run");
            watching.say(&format!("{}: {runs}, {}", escape::text(&done.name), quantity::seconds(done.elapsed_s)));
        };
        measure(workload, limits, &conditions, &bench, &mut tell).map_err(failed)
    }

    /// Most times that a setting is measured.
    pub fn most_blocks(&self) -> usize {
        self.blocks.get()
    }

    fn conditions(&self) -> Conditions {
        let time = match (self.time, self.scale) {
            (Some(time), _) => Some(Duration::from_secs(time)),
            (None, Scale::Full) => None,
            (None, Scale::Tiny) => Some(TINY_TIME),
            (None, _) => Some(DEFAULT_TIME),
        };
        let most_blocks = self.most_blocks();
        Conditions {
            library: None,
            seed: self.seed,
            syncs: self.sync,
            rule: StopRule { most_blocks, margin: self.margin / 100.0, ..StopRule::default() },
            // A moment that no clock has is no bound.
            deadline: time.and_then(|time| Instant::now().checked_add(time)),
        }
    }

    /// The libraries as workers find them: they are started in the same folder, but a name without a slash is the loader's.
    fn libraries(&self) -> Result<Vec<PathBuf>, Failure> {
        let of = |library: &PathBuf| {
            if library.is_dir() {
                let what = format!("--hdf5 {}: a folder; name the library in it", library.display());
                return Err(Failure::new(Exit::Usage, &what));
            }
            let is_file = library.is_file();
            let path = if is_file { std::path::absolute(library) } else { Ok(library.clone()) };
            path.map_err(|cause| Failure::usage(&format!("--hdf5 {}: {cause}", library.display())))
        };
        self.hdf5.iter().map(of).collect()
    }
}
