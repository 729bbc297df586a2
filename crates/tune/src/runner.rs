//! Starts worker processes, one per run, in a scratch folder that is always removed.
//!
//! Not for the order of runs (`campaign`) nor for what they do (`worker`). Invariants: a run's file is gone when the next
//! one starts; a worker that does not end in time, or whose run is cancelled, is killed and reaped.

use crate::error::{Result, TuneError};
use crate::worker::{Answer, Request, WORKER_ARGUMENT};
use raddle_core::cancel::CancelToken;
use rustix::fs::FlockOperation;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Carries out runs.
pub trait Executor {
    /// Does one run.
    ///
    /// # Errors
    /// If it cannot even be tried, or is cancelled; a run that fails is an [`Answer`].
    fn run(&self, request: &Request, cancel: &CancelToken) -> Result<Answer>;
}

/// Worker processes.
#[derive(Debug, Clone)]
pub struct Workers {
    executable: PathBuf,
    arguments: Vec<OsString>,
    limit: Duration,
}

/// How often a worker is looked at: short against a run, and a thousandth of a core.
const LOOK: Duration = Duration::from_millis(2);

/// What is kept of a worker's last words.
const LAST_WORDS_LEN_BYTES: usize = 500;

impl Workers {
    /// Workers that are `executable` with [`WORKER_ARGUMENT`], each with `limit` of time.
    pub fn of(executable: PathBuf, limit: Duration) -> Self {
        Self { executable, arguments: vec![WORKER_ARGUMENT.into()], limit }
    }

    /// Workers that are this program.
    ///
    /// # Errors
    /// If the system does not tell the executable.
    pub fn own(limit: Duration) -> Result<Self> {
        let failed = |source| io(Path::new("raddle"), "asking for its own path", source);
        Ok(Self::of(std::env::current_exe().map_err(failed)?, limit))
    }

    fn converse(&self, child: &mut Child, request: &Request, cancel: &CancelToken) -> Result<Answer> {
        let failed = |source| io(&self.executable, "talking to a worker", source);
        let text = serde_json::to_vec(request).map_err(|source| TuneError::Answer { source })?;
        if let Some(mut stdin) = child.stdin.take() {
            // A worker that died over its first bytes is told of below.
            let _ = stdin.write_all(&text);
        }
        let started = Instant::now();
        let status = loop {
            match child.try_wait().map_err(failed)? {
                Some(status) => break status,
                None if cancel.is_cancelled() => return Err(TuneError::Cancelled),
                None if started.elapsed() > self.limit => {
                    return Ok(Answer::Failed(format!("no answer within {} s", self.limit.as_secs())));
                }
                None => std::thread::sleep(LOOK),
            }
        };
        let mut answer = Vec::new();
        if let Some(mut stdout) = child.stdout.take() {
            stdout.read_to_end(&mut answer).map_err(failed)?;
        }
        serde_json::from_slice(&answer).or_else(|_| Ok(Answer::Failed(death(status, child))))
    }
}

impl Executor for Workers {
    fn run(&self, request: &Request, cancel: &CancelToken) -> Result<Answer> {
        let mut command = Command::new(&self.executable);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // HDF5_DRIVER, HDF5_PLUGIN_PATH, HDF5_USE_FILE_LOCKING: what is measured is what the request says.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"HDF5_") {
                command.env_remove(&name);
            }
        }
        let mut child = command.spawn().map_err(|source| io(&self.executable, "starting a worker", source))?;
        let answer = self.converse(&mut child, request, cancel);
        // Of one that has ended, both are nothing.
        let _ = child.kill();
        let _ = child.wait();
        answer
    }
}

/// How a worker ended that gave no answer.
fn death(status: ExitStatus, child: &mut Child) -> String {
    let mut words = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        // Without its last words the status must do.
        let _ = stderr.take(LAST_WORDS_LEN_BYTES as u64).read_to_end(&mut words);
    }
    let words = String::from_utf8_lossy(&words);
    let words = words.trim();
    if words.is_empty() {
        format!("the worker ended: {status}")
    } else {
        format!("the worker ended: {status}: {words}")
    }
}

/// A folder for files of runs, removed with all that is in it when this is dropped. One that a killed raddle left is removed
/// by the next one that measures in the same place.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    /// Held while the folder is in use; released by the system however this process ends.
    _lock: File,
}

/// How scratch folders begin.
const PREFIX: &str = ".raddle-bench-";
/// The file in them that is locked.
const LOCK: &str = "lock";

impl Scratch {
    /// A new folder in `parent`, where `needed_len_bytes` must be free.
    ///
    /// # Errors
    /// If nothing can be written there, or too little is free.
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
        // Where locks are not to be had, nobody takes this folder for an abandoned one either.
        let _ = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive);
        // Under its name it is locked from the beginning.
        std::fs::rename(&unlocked, folder.path().join(LOCK)).map_err(failed)?;
        Ok(Self { folder, _lock: lock })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the file of the next run goes, once the one before is removed.
    ///
    /// # Errors
    /// If that cannot be removed.
    pub fn fresh(&self) -> Result<PathBuf> {
        let path = self.folder.path().join("run.h5");
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(io(&path, "removing", source)),
            _ => Ok(path),
        }
    }
}

/// Removes scratch folders in `parent` whose lock nobody holds. What cannot be removed stays: it is not in the way.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        // A folder without a lock is just being made.
        let Some(lock) = is_ours.then(|| File::open(entry.path().join(LOCK)).ok()).flatten() else { continue };
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = std::fs::remove_dir_all(entry.path());
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
        Request { kernel, settings: Settings::default(), path: "x.h5".into(), library: None, seed: 1, syncs: false }
    }

    fn shell(script: &str, limit: Duration) -> Workers {
        let arguments = vec!["-c".into(), script.into()];
        Workers { executable: "/bin/sh".into(), arguments, limit }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn answers_and_deaths_are_told_apart() {
        let run = |script: &str| shell(script, LONG).run(&request(), &CancelToken::new()).unwrap();
        assert_eq!(run("cat > /dev/null; echo '{\"not_applicable\": \"no\"}'"), Answer::NotApplicable("no".to_owned()));
        let Answer::Failed(words) = run("echo 'it is over' >&2; exit 3") else { panic!("not a failure") };
        assert!(words.contains("it is over") && words.contains('3'), "{words}");
        let Answer::Failed(words) = run("kill -SEGV $$") else { panic!("not a failure") };
        assert!(words.contains("signal"), "{words}");
        let Answer::Failed(_) = run("echo nonsense") else { panic!("not a failure") };
        assert!(Workers::of("/absent/raddle".into(), LONG).run(&request(), &CancelToken::new()).is_err());
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
        // What a killed process left is removed; what another one uses is not.
        let used = Scratch::in_folder(parent.path(), 1).unwrap();
        let left = parent.path().join(".raddle-bench-left");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("lock"), "").unwrap();
        std::fs::write(left.join("run.h5"), "data").unwrap();
        let next = Scratch::in_folder(parent.path(), 1).unwrap();
        assert!(!left.exists() && used.folder().exists() && next.folder().exists());
        drop((used, next));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
        let error = Scratch::in_folder(parent.path(), u64::MAX).unwrap_err().to_string();
        assert!(error.contains("free"), "{error}");
        let error = Scratch::in_folder(&parent.path().join("absent"), 1).unwrap_err().to_string();
        assert!(error.contains("absent"), "{error}");
    }
}
