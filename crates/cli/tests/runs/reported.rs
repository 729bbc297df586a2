//! Output for programs: the JSON of every outcome, of logs and of reports, including refusals.

use crate::support::{json, make, outcome, raddle, two_files};
use serde_json::{Value, json};
use std::path::Path;

/// Creates a folder with two files that fit and one, `c.h5`, that has `/y` instead of `/x`.
fn differing() -> tempfile::TempDir {
    let folder = two_files();
    make(&folder.path().join("c.h5"), "/y", 1, 100);
    folder
}

fn read(path: &Path) -> Value {
    json(&std::fs::read_to_string(path).unwrap())
}

fn differences() -> Value {
    json!([
        {"path": "/x", "kind": "missing", "expected": "dataset", "found": "nothing", "inputs": ["c.h5"]},
        {"path": "/y", "kind": "extra", "expected": "nothing", "found": "dataset", "inputs": ["c.h5"]},
    ])
}

#[test]
fn a_refusal_is_reported_to_programs_wherever_they_listen() {
    let folder = differing();
    for arguments in [&["plan", "a.h5", "b.h5", "c.h5"][..], &["merge", "a.h5", "b.h5", "c.h5", "-o", "out.h5"]] {
        let telling = ["--json", "-q", "--report", "report.json", "--log-json", "log.json"];
        let (code, stdout, stderr) = outcome(raddle(folder.path(), &[arguments, &telling].concat()));
        assert!(code == 3 && stderr.contains("2 differences"), "{stderr}");
        let error = &json(&stdout)["error"];
        assert_eq!((&error["kind"], &error["exit_code"]), (&json!("input_refused"), &json!(3)));
        assert!(error["message"].as_str().unwrap().contains("do not fit together"), "{error}");
        assert!(error["hint"].as_str().unwrap().contains("--join outer"), "{error}");
        assert_eq!((&error["differences"], &error["bad_inputs"]), (&differences(), &json!([])));
        let report = read(&folder.path().join("report.json"));
        assert_eq!((&report["error"], &report["invocation"][1]), (error, &json!(arguments[0])));
        let log = std::fs::read_to_string(folder.path().join("log.json")).unwrap();
        let lines: Vec<Value> = log.lines().map(json).collect();
        let failed = &lines[lines.len() - 2];
        assert_eq!((&failed["event"], &failed["differences"]), (&json!("run_failed"), &differences()));
        assert_eq!(lines.last().unwrap()["exit_code"], 3);
    }
}

#[test]
fn differences_that_are_bridged_are_reported_to_programs() {
    let folder = differing();
    let telling = ["--join", "outer", "--json", "-q", "--report", "report.json", "--log-json", "log.json"];
    for arguments in [&["plan", "a.h5", "b.h5", "c.h5"][..], &["merge", "a.h5", "b.h5", "c.h5", "-o", "out.h5"]] {
        let (code, stdout, stderr) = outcome(raddle(folder.path(), &[arguments, &telling].concat()));
        assert_eq!((code, stderr.as_str()), (0, ""));
        assert_eq!(json(&stdout)["differences"], differences());
        assert_eq!(read(&folder.path().join("report.json"))["differences"], differences());
        let log = std::fs::read_to_string(folder.path().join("log.json")).unwrap();
        let reported = log.lines().map(json).find(|line| line["event"] == "differences").unwrap();
        assert_eq!(reported["differences"], differences());
    }
    let report = read(&folder.path().join("report.json"));
    let paths: Vec<&Value> = report["input_files"].as_array().unwrap().iter().map(|input| &input["path"]).collect();
    assert_eq!(paths, ["a.h5", "b.h5", "c.h5"]);
    assert!(!report["host"].as_str().unwrap().is_empty() && report["finished_unix_s"].as_f64().unwrap() > 1.7e9);
    assert_eq!(report["warnings"], json!(["2 differences between inputs that the merge accepts"]));
}

#[test]
fn every_outcome_of_a_command_with_json_is_json() {
    let folder = differing();
    std::fs::write(folder.path().join("bad.h5"), "no HDF5").unwrap();
    std::fs::write(folder.path().join("list"), "a.h5\n").unwrap();
    let kind = |arguments: &[&str]| {
        let (code, stdout, stderr) = outcome(raddle(folder.path(), &[arguments, &["--json"]].concat()));
        let reported = json(&stdout);
        if code == 0 {
            return "done".to_owned();
        }
        assert_eq!(
            (reported["error"]["exit_code"].as_i64(), stderr.is_empty()),
            (Some(code.into()), false),
            "{stderr}"
        );
        reported["error"]["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!(kind(&["merge", "a.h5", "b.h5", "-o", "out.h5"]), "done");
    assert_eq!(kind(&["merge", "a.h5", "b.h5", "-o", "new.h5", "-n"]), "done");
    assert_eq!(kind(&["rechunk", "a.h5", "-o", "re.h5", "-q"]), "done");
    assert_eq!(kind(&["merge", "a.h5", "-o", "grows.h5", "--extendible"]), "done");
    assert_eq!(kind(&["append", "grows.h5", "b.h5"]), "done");
    assert_eq!(kind(&["append", "grows.h5", "b.h5"]), "input_refused");
    assert_eq!(kind(&["merge", "a.h5", "b.h5", "-o", "out.h5"]), "output");
    assert_eq!(kind(&["merge", "a.h5", "none.h5", "-o", "new.h5"]), "io");
    assert_eq!(kind(&["merge", "a.h5", "bad.h5", "-o", "new.h5"]), "input_refused");
    assert_eq!(kind(&["plan", "a.h5", "--memory", "much"]), "usage");
    assert_eq!(kind(&["plan"]), "usage");
    assert_eq!(kind(&["plan", "nothing/"]), "io");
    assert_eq!(kind(&["merge", "a.h5", "b.h5", "-o", "new.h5", "--memory", "1"]), "limit");
    assert_eq!(kind(&["verify", "none.h5"]), "io");
    let (code, stdout, _) = outcome(raddle(folder.path(), &["merge", "a.h5", "bad.h5", "-o", "new.h5", "--json"]));
    let bad = &json(&stdout)["error"]["bad_inputs"];
    assert_eq!((code, &bad[0]["path"]), (3, &json!("bad.h5")));
    assert!(bad[0]["reason"].as_str().unwrap().contains("not an HDF5 file"), "{bad}");
    // One object per file.
    let (code, stdout, _) = outcome(raddle(folder.path(), &["inspect", "a.h5", "bad.h5", "--json"]));
    let reported: Vec<Value> =
        serde_json::Deserializer::from_str(&stdout).into_iter().collect::<Result<_, _>>().unwrap();
    assert_eq!((code, reported.len(), &reported[1]["file"]), (3, 2, &json!("bad.h5")));
    assert_eq!(reported[1]["error"]["kind"], "input_refused");
}

#[test]
fn a_folder_is_inspected_as_it_is_merged() {
    let folder = differing();
    std::fs::write(folder.path().join("notes.txt"), "no HDF5").unwrap();
    let (code, stdout, stderr) = outcome(raddle(folder.path(), &["inspect", ".", "--json"]));
    assert_eq!(code, 0, "{stderr}");
    let reported: Vec<Value> =
        serde_json::Deserializer::from_str(&stdout).into_iter().collect::<Result<_, _>>().unwrap();
    assert_eq!(reported.iter().map(|reported| &reported["file"]).collect::<Vec<_>>(), ["./a.h5", "./b.h5", "./c.h5"]);
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let (code, _, stderr) = outcome(raddle(folder.path(), &["inspect", "empty"]));
    assert!(code == 3 && stderr.contains("has no file ending in h5"), "{stderr}");
}

#[test]
fn names_that_are_not_text_are_reported_to_programs() {
    use std::os::unix::ffi::OsStrExt;
    let folder = two_files();
    let mut command = raddle(folder.path(), &["merge", "a.h5", "--json", "--report", "report.json", "-o"]);
    command.arg(std::ffi::OsStr::from_bytes(b"out\xff.h5"));
    let (code, stdout, stderr) = outcome(command);
    assert_eq!((code, &json(&stdout)["output"]), (0, &json!("out\u{fffd}.h5")), "{stderr}");
}
