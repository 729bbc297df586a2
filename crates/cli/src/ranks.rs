//! The ranks that execute a command together, and the one that prints.
//!
//! A command not started by `mpirun` or `srun` is a team of one and never initialises MPI. Invariant: all ranks end
//! with the same exit code. Only the first rank writes to standard output, shows progress and reports failures of any
//! rank, except that a rank which leaves the others behind reports its own failure and aborts them.

use crate::exit::Exit;
use crate::machine;
use crate::options::running::VerbosityArgs;
use crate::print_error::{print_error, render};
use crate::progress::JsonLog;
use crate::standard_error;
use raddle::Error;
use raddle_core::engine::{SharedFiles, default_jobs};
use raddle_core::ranks::communicator::{AgreedError, Communicator, CommunicatorExt, SingleProcess};
use raddle_core::ranks::datasets::SharedDatasets;
use raddle_mpi::launcher::{self, LauncherInfo};
use raddle_mpi::{MpiError, World};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time that a failed rank waits for the others to fail as well. Ranks agree on errors between tiles and at the end of
/// every stage; a rank that does not arrive within this time is itself waiting for the failed one, and would do so
/// forever.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time for the first rank to report a failure that all ranks share, because a launcher ends all ranks when one ends
/// with a failure.
const FIRST_SPEAKS: Duration = Duration::from_secs(1);

/// Behaviour of a command that is started on several ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankUse {
    /// The ranks share the work.
    Shared,
    /// Every rank is replaced by another program, which communicates with the other ranks by itself.
    Independent,
    /// The command runs as one process.
    OneProcess,
}

/// The ranks that execute a command.
#[derive(Debug)]
pub struct Ranks {
    world: Option<World>,
    jobs: usize,
    /// Machine of each rank, as a number from 0.
    machines: Vec<u32>,
    /// Options with the file for the report of the run, once they are known.
    /// Where to write the cause of a failure that is only known at the end.
    postponed: Arc<PostponedReport>,
}

/// Report and log of a run that failed because another rank did.
#[derive(Debug, Default)]
pub struct PostponedReport(Mutex<(Option<VerbosityArgs>, Option<JsonLog>)>);

impl PostponedReport {
    /// Sets the options with the file for the report, and the log.
    pub fn set(&self, verbosity: Option<VerbosityArgs>, log: Option<JsonLog>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (verbosity, log);
    }

    /// Writes the cause of the failure. That failure is more important than one of writing about it.
    fn write(&self, cause: &ExitMessage) {
        let (verbosity, log) = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(verbosity) = verbosity {
            let _ = verbosity.write_failure_of_rank(&cause.json);
        }
        if let Some(log) = log {
            let _ = log.finish_with_failure(&cause.json, cause.exit_code);
        }
    }
}

/// Reports a failure that all ranks encounter before they have joined; only the first prints it.
pub fn print_from_root(print: impl FnOnce()) {
    match launcher::launched() {
        Some(launched) if !launched.is_first() => std::thread::sleep(FIRST_SPEAKS),
        _ => print(),
    }
}

/// Final message of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ExitMessage {
    exit_code: u8,
    /// Whether the rank's failure only repeats that of another rank.
    is_secondary: bool,
    text: String,
    /// The failure as JSON.
    json: String,
}

impl Ranks {
    /// Creates the team of a single process.
    pub fn alone() -> Self {
        Self { world: None, jobs: default_jobs(), machines: vec![0], postponed: Arc::default() }
    }

    /// Collective. Gathers the ranks that were started to execute the command `name`.
    ///
    /// # Errors
    /// If there are several, but this raddle or the command only supports a single process.
    pub fn gather(name: &str, rank_use: RankUse) -> Result<Self, Error> {
        let Some(launched) = launcher::launched() else { return Ok(Self::alone()) };
        match rank_use {
            RankUse::Shared => {}
            RankUse::Independent => return Ok(Self::alone()),
            RankUse::OneProcess if launched.has_others() => return Err(one_process(name, &launched)),
            RankUse::OneProcess => return Ok(Self::alone()),
        }
        match World::join(&launched) {
            Ok(world) => Self::of(world),
            Err(MpiError::NotBuilt { .. }) if !launched.has_others() => Ok(Self::alone()),
            Err(error) => Err(unusable(&error, &launched)),
        }
    }

    fn of(world: World) -> Result<Self, Error> {
        let ranks = world.communicator();
        let gather = |local: Vec<u8>| ranks.all_gather_bytes(&local).map_err(Error::of_ranks);
        let jobs = machine::share_of_cores(default_jobs(), ranks.rank(), &gather(machine::describe(ranks.rank()))?);
        let machines = machine::numbers(&gather(machine::name(ranks.rank()))?);
        Ok(Self { world: Some(world), jobs, machines, postponed: Arc::default() })
    }

    /// Returns the number of each rank's machine.
    pub fn machines(&self) -> &[u32] {
        &self.machines
    }

    /// Returns the communicator of the ranks.
    pub fn ranks(&self) -> &dyn Communicator {
        self.world.as_ref().map_or(&SingleProcess, World::communicator)
    }

    /// Returns access to files that the ranks write collectively, with these hints.
    ///
    /// # Errors
    /// If there is no MPI, or it rejects the hints.
    pub fn files(&self, hints: &[(String, String)]) -> Result<Box<dyn SharedFiles + '_>, Error> {
        match &self.world {
            Some(world) => world.files(hints).map_err(|error| Error::usage(&error.to_string())),
            None => Err(no_mpi("mpiio")),
        }
    }

    /// Returns access to datasets that the ranks write collectively, through the parallel libhdf5 at `library` or one
    /// with a usual name.
    ///
    /// # Errors
    /// If there is no MPI or no such library.
    pub fn datasets(&self, library: Option<&Path>) -> Result<Box<dyn SharedDatasets + '_>, Error> {
        let Some(world) = &self.world else { return Err(no_mpi("collective")) };
        world.datasets(library).map_err(|error| {
            Error::usage(&error.to_string()).hint(
                "install an HDF5 that is built for the MPI of raddle (Debian: libhdf5-openmpi-103-1 or libhdf5-mpich-103-1), \
                 or name its library: --hdf5 /path/to/libhdf5.so",
            )
        })
    }

    /// Returns where to leave report and log of a run that failed because another rank did.
    pub fn postponed(&self) -> Arc<PostponedReport> {
        Arc::clone(&self.postponed)
    }

    /// Returns whether this rank prints for all.
    pub fn leads(&self) -> bool {
        self.ranks().rank() == 0
    }

    /// Returns the default number of threads of this rank, which is its share of the cores.
    pub fn default_jobs(&self) -> usize {
        self.jobs
    }

    /// Collective. Checks that a step succeeded on every rank; a rank that failed returns its own failure.
    pub fn agree<T>(&self, operation: &'static str, local: Result<T, Error>) -> Result<T, Error> {
        self.ranks().agree(operation, local)
    }

    /// Collective. Returns the paths computed by the first rank, on every rank.
    pub fn paths_of_first(&self, make: impl FnOnce() -> Result<Vec<PathBuf>, Error>) -> Result<Vec<PathBuf>, Error> {
        raddle::options::inputs::paths_of_first(self.ranks(), make)
    }

    /// Collective. Returns the common exit code of all ranks; `None` stands for a panic that was already reported. The
    /// failure that caused all others is printed, also as JSON on standard output if the command should answer with it.
    pub fn end(self, result: Option<Result<Exit, Error>>, answers_json: bool) -> Exit {
        let Some(world) = self.world else {
            return match result {
                Some(Ok(exit)) => exit,
                Some(Err(failure)) => {
                    answer(answers_json, &failure.json());
                    print_error(&failure)
                }
                None => {
                    answer(answers_json, &panicked().json());
                    Exit::Internal
                }
            };
        };
        let (rank, has_failed) = (world.communicator().rank(), !matches!(result, Some(Ok(_))));
        let local_message = ExitMessage::of(&result);
        let give_up = || standard_error::print(format_args!("{}", local_message.text_of(rank)));
        let received =
            world.end(&local_message.to_bytes(), has_failed.then_some(PATIENCE), local_message.exit_code, give_up);
        let received: Vec<ExitMessage> = received.iter().map(|bytes| ExitMessage::from_bytes(bytes)).collect();
        let (cause_rank, cause) = cause(&received).unwrap_or((rank, &local_message));
        if rank == 0 {
            answer(answers_json, &cause.json);
            standard_error::print(format_args!("{}", cause.text_of(cause_rank)));
            self.postponed.write(cause);
        }
        world.close();
        Exit::of_code(cause.exit_code)
    }
}

/// Returns the message that explains the common outcome: the first failure that does not repeat another one.
fn cause(received: &[ExitMessage]) -> Option<(usize, &ExitMessage)> {
    let is_well = |words: &ExitMessage| [Exit::Done, Exit::InputsSkipped].map(Exit::code).contains(&words.exit_code);
    let mut failed = received.iter().enumerate().filter(|(_, words)| !is_well(words));
    let first = failed.clone().next().or_else(|| received.iter().enumerate().next());
    failed.find(|(_, words)| !words.is_secondary).or(first)
}

impl ExitMessage {
    fn of(result: &Option<Result<Exit, Error>>) -> Self {
        let (exit, is_secondary, text, json) = match result {
            Some(Ok(exit)) => (*exit, false, String::new(), String::new()),
            Some(Err(failure)) => (failure.exit, failure.is_secondary, render(failure), failure.json()),
            None => (Exit::Internal, false, String::new(), panicked().json()),
        };
        Self { exit_code: exit.code(), is_secondary, text, json }
    }

    /// Formats the message for printing by rank 0.
    fn text_of(&self, rank: usize) -> String {
        if rank == 0 || self.text.is_empty() { self.text.clone() } else { format!("rank {rank}: {}", self.text) }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let text_len_bytes = (self.text.len() as u64).to_le_bytes();
        let head = [self.exit_code, u8::from(self.is_secondary)];
        [&head, &text_len_bytes[..], self.text.as_bytes(), self.json.as_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match bytes {
            [exit_code, is_secondary, a, b, c, d, e, f, g, h, both @ ..] => {
                let text_len_bytes = u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
                let (text, json) = both.split_at((text_len_bytes as usize).min(both.len()));
                Self { exit_code: *exit_code, is_secondary: *is_secondary != 0, text: words(text), json: words(json) }
            }
            _ => {
                Self { exit_code: Exit::Internal.code(), is_secondary: true, text: String::new(), json: String::new() }
            }
        }
    }
}

/// Prints a failure if the command should answer with JSON. A reader that has exited is ignored.
pub fn answer(answers_json: bool, json: &str) {
    if answers_json {
        let _ = std::io::stdout().write_all(json.as_bytes());
    }
}

/// Creates the failure for a panic, printed after the panic's own message.
fn panicked() -> Error {
    Error::new(Exit::Internal, "internal error; see standard error for details")
}

fn one_process(name: &str, launched: &LauncherInfo) -> Error {
    let launcher = launched.launcher;
    let what = format!("raddle {name} runs as one process, but {launcher} started several");
    Error::usage(&what).hint(&format!(
        "run it without {launcher}; plan, merge, append, rechunk, select, verify, inspect, keys add, keys spill-index, \
         idx write, idx read, events convert, events merge and events bench share their work across ranks"
    ))
}

fn no_mpi(io: &str) -> Error {
    Error::usage(&format!("--io {io} writes through MPI, but this process was not started by an MPI launcher"))
        .hint("start it with mpirun or srun, using a raddle built with `--features mpi`, or leave out --io")
}

fn unusable(error: &MpiError, launched: &LauncherInfo) -> Error {
    let failure = Error::usage(&error.to_string());
    match error {
        MpiError::NotBuilt { .. } => failure.hint(&format!(
            "build it with `cargo build --release --features mpi`, or run one process without {}",
            launched.launcher
        )),
        MpiError::OtherLauncher { .. } => failure.hint(
            "use the mpirun of the MPI that raddle was built with; with srun, name its interface (srun --mpi=list, \
             then --mpi=pmix or --mpi=pmi2)",
        ),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(exit: Exit, is_secondary: bool) -> ExitMessage {
        ExitMessage { exit_code: exit.code(), is_secondary, text: "error: no".to_owned(), json: "{}".to_owned() }
    }

    #[test]
    fn the_cause_is_not_an_echo() {
        let well = words(Exit::Done, false);
        let received =
            [words(Exit::Internal, true), well.clone(), words(Exit::Output, false), words(Exit::Limit, false)];
        assert_eq!(cause(&received), Some((2, &received[2])));
        assert_eq!(cause(&received[..2]), Some((0, &received[0])));
        assert_eq!(cause(&[well.clone(), well.clone()]), Some((0, &well)));
        assert_eq!(cause(&[]), None);
    }

    #[test]
    fn last_words_travel() {
        for sent in [words(Exit::Terminated, true), words(Exit::Done, false)] {
            assert_eq!(ExitMessage::from_bytes(&sent.to_bytes()), sent);
        }
        assert!(ExitMessage::from_bytes(&[]).is_secondary);
        assert_eq!(words(Exit::Output, false).text_of(3), "rank 3: error: no");
    }

    #[test]
    fn a_process_that_is_alone_ends_with_its_own_code() {
        assert_eq!(Ranks::alone().end(Some(Ok(Exit::InputsSkipped)), false), Exit::InputsSkipped);
        assert_eq!(Ranks::alone().end(None, true), Exit::Internal);
        let paths = vec![PathBuf::from("a"), PathBuf::from("b")];
        assert_eq!(Ranks::alone().paths_of_first(|| Ok(paths.clone())).unwrap(), paths);
    }
}
