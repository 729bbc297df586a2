//! Rows 11 and 12 of the contract: calls that fail or do less than requested.

use crate::workload::Workload;
use raddle_testing::faults::{Action, CHANGING, Fault};

pub const ENOSPC: i32 = 28;
pub const EIO: i32 = 5;
const EDQUOT: i32 = 122;
const EINTR: i32 = 4;
const ESTALE: i32 = 116;

/// Returns the text of an error that the message must contain.
fn words(errno: i32) -> &'static str {
    match errno {
        ENOSPC => "No space left on device",
        EIO => "Input/output error",
        EDQUOT => "Disk quota exceeded",
        ESTALE => "Stale file handle",
        _ => unreachable!("an errno of these tests"),
    }
}

/// Makes every `step`-th modifying call fail. Returns the number of calls.
pub fn failing_calls(workload: &Workload, errno: i32, sticky: bool, step: usize) -> u64 {
    for at in (1..).step_by(step) {
        workload.reset();
        let fault = Fault { calls: CHANGING, at, sticky, action: Action::Fail(errno) };
        let outcome = workload.run_with(&fault, "out");
        let context = (&fault, &outcome);
        if outcome.struck.is_empty() {
            assert_eq!(outcome.code, 0, "{context:?}");
            workload.assert_right(&context);
            return at;
        }
        // If removing fails, the lock's file stays, but locks nobody out.
        if outcome.struck.iter().any(|call| call.starts_with("unlink")) {
            let _ = std::fs::remove_file(workload.root().join("out/.out.h5.raddle-lock"));
        }
        match outcome.code {
            0 => workload.assert_right(&context),
            5 => {
                assert!(outcome.reported.contains(words(errno)), "{context:?}");
                let is_right = workload.is_right_or_untouched(&context);
                assert!(!is_right || outcome.reported.contains("complete and published"), "{context:?}");
                // If nothing can be removed any more, something is left; the next run handles it.
                if !sticky {
                    workload.assert_tidy(&outcome);
                }
            }
            _ => panic!("{context:?}"),
        }
        if workload.left().len() > 1 {
            workload.assert_resumes(&context);
        }
    }
    unreachable!("the loop ends where no call is left");
}

#[test]
fn a_call_that_fails_is_reported_and_leaves_the_output_alone() {
    let calls = failing_calls(&Workload::small(), ENOSPC, false, 1);
    assert!(calls > 30, "only {calls} calls were counted");
}

#[test]
fn a_disk_that_stays_full_is_reported_and_leaves_the_output_alone() {
    failing_calls(&Workload::small(), ENOSPC, true, 3);
}

#[test]
fn a_device_that_fails_is_reported_and_leaves_the_output_alone() {
    failing_calls(&Workload::small(), EIO, false, 3);
}

#[test]
#[ignore = "make soak"]
fn soak_every_errno_at_every_call() {
    let workload = Workload::small();
    for errno in [ENOSPC, EIO, EDQUOT] {
        for sticky in [false, true] {
            failing_calls(&workload, errno, sticky, 1);
        }
    }
}

/// Applies `action`, which a run must tolerate, at every `step`-th of `calls`.
fn harmless(workload: &Workload, calls: &'static str, under: &str, action: &Action, step: usize) {
    for at in (1..).step_by(step) {
        workload.reset();
        let fault = Fault { calls, at, sticky: false, action: action.clone() };
        let outcome = workload.run_with(&fault, under);
        assert_eq!(outcome.code, 0, "{fault:?} {outcome:?}");
        workload.assert_right(&(&fault, &outcome));
        if outcome.struck.is_empty() {
            assert!(at > 1, "{calls} is never called");
            return;
        }
    }
}

/// Makes every `step`-th call on files under each of some folders short or interrupted.
pub fn short_and_interrupted(workload: &Workload, on: &[(&'static str, &str)], step: usize) {
    for action in [Action::Short, Action::Fail(EINTR)] {
        for (calls, under) in on {
            harmless(workload, calls, under, &action, step);
        }
    }
}

/// Calls of a merge, with their folders.
const OF_MERGES: [(&str, &str); 3] = [("write,pwrite", "out"), ("read,pread", "in"), ("read,pread", "out")];

#[test]
fn short_and_interrupted_calls_are_resumed() {
    short_and_interrupted(&Workload::small(), &OF_MERGES, 7);
}

#[test]
#[ignore = "make soak"]
fn soak_short_and_interrupted_calls_are_resumed() {
    short_and_interrupted(&Workload::small(), &OF_MERGES, 1);
}

#[test]
fn a_close_that_fails_does_no_harm() {
    harmless(&Workload::small(), "close", "out", &Action::Fail(EIO), 1);
}

/// Makes every `step`-th read of an input fail.
pub fn failing_reads(workload: &Workload, errno: i32, step: usize) {
    for at in (1..).step_by(step) {
        workload.reset();
        let fault = Fault { calls: "read,pread", at, sticky: false, action: Action::Fail(errno) };
        let outcome = workload.run_with(&fault, "in");
        let context = (&fault, &outcome);
        if outcome.struck.is_empty() {
            assert_eq!(outcome.code, 0, "{context:?}");
            return workload.assert_right(&context);
        }
        assert_eq!(outcome.code, 3, "{context:?}");
        let is_named = outcome.reported.contains("in/0.") || outcome.reported.contains("in/1.");
        assert!(is_named && outcome.reported.contains(words(errno)), "{context:?}");
        assert!(!workload.is_right_or_untouched(&context));
        workload.assert_tidy(&outcome);
        if workload.left().len() > 1 {
            workload.assert_resumes(&context);
        }
    }
}

#[test]
fn a_read_that_fails_names_the_input() {
    let workload = Workload::small();
    failing_reads(&workload, EIO, 2);
    failing_reads(&workload, ESTALE, 9);
}

#[test]
#[ignore = "make soak"]
fn soak_a_read_that_fails_names_the_input() {
    let workload = Workload::small();
    failing_reads(&workload, EIO, 1);
    failing_reads(&workload, ESTALE, 1);
}
