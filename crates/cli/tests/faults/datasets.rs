//! `raddle idx write` over a dataset that is there: whatever call fails or is the last one, a reader finds the old samples
//! or the new ones, all of them. Where the old one has another layout, it may find that there is none for the moment.

use raddle_idx::npy::NpyHead;
use raddle_idx::sample::Number;
use raddle_idx::{Dataset, Existing, Field, Header, IdxError, WriteOptions, Writer};
use raddle_testing::faults::{self, Action, CHANGING, Fault};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const ENOSPC: i32 = 28;
const SHAPE: [u64; 3] = [20, 30, 25];
const BITS_PER_BLOCK: u32 = 9;

/// What a reader finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Old,
    New,
    Nothing,
}

/// The samples before, and those of the input.
struct Datasets {
    folder: TempDir,
    root: PathBuf,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Datasets {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The shim compares with what the kernel says.
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("out")).unwrap();
        let samples =
            |step: u32| (0..SHAPE.iter().product::<u64>() as u32).flat_map(move |at| (at / step).to_le_bytes());
        let (old, new): (Vec<u8>, Vec<u8>) = (samples(3).collect(), samples(5).collect());
        std::fs::write(root.join("new.npy"), [NpyHead::to_bytes(Number::Uint32, &SHAPE), new.clone()].concat())
            .unwrap();
        Self { folder, root, old, new }
    }

    fn output(&self) -> PathBuf {
        self.root.join("out/d.idx")
    }

    /// Empties the output's folder but for the old dataset.
    fn reset(&self, bits_per_block: u32) {
        std::fs::remove_dir_all(self.root.join("out")).unwrap();
        std::fs::create_dir(self.root.join("out")).unwrap();
        let counts: Vec<u64> = SHAPE.iter().rev().copied().collect();
        let field = Field::new("new", "uint32".parse().unwrap())
            .with("default_layout", "row_major")
            .with("default_compression", "zip");
        let mut header = Header::new("d", &counts, vec![field]).unwrap();
        (header.bits_per_block, header.blocks_per_file) = (bits_per_block, 16);
        let options = WriteOptions { existing: Existing::Replace, jobs: 1, ..WriteOptions::default() };
        Writer::new(&self.output(), header, options).unwrap().write(None, &[&self.old]).unwrap();
    }

    fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("raddle"));
        let arguments = ["idx", "write", "new.npy", "-o", "out/d.idx", "-f", "-j", "1", "--progress", "never"];
        let layout = ["--bits-per-block", &BITS_PER_BLOCK.to_string(), "--blocks-per-file", "16"];
        command.current_dir(&self.root).env("NO_COLOR", "1").args(arguments).args(layout).stdin(Stdio::null());
        command
    }

    /// What a reader finds: nothing, or one of the two whole.
    fn found(&self, context: &dyn std::fmt::Debug) -> Found {
        let dataset = match Dataset::open(&self.output()) {
            Err(IdxError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => return Found::Nothing,
            opened => opened.unwrap_or_else(|error| panic!("{context:?}: {error}")),
        };
        let samples = dataset.read(&dataset.whole(0)).unwrap_or_else(|error| panic!("{context:?}: {error}"));
        assert!(samples == self.old || samples == self.new, "{context:?}: neither the old nor the new samples");
        if samples == self.new { Found::New } else { Found::Old }
    }

    fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join("out")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

/// Lets `action` happen at every `step`-th call over a dataset with so many bits per block; how many calls there are.
fn strike(action: &Action, step: usize, old_bits_per_block: u32) -> u64 {
    let datasets = Datasets::new();
    for at in (1..).step_by(step) {
        datasets.reset(old_bits_per_block);
        let fault = Fault { calls: CHANGING, at, sticky: false, action: action.clone() };
        let mut command = datasets.command();
        faults::arm(&mut command, &fault, &datasets.root.join("out"), &datasets.log());
        let output = command.output().unwrap();
        let (struck, told) = (faults::struck(&datasets.log()), String::from_utf8_lossy(&output.stderr).into_owned());
        let context = (&fault, &struck, &told, output.status);
        let found = datasets.found(&context);
        assert!(found != Found::Nothing || old_bits_per_block != BITS_PER_BLOCK, "{context:?}");
        if struck.is_empty() {
            assert!(output.status.success() && found == Found::New, "{context:?}");
            assert_eq!(datasets.left(), ["d", "d.idx"], "{context:?}");
            return at;
        }
        match output.status.code() {
            Some(0) => assert_eq!(found, Found::New, "{context:?}"),
            Some(5) => assert!(told.contains("No space left on device"), "{context:?}"),
            None => assert_eq!(*action, Action::Kill, "{context:?}"),
            _ => panic!("{context:?}"),
        }
        // Whatever is left keeps nobody out.
        let again = datasets.command().output().unwrap();
        assert!(again.status.success() && datasets.found(&context) == Found::New, "{context:?}: {again:?}");
        assert_eq!(datasets.left(), ["d", "d.idx"], "{context:?}");
    }
    unreachable!("the loop ends where no call is left");
}

#[test]
fn a_call_that_fails_leaves_the_old_samples_or_the_new() {
    let calls = strike(&Action::Fail(ENOSPC), 1, BITS_PER_BLOCK);
    assert!(calls > 12, "only {calls} calls were counted");
}

#[test]
fn a_kill_leaves_the_old_samples_or_the_new() {
    strike(&Action::Kill, 2, BITS_PER_BLOCK);
}

#[test]
fn no_header_of_another_layout_lies_beside_new_blocks() {
    strike(&Action::Kill, 1, BITS_PER_BLOCK - 1);
}
