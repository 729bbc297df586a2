//! Rows 11, 13 and 16 for a file that grows in place. When killed or failed at any call, it is the old or the new file,
//! byte for byte, as soon as the next raddle has opened it, and before the commit for every other reader as well.

use crate::workload::{self, Outcome, make};
use raddle_testing::content::Content;
use raddle_testing::faults::{self, Action, CHANGING, Fault};
use raddle_testing::plain;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// A merged file in `out/`, inputs to append to it in `new/`, and the expected results.
struct Growing {
    folder: TempDir,
    root: PathBuf,
    old: Vec<u8>,
    new: Vec<u8>,
    /// Content of the old file, read with plain libhdf5.
    old_content: Content,
}

impl Growing {
    /// Creates one new input with `chunks` chunks of 64 KiB in its larger dataset.
    fn new(chunks: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["first", "new", "out"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        let datasets = |chunks| [("/large", chunks), ("/table/a", 1), ("/table/unfiltered", 1)];
        make(&root.join("first/0.h5"), 0, &datasets(3), 16 * 1024);
        make(&root.join("new/1.h5"), 1, &datasets(chunks), 16 * 1024);
        let mut growing = Self { folder, root, old: Vec::new(), new: Vec::new(), old_content: Content::default() };
        // The rows do not fill the chunks, so the last chunk of each dataset is rewritten.
        let merge = ["merge", "first", "-o", "out/out.h5", "--extendible", "--chunk", "10000rows", "-q"];
        let merged = growing.run(growing.raddle(&merge));
        assert_eq!(merged.code, 0, "{}", merged.reported);
        growing.old = std::fs::read(growing.file()).unwrap();
        growing.old_content = plain::read(&growing.file()).unwrap();
        let outcome = growing.run(growing.command());
        assert_eq!(outcome.code, 0, "{}", outcome.reported);
        for arguments in
            [&["verify", "out/out.h5", "-q"][..], &["verify", "out/out.h5", "--against", "first", "new", "-q"]]
        {
            let verified = growing.run(growing.raddle(arguments));
            assert_eq!(verified.code, 0, "{}", verified.reported);
        }
        growing.new = std::fs::read(growing.file()).unwrap();
        growing
    }

    fn file(&self) -> PathBuf {
        self.root.join("out/out.h5")
    }

    fn redo(&self) -> PathBuf {
        self.root.join("out/.out.h5.raddle-redo")
    }

    fn raddle(&self, arguments: &[&str]) -> Command {
        workload::raddle(&self.root, arguments)
    }

    fn command(&self) -> Command {
        self.raddle(&["append", "out/out.h5", "new", "-j", "1", "-c", "fast", "--progress", "never"])
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn run(&self, command: Command) -> Outcome {
        workload::run(command, &self.log())
    }

    fn run_with(&self, fault: &Fault) -> Outcome {
        let mut command = self.command();
        faults::arm(&mut command, fault, &self.root.join("out"), &self.log());
        self.run(command)
    }

    fn reset(&self) {
        for entry in std::fs::read_dir(self.root.join("out")).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        std::fs::write(self.file(), &self.old).unwrap();
    }

    /// Checks the file: before the commit, every byte of the old file is unchanged; after it, the log contains the
    /// rest, or nothing is left to do. The next raddle, which only reads or runs the same command, then produces the
    /// old or the new file.
    fn assert_sound(&self, context: &dyn std::fmt::Debug, by_reading: bool) {
        let found = std::fs::read(self.file()).unwrap();
        let is_committed = std::fs::read(self.redo()).is_ok_and(|log| log[16] == 1);
        let is_old = found.starts_with(&self.old);
        assert!(is_old || is_committed || found == self.new, "{context:?}: neither old nor new");
        if is_old && !is_committed {
            let differences = self.old_content.differences(&plain::read(&self.file()).unwrap());
            assert!(differences.is_empty(), "{context:?}: a stock reader sees another file: {differences:?}");
        }
        if by_reading {
            let read = self.run(self.raddle(&["verify", "out/out.h5", "-q"]));
            assert_eq!(read.code, 0, "{context:?}: {}", read.reported);
            let found = std::fs::read(self.file()).unwrap();
            assert!(found == self.old || found == self.new, "{context:?}: neither old nor new after reading");
            assert!(!self.redo().exists(), "{context:?}");
        }
        if std::fs::read(self.file()).unwrap() != self.new || self.redo().exists() {
            let again = self.run(self.command());
            assert_eq!(again.code, 0, "{context:?}: {}", again.reported);
        }
        assert!(std::fs::read(self.file()).unwrap() == self.new, "{context:?}: the next append is wrong");
        assert!(!self.redo().exists(), "{context:?}");
    }
}

fn struck_at_calls(action: &Action, sticky: bool, step: usize, code: i32) -> u64 {
    let growing = Growing::new(6);
    for at in (1..).step_by(step) {
        growing.reset();
        let fault = Fault { calls: CHANGING, at, sticky, action: action.clone() };
        let outcome = growing.run_with(&fault);
        let context = (&fault, &outcome);
        if outcome.struck.is_empty() {
            assert_eq!(outcome.code, 0, "{context:?}");
            return at;
        }
        assert!(outcome.code == code || outcome.code == 0, "{context:?}");
        if outcome.code == 0 {
            assert!(std::fs::read(growing.file()).unwrap() == growing.new, "{context:?}");
        }
        growing.assert_sound(&context, at % 2 == 0);
    }
    unreachable!("the loop ends where no call is left");
}

#[test]
fn an_append_killed_at_any_call_leaves_the_old_or_the_new_file() {
    let calls = struck_at_calls(&Action::Kill, false, 1, -9);
    assert!(calls > 15, "only {calls} calls were counted");
}

#[test]
fn an_append_whose_disk_fails_at_any_call_leaves_the_old_or_the_new_file() {
    struck_at_calls(&Action::Fail(ENOSPC), false, 1, 5);
    struck_at_calls(&Action::Fail(ENOSPC), true, 3, 5);
    struck_at_calls(&Action::Fail(EIO), false, 2, 5);
}

/// Kills the append at `rounds` random times.
fn killed_at_random_times(rounds: u32) {
    let growing = Growing::new(120);
    growing.reset();
    let started = Instant::now();
    assert_eq!(growing.run(growing.command()).code, 0);
    let whole = started.elapsed();
    let mut killed = 0;
    for round in 0..rounds {
        growing.reset();
        let mut child =
            growing.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let wait = f64::from(round.wrapping_mul(0x9E37_79B1)) / f64::from(u32::MAX);
        std::thread::sleep(Duration::from_secs_f64(whole.as_secs_f64() * wait));
        let _ = child.kill();
        let status = child.wait().unwrap();
        killed += u32::from(status.signal() == Some(9));
        growing.assert_sound(&(round, status), round % 2 == 0);
    }
    println!("{killed} of {rounds} appends were killed");
    assert!(killed > rounds / 4, "{killed} of {rounds} appends were killed");
}

#[test]
fn an_append_killed_at_random_times_leaves_the_old_or_the_new_file() {
    killed_at_random_times(8);
}

#[test]
#[ignore = "make soak"]
fn soak_an_append_killed_at_random_times_leaves_the_old_or_the_new_file() {
    killed_at_random_times(200);
}

/// Copies of a folder's file may be anywhere: a log belongs to one file.
#[test]
fn a_log_of_another_file_is_ignored() {
    let growing = Growing::new(2);
    growing.reset();
    let calls = struck_calls_until_commit(&growing);
    assert!(calls > 0);
    std::fs::write(growing.file(), &growing.old).unwrap();
    let reported = growing.run(growing.raddle(&["verify", "out/out.h5", "-q"]));
    assert_eq!(reported.code, 5, "{}", reported.reported);
    assert!(reported.reported.contains("belongs to a different state of the file"), "{}", reported.reported);
    assert!(std::fs::read(growing.file()).unwrap() == growing.old);
}

/// Kills appends at later and later calls until one has just committed; returns the number of calls.
fn struck_calls_until_commit(growing: &Growing) -> u64 {
    let is_committed = |path: &Path| std::fs::read(path).is_ok_and(|log| log[16] == 1);
    for at in 1.. {
        growing.reset();
        let outcome = growing.run_with(&Fault { calls: CHANGING, at, sticky: false, action: Action::Kill });
        assert_eq!(outcome.code, -9, "no commit was seen");
        if is_committed(&growing.redo()) {
            return at;
        }
    }
    0
}
