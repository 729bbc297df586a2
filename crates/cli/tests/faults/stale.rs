//! Row 15: leftovers of an interrupted run are used only if they match what this run would produce.

use crate::workload::{GOES_ON, Workload};
use raddle_testing::faults::{Action, Fault};
use std::fs::{File, FileTimes};
use std::path::PathBuf;
use std::process::Command;

/// A workload whose run was killed just before the file got its name, and copies of its leftovers.
struct Interrupted {
    workload: Workload,
    part: Vec<u8>,
    journal: Vec<u8>,
}

impl Interrupted {
    fn new() -> Self {
        let workload = Workload::small();
        workload.reset();
        let fault = Fault { calls: "rename", at: 1, sticky: false, action: Action::Kill };
        assert_eq!(workload.run_with(&fault, "out").code, -9);
        let (part, journal) = (std::fs::read(workload.part()).unwrap(), std::fs::read(workload.journal()).unwrap());
        Self { workload, part, journal }
    }

    /// Restores the leftovers of the killed run.
    fn restore(&self) {
        self.workload.reset();
        std::fs::write(self.workload.part(), &self.part).unwrap();
        std::fs::write(self.workload.journal(), &self.journal).unwrap();
    }

    fn input(&self) -> PathBuf {
        self.workload.root().join("in/1.h5")
    }

    /// Checks that the run starts over and reports why; returns its output.
    fn assert_starts_over(&self, command: Command, why: &str) {
        let outcome = self.workload.run(command);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(outcome.reported.contains("starting over") && outcome.reported.contains(why), "{why}: {outcome:?}");
        assert!(!outcome.reported.contains(GOES_ON), "{outcome:?}");
        assert_eq!(self.workload.left(), ["out.h5"]);
    }
}

#[test]
fn a_run_resumes_and_reports_what_it_kept() {
    let interrupted = Interrupted::new();
    let reported = interrupted.workload.assert_resumes(&"all tiles placed");
    assert!(reported.contains(GOES_ON) && reported.contains("resuming an interrupted run: "), "{reported}");
    // Other threads and memory do not change any byte.
    interrupted.restore();
    let mut command = interrupted.workload.command();
    command.args(["--memory", "200MiB"]).env("RADDLE_JOBS", "2");
    let outcome = interrupted.workload.run(command);
    assert!(outcome.code == 0 && outcome.reported.contains(GOES_ON), "{outcome:?}");
    interrupted.workload.assert_right(&outcome);
}

#[test]
fn no_resume_starts_over() {
    let interrupted = Interrupted::new();
    for option in ["--no-resume", "--unordered"] {
        interrupted.restore();
        let mut command = interrupted.workload.command();
        command.arg(option);
        let outcome = interrupted.workload.run(command);
        assert!(outcome.code == 0 && !outcome.reported.contains(GOES_ON), "{outcome:?}");
        assert_eq!(interrupted.workload.left(), ["out.h5"]);
    }
}

#[test]
fn other_options_start_over() {
    let interrupted = Interrupted::new();
    for options in [["--for", "random"], ["--compat", "latest"], ["--chunk", "1000rows"], ["--attributes", "identical"]]
    {
        interrupted.restore();
        let mut command = interrupted.workload.command();
        command.args(options);
        interrupted.assert_starts_over(command, "the options changed since");
    }
}

#[test]
fn changed_inputs_start_over() {
    let interrupted = Interrupted::new();
    let input = interrupted.input();
    let before = std::fs::metadata(&input).unwrap();
    let bytes = std::fs::read(&input).unwrap();
    let restore_times = || {
        let times = FileTimes::new().set_modified(before.modified().unwrap());
        File::options().write(true).open(&input).unwrap().set_times(times).unwrap();
    };
    let why = "the inputs changed since";

    // One bit of a value that no HDF5 checksum covers, with the time stamp restored: only the sample detects it.
    let mut changed = bytes.clone();
    let last = changed.len() - 100;
    changed[last] ^= 1;
    std::fs::write(&input, &changed).unwrap();
    restore_times();
    interrupted.restore();
    interrupted.assert_starts_over(interrupted.workload.command(), why);
    std::fs::write(&input, &bytes).unwrap();
    restore_times();
    interrupted.restore();
    assert!(interrupted.workload.assert_resumes(&"the input is as it was").contains(GOES_ON));

    // The same bytes with another time stamp, and as another file.
    interrupted.restore();
    std::fs::write(&input, &bytes).unwrap();
    interrupted.assert_starts_over(interrupted.workload.command(), why);
    restore_times();
    interrupted.restore();
    std::fs::remove_file(&input).unwrap();
    std::fs::write(&input, &bytes).unwrap();
    std::fs::copy(&input, interrupted.workload.root().join("in/2.h5")).unwrap();
    interrupted.assert_starts_over(interrupted.workload.command(), why);
}

/// Truncates the journal at every `step`-th length.
fn torn_journal(step: usize) {
    let interrupted = Interrupted::new();
    let mut resumed = 0;
    for len in (0..interrupted.journal.len()).step_by(step) {
        interrupted.restore();
        std::fs::write(interrupted.workload.journal(), &interrupted.journal[..len]).unwrap();
        let reported = interrupted.workload.assert_resumes(&format!("journal of {len} bytes"));
        resumed += usize::from(reported.contains(GOES_ON));
    }
    assert!(resumed > 0, "no cut journal was of use");
}

#[test]
fn a_torn_journal_is_a_shorter_one() {
    torn_journal(61);
}

#[test]
#[ignore = "make soak"]
fn soak_a_torn_journal_is_a_shorter_one() {
    torn_journal(1);
}

#[test]
fn bytes_that_did_not_reach_the_disk_are_made_again() {
    let interrupted = Interrupted::new();
    let len = interrupted.part.len();
    let mut resumed = 0;
    // As after a power failure: pages of zeros, a missing end, an empty file.
    for at in (0..len).step_by(len / 9) {
        interrupted.restore();
        let mut part = interrupted.part.clone();
        let page = at / 4096 * 4096;
        part[page..(page + 4096).min(len)].fill(0);
        std::fs::write(interrupted.workload.part(), &part).unwrap();
        resumed += usize::from(interrupted.workload.assert_resumes(&("zeros", page)).contains(GOES_ON));
        interrupted.restore();
        std::fs::write(interrupted.workload.part(), &part[..at]).unwrap();
        resumed += usize::from(interrupted.workload.assert_resumes(&("cut", at)).contains(GOES_ON));
    }
    assert!(resumed > 6, "{resumed} damaged files were of use");
    interrupted.restore();
    std::fs::remove_file(interrupted.workload.part()).unwrap();
    interrupted.workload.assert_resumes(&"no temporary file");
    interrupted.restore();
    std::fs::remove_file(interrupted.workload.journal()).unwrap();
    interrupted.workload.assert_resumes(&"no journal");
}
