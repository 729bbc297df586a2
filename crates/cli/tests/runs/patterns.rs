//! Patterns for objects that match nothing are always reported.

use crate::support::{outcome, raddle, two_files};

#[test]
fn nothing_included_is_refused() {
    let folder = two_files();
    assert_eq!(outcome(raddle(folder.path(), &["merge", "a.h5", "-o", "all.h5", "-q"])).0, 0);
    for arguments in [
        &["merge", "a.h5", "b.h5", "-o", "out.h5"][..],
        &["merge", "a.h5", "b.h5", "-o", "out.h5", "-n"],
        &["plan", "a.h5"],
        &["verify", "all.h5", "--against", "a.h5"],
    ] {
        let (code, _, stderr) = outcome(raddle(folder.path(), &[arguments, &["--include", "typo"]].concat()));
        assert_eq!(code, 3, "{arguments:?}: {stderr}");
        assert!(stderr.contains("no object of the inputs matches --include typo"), "{stderr}");
    }
    assert!(!folder.path().join("out.h5").exists());
}

#[test]
fn excluding_everything_is_refused() {
    let folder = two_files();
    let arguments = ["merge", "a.h5", "b.h5", "-o", "out.h5", "--exclude", "*"];
    let (code, _, stderr) = outcome(raddle(folder.path(), &arguments));
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("leave out every object"), "{stderr}");
    assert!(!folder.path().join("out.h5").exists());
}

#[test]
fn other_patterns_without_effect_are_reported() {
    let folder = two_files();
    for (option, warning) in [
        ("--include", "--include typo: matches nothing"),
        ("--exclude", "--exclude typo: excludes nothing"),
        ("--keep", "--keep typo: matches no dataset"),
    ] {
        let arguments = ["plan", "a.h5", "b.h5", "--include", "x", option, "typo", "--progress", "never"];
        let (code, _, stderr) = outcome(raddle(folder.path(), &arguments));
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains(warning) && stderr.matches("warning").count() == 1, "{option}: {stderr}");
    }
}
