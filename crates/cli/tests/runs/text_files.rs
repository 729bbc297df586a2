//! Reports, logs and lists never overwrite anything that a command reads or writes, nor any other file.

use crate::support::{json, names, outcome, raddle, two_files};

/// Checks that `arguments` are refused for `reason`; all files, including `file`, are unchanged.
#[track_caller]
fn refused(arguments: &[&str], file: &str, reason: &str) {
    let folder = two_files();
    let at = |name: &str| folder.path().join(name);
    std::fs::copy(at("a.h5"), at("there.h5")).unwrap();
    std::fs::write(at("notes.txt"), "mine").unwrap();
    std::fs::create_dir(at("inner")).unwrap();
    std::os::unix::fs::symlink("a.h5", at("link")).unwrap();
    let before = (names(folder.path()), std::fs::read(at(file)).ok());
    let (code, _, stderr) = outcome(raddle(folder.path(), arguments));
    assert_eq!(code, 5, "{arguments:?}: {stderr}");
    assert!(stderr.contains(reason) && stderr.contains(file), "{arguments:?}: {stderr}");
    assert_eq!((names(folder.path()), std::fs::read(at(file)).ok()), before, "{arguments:?}");
}

#[test]
fn inputs_and_outputs_are_not_replaced_by_reports_or_logs() {
    let also = "is also a file that the command reads or writes";
    for option in ["--report", "--log-json"] {
        for file in ["a.h5", "link", "inner/../b.h5", "x.h5", "inner/../x.h5"] {
            refused(&["merge", "a.h5", "b.h5", "-o", "x.h5", "-q", option, file], file, also);
        }
        for command in [
            &["plan", "a.h5", "b.h5"][..],
            &["merge", "-n", "a.h5", "-o", "x.h5"],
            &["merge", "a.h5", "-o", "x.h5", "--part", "1/2"],
            &["rechunk", "a.h5", "-o", "x.h5"],
            &["append", "b.h5", "a.h5"],
            &["verify", "a.h5"],
            &["verify", "b.h5", "--against", "a.h5"],
            &["keys", "sort", "a.h5", "b.h5", "-k", "/x"],
            &["keys", "check", "a.h5"],
            &["keys", "add", "a.h5"],
            &["keys", "partition", "a.h5", "-n", "2"],
            &["idx", "write", "a.h5:/x", "-o", "x.idx"],
            &["events", "inspect", "a.h5"],
            &["events", "convert", "a.h5", "-o", "x.h5"],
        ] {
            refused(&[command, &[option, "a.h5"]].concat(), "a.h5", also);
        }
    }
    refused(&["plan", "a.h5", "--log-json", "one.json", "--report", "./one.json"], "one.json", also);
    refused(&["keys", "sort", "a.h5", "-k", "/x", "-o", "list", "--report", "list"], "list", also);
}

#[test]
fn files_of_others_are_not_replaced() {
    for option in ["--report", "--log-json"] {
        refused(&["plan", "a.h5", option, "there.h5"], "there.h5", "is not JSON");
        refused(&["plan", "a.h5", option, "notes.txt"], "notes.txt", "is not JSON");
        refused(&["plan", "a.h5", option, "inner"], "inner", "is a folder");
        refused(&["plan", "a.h5", option, "none/x.json"], "none/x.json", "folder none does not exist");
    }
    let sort = ["keys", "sort", "a.h5", "b.h5", "-k", "/x", "-o"];
    refused(&[&sort[..], &["a.h5"]].concat(), "a.h5", "is also a file");
    refused(&[&sort[..], &["there.h5"]].concat(), "there.h5", "is not text");
}

#[test]
fn pages_and_figures_replace_only_their_like() {
    let folder = two_files();
    let at = |name: &str| folder.path().join(name);
    let merge = ["merge", "a.h5", "b.h5", "-o", "x.h5", "-q", "--report", "run.json"];
    assert_eq!(outcome(raddle(folder.path(), &merge)).0, 0);
    std::fs::write(at("notes.html"), "mine").unwrap();
    std::os::unix::fs::symlink("run.json", at("link.html")).unwrap();
    std::fs::create_dir(at("figures")).unwrap();
    std::os::unix::fs::symlink("../run.json", at("figures/stages.svg")).unwrap();
    std::os::unix::fs::symlink("../a.h5", at("figures/stages.png")).unwrap();
    let contents = || ["run.json", "a.h5", "b.h5", "x.h5", "notes.html"].map(|name| std::fs::read(at(name)).unwrap());
    let before = (names(folder.path()), contents());
    let also = "is also a file that the command reads or writes";
    for (arguments, file, reason) in [
        (&["-f", "-o", "link.html"][..], "link.html", also),
        (&["-o", "link.html"], "link.html", also),
        (&["-f", "-o", "figures/../link.html"], "figures/../link.html", also),
        (&["-f", "-o", "notes.html"], "notes.html", "is not a page"),
        (&["-f", "-o", "none/page.html"], "none/page.html", "folder none does not exist"),
        (&["-f", "--svg", "figures"], "figures/stages.svg", also),
        (&["-f", "--png", "figures"], "figures/stages.png", "is not a picture"),
        (&["--png", "figures"], "figures/stages.png", "is not a picture"),
    ] {
        let (code, _, stderr) = outcome(raddle(folder.path(), &[&["report", "run.json"], arguments].concat()));
        assert_eq!(code, 5, "{arguments:?}: {stderr}");
        assert!(stderr.contains(reason) && stderr.contains(file), "{arguments:?}: {stderr}");
        assert_eq!((names(folder.path()), contents()), before, "{arguments:?}");
    }
    let other = "writes an HTML page";
    for (name, expected, reason) in
        [("run.json", 2, other), ("x.h5", 5, "is not a page"), ("figures", 5, "is a folder")]
    {
        let (code, _, stderr) = outcome(raddle(folder.path(), &["report", "run.json", "-f", "-o", name]));
        assert_eq!(code, expected, "{stderr}");
        assert!(stderr.contains(reason) && stderr.contains(name), "{stderr}");
        assert_eq!((names(folder.path()), contents()), before, "{name}");
    }

    for (arguments, code) in
        [(&["--svg", "pictures"][..], 0), (&["--svg", "pictures"], 5), (&["-f", "--svg", "pictures"], 0)]
    {
        let done = outcome(raddle(folder.path(), &[&["report", "run.json"], arguments].concat()));
        assert_eq!((done.0, done.2.contains("report.html exists")), (code, code == 5), "{}", done.2);
    }
    // An existing figure is reported before the page is written.
    let (code, _, stderr) =
        outcome(raddle(folder.path(), &["report", "run.json", "-o", "p.html", "--svg", "pictures"]));
    assert_eq!((code, at("p.html").exists()), (5, false), "{stderr}");
    assert!(stderr.contains("pictures/") && stderr.contains(".svg exists"), "{stderr}");
}

#[test]
fn reports_logs_and_lists_replace_their_like() {
    let folder = two_files();
    for _ in 0..2 {
        let arguments = ["plan", "a.h5", "-q", "--report", "run.json", "--log-json", "log.json"];
        assert_eq!(outcome(raddle(folder.path(), &arguments)).0, 0);
        let arguments = ["keys", "sort", "a.h5", "b.h5", "-k", "/x", "-q", "-o", "list.txt", "--report", "sorted.json"];
        assert_eq!(outcome(raddle(folder.path(), &arguments)).0, 0);
    }
    for (report, command) in [("run.json", "plan"), ("sorted.json", "keys sort")] {
        let (code, _, stderr) = outcome(raddle(folder.path(), &["report", report]));
        assert_eq!(code, 3, "{stderr}");
        assert!(
            stderr.contains(&format!("{report}: is a report of raddle {command}, which contains nothing to draw")),
            "{stderr}"
        );
    }
    let report = json(&std::fs::read_to_string(folder.path().join("sorted.json")).unwrap());
    assert_eq!((&report["files"], &report["by"]), (&serde_json::json!(["a.h5", "b.h5"]), &serde_json::json!(["/x"])));
}

#[test]
fn a_list_names_the_files_that_it_was_made_of() {
    let folder = two_files();
    std::fs::rename(folder.path().join("a.h5"), folder.path().join("#a.h5")).unwrap();
    let (code, list, _) = outcome(raddle(folder.path(), &["keys", "sort", "#a.h5", "b.h5", "-k", "/x", "-q"]));
    assert_eq!((code, list.as_str()), (0, "./#a.h5\nb.h5\n"));
    std::fs::rename(folder.path().join("b.h5"), folder.path().join("b.h5\r")).unwrap();
    let (code, list, stderr) = outcome(raddle(folder.path(), &["keys", "sort", "b.h5\r", "-k", "/x", "-q"]));
    assert_eq!((code, list.as_str()), (3, ""), "{stderr}");
    assert!(stderr.contains("line break"), "{stderr}");
}
