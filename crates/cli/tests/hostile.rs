//! Damaged and malicious files at the command: an answer within seconds, exit code 0 with the right values or a refusal
//! that names the file, nothing left behind, never a crash.

use raddle_testing::content::{Content, Node};
use raddle_testing::hostile::{self, Expectation, TIME_LIMIT_S};
use raddle_testing::plain::{self, storage::create_compressed_group};
use raddle_testing::spec::{FileSpec, Format};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Exit codes of a refusal: an input (3) or a limit (6).
const REFUSALS: [i32; 2] = [3, 6];

/// Said of a file with an unknown filter.
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
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    if started.elapsed().as_secs() >= TIME_LIMIT_S {
        panic!("{}: took {:?}", input.display(), started.elapsed());
    }
    match run.status.code() {
        // Some files claim so much that only not looking is quick.
        Some(0) if !is_read => Ok(Content::default()),
        Some(0) => match plain::read(output) {
            Ok(content) => Ok(content.without(b"/_raddle")),
            // Chunks with an unknown filter are moved as stored: neither file can be read, and that is right.
            Err(_) if plain::read(input).is_err() => Err(format!("{} {MOVED}", input.display())),
            Err(error) => panic!("{}: the output is not sound: {error}", input.display()),
        },
        Some(code) if REFUSALS.contains(&code) => Err(told),
        _ => panic!("{}: {}: {told}", input.display(), run.status),
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
        let is_refused = outcome.as_ref().is_err_and(|told| !told.contains(MOVED));
        if is_refused && std::fs::read_dir(outputs.path()).unwrap().next().is_some() {
            complaints.push(format!("{}: refused, but something was written", case.name));
        }
        if let Err(complaint) = file.check(outcome) {
            complaints.push(format!("row {}, {} ({}): {complaint}", case.row, case.name, case.about));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
