//! Runs over many files that are killed or fail at any call: every file is the old one or the whole new one, and the
//! same command completes the rest.

use crate::distance;
use crate::full_disk::Mounted;
use crate::workload::make;
use raddle_testing::faults::{self, Action, CHANGING, Fault};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FILES: [&str; 3] = ["0.h5", "1.h5", "2.h5"];

/// Three inputs and the right outputs of a command.
struct Files {
    folder: tempfile::TempDir,
    log: tempfile::TempDir,
    arguments: Vec<&'static str>,
    old: Vec<Vec<u8>>,
    new: Vec<Vec<u8>>,
    outputs: &'static str,
    /// Names of the outputs.
    names: &'static [&'static str],
}

impl Files {
    /// Runs the command with inputs in `in/`, with chunks of `chunk_rows` rows, and keeps the files in `outputs`.
    fn new(arguments: &[&'static str], outputs: &'static str, chunk_rows: u64) -> Self {
        Self::named(arguments, outputs, &FILES, chunk_rows)
    }

    /// Like `new`, with other names of outputs than of inputs.
    fn named(
        arguments: &[&'static str],
        outputs: &'static str,
        names: &'static [&'static str],
        chunk_rows: u64,
    ) -> Self {
        let (folder, log) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut files = Self {
            folder,
            log,
            arguments: [arguments, &["-j", "1", "-c", "fast", "--no-provenance", "--progress", "never"]].concat(),
            old: Vec::new(),
            new: Vec::new(),
            outputs,
            names,
        };
        std::fs::create_dir(files.root().join("in")).unwrap();
        for (number, name) in (0..).zip(FILES) {
            make(&files.root().join("in").join(name), number, &[("/x", 2), ("/table/a", 1)], chunk_rows);
        }
        files.old = FILES.map(|name| std::fs::read(files.root().join("in").join(name)).unwrap()).to_vec();
        let (code, _, reported) = files.run(None);
        assert_eq!(code, 0, "{reported}");
        files.new = files.found().into_iter().map(Option::unwrap).collect();
        files
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// Restores the inputs and removes everything else.
    fn reset(&self) {
        let root = self.root();
        for folder in ["in", "out"] {
            let _ = std::fs::remove_dir_all(root.join(folder));
        }
        std::fs::create_dir(root.join("in")).unwrap();
        for (name, old) in FILES.iter().zip(&self.old) {
            std::fs::write(root.join("in").join(name), old).unwrap();
        }
    }

    /// Returns the contents under the names of the outputs.
    fn found(&self) -> Vec<Option<Vec<u8>>> {
        self.names.iter().map(|name| std::fs::read(self.root().join(self.outputs).join(name)).ok()).collect()
    }

    fn leftovers(&self) -> Vec<String> {
        let names = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let all = names(&self.root().join("in")).into_iter().chain(names(&self.root().join("out")));
        all.filter(|name| name.starts_with('.')).collect()
    }

    /// Runs the command; returns its exit code (the negative signal), the faults that happened, and the messages.
    fn run(&self, fault: Option<&Fault>) -> (i32, Vec<String>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
        command.current_dir(self.folder.path()).args(&self.arguments).stdin(Stdio::null());
        let log = self.log.path().join("log");
        if let Some(fault) = fault {
            faults::arm(&mut command, fault, &self.root(), &log);
        }
        let output = command.output().unwrap();
        let code = output.status.code().unwrap_or_else(|| -output.status.signal().unwrap());
        (code, faults::struck(&log), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Strikes calls in turn; returns the number of runs that were struck, and how many of them had finished files
    /// which the next run did not write again.
    fn strike_calls(&self, action: &Action, codes: &[i32]) -> (u64, u64) {
        let (mut runs, mut resumed) = (0, 0);
        for at in (1..).step_by(distance(2)) {
            self.reset();
            let fault = Fault { calls: CHANGING, at, sticky: false, action: action.clone() };
            let (code, struck, reported) = self.run(Some(&fault));
            if struck.is_empty() {
                assert_eq!(code, 0, "{reported}");
                break;
            }
            runs += 1;
            assert!(codes.contains(&code), "{fault:?}: {code} {struck:?} {reported}");
            for (place, found) in self.found().iter().enumerate() {
                let old = Some(&self.old[place]).filter(|_| self.outputs == "in");
                assert!(found.as_ref() == old || found.as_ref() == Some(&self.new[place]), "{struck:?}: file {place}");
            }
            let (code, _, reported) = self.run(None);
            // A run that was struck after it had removed its record was complete.
            let all_exist = format!("{} of the outputs exist", self.names.len());
            let is_complete = code == 5 && reported.contains(&all_exist) && self.outputs == "out";
            assert!(code == 0 || is_complete, "{struck:?}: {reported}");
            assert_eq!(self.found(), self.new.iter().cloned().map(Some).collect::<Vec<_>>(), "{struck:?}");
            assert!(self.leftovers().is_empty(), "{struck:?}: {:?}", self.leftovers());
            resumed += u64::from(reported.contains("resuming an interrupted run"));
        }
        (runs, resumed)
    }
}

#[test]
fn a_run_in_place_that_is_killed_at_any_call_is_completed() {
    let files = Files::new(&["rechunk", "in", "--in-place"], "in", 1024);
    let (runs, resumed) = files.strike_calls(&Action::Kill, &[-9]);
    assert!(runs > 12 && resumed > 3, "{resumed} of {runs} runs");
}

#[test]
fn a_run_with_other_options_in_between_is_not_taken_for_the_first() {
    let mut files = Files::new(&["rechunk", "in", "--in-place", "--chunk", "512rows"], "in", 1024);
    for at in (1..).step_by(distance(3)) {
        files.reset();
        let fault = Fault { calls: CHANGING, at, sticky: false, action: Action::Kill };
        let (_, struck, reported) = files.run(Some(&fault));
        if struck.is_empty() {
            break;
        }
        let rows = std::mem::replace(&mut files.arguments[4], "256rows");
        let (code, _, other) = files.run(None);
        assert_eq!(code, 0, "{struck:?}: {reported}, {other}");
        assert_ne!(files.found(), files.new.iter().cloned().map(Some).collect::<Vec<_>>(), "{struck:?}");
        files.arguments[4] = rows;
        let (code, _, again) = files.run(None);
        assert_eq!(code, 0, "{struck:?}: {again}");
        assert_eq!(files.found(), files.new.iter().cloned().map(Some).collect::<Vec<_>>(), "{struck:?}: {again}");
    }
}

#[test]
fn a_run_to_a_folder_that_is_killed_at_any_call_is_completed() {
    let files = Files::new(&["rechunk", "in", "--dir", "out"], "out", 1024);
    let (runs, resumed) = files.strike_calls(&Action::Kill, &[-9]);
    assert!(runs > 12 && resumed > 3, "{resumed} of {runs} runs");
}

#[test]
fn a_split_that_is_killed_at_any_call_is_completed() {
    let arguments = ["split", "in", "--by", "variable", "--dir", "out"];
    let files = Files::named(&arguments, "out", &["x.h5", "table.a.h5"], 1024);
    let (runs, resumed) = files.strike_calls(&Action::Kill, &[-9]);
    assert!(runs > 10 && resumed > 2, "{resumed} of {runs} runs");
}

#[test]
fn a_full_device_stops_a_run_in_place_without_loss() {
    let files = Files::new(&["rechunk", "in", "--in-place"], "in", 1024);
    // Where a record or a journal cannot be written, the run continues without it.
    let (runs, _) = files.strike_calls(&Action::Fail(28), &[0, 5]);
    assert!(runs > 12, "{runs} runs");
}

#[test]
fn space_is_checked_before_anything_is_written() {
    let files = Files::new(&["rechunk", "in", "--dir", "out"], "out", 128 * 1024);
    std::fs::remove_dir_all(files.root().join("out")).unwrap();
    let of_all: u64 = files.old.iter().map(|old| old.len() as u64).sum();
    let folder = files.root().join("in");
    let mounted = match Mounted::new(&folder, 2 * of_all / 1024) {
        Ok(mounted) => mounted,
        Err(why) => return println!("skipped: a file system cannot be mounted here: {why}"),
    };
    for (name, old) in FILES.iter().zip(&files.old) {
        std::fs::write(folder.join(name), old).unwrap();
    }
    // There is space for one more file, but not for all.
    let mut in_place = Files { arguments: files.arguments.clone(), ..files };
    in_place.arguments[2] = "--dir=in/new";
    in_place.arguments.remove(3);
    std::fs::write(folder.join("ballast"), vec![1; of_all as usize / 2]).unwrap();
    let (code, _, reported) = in_place.run(None);
    assert_eq!(code, 5, "{reported}");
    assert!(reported.contains("the outputs need about") && reported.contains("are free"), "{reported}");
    assert!(!folder.join("new").exists());
    in_place.arguments[2] = "--in-place";
    let (code, _, reported) = in_place.run(None);
    assert_eq!(code, 0, "{reported}");
    std::fs::write(folder.join("more"), vec![1; of_all as usize]).unwrap_err();
    let (code, _, reported) = in_place.run(None);
    assert_eq!(code, 5, "{reported}");
    assert!(reported.contains("the largest files that are written at the same time need about"), "{reported}");
    assert_eq!(in_place.leftovers(), Vec::<String>::new());
    drop(mounted);
}
