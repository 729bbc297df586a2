//! `raddle bench` and `raddle tune`: results for a large effect, leftovers, and stopping.

use assert_cmd::Command;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Rows written one by one: without a chunk cache, every chunk is rewritten eight times.
const WORKLOAD: &str = r#"
name = "rows"
title = "A test"
[[experiment]]
name = "rows"
title = "Single rows"
kernel = { kind = "occam", levels = 11, rows = 64, longitudes = 360, rows_per_write = 1 }
base = { gzip = 1, chunk = [11, 8, 90], chunk_cache = 0 }
knobs = { chunk_cache = [8388608] }
"#;

/// Creates a `raddle` command in `folder`, which also contains the profiles.
fn raddle(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("raddle").unwrap();
    command.current_dir(folder).env("NO_COLOR", "1").env("XDG_CONFIG_HOME", folder.join("config")).args(arguments);
    command
}

/// Returns exit code, standard output, standard error.
fn outcome(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = raddle(folder, arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn with_workload() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rows.toml"), WORKLOAD).unwrap();
    folder
}

#[test]
fn what_helps_becomes_a_profile_that_apply_takes() {
    let folder = with_workload();
    let (code, reported, stderr) =
        outcome(folder.path(), &["tune", "rows.toml", "-o", "mine.toml", "-q", "--report", "run.json"]);
    assert_eq!(code, 0, "{reported}{stderr}");
    assert!(reported.contains("chunk_cache=8MiB") && reported.contains("written to mine.toml"), "{reported}");
    let report: Value = serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap();
    let arm = &report["experiments"][0]["proof"]["arms"][1];
    assert_eq!(arm["verdict"], "better");
    assert!(arm["estimate"]["ratio"].as_f64().unwrap() < 0.8, "{arm}");
    // Settings are read back from the file.
    assert_eq!(arm["arm"]["runs"][0]["found"]["chunk_cache"], 8 << 20);
    assert_eq!(names(folder.path()), ["mine.toml", "rows.toml", "run.json"]);

    let (code, stdout, _) = outcome(folder.path(), &["apply", "mine.toml", "--dry-run", "--", "true"]);
    assert!(code == 0 && stdout.contains("chunk_cache=8388608"), "{stdout}");
    let (code, _, stderr) = outcome(folder.path(), &["tune", "rows.toml", "-o", "mine.toml", "-q"]);
    assert!(code == 5 && stderr.contains("--force"), "{stderr}");

    // Among the user's profiles, it is found by machine and file system.
    let (code, reported, _) = outcome(folder.path(), &["tune", "rows.toml", "-q"]);
    assert!(code == 0 && reported.contains("profiles/rows.toml"), "{reported}");
    let (code, stdout, _) = outcome(folder.path(), &["apply", "--dry-run", "--", "true"]);
    assert!(code == 0 && stdout.contains("chunk_cache=8388608"), "{stdout}");
}

#[test]
fn the_limit_that_was_reached_is_the_one_to_raise() {
    let folder = with_workload();
    let (code, reported, stderr) = outcome(folder.path(), &["bench", "rows.toml", "--blocks", "1", "-q"]);
    assert!(code == 0 && reported.contains("give more --blocks"), "{reported}{stderr}");
}

#[test]
fn where_nothing_can_be_decided_nothing_is_written() {
    let folder = with_workload();
    let few = ["tune", "rows.toml", "-o", "mine.toml", "--blocks", "1", "--json", "--progress", "never"];
    let (code, reported, stderr) = outcome(folder.path(), &few);
    assert_eq!(code, 0, "{reported}{stderr}");
    let done: Value = serde_json::from_str(&reported).unwrap();
    let arms = done["experiments"][0]["sweep"]["arms"].as_array().unwrap();
    assert_eq!((arms.len(), &arms[1]["verdict"], &arms[1]["estimate"]), (2, &"cannot_tell".into(), &Value::Null));
    let (_, reported, _) = outcome(folder.path(), &["tune", "rows.toml", "-o", "mine.toml", "--time", "0", "-q"]);
    assert!(reported.contains("no profile is written"), "{reported}");
    assert_eq!(names(folder.path()), ["rows.toml"]);
}

#[test]
fn limits_keep_a_setting_out() {
    let folder = with_workload();
    let limited = ["tune", "rows.toml", "-o", "mine.toml", "--max-memory", "1MiB", "--blocks", "5", "-q"];
    // If equal runs differ, for example because of other load, few verdicts are possible; then try again.
    let reported = (0..4)
        .map(|_| outcome(folder.path(), &limited))
        .find(|(_, reported, _)| !reported.contains("two equal defaults differ"));
    let (code, reported, _) = reported.expect("a machine on which something can be told in one of four tries");
    assert!(
        code == 0 && reported.contains("better") && reported.contains("no setting was found to help within the limits"),
        "{reported}"
    );
}

#[test]
fn the_steps_of_a_concatenation_are_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let few = ["--scale", "tiny", "--blocks", "1", "--time", "0", "-q"];
    let titles = |experiment: &str| {
        let arguments = [&["bench", "nova-2021", "--only", experiment][..], &few[..4], &few[6..]].concat();
        let (code, reported, stderr) = outcome(folder.path(), &arguments);
        assert_eq!(code, 0, "{reported}{stderr}");
        let mut lines = reported.lines().skip_while(|line| !line.contains("elapsed times by stage")).skip(1);
        let titles = lines.next().unwrap_or_default().split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
        (titles, reported)
    };
    let (found, reported) = titles("levels-2d");
    assert_eq!(found, "metadata open creation read write close", "{reported}");
    assert!(reported.contains("paper: tables 8, 9") && reported.contains("gzip=8"), "{reported}");
    assert_eq!(titles("empty-layout").0, "open creation close");
    let (found, reported) = titles("collect");
    // Bytes of metadata are read, although no values.
    assert!(found == "metadata" && reported.contains("  reads: "), "{reported}");
    // Experiments that were not measured have no table.
    let (_, reported, _) = outcome(folder.path(), &[&["bench", "nova-2021", "--only", "collect"][..], &few].concat());
    assert!(!reported.contains("by stage"), "{reported}");
}

#[test]
fn unmeasurable_settings_are_reported() {
    let folder = with_workload();
    std::fs::write(folder.path().join("data.h5"), b"\x89HDF\r\n\x1a\n\0").unwrap();
    for (arguments, code, words) in [
        (&["bench", "rows.toml", "--scratch", "absent"][..], 5, "--scratch"),
        (&["bench", "rows.toml", "--scratch", "/proc"], 5, "--scratch"),
        (&["bench", "rows.toml", "--hdf5", "rows.toml"], 3, "cannot be used as libhdf5"),
        (&["bench", "rows.toml", "--hdf5", "."], 2, "a folder"),
        (&["bench", "rows.toml", "--only", "columns"], 2, "it has rows"),
        (&["bench", "absent.toml"], 2, "occam-2005"),
        (&["bench", "rows.toml", "--margin", "0"], 2, "from 1 to 50"),
        (&["tune", "rows.toml", "-o", "absent/mine.toml"], 5, "absent/mine.toml"),
        (&["tune", "rows.toml", "-o", "data.h5", "-f"], 5, "exists and is not text"),
        (&["tune", "rows.toml", "-o", "rows.toml", "-f"], 5, "is also a file that the command reads"),
        (&["plan", ".", "--profile", "rows.toml"], 3, "not a profile"),
        (&["plan", ".", "--profile", "auto"], 2, "raddle tune"),
    ] {
        let (found, _, stderr) = outcome(folder.path(), arguments);
        assert_eq!(found, code, "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
    std::fs::write(folder.path().join("bad.toml"), WORKLOAD.replace("gzip = 1", "gzip = 11")).unwrap();
    let (code, _, stderr) = outcome(folder.path(), &["bench", "bad.toml"]);
    assert!(code == 3 && stderr.contains("gzip cannot be 11"), "{stderr}");
    assert_eq!(names(folder.path()), ["bad.toml", "data.h5", "rows.toml"]);
}

#[test]
fn a_signal_stops_it_and_what_a_kill_leaves_the_next_one_removes() {
    let folder = with_workload();
    let start = || {
        let executable = assert_cmd::cargo::cargo_bin("raddle");
        let mut command = std::process::Command::new(executable);
        command
            .current_dir(folder.path())
            .args(["bench", "occam-2005", "-q"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let began = Instant::now();
        let is_locked = |name: &String| folder.path().join(name).join("lock").exists();
        while !names(folder.path()).iter().any(is_locked) {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not begin");
            std::thread::sleep(Duration::from_millis(10));
        }
        child
    };
    let mut child = start();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(names(folder.path()), ["rows.toml"]);
    let mut child = start();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(folder.path()).len(), 2);
    // The last worker may end a little later.
    let began = Instant::now();
    while names(folder.path()).len() > 1 && began.elapsed() < Duration::from_secs(60) {
        assert_eq!(outcome(folder.path(), &["bench", "rows.toml", "--blocks", "1", "-q"]).0, 0);
    }
    assert_eq!(names(folder.path()), ["rows.toml"]);
}

#[test]
fn a_disk_that_gets_full_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, size) = (folder.path().join("disk"), "size=90m");
    std::fs::create_dir(&disk).unwrap();
    let mounted =
        std::process::Command::new("mount").args(["-t", "tmpfs", "-o", size, "raddle-test"]).arg(&disk).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        return println!("skipped: a file system cannot be mounted here");
    }
    // 16 datasets of 1 MiB, each at a multiple of 16 MiB: 240 MiB.
    let workload = |base: &str, knob: &str| {
        format!(
            "name = \"full\"\ntitle = \"A test\"\n[[experiment]]\nname = \"one\"\ntitle = \"One\"\n\
             kernel = {{ kind = \"ior\", api = \"hdf5\", burst_len_bytes = 1048576, bursts = 1, datasets = 16 }}\n\
             base = {{ {base} }}\nknobs = {{ {knob} }}\n"
        )
    };
    std::fs::write(folder.path().join("arm.toml"), workload("", "alignment = [16777216]")).unwrap();
    std::fs::write(folder.path().join("base.toml"), workload("alignment = 16777216", "sieve = [1048576]")).unwrap();
    let bench = |name: &str| outcome(folder.path(), &["bench", name, "--scratch", "disk", "--blocks", "1", "-q"]);
    let (arm, base) = (bench("arm.toml"), bench("base.toml"));
    let left = names(&disk);
    let _ = std::process::Command::new("umount").arg(&disk).status();
    // tmpfs keeps holes, so alignment alone may not fill it.
    if arm.1.contains("failed") {
        assert!(arm.0 == 0 && arm.1.contains("No space left"), "{arm:?}");
        assert!(base.0 == 5 && base.2.contains("No space left") && base.2.contains("--scratch"), "{base:?}");
    }
    assert!(left.is_empty(), "{left:?}");
    // 57 TiB, more than nearly every disk has.
    let huge = WORKLOAD.replace("rows = 64", "rows = 1000000000");
    std::fs::write(folder.path().join("huge.toml"), huge).unwrap();
    let (code, _, stderr) = outcome(folder.path(), &["bench", "huge.toml", "--time", "0", "-q"]);
    assert!(code == 5 && stderr.contains("are free, but runs may need"), "{stderr}");
}
