//! The process that runs libhdf5 on a file crashes, hangs or sends invalid messages: the run soon refuses the file by
//! name with exit code 3, and nothing is written.

use raddle_testing::plain::{self, storage::create_compressed_group};
use raddle_testing::spec::{FileSpec, Format, ObjectSpec};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Shell commands that greet like a reader: a frame with a one-byte message, "ready".
const GREET: &str = r"printf 'RdH5\001\000\000\000\001\000\000\000\000\000\000\000\000' >&0";

/// A folder with two inputs that only libhdf5 can read, and a reader that does `what`.
struct Run {
    folder: tempfile::TempDir,
    reader: PathBuf,
}

impl Run {
    fn new(what: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["good.h5", "worse.h5"] {
            let path = folder.path().join(name);
            plain::make(&path, &FileSpec { format: Format::V110, ..FileSpec::default() }).unwrap();
            create_compressed_group(&path, b"/group", 40).unwrap();
        }
        let reader = folder.path().join("reader");
        std::fs::write(&reader, format!("#!/bin/sh\n{what}\n")).unwrap();
        std::fs::set_permissions(&reader, std::fs::Permissions::from_mode(0o700)).unwrap();
        Self { folder, reader }
    }

    /// Runs `raddle` with a limit of one second; returns exit code and messages.
    fn raddle(&self, arguments: &[&str]) -> (i32, String) {
        let started = Instant::now();
        let run = Command::new(env!("CARGO_BIN_EXE_raddle"))
            .current_dir(self.folder.path())
            .args(arguments)
            .args(["--reader-timeout", "1", "--reader"])
            .arg(&self.reader)
            .env("COLUMNS", "1000")
            .output()
            .unwrap();
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        let reported = String::from_utf8(run.stderr).unwrap() + &String::from_utf8(run.stdout).unwrap();
        (run.status.code().expect("the main process must not die of a signal"), reported)
    }

    /// Checks that the merge is refused, naming the file and `reason`, and leaves nothing behind.
    fn is_refused(&self, reason: &str) {
        let names = |folder: &Path| {
            let mut names: Vec<_> =
                std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names(self.folder.path());
        let (code, reported) = self.raddle(&["merge", "good.h5", "worse.h5", "-o", "out.h5", "-q"]);
        assert_eq!(code, 3, "{reported}");
        assert!(
            reported.contains("good.h5") && reported.contains("worse.h5") && reported.contains(reason),
            "{reported}"
        );
        assert_eq!(names(self.folder.path()), before);
        let (code, reported) = self.raddle(&["inspect", "good.h5"]);
        assert_eq!(code, 3, "{reported}");
        assert!(reported.contains(reason), "{reported}");
    }
}

#[test]
fn a_reader_that_works_is_not_a_reason_to_refuse() {
    let run = Run::new(&format!("exec '{}' \"$@\"", env!("CARGO_BIN_EXE_raddle")));
    let (code, reported) = run.raddle(&["merge", "good.h5", "worse.h5", "-o", "out.h5", "-q"]);
    assert_eq!(code, 0, "{reported}");
}

#[test]
fn crashes_are_survived() {
    for (signal, reason) in [("SEGV", "signal 11 (SIGSEGV)"), ("ABRT", "signal 6 (SIGABRT)"), ("KILL", "signal 9")] {
        // While it answers, and before it sends anything.
        Run::new(&format!("{GREET}; head -c 17 >/dev/null; kill -{signal} $$")).is_refused(reason);
        Run::new(&format!("kill -{signal} $$")).is_refused(reason);
    }
    Run::new(&format!("{GREET}; exit 7")).is_refused("exit code 7 without an answer");
}

#[test]
fn a_reader_that_cannot_be_started_is_not_blamed_on_the_file() {
    let run = Run::new("exit 1");
    let (code, reported) = run.raddle(&["rechunk", "good.h5", "-o", "out.h5", "-q"]);
    assert_eq!(code, 3, "{reported}");
    assert!(
        reported.contains("cannot be started") && reported.contains("check that this program can run"),
        "{reported}"
    );
    assert!(!reported.contains("copy the files again"), "{reported}");
}

#[test]
fn a_reader_that_hangs_is_given_up() {
    Run::new(&format!("{GREET}; exec sleep 100")).is_refused("no answer within 1s");
    Run::new("exec sleep 100").is_refused("no answer within 1s");
}

#[test]
fn garbage_is_survived() {
    Run::new(&format!("{GREET}; echo 'HDF5-DIAG: Error detected in HDF5' >&0; sleep 1")).is_refused("HDF5-DIAG");
    Run::new("head -c 100000 /dev/zero >&0").is_refused("it starts with");
    // A valid frame with an invalid message.
    let nonsense = r"printf 'RdH5\001\000\000\000\004\000\000\000\000\000\000\000\377\377\377\377' >&0";
    Run::new(&format!("{GREET}; {nonsense}; sleep 1")).is_refused("libhdf5 crashed");
    // A length that exceeds any memory.
    let huge = r"printf 'RdH5\001\000\000\000\377\377\377\377\377\377\377\177' >&0";
    Run::new(&format!("{GREET}; {huge}; sleep 1")).is_refused("announces");
}

#[test]
fn a_file_that_crashes_the_reader_can_be_left_out() {
    let run = Run::new("kill -SEGV $$");
    let plain = FileSpec { objects: vec![ObjectSpec::group("/group")], ..FileSpec::default() };
    plain::make(&run.folder.path().join("plain.h5"), &plain).unwrap();
    let (code, reported) = run.raddle(&["merge", "plain.h5", "worse.h5", "-o", "out.h5", "--skip-bad"]);
    assert_eq!(code, 4, "{reported}");
    assert!(reported.contains("1 input left out") && reported.contains("SIGSEGV"), "{reported}");
    assert!(run.folder.path().join("out.h5").exists());
}
