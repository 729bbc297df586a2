//! Faults at a chosen system call of a tested program: `shim/faults.c`, compiled by the test with `cc` and loaded with
//! `LD_PRELOAD`.
//!
//! The program must be linked dynamically and make its calls through the C library. Invariant: only calls on files
//! under the named folder count, so the k-th call is the same in every run of a single-threaded program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Effect of a fault on the chosen call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The call fails with this errno.
    Fail(i32),
    /// The call transfers a single byte.
    Short,
    /// The process is killed before the call.
    Kill,
    /// The process gets this signal before the call.
    Signal(i32),
    /// A byte is appended to a file before the call.
    Grow(PathBuf),
    /// A file is cut to half of its length before the call.
    Cut(PathBuf),
}

impl Action {
    fn to_variable(&self) -> OsString {
        let with_path = |name: &str, path: &Path| {
            let mut text = OsString::from(name);
            text.push(path);
            text
        };
        match self {
            Self::Fail(errno) => errno.to_string().into(),
            Self::Short => "short".into(),
            Self::Kill => "kill".into(),
            Self::Signal(signal) => format!("stop:{signal}").into(),
            Self::Grow(path) => with_path("grow:", path),
            Self::Cut(path) => with_path("cut:", path),
        }
    }
}

/// A fault to inject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Calls that count: `write`, `pwrite`, `read`, `pread`, `fsync`, `fdatasync`, `ftruncate`, `close`, `rename`,
    /// `link`, `unlink`, `create` (opening for writing), `open` (for reading); separated by commas. Or only `malloc`:
    /// all requests for memory.
    pub calls: &'static str,
    /// Number of the call at which it happens, from 1.
    pub at: u64,
    /// Whether the fault also happens at all later calls.
    pub sticky: bool,
    /// Effect of the fault.
    pub action: Action,
}

/// All calls that change a file or a name.
pub const CHANGING: &str = "write,pwrite,fsync,fdatasync,ftruncate,rename,link,unlink,create";

/// The compiled shim, next to the test program in the build folder.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = std::env::current_exe().expect("the path of the test program");
    let folder = program.parent().expect("its folder");
    let unique = format!("raddle_faults_{}", std::process::id());
    let (source, built) = (folder.join(format!("{unique}.c")), folder.join(format!("{unique}.so")));
    std::fs::write(&source, include_str!("../shim/faults.c")).expect("the source of the shim");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Werror=implicit-function-declaration", "-O1", "-shared", "-fPIC", "-o"])
        .args([&built, &source])
        .status()
        .expect("a C compiler");
    assert!(status.success(), "the shim does not compile");
    std::fs::remove_file(source).expect("the source of the shim");
    // Test programs that run in parallel compile the same file.
    let path = folder.join("raddle_faults.so");
    std::fs::rename(built, &path).expect("the shim");
    path
});

/// Injects `fault` into `command` for files under the absolute path `under`. Each occurrence adds a line to `log`,
/// which must lie outside `under`.
pub fn arm(command: &mut Command, fault: &Fault, under: &Path, log: &Path) {
    command
        .env("LD_PRELOAD", LIBRARY.as_path())
        .env("RADDLE_FAULT_CALLS", fault.calls)
        .env("RADDLE_FAULT_AT", fault.at.to_string())
        .env("RADDLE_FAULT_DO", fault.action.to_variable())
        .env("RADDLE_FAULT_UNDER", under)
        .env("RADDLE_FAULT_LOG", log);
    if fault.sticky {
        command.env("RADDLE_FAULT_STICKY", "1");
    }
}

/// Records all changes of `command` to files under the absolute path `under` in `log`, which must lie outside `under`:
/// see [`crate::power`].
pub fn trace(command: &mut Command, under: &Path, log: &Path) {
    command.env("LD_PRELOAD", LIBRARY.as_path()).env("RADDLE_FAULT_UNDER", under).env("RADDLE_FAULT_TRACE", log);
}

/// Returns the faults that happened, each with call and path, and empties the log.
pub fn struck(log: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let _ = std::fs::remove_file(log);
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a shell in `folder` with a fault; returns its exit code and the faults that happened.
    fn shell(folder: &Path, script: &str, fault: &Fault) -> (Option<i32>, Vec<String>) {
        let outside = tempfile::tempdir().unwrap();
        let log = outside.path().join("log");
        let mut command = Command::new("sh");
        command.current_dir(folder).args(["-c", script]);
        arm(&mut command, fault, &folder.canonicalize().unwrap(), &log);
        let status = command.stderr(std::process::Stdio::null()).status().unwrap();
        (status.code(), struck(&log))
    }

    #[test]
    fn the_chosen_call_fails_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let write = |at, action| Fault { calls: "write", at, sticky: false, action };
        let script = "echo one > a && echo two > b";
        let (code, struck) = shell(folder.path(), script, &write(3, Action::Fail(28)));
        assert_eq!((code, struck.len()), (Some(0), 0), "there are two writes");
        let (code, struck) = shell(folder.path(), script, &write(2, Action::Fail(28)));
        assert!(code != Some(0) && struck.len() == 1 && struck[0].ends_with("/b"), "{code:?} {struck:?}");
        assert_eq!(std::fs::read_to_string(folder.path().join("a")).unwrap(), "one\n");
        assert_eq!(std::fs::read_to_string(folder.path().join("b")).unwrap(), "");
        let (code, struck) = shell(folder.path(), script, &write(1, Action::Kill));
        assert_eq!((code, struck.len()), (None, 1));
    }

    #[test]
    fn files_are_changed_before_the_call() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        for (action, expected) in [(Action::Grow(victim.clone()), "abcdx"), (Action::Cut(victim.clone()), "ab")] {
            std::fs::write(&victim, "abcd").unwrap();
            let fault = Fault { calls: "write", at: 1, sticky: false, action };
            assert_eq!(shell(folder.path(), "echo one > a", &fault).0, Some(0));
            assert_eq!(std::fs::read_to_string(&victim).unwrap(), expected);
        }
    }
}
