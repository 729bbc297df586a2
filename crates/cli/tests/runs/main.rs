//! Runs with outcomes beyond what transcripts show: exit codes under locks and signals, lists on standard input, JSON,
//! hostile names, closed pipes; modules cover files and patterns named by options.

mod doctor;
mod inputs;
mod patterns;
mod rechunk;
mod reported;
mod support;
mod tables;
mod text_files;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{json, make, names, outcome, raddle, two_files};

#[test]
fn a_list_on_standard_input_keeps_its_order() {
    let folder = two_files();
    let inputs = |arguments: &[&str], list: &str| {
        let mut command = raddle(folder.path(), arguments);
        command.write_stdin(list);
        let (code, stdout, stderr) = outcome(command);
        assert_eq!(code, 0, "{stderr}");
        let plan = json(&stdout);
        let paths = plan["inputs"].as_array().unwrap().iter().map(|input| input["path"].as_str().unwrap().to_owned());
        paths.collect::<Vec<_>>()
    };
    assert_eq!(inputs(&["plan", "-", "--json"], "b.h5\n# a comment\n\na.h5\n"), ["b.h5", "a.h5"]);
    assert_eq!(inputs(&["plan", "-0", "-", "--json"], "b.h5\0a.h5\0"), ["b.h5", "a.h5"]);
    assert_eq!(inputs(&["plan", "b.h5", "a.h5", "--json"], ""), ["b.h5", "a.h5"]);
    assert_eq!(inputs(&["plan", "b.h5", "a.h5", "--json", "--order", "given"], ""), ["b.h5", "a.h5"]);
    std::fs::write(folder.path().join("list"), "b.h5\na.h5\n").unwrap();
    assert_eq!(inputs(&["plan", "@list", "--json"], ""), ["b.h5", "a.h5"]);
    assert_eq!(inputs(&["plan", "-i", "list", "--json"], ""), ["b.h5", "a.h5"]);
}

#[test]
fn plan_report_and_log_are_json() {
    let folder = two_files();
    let (code, stdout, _) = outcome(raddle(folder.path(), &["plan", "a.h5", "b.h5", "--json"]));
    let plan = json(&stdout);
    assert_eq!((code, &plan["output"]["datasets"][0]["dims"]), (0, &serde_json::json!([500, 1])));

    let arguments =
        ["merge", "a.h5", "b.h5", "-o", "out.h5", "-q", "--report", "report.json", "--log-json", "log.json"];
    let (code, stdout, stderr) = outcome(raddle(folder.path(), &arguments));
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "", ""));
    let report = json(&std::fs::read_to_string(folder.path().join("report.json")).unwrap());
    let len_bytes = std::fs::metadata(folder.path().join("out.h5")).unwrap().len();
    assert_eq!((&report["inputs"], &report["output_len_bytes"]), (&2.into(), &len_bytes.into()));
    let log = std::fs::read_to_string(folder.path().join("log.json")).unwrap();
    let events: Vec<Value> = log.lines().map(json).collect();
    assert_eq!(events[0]["event"], "run_started");
    assert!(events.iter().any(|event| event["event"] == "stage_finished" && event["stage"] == "encode"), "{log}");
    assert_eq!(events.last().unwrap()["exit_code"], 0);

    let (code, stdout, _) =
        outcome(raddle(folder.path(), &["verify", "out.h5", "--against", "a.h5", "b.h5", "--json", "-q"]));
    assert_eq!((code, &json(&stdout)["mismatches"]), (0, &serde_json::json!([])));
    let (code, stdout, _) = outcome(raddle(folder.path(), &["inspect", "out.h5", "--json"]));
    let inspection = json(&stdout);
    assert_eq!((code, &inspection["file_len_bytes"]), (0, &len_bytes.into()));
}

#[test]
fn a_dry_run_reports_what_would_be_done() {
    let folder = two_files();
    let arguments = ["merge", "a.h5", "-o", "out.h5", "--extendible", "-q"];
    assert_eq!(outcome(raddle(folder.path(), &arguments)).0, 0);
    let before = std::fs::read(folder.path().join("out.h5")).unwrap();
    for (arguments, rows) in [
        (&["merge", "a.h5", "b.h5", "-o", "new.h5", "-n"][..], 500),
        (&["rechunk", "a.h5", "-o", "new.h5", "-n"], 200),
        (&["append", "out.h5", "b.h5", "-n"], 500),
    ] {
        let (code, _, stderr) = outcome(raddle(folder.path(), &[arguments, &["--report", "plan.json"]].concat()));
        assert_eq!(code, 0, "{arguments:?}: {stderr}");
        let report = json(&std::fs::read_to_string(folder.path().join("plan.json")).unwrap());
        assert_eq!(report["output"]["datasets"][0]["dims"], serde_json::json!([rows, 1]), "{arguments:?}");
        assert_eq!(report["invocation"][1], arguments[0]);
    }
    let report = json(&std::fs::read_to_string(folder.path().join("plan.json")).unwrap());
    let names: Vec<&str> =
        report["inputs"].as_array().unwrap().iter().map(|input| input["path"].as_str().unwrap()).collect();
    assert!(names.len() == 2 && names[0].ends_with("/out.h5") && names[1] == "b.h5", "{names:?}");
    assert_eq!((&report["grown_datasets"], &report["most_rows"]), (&1.into(), &300.into()));
    assert_eq!(std::fs::read(folder.path().join("out.h5")).unwrap(), before);
    assert!(!folder.path().join("new.h5").exists());
}

#[test]
fn a_log_or_report_that_cannot_be_written_is_an_output_error() {
    let folder = two_files();
    for option in ["--log-json", "--report"] {
        for target in ["no/such/file", "/dev/full"] {
            let arguments = ["merge", "a.h5", "b.h5", "-o", "out.h5", "-f", "-q", option, target];
            let (code, _, stderr) = outcome(raddle(folder.path(), &arguments));
            assert_eq!(code, 5, "{option} {target}: {stderr}");
            assert!(stderr.contains(target), "{stderr}");
            assert_eq!(stderr.contains("what to do: free some space"), target == "/dev/full", "{stderr}");
        }
    }
}

#[test]
fn an_output_that_cannot_be_is_refused_before_inputs_are_read() {
    let folder = two_files();
    std::fs::write(folder.path().join("bad.h5"), "no HDF5").unwrap();
    std::fs::write(folder.path().join("there.h5"), "old").unwrap();
    std::fs::create_dir(folder.path().join("folder.h5")).unwrap();
    std::os::unix::fs::symlink("a.h5", folder.path().join("link.h5")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("dangling.h5")).unwrap();
    std::fs::hard_link(folder.path().join("a.h5"), folder.path().join("hard.h5")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("fifo.h5"), 0o600.into()).unwrap();
    let before = names(folder.path());
    for (output, force, reason) in [
        ("there.h5", false, "exists"),
        ("folder.h5", true, "is a folder"),
        ("a.h5", true, "is also an input"),
        ("link.h5", true, "is also an input"),
        ("hard.h5", true, "is also an input"),
        ("dangling.h5", true, "is a broken symbolic link"),
        ("fifo.h5", true, "is not a regular file"),
        ("/dev/full", true, "is not a regular file"),
        ("none/out.h5", true, "does not exist"),
        ("..", true, "is not a file name"),
    ] {
        // `bad.h5` would be refused as an input, with another exit code.
        let mut arguments = vec!["merge", "a.h5", "bad.h5", "-o", output, "-q"];
        arguments.extend(force.then_some("--force"));
        for dry_run in [None, Some("--dry-run")] {
            let arguments: Vec<&str> = arguments.iter().copied().chain(dry_run).collect();
            let (code, _, stderr) = outcome(raddle(folder.path(), &arguments));
            assert_eq!(code, 5, "{output}: {stderr}");
            assert!(stderr.contains(reason) && stderr.contains(output), "{output}: {stderr}");
        }
    }
    assert_eq!(names(folder.path()), before);
    assert_eq!(std::fs::read(folder.path().join("there.h5")).unwrap(), b"old");
}

#[test]
fn an_output_that_is_a_link_is_written_where_it_leads() {
    let folder = two_files();
    std::fs::create_dir(folder.path().join("far")).unwrap();
    std::fs::write(folder.path().join("far/all.h5"), "old").unwrap();
    std::os::unix::fs::symlink("far/all.h5", folder.path().join("all.h5")).unwrap();
    let (code, _, stderr) = outcome(raddle(folder.path(), &["merge", "a.h5", "b.h5", "-o", "all.h5", "-qf"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(std::fs::symlink_metadata(folder.path().join("all.h5")).unwrap().is_symlink());
    let (code, _, stderr) =
        outcome(raddle(folder.path(), &["verify", "far/all.h5", "--against", "a.h5", "b.h5", "-q"]));
    assert_eq!((code, names(&folder.path().join("far")).len()), (0, 1), "{stderr}");
}

#[test]
fn a_second_writer_is_locked_out() {
    let folder = two_files();
    let lock = std::fs::File::create(folder.path().join(".out.h5.raddle-lock")).unwrap();
    lock.lock().unwrap();
    let (code, _, stderr) = outcome(raddle(folder.path(), &["merge", "a.h5", "b.h5", "-o", "out.h5", "-q"]));
    assert_eq!(code, 7, "{stderr}");
    assert!(!folder.path().join("out.h5").exists());
}

#[test]
fn differing_inputs_are_shown_and_refused() {
    let folder = two_files();
    make(&folder.path().join("c.h5"), "/y", 1, 100);
    let (code, _, stderr) = outcome(raddle(folder.path(), &["merge", "a.h5", "b.h5", "c.h5", "-o", "out.h5", "-q"]));
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("2 differences") && stderr.contains("/x") && stderr.contains("/y"), "{stderr}");
    assert!(stderr.contains("--join"), "{stderr}");
    let row = |path: &str| {
        let line = stderr.lines().find(|line| line.trim_start().starts_with(path)).unwrap();
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    // A missing object is missing in the files named; a surplus object is in them.
    assert_eq!(row("/x"), ["/x", "missing", "dataset", "nothing", "c.h5"]);
    assert_eq!(row("/y"), ["/y", "only in some inputs", "nothing", "dataset", "c.h5"]);
    let (code, _, stderr) =
        outcome(raddle(folder.path(), &["merge", "a.h5", "b.h5", "c.h5", "-o", "out.h5", "-q", "--join", "outer"]));
    assert_eq!((code, stderr.as_str()), (0, ""));
}

#[test]
fn names_cannot_reach_the_terminal() {
    let folder = two_files();
    let evil = OsStr::from_bytes(b"evil\x1b[2J\n\xff.h5");
    std::fs::write(folder.path().join(evil), "no HDF5").unwrap();
    let mut command = raddle(folder.path(), &["merge", "a.h5", "-o", "out.h5"]);
    command.arg(evil);
    let (code, stdout, stderr) = outcome(command);
    assert_eq!(code, 3);
    assert!(stderr.contains("evil\\x1b[2J\\n\\xff.h5"), "{stderr}");
    make(&folder.path().join("n.h5"), "/\u{202e}x\x1b]0;title\x07", 1, 100);
    let (code, plan, _) = outcome(raddle(folder.path(), &["plan", "n.h5", "--datasets"]));
    let (_, inspection, _) = outcome(raddle(folder.path(), &["inspect", "n.h5"]));
    assert_eq!(code, 0);
    for text in [&stdout, &stderr, &plan, &inspection] {
        assert!(!text.contains(['\x1b', '\x07', '\u{202e}']), "{text:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_not_a_failure() {
    let folder = two_files();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("raddle"))
        .current_dir(folder.path())
        .args(["plan", "a.h5", "--json", "--progress", "never"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn standard_output_without_room_is_an_output_error() {
    let folder = two_files();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("raddle"));
    let status = command.current_dir(folder.path()).args(["plan", "a.h5", "-q"]).stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(5));
}

/// Starts a long merge, waits until it encodes, sends `signal`, and returns exit code and time to the end.
fn interrupted_merge(folder: &Path, signal: Signal) -> (i32, Duration) {
    let log = folder.join("log.json");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("raddle"))
        .current_dir(folder)
        .args(["merge", "long.h5", "-o", "out.h5", "-c", "small", "-j", "1", "--log-json", "log.json", "-q"])
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !std::fs::read_to_string(&log).is_ok_and(|log| log.contains("\"encode\"")) {
        assert!(started.elapsed() < Duration::from_secs(60), "the merge does not get to encoding");
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Instant::now();
    kill_process(Pid::from_child(&child), signal).unwrap();
    let status = child.wait().unwrap();
    std::fs::remove_file(&log).unwrap();
    (status.code().unwrap(), sent.elapsed())
}

#[test]
fn signals_stop_a_run_soon_and_leave_no_output() {
    let folder = tempfile::tempdir().unwrap();
    // 1 GiB before compression: minutes of work with the most thorough compression, but written here instantly.
    make(&folder.path().join("long.h5"), "/x", 256, 1 << 20);
    for (signal, code) in [(Signal::INT, 130), (Signal::USR1, 138), (Signal::TERM, 143)] {
        let (stopped_with, after) = interrupted_merge(folder.path(), signal);
        assert_eq!(stopped_with, code);
        assert!(after < Duration::from_secs(2), "{after:?}");
        // Files kept for the next run have other names; tests/faults checks them.
        assert!(!folder.path().join("out.h5").exists());
    }
}

#[test]
fn signals_stop_a_demo_soon_and_remove_its_folder() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("raddle"))
            .env("TMPDIR", folder.path())
            .args(["demo", "--workload", "nova", "--no-h5py", "-q"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let is_generating = || {
            let demos = std::fs::read_dir(folder.path()).unwrap().flatten();
            demos
                .flat_map(|demo| std::fs::read_dir(demo.path()))
                .flatten()
                .flatten()
                .any(|file| file.path().extension().is_some_and(|ending| ending == "partial"))
        };
        let started = Instant::now();
        while !is_generating() {
            assert!(started.elapsed() < Duration::from_secs(60), "the demo makes no file");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(100));
        let sent = Instant::now();
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert!(sent.elapsed() < Duration::from_secs(2), "{:?}", sent.elapsed());
        assert_eq!(names(folder.path()), Vec::<OsString>::new());
    }
}

#[test]
fn licences_name_what_the_program_contains() {
    let folder = tempfile::tempdir().unwrap();
    let (code, text, stderr) = outcome(raddle(folder.path(), &["licenses"]));
    assert_eq!((code, stderr.as_str()), (0, ""));
    for name in ["HDF5 2.", "libdeflate", "clap_builder", "Permission is hereby granted"] {
        assert!(text.contains(name), "{name}");
    }
}

#[test]
fn queries_are_left_to_the_python_package() {
    let folder = tempfile::tempdir().unwrap();
    for words in [
        &["sql"][..],
        &["sql", "SELECT 1"],
        &["sql", "SELECT 1", "--format", "csv"],
        &["sql", "-o", "out.csv", "SELECT 1"],
    ] {
        let (code, _, stderr) = outcome(raddle(folder.path(), words));
        assert!(code == 2 && stderr.contains("pip install 'raddle[sql]'"), "{words:?}: {stderr}");
    }
}

#[test]
fn manual_pages_and_completions_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, stderr) = outcome(raddle(folder.path(), &["man", "man1"]));
    assert_eq!(code, 0, "{stderr}");
    let pages: Vec<PathBuf> = names(&folder.path().join("man1")).into_iter().map(PathBuf::from).collect();
    for page in [
        "raddle.1",
        "raddle-merge.1",
        "raddle-inspect.1",
        "raddle-keys-add.1",
        "raddle-doctor.1",
        "raddle-self-test.1",
        "raddle-man.1",
    ] {
        assert!(pages.contains(&PathBuf::from(page)), "{pages:?}");
    }
    let merge = std::fs::read_to_string(folder.path().join("man1/raddle-merge.1")).unwrap();
    assert!(merge.contains("raddle merge") && merge.contains("compress"));
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = outcome(raddle(folder.path(), &["completions", shell]));
        assert!(code == 0 && ["rechunk", "doctor", "self-test"].iter().all(|name| script.contains(name)), "{shell}");
    }
}

/// Environment variables of a launcher of ranks are recognised; over MPI the command is tested in `tests/mpi`.
#[test]
fn a_launcher_of_several_ranks_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    make(&folder.path().join("in.h5"), "/a", 1, 100);
    let started = |arguments: &[&str], rank: &str, size: &str| {
        let mut command = raddle(folder.path(), arguments);
        command.env("PMI_RANK", rank).env("PMI_SIZE", size);
        outcome(command)
    };
    for (rank, speaks) in [("0", true), ("2", false)] {
        let (code, out, err) = started(&["keys", "sort", "in.h5"], rank, "3");
        assert_eq!(
            (code, out.as_str(), err.contains("raddle keys sort runs as one process")),
            (2, "", speaks),
            "{err}"
        );
        assert_eq!(err.is_empty(), !speaks);
        if !cfg!(feature = "mpi") {
            let (code, _, err) = started(&["merge", "in.h5", "-o", "out.h5"], rank, "3");
            assert_eq!((code, err.contains("this raddle was built without MPI")), (2, speaks), "{err}");
        }
    }
    assert!(!folder.path().join("out.h5").exists());
    // A single rank is not a team.
    assert_eq!(started(&["inspect", "in.h5"], "0", "1").0, 0);
    if !cfg!(feature = "mpi") {
        assert_eq!(started(&["merge", "in.h5", "-o", "out.h5", "-q"], "0", "1").0, 0);
    }
}
