//! `raddle bench` of each paper: all of its figures and tables are measured, predicted or left out with a reason.
//!
//! One block each is enough for a value everywhere, but too little for a verdict other than `cannot_tell`. The runs
//! read their output back and compare it; wrong output is a fault, which fails these tests.

use assert_cmd::Command;
use serde_json::Value;
use std::collections::BTreeSet;

/// Runs the benchmark of a paper at the tiny scale; returns the report and the printed text.
fn bench(paper: &str) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::cargo_bin("raddle").unwrap();
    command.current_dir(folder.path()).env("NO_COLOR", "1").env("XDG_CONFIG_HOME", folder.path().join("config"));
    command.args(["bench", paper, "--scale", "tiny", "--blocks", "1", "--time", "600", "--report", "run.json", "-q"]);
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (reported, stderr) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(0), "{reported}{stderr}");
    (serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap(), reported)
}

/// Checks that every line of the summary has a value and a verdict or a reason, nothing failed, and all places in
/// `wanted` are present.
fn check(paper: &str, wanted: &[&str]) -> Value {
    let (report, reported) = bench(paper);
    assert_eq!(report["scale"], "tiny");
    let lines = report["summary"].as_array().unwrap();
    assert_eq!(lines.len(), report["experiments"].as_array().unwrap().len());
    let mut measured = 0;
    for line in lines {
        match line["state"].as_str().unwrap() {
            "measured" => {
                assert!(line["default_s"].as_f64().unwrap() > 0.0, "{line}");
                assert!(["better", "worse", "no_effect", "cannot_tell"].contains(&line["verdict"].as_str().unwrap()));
                measured += 1;
            }
            "left_out" => assert!(line["reason"].as_str().unwrap().contains("libhdf5"), "{line}"),
            other => panic!("{other}: {line}"),
        }
    }
    assert!(2 * measured > lines.len(), "most of {paper} is measured by one process: {measured} of {}", lines.len());
    for experiment in report["experiments"].as_array().unwrap() {
        for arm in experiment["sweep"]["arms"].as_array().unwrap() {
            let fault = &arm["arm"]["fault"];
            assert!(fault["failed"].is_null(), "{}: {fault}", experiment["name"]);
        }
    }
    let places: BTreeSet<&str> = lines.iter().filter_map(|line| line["place"].as_str()).collect();
    for place in wanted {
        assert!(places.iter().any(|found| found.contains(place)), "{paper} has no {place}: {places:?}");
    }
    assert!(reported.contains("summary: the paper, then this machine"), "{reported}");
    if report["hdf5"]["library"] == "none" {
        assert!(reported.contains("shares of the time:") && reported.contains("  processes are "), "{reported}");
        assert!(!reported.contains("HDF5 ?"), "{reported}");
    }
    report
}

/// Returns the counts of the first run of an arm.
fn counts<'r>(report: &'r Value, experiment: &str, arm: &str) -> &'r Value {
    let named = |all: &'r Value, name: &dyn Fn(&Value) -> bool| {
        all.as_array().unwrap().iter().find(|one| name(one)).unwrap_or_else(|| panic!("{experiment} {arm}"))
    };
    let experiment = named(&report["experiments"], &|one| one["name"] == experiment);
    let arm = named(&experiment["sweep"]["arms"], &|one| one["arm"]["candidate"]["name"] == arm);
    &arm["arm"]["runs"][0]["counts"]
}

#[test]
fn lee_2022() {
    check(
        "nova-2021",
        &["figure 1", "figure 2a", "figures 3a", "figures 4a", "tables 4", "tables 6", "tables 8", "tables 10"],
    );
}

#[test]
fn hill_2005() {
    check(
        "occam-2005",
        &["figures 8", "figure 9", "figure 10", "figures 11", "figure 13", "figure 16", "figures 17", "figure 19"],
    );
}

#[test]
fn xie_2021() {
    check("battle-2021", &["figures 3 to 5", "figure 6b", "figures 6a", "figures 7a", "figures 7b"]);
}

#[test]
fn kumar_2012() {
    let places =
        ["figures 3, 4", "figure 5", "figure 6", "figures 7a, 8", "figure 7b", "figure 9", "figures 10a", "figure 12"];
    let report = check("pidx-sc12", &places);
    // Larger boxes, which fewer processes hold, need fewer and longer messages.
    let count = |arm: &str, name: &str| counts(&report, "box-15", arm)[name].as_f64().unwrap();
    assert_eq!((count("default", "holders"), count("expanded", "holders")), (27.0, 8.0));
    assert!(count("expanded", "aggregate_messages") < count("default", "aggregate_messages"));
    assert_eq!(counts(&report, "phases", "one-phase")["aggregate_messages"], 0.0);
    assert_eq!(counts(&report, "phases", "two-phases")["restructure_messages"], 0.0);
    assert_eq!(counts(&report, "regular", "32^3: raw-file-per-process")["files"], 2.0);
    let tables: Vec<&str> =
        report["planned"].as_array().unwrap().iter().filter_map(|table| table["name"].as_str()).collect();
    assert_eq!(tables, ["messages-of-256", "holders", "files", "table-2", "predicted"]);
    let rows = report["planned"][3]["rows"].as_array().unwrap();
    let verdicts: Vec<&str> = rows.iter().filter_map(|row| row["verdict"].as_str()).collect();
    // The paper gives the quotient of the volumes, 421.9; boxes at the edges also have holders.
    assert_eq!(verdicts, ["equal", "differs", "equal", "equal", "equal", "equal"]);
    assert_eq!(rows[1]["here"]["holders"], 512.0);
    let files = report["planned"][2]["rows"].as_array().unwrap();
    assert!(files.iter().all(|row| row["verdict"] == "equal"), "{files:?}");
}

#[test]
fn bashyal_2024() {
    let report = check("hep-cce-2023", &["figure 2", "figures 3, 4", "section 2.1", "section 2.2"]);
    let name = |arm: &str| format!("2 threads: {arm}");
    for arm in ["default", "event", "product", "pds", "cce-batch", "cce-event", "rntuple"] {
        assert!(counts(&report, "formats", &name(arm))["write_s"].as_f64().unwrap() > 0.0, "{arm}");
    }
    assert!(counts(&report, "processes", "processes-4")["messages_s"].as_f64().unwrap() > 0.0);
    assert!(counts(&report, "processes", "process-1")["messages_s"].is_null());
}
