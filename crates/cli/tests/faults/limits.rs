//! Rows 18 and 19: shell limits on memory, open files and file size.

use crate::workload::{Outcome, Workload, make};
use raddle_testing::faults::{Action, Fault};
use std::process::Command;

const ENOMEM: i32 = 12;

/// Runs the merge under `ulimit` with these arguments.
fn limited(workload: &Workload, limit: &str, merge: &Command) -> Outcome {
    let mut shell = Command::new("sh");
    shell.current_dir(workload.root()).env("NO_COLOR", "1");
    shell.args(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh"]).arg(merge.get_program()).args(merge.get_args());
    workload.run(shell)
}

/// Limits the address space to what the program needs to be loaded and `more_mib`: the run succeeds, or reports that memory
/// ran out. If the last request that fits comes from libhdf5, the run can crash at the next one; this is rare, and the output
/// is then left alone as well.
fn address_spaces(more_mib: impl Iterator<Item = u64>) {
    let workload = Workload::new(2, 12, &["-j", "2", "-c", "fast", "--memory", "256MiB"]);
    let loads = |size_mib: &u64| {
        limited(&workload, &format!("-v {}", size_mib << 10), &workload.raddle(&["--version"])).code == 0
    };
    let least_mib = (8..1024).step_by(2).find(loads).expect("the program is loaded in a gibibyte");
    let (mut done, mut refused, mut died) = (0, 0, Vec::new());
    for size_mib in more_mib.map(|more_mib| least_mib + more_mib) {
        workload.reset();
        let outcome = limited(&workload, &format!("-v {}", size_mib << 10), &workload.command());
        match outcome.code {
            0 => {
                workload.assert_right(&(size_mib, &outcome));
                done += 1;
            }
            // Addresses vary between two loads: this one did not fit.
            127 if outcome.reported.contains("error while loading shared libraries") => {}
            code => {
                assert!(!workload.is_right_or_untouched(&(size_mib, &outcome)));
                workload.assert_resumes(&(size_mib, &outcome));
                match code {
                    6 => refused += 1,
                    _ => died.push((size_mib, outcome)),
                }
            }
        }
    }
    assert!(done > 0 && refused > 0, "{done} done, {refused} refused");
    assert!(died.len() <= 1, "{died:?}");
}

#[test]
fn memory_that_runs_out_is_a_limit_and_no_crash() {
    address_spaces([0, 2, 4, 6, 8, 10, 12, 16, 24, 40, 256, 2048].into_iter());
}

#[test]
#[ignore = "make soak"]
fn soak_memory_that_runs_out_is_a_limit_and_no_crash() {
    address_spaces((0..100).chain([128, 256, 512, 1024, 2048]));
}

/// Makes every `step`-th memory request to the C library fail. These come from libhdf5 and other C code, because raddle
/// uses another allocator. libhdf5 reports the failure, gives up starting, or crashes. In any case the output is left
/// alone, and the next run succeeds.
fn requests_for_memory(step: usize) {
    let workload = Workload::small();
    for at in (2..).step_by(step) {
        workload.reset();
        let fault = Fault { calls: "malloc", at, sticky: false, action: Action::Fail(ENOMEM) };
        let outcome = workload.run_with(&fault, "out");
        let context = (&fault, &outcome);
        if outcome.struck.is_empty() {
            assert_eq!(outcome.code, 0, "{context:?}");
            return assert!(at > 2, "no request was counted");
        }
        if outcome.code == 0 {
            workload.assert_right(&context);
        }
        if !workload.is_right_or_untouched(&context) {
            workload.assert_resumes(&context);
        }
    }
}

#[test]
fn a_request_for_memory_that_fails_leaves_the_output_alone() {
    requests_for_memory(199);
}

#[test]
#[ignore = "make soak"]
fn soak_a_request_for_memory_that_fails_leaves_the_output_alone() {
    requests_for_memory(7);
}

/// Merges `count` inputs with few open files.
fn many_inputs(count: u32, limits: &[u32]) {
    let workload = Workload::small();
    let many = workload.root().join("many");
    std::fs::create_dir(&many).unwrap();
    make(&many.join("0.h5"), 1, &[("/a", 1), ("/b", 1)], 10);
    for number in 1..count {
        std::fs::copy(many.join("0.h5"), many.join(format!("{number}.h5"))).unwrap();
    }
    let output = workload.root().join("out/many.h5");
    let mut right: Option<Vec<u8>> = None;
    for limit in limits {
        let merge = workload.raddle(&["merge", "many", "-o", "out/many.h5", "-f", "-q", "-j", "2"]);
        let outcome = limited(&workload, &format!("-n {limit}"), &merge);
        assert_eq!(outcome.code, 0, "{limit} files: {outcome:?}");
        let bytes = std::fs::read(&output).unwrap();
        assert!(*right.get_or_insert(bytes.clone()) == bytes, "{limit} files: another output");
    }
}

#[test]
fn few_open_files_are_enough_for_many_inputs() {
    many_inputs(300, &[1024, 64, 32]);
}

#[test]
#[ignore = "make soak"]
fn soak_few_open_files_are_enough_for_many_inputs() {
    many_inputs(5000, &[1024, 256, 64, 32]);
}

#[test]
fn the_shells_limit_of_file_size_is_reported_and_resumed() {
    let workload = Workload::small();
    workload.reset();
    // In blocks of 512 bytes: the limit is reached among the chunks of the output.
    let outcome = limited(&workload, "-f 600", &workload.command());
    assert_eq!(outcome.code, 5, "{outcome:?}");
    assert!(outcome.reported.contains("File too large"), "{outcome:?}");
    assert!(!workload.is_right_or_untouched(&outcome));
    workload.assert_tidy(&outcome);
    workload.assert_resumes(&outcome);
}
