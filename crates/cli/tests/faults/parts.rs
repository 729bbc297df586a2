//! Parts of a job array: any number, in any order, concurrently, killed and run again; and parts that do not belong
//! together.

use crate::distance;
use crate::workload::{Outcome, Workload};
use raddle_testing::faults::{self, Action, CHANGING, Fault};
use rustix::fs::FlockOperation;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Creates a merge of only part `number` of `count`.
fn part(workload: &Workload, number: u32, count: u32) -> Command {
    let mut command = workload.command();
    command.args(["--part", &format!("{number}/{count}")]);
    command
}

fn run(workload: &Workload, number: u32, count: u32) -> Outcome {
    workload.run(part(workload, number, count))
}

fn start(workload: &Workload, number: u32, count: u32) -> Child {
    part(workload, number, count).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn parts_in_any_order_make_the_bytes_of_one_process() {
    let workload = Workload::small();
    for order in [&[1][..], &[1, 2], &[2, 1], &[3, 1, 2], &[4, 2, 5, 1, 3]] {
        workload.reset();
        let count = order.len() as u32;
        for (place, number) in order.iter().enumerate() {
            let outcome = run(&workload, *number, count);
            assert_eq!(outcome.code, 0, "{order:?}: {outcome:?}");
            let mut missing = order[place + 1..].to_vec();
            missing.sort_unstable();
            let missing: Vec<String> = missing.iter().map(u32::to_string).collect();
            let reported =
                format!("not done yet: part{} {}", if missing.len() == 1 { "" } else { "s" }, missing.join(", "));
            assert_eq!(outcome.reported.contains(&reported), !missing.is_empty(), "{order:?}: {outcome:?}");
            assert_eq!(workload.is_right_or_untouched(&order), missing.is_empty(), "{order:?}: {outcome:?}");
        }
        workload.assert_right(&order);
    }
}

#[test]
fn more_parts_than_tiles_are_enough() {
    let workload = Workload::new(1, 1, &["-j", "1"]);
    workload.reset();
    for number in 1..=9 {
        let outcome = run(&workload, number, 9);
        assert_eq!(outcome.code, 0, "{outcome:?}");
    }
    workload.assert_right(&9);
}

/// Repeats `rounds` times: runs five parts concurrently, of which one publishes.
fn at_once(rounds: u32) {
    let workload = Workload::small();
    for round in 0..rounds {
        workload.reset();
        let children: Vec<Child> = (1..=5).map(|number| start(&workload, number, 5)).collect();
        let codes: Vec<_> = children.into_iter().map(|mut child| child.wait().unwrap().code()).collect();
        assert_eq!(codes, [Some(0); 5], "round {round}");
        workload.assert_right(&round);
    }
}

#[test]
fn of_parts_at_once_one_publishes() {
    at_once(5);
}

#[test]
#[ignore = "make soak"]
fn soak_of_parts_at_once_one_publishes() {
    at_once(100);
}

/// Runs parts until the output is right: first the one that did not finish, then the other.
fn finish(workload: &Workload, context: &dyn std::fmt::Debug) {
    for number in [2, 1] {
        let outcome = run(workload, number, 2);
        assert_eq!(outcome.code, 0, "{context:?}: {outcome:?}");
        if workload.is_right_or_untouched(context) {
            break;
        }
    }
    workload.assert_right(context);
}

/// Kills the second of two parts at every `step`-th modifying call of producing tiles, joining and publishing.
fn killed_at_calls(is_first_done: bool, step: usize) -> u32 {
    let workload = Workload::small();
    let mut runs = 0;
    for at in (1..).step_by(step) {
        workload.reset();
        if is_first_done {
            assert_eq!(run(&workload, 1, 2).code, 0);
        }
        let fault = Fault { calls: CHANGING, at, sticky: false, action: Action::Kill };
        let mut command = part(&workload, 2, 2);
        faults::arm(&mut command, &fault, &workload.root().join("out"), &workload.log());
        let outcome = workload.run(command);
        let context = (&fault, &outcome);
        if outcome.struck.is_empty() {
            assert_eq!(outcome.code, 0, "{context:?}");
            break;
        }
        runs += 1;
        assert_eq!(outcome.code, -9, "{context:?}");
        if !workload.is_right_or_untouched(&context) {
            finish(&workload, &context);
        }
    }
    runs
}

#[test]
fn a_part_killed_at_any_call_is_run_again_alone() {
    let runs = killed_at_calls(true, 3);
    assert!(runs > 15, "{runs} runs");
}

#[test]
fn a_part_killed_before_the_others_begin_is_run_again_alone() {
    let runs = killed_at_calls(false, 2);
    assert!(runs > 5, "{runs} runs");
}

#[test]
#[ignore = "make soak"]
fn soak_a_part_killed_at_any_call_is_run_again_alone() {
    killed_at_calls(true, 1);
    killed_at_calls(false, 1);
}

#[test]
fn who_publishes_is_followed_by_any_other_part() {
    let workload = Workload::small();
    let mut followed = 0;
    for at in (1..).step_by(distance(3)) {
        workload.reset();
        assert_eq!(run(&workload, 1, 2).code, 0);
        let fault = Fault { calls: CHANGING, at, sticky: false, action: Action::Kill };
        let mut command = part(&workload, 2, 2);
        faults::arm(&mut command, &fault, &workload.root().join("out"), &workload.log());
        let outcome = workload.run(command);
        if outcome.struck.is_empty() {
            break;
        }
        if workload.is_right_or_untouched(&outcome) {
            continue;
        }
        let first = run(&workload, 1, 2);
        assert_eq!(first.code, 0, "{fault:?}: {first:?}");
        if workload.is_right_or_untouched(&first) {
            followed += 1;
            workload.assert_right(&fault);
        } else {
            assert!(first.reported.contains("not done yet: part 2"), "{first:?}");
        }
    }
    assert!(followed > 2, "{followed}");
}

#[test]
fn parts_killed_at_random_times_are_run_again() {
    let workload = Workload::new(3, 60, &["-j", "1"]);
    for round in 0..6_u64 {
        workload.reset();
        let mut children: Vec<Child> = (1..=3).map(|number| start(&workload, number, 3)).collect();
        for (place, child) in (0..).zip(&mut children) {
            let wait = (round + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(place * 20) % 400;
            std::thread::sleep(Duration::from_millis(wait));
            // The process may have ended already.
            let _ = kill_process(Pid::from_child(child), Signal::KILL);
        }
        let ended: Vec<bool> = children.into_iter().map(|mut child| child.wait().unwrap().success()).collect();
        for (number, ended) in (1..).zip(ended) {
            if !ended && !workload.is_right_or_untouched(&round) {
                let outcome = run(&workload, number, 3);
                assert_eq!(outcome.code, 0, "round {round}: {outcome:?}");
            }
        }
        // A part killed while waiting for another to finish leaves its lock.
        let is_lock = |name: &std::ffi::OsString| name.to_string_lossy().ends_with("-lock");
        assert!(workload.is_right_or_untouched(&round), "round {round}");
        assert!(workload.left().iter().all(|name| name == "out.h5" || is_lock(name)), "{:?}", workload.left());
    }
}

#[test]
fn a_part_that_another_process_makes_is_left_to_it() {
    let workload = Workload::small();
    workload.reset();
    let lock = std::fs::File::create(workload.root().join("out/.out.h5.raddle-part-2-lock")).unwrap();
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let outcome = run(&workload, 2, 2);
    assert_eq!(outcome.code, 7, "{outcome:?}");
    assert!(outcome.reported.contains("another raddle is writing it"), "{outcome:?}");
    rustix::fs::flock(&lock, FlockOperation::Unlock).unwrap();
    assert_eq!(run(&workload, 2, 2).code, 0);
}

#[test]
fn parts_of_other_merges_are_refused_by_name() {
    let workload = Workload::small();
    workload.reset();
    assert_eq!(run(&workload, 1, 2).code, 0);
    let refused = |mut command: Command, option: &[&str], subject: &str| {
        command.args(option);
        let outcome = workload.run(command);
        assert_eq!(outcome.code, 3, "{outcome:?}");
        let reported = format!("part 1 belongs to a different merge: {subject} changed");
        assert!(outcome.reported.contains(&reported) && outcome.reported.contains("--no-resume"), "{outcome:?}");
    };
    refused(part(&workload, 2, 2), &["--chunk", "8192rows"], "the options");
    refused(part(&workload, 2, 3), &[], "the number of parts");
    refused(part(&workload, 1, 2), &["--chunk", "8192rows"], "the options");
    let input = workload.root().join("in/0.h5");
    let bytes = std::fs::read(&input).unwrap();
    std::fs::write(&input, &bytes).unwrap();
    refused(part(&workload, 2, 2), &[], "the inputs");
    // Starting over removes only the parts of another merge.
    let mut restarted = part(&workload, 2, 2);
    restarted.arg("--no-resume");
    let outcome = workload.run(restarted);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.reported.contains("not done yet: part 1"), "{outcome:?}");
    let mut other = part(&workload, 1, 2);
    other.arg("--no-resume");
    assert_eq!(workload.run(other).code, 0);
    workload.assert_right(&"after starting over");
}

#[test]
fn without_force_a_published_output_stays() {
    let workload = Workload::small();
    workload.reset();
    std::fs::remove_file(workload.output()).unwrap();
    let plain = |number: u32| {
        let part = format!("{number}/2");
        workload.raddle(&[
            "merge",
            "in",
            "-o",
            "out/out.h5",
            "--progress",
            "never",
            "-j",
            "1",
            "-c",
            "fast",
            "--part",
            &part,
        ])
    };
    let mut children: Vec<Child> = (1..=2).map(|number| plain(number).stdin(Stdio::null()).spawn().unwrap()).collect();
    for child in &mut children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    workload.assert_right(&"without force");
    let again = workload.run(plain(1));
    assert_eq!(again.code, 5, "{again:?}");
    workload.assert_right(&"refused");
}
