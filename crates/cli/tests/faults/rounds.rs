//! Rows 16, 21 and 23: many processes with one output, any number of threads, and surroundings that must not affect the
//! output.

use crate::workload::Workload;
use std::process::{Command, Stdio};

/// Repeats `rounds` times: eight processes write to one name concurrently.
pub fn eight_writers(workload: &Workload, rounds: u32) {
    for round in 0..rounds {
        workload.reset();
        let start = || workload.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let children: Vec<_> = (0..8).map(|_| start().unwrap()).collect();
        let codes: Vec<_> = children.into_iter().map(|mut child| child.wait().unwrap().code()).collect();
        assert!(codes.iter().all(|code| matches!(code, Some(0 | 7))), "round {round}: {codes:?}");
        assert!(codes.contains(&Some(0)), "round {round}: {codes:?}");
        workload.assert_right(&codes);
    }
}

#[test]
fn of_many_writers_one_writes_and_the_others_say_so() {
    eight_writers(&Workload::small(), 4);
}

#[test]
#[ignore = "make soak"]
fn soak_of_many_writers_one_writes_and_the_others_say_so() {
    eight_writers(&Workload::small(), 50);
}

/// Repeats `rounds` times: merges with these numbers of threads; the bytes must be those of the first merge.
fn threads(numbers: std::ops::RangeInclusive<u32>, rounds: u32) {
    let workload = Workload::new(3, 40, &["--memory", "64MiB"]);
    for round in 0..rounds {
        for jobs in numbers.clone() {
            workload.reset();
            let mut command = workload.command();
            command.args(["-j", &jobs.to_string()]);
            let outcome = workload.run(command);
            assert_eq!(outcome.code, 0, "round {round}, {jobs} threads: {outcome:?}");
            workload.assert_right(&(round, jobs));
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    threads(1..=16, 1);
}

#[test]
#[ignore = "make soak"]
fn soak_any_number_of_threads_gives_the_same_bytes() {
    threads(1..=16, 100);
}

#[test]
fn clock_zone_language_and_file_mode_do_not_show_in_the_output() {
    let workload = Workload::small();
    for (name, value) in [("TZ", "Pacific/Kiritimati"), ("LC_ALL", "tr_TR.UTF-8"), ("LANG", "C"), ("COLUMNS", "20")] {
        workload.reset();
        let mut command = workload.command();
        command.env(name, value);
        assert_eq!(workload.run(command).code, 0);
        workload.assert_right(&name);
    }
    workload.reset();
    std::fs::remove_file(workload.output()).unwrap();
    let merge = workload.command();
    let mut shell = Command::new("sh");
    shell.current_dir(workload.root()).args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(merge.get_program());
    shell.args(merge.get_args());
    assert_eq!(workload.run(shell).code, 0);
    workload.assert_right(&"umask");
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(workload.output()).unwrap().permissions().mode() & 0o777, 0o600);
}
