//! Starts worker processes, one per run, in a scratch folder that is always removed.
//!
//! The order of runs is decided in `campaign`, their work is in `worker`. Invariants: a run's file is removed before
//! the next run starts; a worker that exceeds its time limit, or whose run is cancelled, is killed and reaped.

use crate::error::{Result, TuneError};
use crate::knob::{Knob, SettingValue};
use crate::translate;
use crate::worker::{Answer, Calls, KernelOutcome, Reads, Request, WORKER_ARGUMENT, answer_of_rank, sign_of_ranks};
use raddle_core::cancel::CancelToken;
use raddle_hdf5::child::OwnProgram;
use rustix::fs::FlockOperation;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Executor of runs.
pub trait Executor {
    /// Executes one run.
    ///
    /// # Errors
    /// If the run cannot be started, or is cancelled; a run that fails is an [`Answer`].
    fn run(&self, request: &Request, cancel: &CancelToken) -> Result<Answer>;
}

/// Executor that starts worker processes.
#[derive(Debug, Clone)]
pub struct Workers {
    executable: PathBuf,
    arguments: Vec<OsString>,
    limit: Duration,
    launcher: PathBuf,
}

/// Interval of polling a worker: short compared with a run, and a thousandth of a core's time.
const LOOK: Duration = Duration::from_millis(2);

/// Maximum length of a worker's error output that is kept.
const LAST_WORDS_LEN_BYTES: usize = 500;

/// Default launcher of ranks.
pub const LAUNCHER: &str = "mpirun";

impl Workers {
    /// Creates workers that run `executable` with [`WORKER_ARGUMENT`], each limited to `limit`; `launcher` starts ranks
    /// of MPI.
    pub fn of(executable: PathBuf, limit: Duration, launcher: PathBuf) -> Self {
        Self { executable, arguments: vec![WORKER_ARGUMENT.into()], limit, launcher }
    }

    /// Creates workers that run this program.
    ///
    /// # Errors
    /// If the system does not reveal the executable.
    pub fn of_this_program(limit: Duration, launcher: PathBuf) -> Result<Self> {
        let failed = |source| io(Path::new("raddle"), "asking for its own path", source);
        let (executable, arguments) = OwnProgram::find().map_err(failed)?.with(WORKER_ARGUMENT);
        Ok(Self { executable, arguments, limit, launcher })
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // HDF5_DRIVER, HDF5_PLUGIN_PATH, HDF5_USE_FILE_LOCKING: only the request may decide what is measured.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"HDF5_") {
                command.env_remove(&name);
            }
        }
        command
    }

    fn run_alone(&self, request: &Request, cancel: &CancelToken) -> Result<Answer> {
        let mut command = self.command(&self.executable);
        command.args(&self.arguments);
        if let Some(SettingValue::Text(zlib)) = request.settings.get(Knob::Zlib) {
            command.env("LD_PRELOAD", zlib);
        }
        let mut child = command.spawn().map_err(|source| io(&self.executable, "starting a worker", source))?;
        let text = serde_json::to_vec(request).map_err(|source| TuneError::Answer { source })?;
        if let Some(mut stdin) = child.stdin.take() {
            // If the worker died before reading the request, that is reported below.
            let _ = stdin.write_all(&text);
        }
        let ended = wait(&mut child, self.limit, cancel);
        let answer = ended.map(|ended| match ended {
            ProcessEnd::Late => Answer::Failed(late(self.limit)),
            ProcessEnd::With(status) => {
                let mut answer = Vec::new();
                if let Some(mut stdout) = child.stdout.take() {
                    // If the output cannot be read, there is no answer.
                    let _ = stdout.read_to_end(&mut answer);
                }
                serde_json::from_slice(&answer)
                    .unwrap_or_else(|_| Answer::Failed(death("the worker", status, &mut child)))
            }
        });
        end(&mut child);
        answer
    }

    /// Executes a run on several ranks, each of which writes its answer next to the request.
    fn run_ranks(&self, request: &Request, cancel: &CancelToken) -> Result<Answer> {
        if request.library.is_none() && request.kernel.local_processes().is_none() {
            let why = "MPI ranks take a libhdf5 that was built with it: name one with --hdf5 (Debian's package \
                       libhdf5-openmpi-103-1 has libhdf5_openmpi.so.103)";
            return Ok(Answer::NotApplicable(why.to_owned()));
        }
        let file = request.file();
        let text = serde_json::to_vec(request).map_err(|source| TuneError::Answer { source })?;
        std::fs::write(&file, text).map_err(|source| io(&file, "writing", source))?;
        let mut command = self.command(&self.launcher);
        command.args(["-n", &request.ranks.to_string()]).arg(&self.executable).args(&self.arguments).arg(&file);
        // In a new process group, so that everything it started can be killed on a timeout.
        command.stdin(Stdio::null()).process_group(0);
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        if request.ranks as usize > cores {
            // For Open MPI 4 and 5; other launchers start any number of ranks.
            command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
            command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
        }
        if !translate::hints(&request.settings).is_empty() && std::env::var_os("OMPI_MCA_io").is_none() {
            // Open MPI also has another implementation of MPI-IO, which ignores these hints.
            command.env("OMPI_MCA_io", "^ompio");
        }
        let mut child = match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let launcher = self.launcher.display();
                return Ok(Answer::NotApplicable(format!(
                    "MPI ranks are started by {launcher}, which does not exist: install it, or name another with \
                     --mpirun"
                )));
            }
            spawned => spawned.map_err(|source| io(&self.launcher, "starting ranks", source))?,
        };
        let ended = wait(&mut child, self.limit, cancel);
        end_group(&mut child);
        ended.map(|ended| match ended {
            ProcessEnd::Late => Answer::Failed(late(self.limit)),
            ProcessEnd::With(status) => all_ranks(&file, request.ranks).unwrap_or_else(|| {
                let words = death(&self.launcher.to_string_lossy(), status, &mut child);
                if sign_of_ranks(&file).exists() {
                    Answer::Failed(words)
                } else {
                    Answer::NotApplicable(format!("no rank was started: {words}"))
                }
            }),
        })
    }
}

impl Executor for Workers {
    fn run(&self, request: &Request, cancel: &CancelToken) -> Result<Answer> {
        if request.ranks > 1 { self.run_ranks(request, cancel) } else { self.run_alone(request, cancel) }
    }
}

/// Outcome of waiting for a process.
#[derive(Debug)]
pub enum ProcessEnd {
    /// The process exited or was killed by a signal.
    With(ExitStatus),
    /// The process did not end in time.
    Late,
}

/// Waits for `child`, which continues to run if this returns [`ProcessEnd::Late`] or an error.
///
/// # Errors
/// If it is cancelled, or the system reports an error.
pub fn wait(child: &mut Child, limit: Duration, cancel: &CancelToken) -> Result<ProcessEnd> {
    let started = Instant::now();
    loop {
        match child.try_wait().map_err(|source| io(Path::new("a run"), "waiting for it", source))? {
            Some(status) => return Ok(ProcessEnd::With(status)),
            None if cancel.is_cancelled() => return Err(TuneError::Cancelled),
            None if started.elapsed() > limit => return Ok(ProcessEnd::Late),
            None => std::thread::sleep(LOOK),
        }
    }
}

/// Returns the message for a run that did not end in time.
pub fn late(limit: Duration) -> String {
    format!("no answer within {} s", limit.as_secs())
}

/// Kills a child and reaps it; does nothing if it has ended.
pub fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Time that a launcher has to end its ranks.
const PATIENCE: Duration = Duration::from_secs(3);

/// Ends a child that leads a process group, and the processes it started. Ranks are in other groups: the launcher ends
/// them on SIGTERM.
pub fn end_group(child: &mut Child) {
    let group = Pid::from_child(child);
    // A group without processes no longer exists.
    if !matches!(child.try_wait(), Ok(Some(_))) {
        let _ = kill_process_group(group, Signal::TERM);
        let asked = Instant::now();
        while matches!(child.try_wait(), Ok(None)) && asked.elapsed() < PATIENCE {
            std::thread::sleep(LOOK);
        }
    }
    let _ = kill_process_group(group, Signal::KILL);
    end(child);
}

/// Combines the answers of all ranks: elapsed times of the slowest rank, processor times and calls of all; `None` if an
/// answer is missing.
fn all_ranks(file: &Path, ranks: u32) -> Option<Answer> {
    let of = |rank| serde_json::from_slice(&std::fs::read(answer_of_rank(file, rank)).ok()?).ok();
    let mut done: Vec<KernelOutcome> = Vec::new();
    for rank in 0..ranks {
        match of(rank) {
            Some(Answer::Done(outcome)) => done.push(outcome),
            // If one rank lacks a setting, all do; another rank may have failed first.
            Some(other) => return Some(other),
            None => return (rank + 1..ranks).filter_map(of).find(|answer| !matches!(answer, Answer::Done(_))),
        }
    }
    let slowest = done.iter().max_by(|a, b| a.wall_s().total_cmp(&b.wall_s()))?;
    let mut stages = slowest.stages.clone();
    for stage in &mut stages {
        let all = done.iter().flat_map(|outcome| &outcome.stages);
        let matching = all.filter(|time| (time.stage, time.phase) == (stage.stage, stage.phase));
        stage.cpu_s = matching.map(|time| time.cpu_s).sum();
    }
    let calls = done.iter().map(|outcome| outcome.calls).collect::<Option<Vec<_>>>();
    Some(Answer::Done(KernelOutcome {
        stages,
        calls: calls.map(|all| all.iter().fold(Calls::default(), |sum, calls| sum.plus(*calls))),
        reads: done.iter().map(|outcome| outcome.reads).fold(None, |sum, reads| match (sum, reads) {
            (Some(sum), Some(reads)) => Some(Reads::plus(sum, reads)),
            (sum, reads) => sum.or(reads),
        }),
        peak_rss_bytes: done.iter().map(|outcome| outcome.peak_rss_bytes).max().flatten(),
        ranks: done.iter().map(|outcome| outcome.stages.clone()).collect(),
        // Rank 0 inspected the file.
        ..done[0].clone()
    }))
}

/// Describes how a process ended that gave no answer.
fn death(name: &str, status: ExitStatus, child: &mut Child) -> String {
    let mut words = Vec::new();
    // If it printed nothing, only the status is reported. MPICH's launcher prints on standard output how a rank ended.
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(LAST_WORDS_LEN_BYTES as u64).read_to_end(&mut words);
    }
    if let Some(stdout) = child.stdout.take().filter(|_| words.trim_ascii().is_empty()) {
        let _ = stdout.take(LAST_WORDS_LEN_BYTES as u64).read_to_end(&mut words);
    }
    let words = String::from_utf8_lossy(&words);
    let words = words.trim();
    if words.is_empty() { format!("{name} ended: {status}") } else { format!("{name} ended: {status}: {words}") }
}

/// A folder for files of runs, removed with its contents when dropped. A folder left by a killed raddle is removed by
/// the next measurement in the same place.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    /// Lock that is held while the folder is in use; the system releases it however this process ends.
    _lock: File,
}

/// Prefix of the names of scratch folders.
const PREFIX: &str = ".raddle-bench-";
/// Name of the lock file in scratch folders.
const LOCK: &str = "lock";
/// Age at which a folder without a lock is abandoned; locking takes milliseconds.
const MAX_UNLOCKED_AGE: Duration = Duration::from_secs(60);

impl Scratch {
    /// Creates a folder in `parent`, where `needed_len_bytes` must be free.
    ///
    /// # Errors
    /// If the parent is not writable, or has too little free space.
    pub fn in_folder(parent: &Path, needed_len_bytes: u64) -> Result<Self> {
        remove_abandoned(parent);
        let free = rustix::fs::statvfs(parent).map_err(|error| io(parent, "asking for free space", error.into()))?;
        let free_len_bytes = free.f_bavail.saturating_mul(free.f_frsize);
        if free_len_bytes < needed_len_bytes {
            return Err(TuneError::NoSpace { folder: parent.to_path_buf(), needed_len_bytes, free_len_bytes });
        }
        let failed = |source| io(parent, "making a scratch folder", source);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent).map_err(failed)?;
        let unlocked = folder.path().join("unlocked");
        let lock = File::create_new(&unlocked).map_err(failed)?;
        // If locks are not supported, nobody regards this folder as abandoned either.
        let _ = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive);
        // The file is locked before it gets its final name.
        std::fs::rename(&unlocked, folder.path().join(LOCK)).map_err(failed)?;
        Ok(Self { folder, _lock: lock })
    }

    /// Returns the path of the folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of the next run's file, in a new folder; removes the folder of the previous run.
    ///
    /// # Errors
    /// If a folder cannot be removed or created.
    pub fn fresh(&self) -> Result<PathBuf> {
        let folder = self.folder.path().join("run");
        match std::fs::remove_dir_all(&folder) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(io(&folder, "removing", source)),
            _ => std::fs::create_dir(&folder).map_err(|source| io(&folder, "making", source)),
        }?;
        Ok(folder.join("run.h5"))
    }
}

/// Removes abandoned scratch folders in `parent`. Folders that cannot be removed are left; they do no harm.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) && is_abandoned(&entry.path()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns whether a scratch folder is abandoned: its lock is free, or it has no lock and is older than
/// [`MAX_UNLOCKED_AGE`].
fn is_abandoned(folder: &Path) -> bool {
    match File::open(folder.join(LOCK)) {
        Ok(lock) => rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(_) => {
            let changed = folder.metadata().and_then(|metadata| metadata.modified());
            changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > MAX_UNLOCKED_AGE))
        }
    }
}

fn io(path: &Path, operation: &'static str, source: std::io::Error) -> TuneError {
    TuneError::Io { path: path.to_path_buf(), operation, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::knob::Settings;

    fn request() -> Request {
        let kernel = Kernel::Vpic { particles: 1 };
        Request {
            kernel,
            settings: Settings::default(),
            path: "x.h5".into(),
            library: None,
            seed: 1,
            syncs: false,
            ranks: 1,
        }
    }

    fn shell(script: &str, limit: Duration) -> Workers {
        let arguments = vec!["-c".into(), script.into()];
        Workers { executable: "/bin/sh".into(), arguments, limit, launcher: LAUNCHER.into() }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn answers_and_deaths_are_distinguished() {
        let run = |script: &str| shell(script, LONG).run(&request(), &CancelToken::new()).unwrap();
        assert_eq!(run("cat > /dev/null; echo '{\"not_applicable\": \"no\"}'"), Answer::NotApplicable("no".to_owned()));
        let Answer::Failed(words) = run("echo 'it is over' >&2; exit 3") else { panic!("not a failure") };
        assert!(words.contains("it is over") && words.contains('3'), "{words}");
        let Answer::Failed(words) = run("kill -SEGV $$") else { panic!("not a failure") };
        assert!(words.contains("signal"), "{words}");
        let Answer::Failed(_) = run("echo nonsense") else { panic!("not a failure") };
        assert!(
            Workers::of("/absent/raddle".into(), LONG, LAUNCHER.into()).run(&request(), &CancelToken::new()).is_err()
        );
    }

    #[test]
    fn a_worker_that_does_not_end_is_ended() {
        let started = Instant::now();
        let late = shell("sleep 600", Duration::from_millis(50)).run(&request(), &CancelToken::new()).unwrap();
        assert!(matches!(late, Answer::Failed(words) if words.contains("no answer")));
        let cancel = CancelToken::new();
        cancel.cancel();
        assert!(matches!(shell("sleep 600", LONG).run(&request(), &cancel), Err(TuneError::Cancelled)));
        assert!(started.elapsed() < LONG * 2);
    }

    #[test]
    fn scratch_goes_with_all_that_is_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::in_folder(parent.path(), 1).unwrap();
        let path = scratch.fresh().unwrap();
        std::fs::write(&path, "data").unwrap();
        assert_eq!(scratch.fresh().unwrap(), path);
        assert!(!path.exists());
        std::fs::write(&path, "data").unwrap();
        drop(scratch);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
        // The folder of a killed process is removed, but not one in use.
        let used = Scratch::in_folder(parent.path(), 1).unwrap();
        let left = parent.path().join(".raddle-bench-left");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("lock"), "").unwrap();
        std::fs::write(left.join("run.h5"), "data").unwrap();
        let next = Scratch::in_folder(parent.path(), 1).unwrap();
        assert!(!left.exists() && used.folder().exists() && next.folder().exists());
        // So is one that was killed before it had a lock, but not one that is just being created.
        std::fs::create_dir(&left).unwrap();
        drop(Scratch::in_folder(parent.path(), 1).unwrap());
        assert!(left.exists());
        let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
        File::open(&left).unwrap().set_modified(hour_ago).unwrap();
        drop(Scratch::in_folder(parent.path(), 1).unwrap());
        assert!(!left.exists());
        drop((used, next));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
        let error = Scratch::in_folder(parent.path(), u64::MAX).unwrap_err().to_string();
        assert!(error.contains("free"), "{error}");
        let error = Scratch::in_folder(&parent.path().join("absent"), 1).unwrap_err().to_string();
        assert!(error.contains("absent"), "{error}");
    }
}
