//! Damaged and malicious files given to the command: an answer within seconds, exit code 0 with the right values or a
//! refusal that names the file, nothing left behind, never a crash.

use raddle_hdf5::model::TypeClass;
use raddle_testing::content::{Content, Node};
use raddle_testing::hostile::{self, Expectation, MAX_TIME_S};
use raddle_testing::plain::{self, numbers, storage::create_compressed_group};
use raddle_testing::spec::{DatasetSpec, FileSpec, Format};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Exit codes of a refusal: an input (3) or a limit (6).
const REFUSALS: [i32; 2] = [3, 6];

/// Marks files with an unknown filter.
const MOVED: &str = "is moved as stored";

/// Merges one file; with `is_read`, also reads the output.
fn merge(input: &Path, output: &Path, is_read: bool) -> Result<Content, String> {
    let started = Instant::now();
    let run = Command::new(env!("CARGO_BIN_EXE_raddle"))
        .args(["merge", "--progress", "never", "-o"])
        .args([output, input])
        .env("COLUMNS", "1000")
        .output()
        .map_err(|error| error.to_string())?;
    let reported = String::from_utf8_lossy(&run.stderr).into_owned();
    if started.elapsed().as_secs() >= MAX_TIME_S {
        panic!("{}: took {:?}", input.display(), started.elapsed());
    }
    match run.status.code() {
        // Some files claim so much data that only skipping the comparison is fast.
        Some(0) if !is_read => Ok(Content::default()),
        Some(0) => match plain::read(output) {
            Ok(content) => Ok(content.without(b"/_raddle")),
            // Chunks with an unknown filter are moved as stored: neither file can be read, which is correct.
            Err(_) if plain::read(input).is_err() => Err(format!("{} {MOVED}", input.display())),
            Err(error) => panic!("{}: the output is not sound: {error}", input.display()),
        },
        Some(code) if REFUSALS.contains(&code) => Err(reported),
        _ => panic!("{}: {}: {reported}", input.display(), run.status),
    }
}

#[test]
fn what_only_libhdf5_knows_is_inspected_and_merged() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.h5");
    plain::make(&input, &FileSpec { format: Format::V110, ..FileSpec::default() }).unwrap();
    create_compressed_group(&input, b"/group", 40).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
        let run = command.args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()
    };
    let inspection: serde_json::Value = serde_json::from_str(&run(&["inspect", "in.h5", "--json"])).unwrap();
    assert_eq!(inspection["faults"], serde_json::json!([]));
    assert_eq!(inspection["objects"]["through_library"], 2);
    assert_eq!(inspection["datasets"][0]["path"], "/group/data");
    assert_eq!((&inspection["chunks"]["count"], &inspection["stored_len_bytes"]), (&3.into(), &48.into()));
    assert!(run(&["inspect", "in.h5"]).contains("2 objects read by libhdf5"));
    std::fs::copy(&input, folder.path().join("in2.h5")).unwrap();
    for compress in ["balanced", "keep"] {
        run(&["merge", "in.h5", "in2.h5", "-o", "out.h5", "--force", "-c", compress, "-q"]);
        run(&["verify", "out.h5", "--against", "in.h5", "in2.h5", "-q"]);
        let content = plain::read(&folder.path().join("out.h5")).unwrap();
        let Node::Dataset(data) = &content.nodes[b"/group/data".as_slice()] else { panic!("no dataset") };
        assert_eq!(data.values, (0..40).chain(0..40).collect::<Vec<u8>>());
    }
}

#[test]
fn every_hostile_file_is_refused_by_name_or_read_right() {
    let mut complaints = Vec::new();
    for case in hostile::cases() {
        let folder = tempfile::tempdir().unwrap();
        let file = case.make(folder.path());
        let outputs = tempfile::tempdir().unwrap();
        let output = outputs.path().join("out.h5");
        let is_read = !matches!(file.expectation, Expectation::Cheap);
        let outcome = merge(&file.path, &output, is_read);
        let is_refused = outcome.as_ref().is_err_and(|reported| !reported.contains(MOVED));
        if is_refused && std::fs::read_dir(outputs.path()).unwrap().next().is_some() {
            complaints.push(format!("{}: refused, but something was written", case.name));
        }
        if let Err(complaint) = file.check(outcome) {
            complaints.push(format!("row {}, {} ({}): {complaint}", case.row, case.name, case.about));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The engine reported sizes that HDF5 cannot represent as an internal error of raddle.
#[test]
fn sizes_that_cannot_be_counted_are_the_fault_of_an_input() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, rows: u64, class: TypeClass| {
        let mut dataset = DatasetSpec::plain(class, &[rows], Vec::new()).chunked(&[1 << 20], &[]);
        dataset.written_rows = 0;
        let objects = vec![DatasetSpec::plain(numbers::u8(), &[2], vec![1, 2]).at("/small"), dataset.at("/many")];
        plain::make(&folder.path().join(name), &FileSpec { objects, ..FileSpec::default() }).unwrap();
    };
    make("bytes.h5", 1 << 60, numbers::f64());
    make("rows.h5", 1 << 62, numbers::u8());
    make("most.h5", (1 << 63) - 1, numbers::u8());
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
        let run =
            command.args(arguments).args(["--max-output", "16000000TiB"]).current_dir(folder.path()).output().unwrap();
        (run.status.code(), String::from_utf8(run.stderr).unwrap())
    };
    let together = ["rows.h5", "rows.h5", "--duplicates", "keep"];
    for (inputs, input, needed) in [
        (&["bytes.h5"][..], "bytes.h5", "9223372036854775808 bytes"),
        (&together, "rows.h5", "9223372036854775808 rows"),
        (&["rows.h5", "most.h5"], "most.h5", "13835058055282163711 rows"),
        // Whole chunks exceed the limit although rows do not.
        (&["most.h5", "-c", "keep", "--extendible"], "most.h5", "bytes"),
    ] {
        for command in [&["merge", "-o", "out.h5"][..], &["plan"]] {
            let (code, stderr) = run(&[command, inputs].concat());
            assert_eq!(code, Some(3), "{inputs:?}: {stderr}");
            assert!(stderr.contains("/many") && stderr.contains(input) && stderr.contains(needed), "{stderr}");
            assert!(stderr.contains("9223372036854775807 (2^63 - 1)"), "{stderr}");
        }
    }
    let (code, stderr) =
        run(&["merge", "rows.h5", "rows.h5", "--duplicates", "keep", "-o", "out.h5", "--exclude", "many"]);
    assert_eq!(code, Some(0), "{stderr}");
    std::fs::remove_file(folder.path().join("out.h5")).unwrap();
    // With a lower memory limit passed, the limit on the output refuses it.
    let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
    let run = command.args(["merge", "rows.h5", "-o", "out.h5"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(run.status.code(), Some(6));
}

/// Nesting deeper than 1,000 groups was refused. The limit is now the memory of the paths.
#[test]
fn groups_inside_groups_merge_until_their_paths_take_too_much_memory() {
    let folder = tempfile::tempdir().unwrap();
    for (name, depth) in [("deep.h5", 1_500), ("deeper.h5", 12_000)] {
        plain::make(&folder.path().join(name), &FileSpec::default()).unwrap();
        plain::storage::nest_groups(&folder.path().join(name), depth).unwrap();
    }
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
        let run = command.args(arguments).current_dir(folder.path()).output().unwrap();
        (run.status.code(), String::from_utf8(run.stderr).unwrap())
    };
    let (code, stderr) = run(&["merge", "deep.h5", "-o", "out.h5"]);
    assert_eq!(code, Some(0), "{stderr}");
    let content = plain::read(&folder.path().join("out.h5")).unwrap();
    assert!(content.nodes.contains_key("/g".repeat(1_500).as_bytes()));
    let (code, stderr) = run(&["merge", "deeper.h5", "-o", "out2.h5"]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("deeper.h5: length in bytes of the paths of all 12001 objects together"), "{stderr}");
}
