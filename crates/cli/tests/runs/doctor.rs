//! `raddle doctor` and `raddle self-test` on this machine, and under conditions in which raddle cannot work.

use crate::support::{json, names, outcome, raddle};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json as value};
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Runs `raddle doctor --json` in `folder` with these arguments and variables; returns exit code and report.
fn doctor(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, Value) {
    let mut command = raddle(folder, &[&["doctor", "--json"], arguments].concat());
    for name in ["RADDLE_JOBS", "RADDLE_MEMORY", "HDF5_PLUGIN_PATH"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    let (code, stdout, stderr) = outcome(command);
    assert_eq!(stderr, "");
    (code, json(&stdout))
}

/// Returns a check of a report.
fn check<'a>(report: &'a Value, section: &str, name: &str) -> &'a Value {
    let named = |list: &'a Value, name: &str| {
        list.as_array().unwrap().iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("{name}: {list}"))
    };
    named(&named(&report["sections"], section)["checks"], name)
}

/// Runs the command under `ulimit` with these arguments.
fn limited(folder: &Path, limit: &str, arguments: &[&str]) -> (i32, String, String) {
    let mut shell = assert_cmd::Command::new("sh");
    shell.current_dir(folder).env("TMPDIR", folder).env("NO_COLOR", "1");
    shell.args(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh"]).arg(assert_cmd::cargo::cargo_bin("raddle"));
    shell.args(arguments);
    outcome(shell)
}

#[test]
fn a_report_fits_a_narrow_terminal_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (code, text, stderr) = outcome(raddle(folder.path(), &["doctor"]));
    assert_eq!((code, stderr.as_str()), (0, ""));
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for title in ["raddle", "processor", "memory", "folder", "filters", "mpi", "apply"] {
        assert!(text.lines().any(|line| line == title), "{title}: {text}");
    }
    assert!(text.contains("\nraddle can work here"), "{text}");
    assert_eq!(names(folder.path()), Vec::<OsString>::new());
}

#[test]
fn defaults_are_those_of_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let (code, report) = doctor(folder.path(), &[], &[]);
    assert_eq!((code, &report["exit_code"]), (0, &value!(0)));
    assert_eq!(check(&report, "memory", "--memory")["value"], value!(1 << 30));
    let cores = std::thread::available_parallelism().unwrap().get();
    assert_eq!(check(&report, "processor", "--jobs")["value"], value!(cores));
    let (_, report) = doctor(folder.path(), &[], &[("RADDLE_JOBS", "3"), ("RADDLE_MEMORY", "8MiB")]);
    assert_eq!(check(&report, "memory", "--memory")["value"], value!(8 << 20));
    assert_eq!(check(&report, "processor", "--jobs")["value"], value!(3));
    // With such variables, every command fails.
    let (code, report) = doctor(folder.path(), &[], &[("RADDLE_MEMORY", "much")]);
    assert_eq!((code, &check(&report, "memory", "--memory")["mark"]), (2, &value!("broken")));
}

#[test]
fn a_folder_that_cannot_be_written_to_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    let (code, report) = doctor(folder.path(), &["--folder", "none"], &[]);
    assert_eq!((code, &check(&report, "folder", "path")["mark"]), (5, &value!("broken")));
    if cfg!(target_os = "linux") {
        // Not even root can create a file there.
        let (code, report) = doctor(folder.path(), &["--folder", "/proc"], &[]);
        assert_eq!((code, &check(&report, "folder", "write")["mark"]), (5, &value!("broken")));
        let (code, stdout, stderr) = outcome(raddle(folder.path(), &["self-test", "--folder", "/proc"]));
        assert_eq!((code, stdout.as_str()), (5, ""));
        assert!(stderr.contains("--folder"), "{stderr}");
    }
}

#[test]
fn plugins_are_looked_for_where_the_environment_says() {
    let folder = tempfile::tempdir().unwrap();
    let (_, report) = doctor(folder.path(), &[], &[]);
    assert_eq!(check(&report, "filters", "plugins")["mark"], "note");
    let (code, report) = doctor(folder.path(), &[], &[("HDF5_PLUGIN_PATH", "/none/of/these")]);
    assert_eq!((code, &check(&report, "filters", "plugins")["mark"]), (0, &value!("note")));
    std::fs::write(folder.path().join("libh5zstd.so"), "").unwrap();
    let place = folder.path().to_str().unwrap();
    let (_, report) = doctor(folder.path(), &[], &[("HDF5_PLUGIN_PATH", place)]);
    assert_eq!(check(&report, "filters", "plugins")["value"], value!(["libh5zstd.so"]));
}

#[test]
fn few_open_files_are_noted_and_too_few_are_broken() {
    let folder = tempfile::tempdir().unwrap();
    for (limit, code, mark) in [("-n 64", 0, "note"), ("-n 12", 6, "broken")] {
        let (found, stdout, stderr) = limited(folder.path(), limit, &["doctor", "--json"]);
        assert_eq!((found, stderr.as_str()), (code, ""), "{limit}");
        assert_eq!(check(&json(&stdout), "folder", "open files")["mark"], mark, "{limit}");
    }
    let (code, _, stderr) = limited(folder.path(), "-n 64", &["self-test", "-q"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
}

#[test]
fn a_self_test_succeeds_and_removes_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = raddle(folder.path(), arguments);
        command.env("TMPDIR", folder.path());
        outcome(command)
    };
    let (code, text, stderr) = run(&["self-test"]);
    assert_eq!((code, stderr.as_str()), (0, ""), "{text}");
    let steps = text.lines().filter(|line| line.starts_with("  ok ")).count();
    assert!(steps >= 12 && text.lines().last().unwrap().starts_with(&format!("{steps} steps succeeded in ")), "{text}");
    assert_eq!(names(folder.path()), Vec::<OsString>::new());
    let started = Instant::now();
    assert_eq!(run(&["self-test", "-q", "-j", "3", "--report", "report.json"]), (0, String::new(), String::new()));
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    let report = json(&std::fs::read_to_string(folder.path().join("report.json")).unwrap());
    assert_eq!(report["steps"].as_array().unwrap().len(), steps);
    let len_bytes = report["files_len_bytes"].as_u64().unwrap();
    assert!((1 << 20..200 << 20).contains(&len_bytes), "{len_bytes}");
    assert_eq!(names(folder.path()), ["report.json"]);
}

#[test]
fn a_self_test_that_fails_removes_its_files_and_is_not_reported_as_a_defect() {
    let folder = tempfile::tempdir().unwrap();
    // In blocks of 512 bytes: some of the files are longer.
    let (code, stdout, stderr) = limited(folder.path(), "-f 100", &["self-test"]);
    assert_eq!(code, 5, "{stderr}");
    assert!(stdout.contains("  failed  ") && stderr.contains("File too large"), "{stdout}{stderr}");
    assert!(!stderr.contains("report this"), "{stderr}");
    assert_eq!(names(folder.path()), Vec::<OsString>::new());
}

#[test]
fn signals_stop_a_self_test_soon_and_remove_its_folder() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("raddle"))
            .env("TMPDIR", folder.path())
            .args(["self-test", "-q"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while names(folder.path()).is_empty() {
            assert!(started.elapsed() < Duration::from_secs(60), "no folder was made");
            std::thread::sleep(Duration::from_millis(1));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(names(folder.path()), Vec::<OsString>::new());
    }
}

#[test]
fn the_version_is_printed_with_or_without_details() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| outcome(raddle(folder.path(), arguments));
    let brief = format!("raddle {}\n", env!("CARGO_PKG_VERSION"));
    for arguments in [&["--version"][..], &["-V"]] {
        assert_eq!(run(arguments), (0, brief.clone(), String::new()));
    }
    for arguments in [&["--version", "--verbose"][..], &["--verbose", "--version"], &["-Vv"]] {
        let (code, text, stderr) = run(arguments);
        assert_eq!((code, stderr.as_str()), (0, ""));
        assert!(text.starts_with(&brief) && text.contains("\nHDF5: 2.") && text.contains("\ntarget: "), "{text}");
    }
    // Only with --version.
    assert_eq!(run(&["--verbose"]).0, 2);
    assert_eq!(run(&["--verbose", "licenses"]).0, 2);
}
