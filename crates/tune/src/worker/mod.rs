//! One run in a separate process: this program, started again with [`WORKER_ARGUMENT`].
//!
//! A separate process is needed because caches, allocators and libraries remember earlier runs, and a loaded libhdf5
//! cannot be unloaded. The request comes on standard input and the answer goes to standard output, both as JSON. MPI
//! ranks, started by a launcher, read the request from a file and write their answers next to it. Invariants: the file
//! of a run did not exist before; the written file is inspected before results are reported, and values that are read
//! are compared with it.

mod boxes;
mod clock;
mod ior;
mod many;
mod nova;
mod occam;
mod particles;
#[cfg(test)]
mod read_tests;
mod tables;
mod team;

pub use clock::{CallCounter, Calls, Phase, ProcessCounters, Reads, RunStage, StageTime};

use crate::error::{Result, TuneError};
use crate::kernel::{Kernel, ReadBack};
use crate::knob::Settings;
use crate::translate::{self, Abilities, TranslatedSettings};
use clock::Clock;
use raddle_core::output::read_back::evict;
use raddle_core::plan::extent::values_len_bytes;
use raddle_core::report::peak_rss_bytes;
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::dynamic::{DynamicLibrary, DynamicMpi, Element, FileSettings, LibraryDataset, LibraryFile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use team::Team;

/// First argument of a worker.
pub const WORKER_ARGUMENT: &str = "__bench-worker";

/// Request to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Kernel to run.
    pub kernel: Kernel,
    /// Settings to use.
    pub settings: Settings,
    /// File to write, which must not exist.
    pub path: PathBuf,
    /// The libhdf5 to load; `None`: the bundled one.
    pub library: Option<PathBuf>,
    /// Seed of the values.
    pub seed: u64,
    /// Whether to include the time of waiting for the disk.
    pub syncs: bool,
    /// Number of MPI ranks that share the run.
    pub ranks: u32,
}

impl Request {
    /// Returns the file from which ranks read the request.
    pub fn file(&self) -> PathBuf {
        self.path.with_file_name("request.json")
    }
}

/// Returns the file for the answer of rank `rank` to the request in `file`.
pub fn answer_of_rank(file: &Path, rank: u32) -> PathBuf {
    file.with_file_name(format!("answer-{rank}.json"))
}

/// Returns the file that exists once a rank has read the request in `file`: a launcher may fail before.
pub fn sign_of_ranks(file: &Path) -> PathBuf {
    file.with_file_name("started")
}

/// Result of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelOutcome {
    /// Version of HDF5.
    pub hdf5: String,
    /// Version of the zlib that HDF5 was loaded with, unless HDF5 contains zlib.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zlib: Option<String>,
    /// Stages, in the order in which they began.
    pub stages: Vec<StageTime>,
    /// Length of the values; 0 if only metadata is read or created.
    pub len_bytes: u64,
    /// Read and write calls; absent if the system does not count them.
    pub calls: Option<Calls>,
    /// Number of bytes read, and how many of them came from storage; absent if the run does not read or the system does
    /// not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Reads>,
    /// Length of the file, in bytes.
    pub file_len_bytes: u64,
    /// Peak memory of the process, if the system reports it.
    pub peak_rss_bytes: Option<u64>,
    /// Settings found in the file, among the requested ones.
    pub found: Settings,
    /// Offset of the first dataset's values, if they are contiguous.
    pub offset: Option<u64>,
    /// Hash of the contents of a program's files; absent if not requested.
    pub values: Option<u64>,
    /// Other counts by name: messages, files, seconds of steps. The unit is seconds if the name ends in `_s`, and bytes
    /// if it contains `len_bytes`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, f64>,
    /// Kind of processes of a kernel that states their number; absent for a single process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<Processes>,
    /// Stages of each rank, if there are several: [`KernelOutcome::stages`] has the elapsed times of the slowest rank
    /// and the processor time of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<Vec<StageTime>>,
}

/// Kind of the processes: MPI ranks, or threads of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Processes {
    /// MPI ranks.
    Ranks,
    /// Threads of one process, which exchange messages in memory.
    Threads,
}

impl KernelOutcome {
    /// Returns the elapsed seconds of all stages.
    pub fn wall_s(&self) -> f64 {
        self.stages.iter().map(|stage| stage.wall_s).sum()
    }

    /// Returns the processor seconds of all stages.
    pub fn cpu_s(&self) -> f64 {
        self.stages.iter().map(|stage| stage.cpu_s).sum()
    }

    /// Returns the stages of a phase of the run; `None` stands for all phases.
    pub fn stages_of(&self, phase: Option<Phase>) -> impl Iterator<Item = &StageTime> {
        self.stages.iter().filter(move |stage| phase.is_none() || stage.phase == phase)
    }
}

/// A worker's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one for each process: nobody keeps many")]
pub enum Answer {
    /// The run succeeded.
    Done(KernelOutcome),
    /// A setting is not available.
    NotApplicable(String),
    /// The libhdf5 does not exist or cannot be used.
    Unusable(String),
    /// The run failed.
    Failed(String),
}

/// Reads the request from standard input or, on one of several ranks, from `file`.
///
/// # Errors
/// If it cannot be read or is not a request.
pub fn request(file: Option<&Path>) -> Result<Request> {
    let standard = Path::new("standard input");
    let text = match file {
        Some(file) => std::fs::read_to_string(file).map_err(|source| io(file, "reading", source))?,
        None => std::io::read_to_string(std::io::stdin()).map_err(|source| io(standard, "reading", source))?,
    };
    serde_json::from_str(&text).map_err(|source| TuneError::Answer { source })
}

/// Executes a request and answers it; on one of several ranks, the request is in `file`.
///
/// # Errors
/// If the answer cannot be written, or a rank failed: the launcher then ends the other ranks.
pub fn serve(request: &Request, file: Option<&Path>) -> Result<()> {
    match file {
        Some(file) => serve_rank(request, file),
        None => say(&answer(carry_out(request))),
    }
}

/// Sends the answer to the parent process.
///
/// # Errors
/// If the answer cannot be written.
pub fn say(answer: &Answer) -> Result<()> {
    let text = text_of(answer)?;
    let mut output = std::io::stdout().lock();
    // An interpreter that contains the command would not flush it at exit.
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.map_err(|source| io(Path::new("standard output"), "writing", source))
}

/// Writes the answer of rank `rank` to the request in `file`.
///
/// # Errors
/// If the answer cannot be written.
pub fn say_of_rank(file: &Path, rank: u32, answer: &Answer) -> Result<()> {
    let path = answer_of_rank(file, rank);
    std::fs::write(&path, text_of(answer)?).map_err(|source| io(&path, "writing", source))
}

/// Creates a file to signal that a rank has read the request in `file`.
///
/// # Errors
/// If the file cannot be created.
pub fn sign(file: &Path) -> Result<()> {
    let sign = sign_of_ranks(file);
    std::fs::File::create(&sign).map(|_| ()).map_err(|source| io(&sign, "making", source))
}

fn answer(done: Result<KernelOutcome>) -> Answer {
    match done {
        Ok(outcome) => Answer::Done(outcome),
        Err(error @ TuneError::NotApplicable { .. }) => Answer::NotApplicable(error.to_string()),
        Err(TuneError::Hdf5(error @ Hdf5Error::Unusable { .. })) => Answer::Unusable(error.to_string()),
        Err(error) => Answer::Failed(error.to_string()),
    }
}

fn text_of(answer: &Answer) -> Result<String> {
    serde_json::to_string(answer).map_err(|source| TuneError::Answer { source })
}

/// Executes a run together with other ranks.
fn serve_rank(request: &Request, file: &Path) -> Result<()> {
    let Some(library) = &request.library else { return Err(takes_ranks()) };
    sign(file)?;
    let hints = translate::hints(&request.settings);
    let mpi = match DynamicMpi::of(library, &hints) {
        Ok(mpi) => mpi,
        Err(error) => return say_of_rank(file, 0, &Answer::NotApplicable(error.to_string())),
    };
    let done = if mpi.size() == request.ranks {
        together(request, &mpi)
    } else {
        let (found, wanted) = (mpi.size(), request.ranks);
        Err(TuneError::OtherLauncher { library: library.clone(), found, wanted })
    };
    let answer = answer(done);
    say_of_rank(file, mpi.rank(), &answer)?;
    match answer {
        // MPI is not finalised, so the launcher ends the ranks that wait for this one.
        Answer::Failed(message) => Err(TuneError::Run { message }),
        // All ranks give the same answer.
        _ => Ok(mpi.finish()?),
    }
}

/// State of a run, used by its kernel.
struct KernelRun<'a> {
    chosen: &'a DynamicLibrary,
    kernel: Kernel,
    settings: TranslatedSettings,
    path: &'a Path,
    seed: u64,
    team: Team<'a>,
}

/// Executes a run in this process.
///
/// # Errors
/// If the library or the system fails, or the values read differ from those written.
pub fn carry_out(request: &Request) -> Result<KernelOutcome> {
    let chosen = request.library.as_deref().map_or_else(|| Ok(DynamicLibrary::bundled()), DynamicLibrary::load)?;
    carry_out_with(request, &chosen, Team::alone())
}

/// Collective. Executes this rank's part of a run.
fn together(request: &Request, mpi: &DynamicMpi) -> Result<KernelOutcome> {
    let chosen = DynamicLibrary::load(mpi.library())?;
    carry_out_with(request, &chosen, Team::of(mpi))
}

fn carry_out_with(request: &Request, chosen: &DynamicLibrary, team: Team<'_>) -> Result<KernelOutcome> {
    let abilities = Abilities {
        version: chosen.version(),
        filters: chosen.filters(),
        ranks: team.mpi().map(|_| chosen.is_parallel()),
        zlib: chosen.zlib().map(str::to_owned),
    };
    let settings = TranslatedSettings::of(&request.settings, &abilities)?;
    let kernel = request.kernel.clone();
    let run = KernelRun { chosen, kernel, settings, path: &request.path, seed: request.seed, team };
    run.prepare()?;
    team.wait()?;
    let mut clock = Clock::default();
    let read_back = run.kernel.read_back();
    if read_back.is_some() {
        clock.enter(Phase::Write);
    }
    let counter = CallCounter::start();
    let done = run.work(&mut clock)?;
    let looked = match done {
        Some(Done { file, sample }) => {
            let opened_with = file.settings()?;
            clock.time(RunStage::Close, || Ok(file.close()?))?;
            sample.map(|sample| (opened_with, sample))
        }
        None => None,
    };
    if request.syncs {
        clock.time(RunStage::Sync, || sync(run.path))?;
    }
    let mut counts = counter.stop();
    if let Some(order) = read_back {
        let reading = run.read_back_from_disk(order, &mut clock)?;
        counts = counts.zip(reading).map(|(writing, reading)| ProcessCounters {
            calls: writing.calls.plus(reading.calls),
            reads: reading.reads,
        });
    }
    team.wait()?;
    let file_len_bytes = run.file_len_bytes()?;
    let (found, offset) = match looked {
        // Every rank has written by now; rank 0 inspects the file.
        Some((opened_with, sample)) if team.rank == 0 => run.look(&request.settings, &opened_with, &sample)?,
        _ => (Settings::default(), None),
    };
    team.wait()?;
    Ok(KernelOutcome {
        hdf5: abilities.version,
        zlib: abilities.zlib,
        stages: clock.into_stages(),
        len_bytes: match run.kernel.is_of_metadata() {
            true => 0,
            false => boxes::len_bytes(&run).unwrap_or_else(|| run.kernel.len_bytes()),
        },
        calls: counts.map(|counts| counts.calls),
        reads: counts.map(|counts| counts.reads).filter(|_| run.kernel.reads()),
        file_len_bytes,
        peak_rss_bytes: peak_rss_bytes(),
        found,
        offset,
        ..KernelOutcome::default()
    })
}

impl<'a> KernelRun<'a> {
    /// Collective. Reads back what was written, after dropping it from the page cache. Returns the counts of this rank.
    fn read_back_from_disk(&self, order: ReadBack, clock: &mut Clock) -> Result<Option<ProcessCounters>> {
        self.team.wait()?;
        forget(self.path)?;
        self.team.wait()?;
        clock.enter(Phase::Read);
        let counter = CallCounter::start();
        self.read_back(order, clock)?;
        Ok(counter.stop())
    }

    /// Returns the length of the file or files that the run wrote or read.
    fn file_len_bytes(&self) -> Result<u64> {
        nova::file_len_bytes(self).unwrap_or_else(|| {
            let found =
                std::fs::metadata(self.path).map_err(|source| io(self.path, "asking for the length", source))?;
            Ok(found.len())
        })
    }

    /// Writes the input of a reading kernel and drops it from the page cache.
    fn prepare(&self) -> Result<()> {
        let writer = match &self.kernel {
            Kernel::Bdcats { .. } | Kernel::Read { .. } => self.kernel.clone(),
            Kernel::Many { datasets, elements, attributes, reads: true } => {
                Kernel::Many { datasets: *datasets, elements: *elements, attributes: *attributes, reads: false }
            }
            Kernel::Nova(_) => self.kernel.clone(),
            _ => return Ok(()),
        };
        if self.team.rank != 0 {
            return Ok(());
        }
        if matches!(writer, Kernel::Nova(_)) {
            return nova::prepare(self);
        }
        let run = KernelRun { kernel: writer, settings: self.settings.clone(), team: Team::alone(), ..*self };
        let mut untimed = Clock::default();
        let done = match run.kernel {
            Kernel::Many { .. } => many::run(&run, &mut untimed)?,
            Kernel::Read { .. } => tables::write(&run, &mut untimed)?,
            _ => particles::write(&run, &mut untimed)?,
        };
        done.file.close()?;
        forget(self.path)
    }

    /// Reads the data that [`Self::work`] wrote, from other ranks or in a different order.
    fn read_back(&self, order: ReadBack, clock: &mut Clock) -> Result<()> {
        match self.kernel {
            Kernel::Ior { .. } => ior::read_back(self, order, clock),
            Kernel::Random { .. } => boxes::read_back(self, order, clock),
            _ => Err(not_this_kernel()),
        }
    }

    /// Runs the kernel; returns `None` if it does not write HDF5.
    fn work(&self, clock: &mut Clock) -> Result<Option<Done<'a>>> {
        match self.kernel {
            Kernel::Occam { .. } => occam::run(self, clock).map(Some),
            Kernel::Many { .. } => many::run(self, clock).map(Some),
            Kernel::Ior { .. } => ior::run(self, clock),
            Kernel::Vpic { .. } => particles::write(self, clock).map(Some),
            Kernel::Bdcats { .. } => particles::read(self, clock).map(Some),
            Kernel::Amrex { .. } | Kernel::Random { .. } => boxes::run(self, clock).map(Some),
            Kernel::Concat { .. } => tables::write(self, clock).map(Some),
            Kernel::Read { .. } => tables::read(self, clock).map(Some),
            Kernel::Nova(_) => nova::run(self, clock),
            Kernel::Samples(_) | Kernel::Events(_) | Kernel::Program { .. } => Err(not_this_kernel()),
        }
    }

    fn create(&self) -> Result<LibraryFile<'a>> {
        let (settings, collective) = (&self.settings.file, self.settings.collective_metadata);
        Ok(match self.team.mpi() {
            Some(mpi) => self.chosen.create_together(self.path, settings, mpi, collective)?,
            None => self.chosen.create(self.path, settings)?,
        })
    }

    fn open(&self) -> Result<LibraryFile<'a>> {
        let (settings, collective) = (&self.settings.file, self.settings.collective_metadata);
        Ok(match self.team.mpi() {
            Some(mpi) => self.chosen.open_together(self.path, settings, mpi, collective)?,
            None => self.chosen.open(self.path, settings)?,
        })
    }

    fn create_dataset(
        &self,
        file: &LibraryFile<'a>,
        name: &str,
        element: Element,
        dims: &[u64],
    ) -> Result<LibraryDataset<'a>> {
        let element_len_bytes = match element {
            Element::F32 => 4,
            Element::F64 => 8,
        };
        let len_bytes = values_len_bytes(dims, element_len_bytes);
        let settings = self.settings.dataset_of(len_bytes);
        Ok(file.create_dataset(name, element, dims, &settings, self.settings.buffer_len_bytes)?)
    }

    /// Returns the settings that the file and its first dataset were found to have, after checking the sample.
    fn look(&self, asked: &Settings, opened_with: &FileSettings, sample: &Sample) -> Result<(Settings, Option<u64>)> {
        let name = match self.kernel {
            Kernel::Occam { .. } => "temperature",
            Kernel::Many { .. } => "d000000",
            Kernel::Ior { .. } | Kernel::Random { .. } => "Dataset-0000",
            Kernel::Vpic { .. } | Kernel::Bdcats { .. } => "Step#0/x",
            Kernel::Amrex { .. } => "level_0/data",
            Kernel::Concat { .. } | Kernel::Read { .. } => "table0000",
            Kernel::Nova(_) => nova::FIRST,
            Kernel::Samples(_) | Kernel::Events(_) | Kernel::Program { .. } => return Err(not_this_kernel()),
        };
        let file = self.chosen.open(self.path, &FileSettings::default())?;
        sample.check(&file)?;
        let dataset = file.open_dataset(name)?;
        Ok((translate::found(asked, opened_with, &dataset.settings()?), dataset.offset()))
    }
}

/// Result of a kernel: the open file, and what to verify in it.
struct Done<'a> {
    file: LibraryFile<'a>,
    /// `None` on a rank that had nothing to write.
    sample: Option<Sample>,
}

/// A box of a dataset and its expected values.
struct Sample {
    name: String,
    values: Vec<f32>,
    start: Vec<u64>,
    count: Vec<u64>,
}

impl Sample {
    fn check(&self, file: &LibraryFile<'_>) -> Result<()> {
        let mut found = vec![0.0; self.values.len()];
        file.open_dataset(&self.name)?.read_f32(&mut found, &self.start, &self.count)?;
        if found == self.values {
            return Ok(());
        }
        Err(TuneError::Run { message: format!("{} read values that differ from those written", self.name) })
    }
}

/// Checks that `found`, read from `start`, equals the values written.
///
/// # Errors
/// If they differ, with the first value that does.
fn check<T: PartialEq + std::fmt::Display>(
    name: &str,
    start: &[u64],
    expected: impl IntoIterator<Item = T>,
    found: &[T],
) -> Result<()> {
    let mut pairs = found.iter().zip(expected).enumerate();
    match pairs.find(|(_, (found, expected))| *found != expected) {
        None => Ok(()),
        Some((place, (found, expected))) => Err(TuneError::Run {
            message: format!("{name}: value {place} read from {start:?} is {found}, but {expected} was written"),
        }),
    }
}

/// Syncs the file and drops it from the page cache, so that reads are cold. Not every file system complies; [`Reads`]
/// records the effect.
fn forget(path: &Path) -> Result<()> {
    sync(path)?;
    let failed = |source| io(path, "dropping the cache", source);
    let file = std::fs::File::open(path).map_err(failed)?;
    evict(&file).map_err(failed)
}

fn sync(path: &Path) -> Result<()> {
    let failed = |source| io(path, "waiting for the disk", source);
    std::fs::File::open(path).and_then(|file| file.sync_all()).map_err(failed)
}

fn io(path: &Path, operation: &'static str, source: std::io::Error) -> TuneError {
    TuneError::Io { path: path.to_path_buf(), operation, source }
}

fn not_this_kernel() -> TuneError {
    TuneError::Run {
        message: "internal error: a kernel was run by the code of another one; please report this".to_owned(),
    }
}

fn takes_ranks() -> TuneError {
    TuneError::Run { message: "this needs MPI ranks and a parallel libhdf5: name one with --hdf5".to_owned() }
}
