//! Inputs that are named but cannot be read, and the advice of commands about them.

use crate::support::{make, outcome, raddle, two_files};
use raddle_testing::plain;

#[test]
fn all_missing_inputs_are_named_however_they_were_given() {
    let folder = two_files();
    std::fs::write(folder.path().join("list"), "a.h5\nnone1.h5\nnone2.h5\n").unwrap();
    for inputs in [&["a.h5", "none1.h5", "none2.h5"][..], &["@list"]] {
        let merge = [&["merge", "-o", "out.h5", "-qf"][..], inputs].concat();
        let (code, _, stderr) = outcome(raddle(folder.path(), &merge));
        assert_eq!(code, 3, "{stderr}");
        assert!(
            stderr.contains("2 of 3 inputs") && stderr.contains("none1.h5") && stderr.contains("none2.h5"),
            "{stderr}"
        );
        assert!(stderr.contains("check the names, or leave them out with --skip-bad"), "{stderr}");
        let (code, _, stderr) = outcome(raddle(folder.path(), &[&merge[..], &["--skip-bad"]].concat()));
        assert_eq!(code, 4, "{stderr}");
    }
}

#[test]
fn anything_but_a_file_is_reported_wherever_it_lies() {
    let folder = two_files();
    std::os::unix::fs::symlink("nowhere", folder.path().join("dangling.h5")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("pipe.h5"), 0o600.into()).unwrap();
    for input in [".", "*.h5", "**/*.h5"] {
        let (code, _, stderr) = outcome(raddle(folder.path(), &["plan", input, "-q"]));
        assert_eq!(code, 3, "{input}: {stderr}");
        assert!(stderr.contains("dangling.h5") && stderr.contains("pipe.h5"), "{input}: {stderr}");
    }
}

#[test]
fn advice_names_only_options_of_the_command() {
    let folder = two_files();
    std::fs::write(folder.path().join("bad.h5"), "no HDF5").unwrap();
    make(&folder.path().join("y.h5"), "/y", 1, 100);
    let values: &[f64] = &[1.0, 2.0];
    plain::make_columns(&folder.path().join("x.h5"), &[("/rec/x", values)]).unwrap();
    plain::make_columns(&folder.path().join("xy.h5"), &[("/rec/x", values), ("/rec/y", values)]).unwrap();
    let merge = ["merge", "xy.h5", "-o", "grows.h5", "--extendible", "-q"];
    assert_eq!(outcome(raddle(folder.path(), &merge)).0, 0);
    for (arguments, advice) in [
        (&["keys", "sort", "bad.h5", "-k", "/x"][..], "copy the files again from their source\n"),
        (&["rechunk", "bad.h5", "-o", "out.h5"], "copy the files again from their source\n"),
        (&["plan", "bad.h5"], "leave them out with --skip-bad\n"),
        (&["append", "a.h5", "y.h5"], "choose to merge all inputs into a new file with an inner or outer join\n"),
        (
            &["append", "grows.h5", "x.h5"],
            "choose --join outer (objects of any input), unless the file was merged with an inner join\n",
        ),
        (
            &["plan", "a.h5", "y.h5"],
            "choose --join inner (objects of all inputs), or --join outer (objects of any input)\n",
        ),
    ] {
        let (code, _, stderr) = outcome(raddle(folder.path(), &[arguments, &["-q"]].concat()));
        assert_eq!(code, 3, "{arguments:?}: {stderr}");
        assert!(stderr.ends_with(advice), "{arguments:?}: {stderr}");
    }
}

#[test]
fn files_of_other_formats_are_called_by_their_name() {
    let folder = two_files();
    for (begin, reported, remedy) in [
        (&b"CDF\x01rest of it"[..], "a netCDF-3 file", "`nccopy -k nc4 IN OUT`"),
        (b"CDF\x05", "a netCDF-3 file", "`nccopy -k nc4 IN OUT`"),
        (b"root\0\0", "a ROOT file", "`raddle events convert`"),
        (b"PK\x03\x04", "a zip archive", "unpack"),
        (b"\x1f\x8b\x08", "compressed by gzip", "`gunzip`"),
        (b"", "an empty file", "copy the files again"),
        (b"\n<!doctype HTML>\n<html>", "a web page", "download the files again"),
        (
            b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>",
            "an XML document",
            "download the files again",
        ),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS", "`git lfs pull`"),
    ] {
        std::fs::write(folder.path().join("other.nc"), begin).unwrap();
        for arguments in [&["merge", "a.h5", "other.nc", "-o", "out.h5", "-q"][..], &["inspect", "other.nc"]] {
            let (code, _, stderr) = outcome(raddle(folder.path(), arguments));
            assert_eq!(code, 3, "{stderr}");
            assert!(stderr.contains(reported) && stderr.contains(remedy), "{arguments:?}: {stderr}");
        }
    }
    std::fs::create_dir(folder.path().join("z.zarr")).unwrap();
    std::fs::write(folder.path().join("z.zarr/zarr.json"), "{}").unwrap();
    let (code, _, stderr) = outcome(raddle(folder.path(), &["merge", "z.zarr", "-o", "out.h5", "-q"]));
    assert!(code == 3 && stderr.contains("is a Zarr store"), "{stderr}");
}

#[test]
fn text_that_begins_as_a_root_file_is_none() {
    let folder = two_files();
    std::fs::write(folder.path().join("users"), "root:x:0:0:root:/root:/bin/bash\n".repeat(40)).unwrap();
    for arguments in
        [&["merge", "a.h5", "users", "-o", "out.h5", "-q"][..], &["inspect", "users"], &["events", "inspect", "users"]]
    {
        let (code, _, stderr) = outcome(raddle(folder.path(), arguments));
        assert!(code == 3 && stderr.contains("users"), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("convert") && !stderr.contains("damaged"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn names_that_are_not_paths_are_explained() {
    let folder = two_files();
    for (name, remedy) in [
        ("https://example.org/run.h5", "download the files first"),
        ("s3://bucket/run.h5", "download the files first"),
        ("a.h5:/rec", "name whole files"),
        ("~/run.h5", "write the path of the home folder"),
        ("run.h5", "check the names"),
    ] {
        let (code, _, stderr) = outcome(raddle(folder.path(), &["merge", name, "-o", "out.h5", "-q"]));
        assert!(code == 3 && stderr.contains(remedy), "{name}: {stderr}");
    }
}

#[test]
fn inputs_of_a_verification_without_their_option_are_explained() {
    let folder = two_files();
    let (code, _, stderr) = outcome(raddle(folder.path(), &["verify", "a.h5", "b.h5", "-q"]));
    assert!(
        code == 2 && stderr.ends_with("name the inputs after --against: raddle verify all.h5 --against run*.h5\n"),
        "{stderr}"
    );
}

#[test]
fn help_is_also_a_command() {
    let folder = two_files();
    let shown = |words: &[&str]| outcome(raddle(folder.path(), words));
    assert_eq!(shown(&["help", "merge"]), shown(&["merge", "--help"]));
    assert_eq!(shown(&["help", "keys", "add"]), shown(&["keys", "add", "--help"]));
    assert_eq!(shown(&["help"]), shown(&["--help"]));
    assert_eq!(shown(&["help", "no-such"]).0, 2);
}
