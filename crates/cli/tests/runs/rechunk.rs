//! `raddle rechunk` with many files: to a folder and in place, and the files that are refused.

use crate::support::{json, make, names, outcome, raddle, two_files};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

fn succeeds(folder: &Path, arguments: &[&str]) -> (String, String) {
    let (code, stdout, stderr) = outcome(raddle(folder, arguments));
    assert_eq!(code, 0, "{arguments:?}: {stderr}");
    (stdout, stderr)
}

#[track_caller]
fn fails(folder: &Path, arguments: &[&str], expected: i32, parts: &[&str]) {
    let before = names(folder);
    let (code, _, stderr) = outcome(raddle(folder, arguments));
    assert_eq!(code, expected, "{arguments:?}: {stderr}");
    assert!(parts.iter().all(|part| stderr.contains(part)), "{arguments:?}: {stderr}");
    assert_eq!(names(folder), before, "{arguments:?}");
}

#[test]
fn each_file_of_a_folder_is_as_if_rewritten_alone() {
    let folder = two_files();
    let at = |name: &str| folder.path().join(name);
    for (input, output) in [("a.h5", "one_a.h5"), ("b.h5", "one_b.h5")] {
        succeeds(folder.path(), &["rechunk", input, "-o", output, "-q", "--for", "scan"]);
    }
    std::fs::write(at("list"), "b.h5\n").unwrap();
    let (stdout, _) = succeeds(
        folder.path(),
        &["rechunk", "a.h5", "@list", "--dir", "out/new", "--for", "scan", "--report", "report.json"],
    );
    assert!(stdout.starts_with("2 files rewritten to out/new\n"), "{stdout}");
    for name in ["a", "b"] {
        let same = std::fs::read(at(&format!("out/new/{name}.h5"))).unwrap();
        assert!(same == std::fs::read(at(&format!("one_{name}.h5"))).unwrap(), "{name}");
    }
    let report = json(&std::fs::read_to_string(at("report.json")).unwrap());
    assert_eq!(report["files"][1]["output"], "out/new/b.h5");
    assert_eq!((&report["done_before"], &report["files"][0]["datasets"]), (&0.into(), &1.into()));
    for jobs in ["1", "7"] {
        let dir = format!("jobs{jobs}");
        succeeds(folder.path(), &["rechunk", "a.h5", "b.h5", "--dir", &dir, "--for", "scan", "-q", "-j", jobs]);
        let file = at(&dir).join("b.h5");
        assert!(std::fs::read(file).unwrap() == std::fs::read(at("one_b.h5")).unwrap(), "{jobs}");
    }
    succeeds(folder.path(), &["verify", "out/new/a.h5", "--against", "a.h5", "-q"]);
}

#[test]
fn files_in_place_keep_permissions_and_links() {
    let folder = two_files();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("links")).unwrap();
    symlink("../a.h5", at("links/to_a.h5")).unwrap();
    std::fs::set_permissions(at("a.h5"), PermissionsExt::from_mode(0o640)).unwrap();
    let old = std::fs::metadata(at("a.h5")).unwrap();
    succeeds(folder.path(), &["rechunk", "links/to_a.h5", "b.h5", "--in-place", "--chunk", "17rows"]);
    let new = std::fs::metadata(at("a.h5")).unwrap();
    assert_eq!((new.mode(), new.uid(), new.gid()), (old.mode(), old.uid(), old.gid()));
    assert_ne!(new.ino(), old.ino());
    assert!(std::fs::symlink_metadata(at("links/to_a.h5")).unwrap().is_symlink());
    assert_eq!(names(folder.path()), ["a.h5", "b.h5", "links"]);
    for file in ["a.h5", "b.h5"] {
        let (stdout, _) = succeeds(folder.path(), &["plan", file, "--for", "keep", "--json"]);
        assert_eq!(json(&stdout)["output"]["datasets"][0]["chunk_shape"], serde_json::json!([17, 1]), "{stdout}");
    }
}

#[test]
fn what_cannot_be_replaced_is_refused_before_anything_is_written() {
    let folder = two_files();
    let at = |name: &str| folder.path().join(name);
    let before = std::fs::read(at("b.h5")).unwrap();
    std::fs::hard_link(at("a.h5"), at("hard.h5")).unwrap();
    fails(folder.path(), &["rechunk", "b.h5", "a.h5", "--in-place"], 5, &["a.h5: has 2 hard links", "--skip-bad"]);
    fails(folder.path(), &["rechunk", "a.h5", "hard.h5", "b.h5", "--in-place"], 5, &["2 of 3 files", "hard.h5"]);
    std::fs::remove_file(at("hard.h5")).unwrap();
    std::fs::set_permissions(at("a.h5"), PermissionsExt::from_mode(0o444)).unwrap();
    fails(folder.path(), &["rechunk", "a.h5", "b.h5", "--in-place"], 5, &["a.h5: is write-protected"]);
    fails(folder.path(), &["rechunk", "b.h5", "./b.h5", "--in-place"], 3, &["given twice"]);
    fails(folder.path(), &["rechunk", "b.h5", "none.h5", "--in-place"], 3, &["none.h5"]);
    assert!(std::fs::read(at("b.h5")).unwrap() == before);
    // A write-protected file can be read.
    succeeds(folder.path(), &["rechunk", "a.h5", "b.h5", "--dir", "out", "-q"]);
}

#[test]
fn outputs_that_clash_or_exist_are_refused() {
    let folder = two_files();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("more")).unwrap();
    make(&at("more/a.h5"), "/x", 1, 100);
    fails(
        folder.path(),
        &["rechunk", "**/*.h5", "--dir", "out"],
        3,
        &["out/a.h5 would be written by more than one input", "more/a.h5", "nothing was written"],
    );
    fails(folder.path(), &["rechunk", "a.h5", "b.h5", "--dir", "."], 5, &["./a.h5: is also an input", "--in-place"]);
    fails(folder.path(), &["rechunk", "a.h5", "--dir", "b.h5"], 5, &["is not a folder"]);
    fails(folder.path(), &["rechunk", "a.h5", "b.h5", "--dir", "more"], 5, &["more/a.h5: exists; use --force"]);
    succeeds(folder.path(), &["rechunk", "a.h5", "b.h5", "--dir", "more", "--force", "-q"]);
    fails(folder.path(), &["rechunk", "a.h5", "b.h5", "--dir", "more"], 5, &["2 of the outputs exist", "more/b.h5"]);
    for (arguments, part) in [
        (&["rechunk", "a.h5", "b.h5", "-o", "c.h5"][..], "-o names one file, and there are 2 inputs"),
        (&["rechunk", "a.h5", "-o", "c.h5", "--skip-bad"], "--skip-bad is for --dir and --in-place"),
        (&["rechunk", "a.h5", "--dir", "o", "--preview"], "--preview is of one output"),
        (&["rechunk", "a.h5", "--dir", "o", "--in-place"], "cannot be used with"),
        (&["rechunk", "a.h5", "--in-place", "--force"], "cannot be used with"),
        (&["rechunk", "a.h5"], "required"),
    ] {
        fails(folder.path(), arguments, 2, &[part]);
    }
}

#[test]
fn one_bad_file_of_many_is_reported_or_left_out() {
    let folder = two_files();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("bad.h5"), "not HDF5").unwrap();
    let all = ["rechunk", "a.h5", "bad.h5", "b.h5"];
    fails(folder.path(), &[&all[..], &["--dir", "out"]].concat(), 3, &["bad.h5", "nothing was written", "--skip-bad"]);
    let (code, stdout, stderr) = outcome(raddle(folder.path(), &[&all[..], &["--dir", "out", "--skip-bad"]].concat()));
    assert_eq!(code, 4, "{stderr}");
    assert!(stdout.starts_with("2 files rewritten to out, 1 file left out\n") && stderr.contains("bad.h5"), "{stderr}");
    assert_eq!(names(&at("out")), ["a.h5", "b.h5"]);

    // A chunk that cannot be decoded is found while its file is written.
    let good = std::fs::read(at("b.h5")).unwrap();
    let mut damaged = good.clone();
    let end = damaged.len();
    damaged[end - 300..].fill(0x55);
    std::fs::write(at("a0.h5"), &damaged).unwrap();
    std::fs::remove_file(at("bad.h5")).unwrap();
    let in_place = ["rechunk", "a.h5", "a0.h5", "b.h5", "--in-place", "-j", "1", "--progress", "never"];
    let (code, _, stderr) = outcome(raddle(folder.path(), &in_place));
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("1 of 3 files are done") && stderr.contains("a0.h5"), "{stderr}");
    assert!(std::fs::read(at("a0.h5")).unwrap() == damaged);
    let (code, stdout, stderr) = outcome(raddle(folder.path(), &[&in_place[..], &["--skip-bad"]].concat()));
    assert_eq!(code, 4, "{stderr}");
    assert!(stdout.starts_with("1 file rewritten in place, 1 file done before, 1 file left out\n"), "{stdout}");
    assert!(std::fs::read(at("a0.h5")).unwrap() == damaged);
    assert_eq!(names(folder.path()), ["a.h5", "a0.h5", "b.h5", "out"]);
}

#[test]
fn a_dry_run_lists_the_files() {
    let folder = two_files();
    let (stdout, _) = succeeds(folder.path(), &["rechunk", "a.h5", "b.h5", "--dir", "out", "-n"]);
    assert!(stdout.contains("2 files would be rewritten to out") && stdout.contains(" b.h5 "), "{stdout}");
    let (stdout, _) = succeeds(folder.path(), &["rechunk", "a.h5", "b.h5", "--in-place", "-n", "--json"]);
    assert_eq!(json(&stdout)["files"][1]["logical_len_bytes"], 1200);
    assert_eq!(names(folder.path()), ["a.h5", "b.h5"]);
}

#[test]
fn a_budget_too_small_for_a_share_is_used_by_one_file_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.h5", "b.h5", "c.h5", "d.h5"] {
        make(&folder.path().join(name), "/x", 2, 1 << 20);
    }
    let options = ["--memory", "40MiB", "-j", "4", "-c", "fast", "--chunk", "1048576rows"];
    let (stdout, _) = succeeds(folder.path(), &[&["rechunk", ".", "--dir", "out"][..], &options].concat());
    assert!(stdout.starts_with("4 files rewritten"), "{stdout}");
    fails(folder.path(), &["rechunk", "a.h5", "b.h5", "--dir", "new", "--memory", "1MiB", "-j", "1"], 6, &["memory"]);
}
