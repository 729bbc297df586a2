//! Row 22: an input that changes while it is read.

use crate::killing::make_events;
use crate::workload::{Outcome, Workload, make, raddle, run};
use raddle_testing::faults::{self, Action, Fault};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Changes the input `victim` at every `step`-th read of inputs. If it grew before it was first examined, `check`
/// receives the outcome.
pub fn changed_at_reads(
    workload: &Workload,
    victim: &str,
    step: usize,
    change: &dyn Fn(std::path::PathBuf) -> Action,
    check: &dyn Fn(&Outcome),
) {
    let name = victim;
    let victim = workload.root().join(name);
    let bytes = std::fs::read(&victim).unwrap();
    for at in (1..).step_by(step) {
        workload.reset();
        std::fs::write(&victim, &bytes).unwrap();
        let fault = Fault { calls: "read,pread", at, sticky: false, action: change(victim.clone()) };
        let outcome = workload.run_with(&fault, "in");
        let context = (&fault, &outcome);
        if outcome.struck.is_empty() {
            assert_eq!(outcome.code, 0, "{context:?}");
            return workload.assert_right(&context);
        }
        if outcome.code == 0 && matches!(fault.action, Action::Grow(_)) {
            check(&outcome);
            continue;
        }
        assert_eq!(outcome.code, 3, "{context:?}");
        assert!(outcome.reported.contains(name), "{context:?}");
        assert!(!workload.is_right_or_untouched(&context));
        assert_eq!(workload.left(), ["out.h5"], "{context:?}");
    }
}

/// Changes an input in this way during merges.
fn of_merges(step: usize, change: &dyn Fn(std::path::PathBuf) -> Action) {
    let workload = Workload::small();
    changed_at_reads(&workload, "in/1.h5", step, change, &|outcome| {
        // A longer file is simply the new input (and its length is recorded in `/_raddle`).
        let verified = workload.run(workload.raddle(&["verify", "out/out.h5", "--against", "in", "-q"]));
        assert_eq!(verified.code, 0, "{outcome:?} {verified:?}");
    });
}

#[test]
fn an_input_that_grows_is_noticed() {
    of_merges(4, &Action::Grow);
}

#[test]
fn an_input_that_is_cut_is_noticed() {
    of_merges(4, &Action::Cut);
}

/// Changes the only input, `in/0.h5`, before it is opened again. Whatever a run determined before does not belong to the
/// file any more.
fn changed_between_openings(workload: &Workload) {
    let victim = workload.root().join("in/0.h5");
    let bytes = std::fs::read(&victim).unwrap();
    for at in 2.. {
        workload.reset();
        std::fs::write(&victim, &bytes).unwrap();
        let fault = Fault { calls: "open", at, sticky: false, action: Action::Grow(victim.clone()) };
        let outcome = workload.run_with(&fault, "in/0.h5");
        if outcome.struck.is_empty() {
            return assert!(at > 3, "the input is opened once");
        }
        let is_refused = outcome.code == 3 && outcome.reported.contains("in/0.h5: changed while it was being read");
        assert!(is_refused, "{fault:?} {outcome:?}");
    }
}

#[test]
fn rows_that_were_selected_belong_to_the_file_that_is_written() {
    let arguments = ["select", "in/0.h5", "--where", "table: x < 8000000", "--keys", "/spill/evt", "-o", "out/out.h5"];
    let workload = Workload::of(&[&arguments[..], &["-f", "-j", "1", "--progress", "never"]].concat(), |inputs| {
        make_events(&inputs.join("0.h5"));
    });
    changed_between_openings(&workload);
}

#[test]
fn all_outputs_of_a_split_are_of_the_same_inputs() {
    let arguments = ["split", "in/0.h5", "--by", "variable", "--dir", "out", "-f", "-j", "1", "--progress", "never"];
    let workload = Workload::of(&arguments, |inputs| {
        make(&inputs.join("0.h5"), 1, &[("/out", 1), ("/other", 1), ("/third", 1)], 1024);
    });
    changed_between_openings(&workload);
}

/// Runs a command in `root` once for each of its reads of the input `name`, which grows before that read. Every run must
/// refuse the input, except the first ones up to `most_done`.
fn grown_at_reads(root: &Path, name: &str, arguments: &[&str], most_done: u64) {
    let (victim, log) = (root.join(name), root.join("log"));
    let bytes = std::fs::read(&victim).unwrap();
    for at in 1.. {
        std::fs::write(&victim, &bytes).unwrap();
        let fault = Fault { calls: "read,pread", at, sticky: false, action: Action::Grow(victim.clone()) };
        let mut command = raddle(root, arguments);
        faults::arm(&mut command, &fault, &victim, &log);
        let outcome = run(command, &log);
        if outcome.struck.is_empty() {
            assert_eq!(outcome.code, 0, "{outcome:?}");
            return assert!(at > most_done + 1, "the input is read {at} times");
        }
        let is_refused = outcome.code == 3 && outcome.reported.contains(": changed while it was being read");
        assert!(is_refused || at <= most_done, "{fault:?} {outcome:?}");
    }
}

/// Returns a folder as the kernel reports its path, with which the shim compares.
fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    (folder, root)
}

/// The values are read with one call, during which another program may write them.
#[test]
fn a_raw_array_that_changes_is_noticed() {
    let (_folder, root) = folder();
    std::fs::write(root.join("a.raw"), vec![7; 32 * 32 * 32]).unwrap();
    let arguments = ["idx", "write", "a.raw", "--shape", "32x32x32", "--dtype", "uint8", "-o", "a.idx", "-f", "-q"];
    grown_at_reads(&root, "a.raw", &arguments, 0);
}

/// An index of an earlier state would never be used. A change before the file is opened does no harm.
#[test]
fn a_file_that_changes_while_it_is_indexed_is_noticed() {
    let (_folder, root) = folder();
    make_events(&root.join("a.h5"));
    grown_at_reads(&root, "a.h5", &["index", "a.h5", "-j", "1", "-q"], 1);
}

#[test]
#[ignore = "make soak"]
fn soak_an_input_that_changes_is_noticed() {
    of_merges(1, &Action::Grow);
    of_merges(1, &Action::Cut);
}
