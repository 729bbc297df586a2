//! One run in a process of its own: this program once more, with [`WORKER_ARGUMENT`].
//!
//! A process, since caches, allocators and libraries remember earlier runs, and since a libhdf5 that is loaded stays. The
//! request comes on standard input, the answer goes to standard output, both JSON. Invariants: the file of a run did not
//! exist before; what was written is looked at before the figures are given.

mod amrex;
mod clock;
mod ior;
mod many;
mod occam;
mod particles;
mod tables;

pub use clock::{Calls, Stage, StageTime};

use crate::error::{Result, TuneError};
use crate::kernel::Kernel;
use crate::knob::Settings;
use crate::translate::{self, Abilities, Translated};
use clock::{CallCounter, Clock};
use raddle_core::report::peak_rss_bytes;
use raddle_hdf5::chosen::{Chosen, Dataset, Element, File, FileSettings};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The first argument of a worker.
pub const WORKER_ARGUMENT: &str = "__bench-worker";

/// What a worker is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Kernel.
    pub kernel: Kernel,
    /// Settings.
    pub settings: Settings,
    /// File to write, which does not exist.
    pub path: PathBuf,
    /// A libhdf5 to load; without, the bundled one.
    pub library: Option<PathBuf>,
    /// Decides on values.
    pub seed: u64,
    /// Whether waiting for the disk counts.
    pub syncs: bool,
}

/// What a run took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Version of HDF5.
    pub hdf5: String,
    /// Stages, in the order in which they began.
    pub stages: Vec<StageTime>,
    /// Bytes of values.
    pub len_bytes: u64,
    /// Read and write calls; absent where the system does not count them.
    pub calls: Option<Calls>,
    /// Length of the file.
    pub file_len_bytes: u64,
    /// Most memory that the process had, where the system tells.
    pub peak_rss_bytes: Option<u64>,
    /// Of the settings asked for, what the file was found to have.
    pub found: Settings,
    /// Where the first dataset's values begin, if they are in one piece.
    pub offset: Option<u64>,
}

impl Outcome {
    /// Elapsed seconds of all stages.
    pub fn wall_s(&self) -> f64 {
        self.stages.iter().map(|stage| stage.wall_s).sum()
    }

    /// Processor seconds of all stages.
    pub fn cpu_s(&self) -> f64 {
        self.stages.iter().map(|stage| stage.cpu_s).sum()
    }
}

/// A worker's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It was done.
    Done(Outcome),
    /// A setting is not to be had.
    NotApplicable(String),
    /// It failed.
    Failed(String),
}

/// Takes a request from standard input and answers it.
///
/// # Errors
/// If the request is none, or the answer cannot be given.
pub fn serve() -> Result<()> {
    let mut text = String::new();
    let standard = Path::new("standard input");
    std::io::stdin().read_to_string(&mut text).map_err(|source| io(standard, "reading", source))?;
    let request: Request = serde_json::from_str(&text).map_err(|source| TuneError::Answer { source })?;
    let answer = match carry_out(&request) {
        Ok(outcome) => Answer::Done(outcome),
        Err(error @ TuneError::NotApplicable { .. }) => Answer::NotApplicable(error.to_string()),
        Err(error) => Answer::Failed(error.to_string()),
    };
    let text = serde_json::to_string(&answer).map_err(|source| TuneError::Answer { source })?;
    std::io::stdout().write_all(text.as_bytes()).map_err(|source| io(Path::new("standard output"), "writing", source))
}

/// A run: what its kernel works with.
struct Run<'a> {
    chosen: &'a Chosen,
    kernel: Kernel,
    settings: Translated,
    path: &'a Path,
    seed: u64,
}

/// Does one run in this process.
///
/// # Errors
/// If the library or the system refuses, or what was written is not what is read.
pub fn carry_out(request: &Request) -> Result<Outcome> {
    let chosen = request.library.as_deref().map_or_else(|| Ok(Chosen::bundled()), Chosen::load)?;
    let abilities = Abilities { version: chosen.version(), filters: chosen.filters() };
    let settings = Translated::of(&request.settings, &abilities)?;
    let kernel = request.kernel.clone();
    let run = Run { chosen: &chosen, kernel, settings, path: &request.path, seed: request.seed };
    run.prepare()?;
    let mut clock = Clock::default();
    let counter = CallCounter::start();
    let done = run.work(&mut clock)?;
    let looked = match done {
        Some(Done { file, sample }) => {
            let opened_with = file.settings()?;
            clock.time(Stage::Close, || Ok(file.close()?))?;
            Some((opened_with, sample))
        }
        None => None,
    };
    if request.syncs {
        clock.time(Stage::Sync, || sync(run.path))?;
    }
    let calls = counter.stop();
    let len = std::fs::metadata(run.path).map_err(|source| io(run.path, "asking for the length", source))?.len();
    let (found, offset) = match looked {
        Some((opened_with, sample)) => run.look(&request.settings, &opened_with, &sample)?,
        None => (Settings::default(), None),
    };
    Ok(Outcome {
        hdf5: abilities.version,
        stages: clock.into_stages(),
        len_bytes: run.kernel.len_bytes(),
        calls,
        file_len_bytes: len,
        peak_rss_bytes: peak_rss_bytes(),
        found,
        offset,
    })
}

impl<'a> Run<'a> {
    /// Writes what a reading kernel reads, and has the system forget it.
    fn prepare(&self) -> Result<()> {
        let writer = match &self.kernel {
            Kernel::Bdcats { .. } | Kernel::Read { .. } => self.kernel.clone(),
            Kernel::Many { datasets, elements, attributes, reads: true } => {
                Kernel::Many { datasets: *datasets, elements: *elements, attributes: *attributes, reads: false }
            }
            _ => return Ok(()),
        };
        let run = Run { kernel: writer, settings: self.settings.clone(), ..*self };
        let mut untimed = Clock::default();
        let done = match run.kernel {
            Kernel::Many { .. } => many::run(&run, &mut untimed)?,
            Kernel::Read { .. } => tables::write(&run, &mut untimed)?,
            _ => particles::write(&run, &mut untimed)?,
        };
        done.file.close()?;
        sync(self.path)?;
        let failed = |source| io(self.path, "dropping the cache", source);
        let file = std::fs::File::open(self.path).map_err(failed)?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).map_err(|error| failed(error.into()))
    }

    /// None of HDF5 where the kernel writes without.
    fn work(&self, clock: &mut Clock) -> Result<Option<Done<'a>>> {
        match self.kernel {
            Kernel::Occam { .. } => occam::run(self, clock).map(Some),
            Kernel::Many { .. } => many::run(self, clock).map(Some),
            Kernel::Ior { .. } => ior::run(self, clock),
            Kernel::Vpic { .. } => particles::write(self, clock).map(Some),
            Kernel::Bdcats { .. } => particles::read(self, clock).map(Some),
            Kernel::Amrex { .. } => amrex::run(self, clock).map(Some),
            Kernel::Concat { .. } => tables::write(self, clock).map(Some),
            Kernel::Read { .. } => tables::read(self, clock).map(Some),
        }
    }

    fn create(&self) -> Result<File<'a>> {
        Ok(self.chosen.create(self.path, &self.settings.file)?)
    }

    fn open(&self) -> Result<File<'a>> {
        Ok(self.chosen.open(self.path, &self.settings.file)?)
    }

    fn create_dataset(&self, file: &File<'a>, name: &str, element: Element, dims: &[u64]) -> Result<Dataset<'a>> {
        let element_len_bytes = match element {
            Element::F32 => 4,
            Element::F64 => 8,
        };
        let len_bytes = dims.iter().fold(element_len_bytes, |product: u64, dim| product.saturating_mul(*dim));
        let settings = self.settings.dataset_of(len_bytes);
        Ok(file.create_dataset(name, element, dims, &settings, self.settings.buffer_len_bytes)?)
    }

    /// What the file and its first dataset were found to have, if the sample is there.
    fn look(&self, asked: &Settings, opened_with: &FileSettings, sample: &Sample) -> Result<(Settings, Option<u64>)> {
        let name = match self.kernel {
            Kernel::Occam { .. } => "temperature",
            Kernel::Many { .. } => "d000000",
            Kernel::Ior { .. } => "Dataset-0000",
            Kernel::Vpic { .. } | Kernel::Bdcats { .. } => "Step#0/x",
            Kernel::Amrex { .. } => "level_0/data",
            Kernel::Concat { .. } | Kernel::Read { .. } => "table0000",
        };
        let file = self.chosen.open(self.path, &FileSettings::default())?;
        sample.check(&file)?;
        let dataset = file.open_dataset(name)?;
        Ok((translate::found(asked, opened_with, &dataset.settings()?), dataset.offset()))
    }
}

/// What a kernel leaves: the file, open, and what to look for in it.
struct Done<'a> {
    file: File<'a>,
    sample: Sample,
}

/// A box of a dataset and the values that it is to hold.
struct Sample {
    name: String,
    values: Vec<f32>,
    start: Vec<u64>,
    count: Vec<u64>,
}

impl Sample {
    fn check(&self, file: &File<'_>) -> Result<()> {
        let mut found = vec![0.0; self.values.len()];
        file.open_dataset(&self.name)?.read_f32(&mut found, &self.start, &self.count)?;
        if found == self.values {
            return Ok(());
        }
        Err(TuneError::Run { message: format!("{} reads other values than were written", self.name) })
    }
}

fn sync(path: &Path) -> Result<()> {
    let failed = |source| io(path, "waiting for the disk", source);
    std::fs::File::open(path).and_then(|file| file.sync_all()).map_err(failed)
}

fn io(path: &Path, operation: &'static str, source: std::io::Error) -> TuneError {
    TuneError::Io { path: path.to_path_buf(), operation, source }
}

fn not_this_kernel() -> TuneError {
    TuneError::Run { message: "a kernel was given to another one's code; please report this".to_owned() }
}
