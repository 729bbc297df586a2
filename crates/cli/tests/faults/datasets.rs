//! `raddle idx write` over an existing dataset: whichever call fails or is the last one, a reader finds all of the old
//! samples or all of the new ones. If the old dataset has a different layout, a reader may temporarily find none.

use crate::distance;
use crate::workload::raddle;
use raddle_core::cancel::CancelToken;
use raddle_core::ranks::communicator::SingleProcess;
use raddle_core::report::progress::{Silent, Watch};
use raddle_idx::dataset::region::copy_part;
use raddle_idx::dataset::sample::Number;
use raddle_idx::read::npy::NpyHead;
use raddle_idx::zarr::{FormOptions, ImageLayout, Images, ZarrWriter};
use raddle_idx::{BoxData, Dataset, Field, Header, IdxError, IfExists, SampleBox, WriteOptions, Writer};
use raddle_testing::faults::{self, Action, CHANGING, Fault};
use raddle_testing::power::{Change, changes};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const SHAPE: [u64; 3] = [20, 30, 25];
const BITS_PER_BLOCK: u32 = 9;

/// Dataset that exists before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// IDX with this number of bits per block.
    Idx(u32),
    /// IDX, with a part of the samples to be replaced.
    Box,
    /// OME-Zarr.
    Zarr,
}

/// Replaced part, slowest axis first.
const PART: [std::ops::Range<u64>; 3] = [4..9, 0..30, 7..20];

/// Content that a reader finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Old,
    New,
    Nothing,
}

/// The old samples, and those of the input.
struct Datasets {
    kind: Kind,
    folder: TempDir,
    root: PathBuf,
    old: Vec<u8>,
    new: Vec<u8>,
    options: &'static [&'static str],
}

impl Datasets {
    fn new(kind: Kind, options: &'static [&'static str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The shim compares with the paths reported by the kernel.
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("out")).unwrap();
        let samples =
            |step: u32| (0..SHAPE.iter().product::<u64>() as u32).flat_map(move |at| (at / step).to_le_bytes());
        let (old, mut new): (Vec<u8>, Vec<u8>) = (samples(3).collect(), samples(5).collect());
        let (mut shape, mut input) = (SHAPE, new.clone());
        if kind == Kind::Box {
            shape = PART.map(|range| range.end - range.start);
            let (whole, counts) = (new, |of: [u64; 3]| [of[2], of[1], of[0]]);
            let domain = SampleBox::new(&[0; 3], &counts(SHAPE));
            let part = SampleBox::new(&counts(PART.map(|range| range.start)), &counts(shape));
            input = vec![0; shape.iter().product::<u64>() as usize * 4];
            copy_part((&domain, &whole), (&part, &mut input), &part, 4).unwrap();
            new = old.clone();
            copy_part((&domain, &whole), (&domain, &mut new), &part, 4).unwrap();
        }
        std::fs::write(root.join("new.npy"), [NpyHead::to_bytes(Number::Uint32, &shape), input].concat()).unwrap();
        Self { kind, folder, root, old, new, options }
    }

    fn name(&self) -> &'static str {
        if self.kind == Kind::Zarr { "d.zarr" } else { "d.idx" }
    }

    fn output(&self) -> PathBuf {
        self.root.join("out").join(self.name())
    }

    /// Removes everything except the old dataset from the output's folder.
    fn reset(&self) {
        std::fs::remove_dir_all(self.root.join("out")).unwrap();
        std::fs::create_dir(self.root.join("out")).unwrap();
        let counts: Vec<u64> = SHAPE.iter().rev().copied().collect();
        let options = WriteOptions { existing: IfExists::Replace, jobs: 1, ..WriteOptions::default() };
        let bits_per_block = if let Kind::Idx(bits) = self.kind { bits } else { BITS_PER_BLOCK };
        if self.kind == Kind::Zarr {
            let fields = vec![("new".to_owned(), "uint32".parse().unwrap())];
            let form = ImageLayout::new(&counts, fields, &FormOptions::default()).unwrap();
            let patches = vec![BoxData { region: form.domain(), arrays: vec![self.old.as_slice().into()] }];
            let mut writer = ZarrWriter::new(&self.output(), form, options).unwrap();
            let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
            let mut report = writer.write_collective(patches, &watch, &SingleProcess).unwrap();
            writer.publish(&mut report, &SingleProcess).unwrap();
            return;
        }
        let field = Field::new("new", "uint32".parse().unwrap())
            .with("default_layout", "row_major")
            .with("default_compression", "zip");
        let mut header = Header::new("d", &counts, vec![field]).unwrap();
        (header.bits_per_block, header.blocks_per_file) = (bits_per_block, 16);
        Writer::new(&self.output(), header, options).unwrap().write(None, &[&self.old]).unwrap();
    }

    fn command(&self) -> Command {
        let arguments = ["idx", "write", "new.npy", "-j", "1", "--progress", "never", "-o"];
        let mut command = raddle(&self.root, &arguments);
        command.stdin(Stdio::null()).arg(Path::new("out").join(self.name())).args(self.options);
        match self.kind {
            Kind::Idx(_) => {
                command.args(["-f", "--bits-per-block", &BITS_PER_BLOCK.to_string(), "--blocks-per-file", "16"])
            }
            Kind::Box => command.args(["--name", "new", "--into", "z=4:9,x=7:20"]),
            Kind::Zarr => command.args(["-f", "--chunk", "8x8x8", "--shard", "16x16x16"]),
        };
        command
    }

    /// Reads the dataset: nothing, or all of the old or new samples.
    fn found(&self, context: &dyn std::fmt::Debug) -> Found {
        let read = match self.kind {
            Kind::Idx(_) | Kind::Box => {
                Dataset::open(&self.output()).and_then(|dataset| dataset.read(&dataset.whole(0)))
            }
            Kind::Zarr => Images::open(&self.output()).and_then(|images| {
                let image = &images.images[0];
                let check = image.check(1, &CancelToken::new())?;
                assert!(check.bad.is_empty() && check.levels_compared, "{context:?}: {check:?}");
                image.read(0, &image.domain(0))
            }),
        };
        let samples = match read {
            Err(IdxError::Read { source, path, .. })
                if source.kind() == ErrorKind::NotFound && (path == self.output() || !self.output().exists()) =>
            {
                return Found::Nothing;
            }
            read => read.unwrap_or_else(|error| panic!("{context:?}: {error}")),
        };
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

    /// Returns the names that exist after success.
    fn whole(&self) -> &'static [&'static str] {
        if self.kind == Kind::Zarr { &["d.zarr"] } else { &["d", "d.idx"] }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Runs with a fault; returns the exit code, the calls that were hit, and the output.
    fn run_with(&self, fault: &Fault) -> (Option<i32>, Vec<String>, String) {
        let mut command = self.command();
        faults::arm(&mut command, fault, &self.root.join("out"), &self.log());
        let output = command.output().unwrap();
        (output.status.code(), faults::struck(&self.log()), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Options of a run that does not sync to disk.
const UNSYNCED: &[&str] = &["--no-sync"];

/// Applies `action` at every `step`-th call over a dataset; returns the number of calls.
fn strike(action: &Action, step: usize, kind: Kind, options: &'static [&'static str]) -> u64 {
    let datasets = Datasets::new(kind, options);
    for at in (1..).step_by(step) {
        datasets.reset();
        let fault = Fault { calls: CHANGING, at, sticky: false, action: action.clone() };
        let (code, struck, reported) = datasets.run_with(&fault);
        let context = (&fault, &struck, &reported, code);
        let found = datasets.found(&context);
        assert!(found != Found::Nothing || matches!(kind, Kind::Idx(bits) if bits != BITS_PER_BLOCK), "{context:?}");
        if struck.is_empty() {
            assert!(code == Some(0) && found == Found::New, "{context:?}");
            assert_eq!(datasets.left(), datasets.whole(), "{context:?}");
            return at;
        }
        match code {
            Some(0) => assert_eq!(found, Found::New, "{context:?}"),
            Some(5) => assert!(reported.contains("No space left on device"), "{context:?}"),
            None => assert_eq!(*action, Action::Kill, "{context:?}"),
            _ => panic!("{context:?}"),
        }
        // Leftovers never lock anyone out.
        let again = datasets.command().output().unwrap();
        assert!(again.status.success() && datasets.found(&context) == Found::New, "{context:?}: {again:?}");
        assert_eq!(datasets.left(), datasets.whole(), "{context:?}");
    }
    unreachable!("the loop ends where no call is left");
}

#[test]
fn a_call_that_fails_leaves_the_old_samples_or_the_new() {
    let calls = strike(&Action::Fail(ENOSPC), 1, Kind::Idx(BITS_PER_BLOCK), &[]);
    assert!(calls > 12, "only {calls} calls were counted");
}

#[test]
fn a_kill_leaves_the_old_samples_or_the_new() {
    strike(&Action::Kill, distance(2), Kind::Idx(BITS_PER_BLOCK), &[]);
}

#[test]
fn a_part_is_replaced_or_not_whatever_call_fails_or_is_the_last() {
    for (action, options) in [(Action::Fail(ENOSPC), &[][..]), (Action::Kill, &[]), (Action::Kill, UNSYNCED)] {
        let calls = strike(&action, distance(2), Kind::Box, options);
        assert!(calls > 12, "only {calls} calls were counted");
    }
}

#[test]
fn no_header_of_another_layout_describes_new_blocks() {
    strike(&Action::Kill, 1, Kind::Idx(BITS_PER_BLOCK - 1), &[]);
}

#[test]
fn an_ome_zarr_folder_is_the_old_or_the_new_whatever_call_fails() {
    let calls = strike(&Action::Fail(ENOSPC), distance(3), Kind::Zarr, &[]);
    assert!(calls > 12, "only {calls} calls were counted");
}

#[test]
fn an_ome_zarr_folder_is_the_old_or_the_new_whatever_call_is_the_last() {
    strike(&Action::Kill, distance(3), Kind::Zarr, &[]);
}

#[test]
fn without_waiting_for_the_disk_a_call_that_fails_or_is_the_last_leaves_the_old_samples_or_the_new() {
    for kind in [Kind::Idx(BITS_PER_BLOCK), Kind::Idx(BITS_PER_BLOCK - 1), Kind::Zarr] {
        for action in [Action::Fail(ENOSPC), Action::Kill] {
            let calls = strike(&action, distance(3), kind, UNSYNCED);
            assert!(calls > 8, "only {calls} calls were counted");
        }
    }
}

#[test]
fn the_disk_is_waited_for_or_never_and_the_files_are_the_same() {
    for kind in [Kind::Idx(BITS_PER_BLOCK), Kind::Idx(BITS_PER_BLOCK - 1), Kind::Zarr] {
        let runs = [&[], UNSYNCED].map(|options| {
            let datasets = Datasets::new(kind, options);
            datasets.reset();
            let out = datasets.root.join("out");
            let mut command = datasets.command();
            faults::trace(&mut command, &out, &datasets.log());
            assert!(command.status().unwrap().success());
            let changes = changes(&datasets.log());
            let syncs = changes.iter().filter(|change| matches!(change, Change::Sync { .. })).count();
            let others = changes.iter().filter(|change| !matches!(change, Change::Sync { .. }));
            let (mut writes, names): (Vec<_>, Vec<_>) = others
                .map(|change| format!("{change:?}").replace(&*out.to_string_lossy(), ""))
                .partition(|change| change.starts_with("Write"));
            // Blocks are written by one thread, tables by another.
            writes.sort();
            assert_eq!(datasets.found(&kind), Found::New);
            (syncs, (names, writes))
        });
        let [(syncs, synced), (none, unsynced)] = runs;
        // A file, its folder and that of the dataset, the header; the folder of a replaced header.
        assert!(syncs > 3 && none == 0, "{kind:?}: {syncs} and {none} calls");
        // The same names in the same order, and the same writes.
        assert!(synced == unsynced, "{kind:?}: {synced:#?} {unsynced:#?}");
    }
}

/// Some file systems report a failed write only when the file is closed; without syncing, that is the last chance.
#[test]
fn without_waiting_for_the_disk_a_close_that_fails_is_reported() {
    for kind in [Kind::Idx(BITS_PER_BLOCK), Kind::Zarr] {
        let datasets = Datasets::new(kind, UNSYNCED);
        let mut of_written = 0;
        for at in 1.. {
            datasets.reset();
            let fault = Fault { calls: "close", at, sticky: false, action: Action::Fail(EIO) };
            let (code, struck, reported) = datasets.run_with(&fault);
            let context = (&fault, &struck, &reported, code);
            let found = datasets.found(&context);
            let Some(call) = struck.first() else {
                assert!(code == Some(0) && found == Found::New, "{context:?}");
                break;
            };
            // The others are the lock and the files read.
            let is_written = call.contains(".raddle-part/") || call.contains(".raddle-header");
            of_written += usize::from(is_written);
            match code {
                Some(5) => assert!(reported.contains("Input/output error"), "{context:?}"),
                code => assert!(code == Some(0) && found == Found::New && !is_written, "{context:?}"),
            }
        }
        assert!(of_written > 3, "{kind:?}: only {of_written} closes of written files");
    }
}

/// Runs over a file that is long enough to be flushed on the way, with a failing flush; also returns the number of
/// names in `out/`.
fn long_run(options: &[&str]) -> (Option<i32>, Vec<String>, String, usize) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("out")).unwrap();
    let shape = [96, 256, 256];
    let values = vec![7; shape.iter().product::<u64>() as usize * 4];
    std::fs::write(root.join("new.npy"), [NpyHead::to_bytes(Number::Uint32, &shape), values].concat()).unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("raddle"));
    command.current_dir(&root).args(["idx", "write", "new.npy", "-o", "out/d.idx", "-c", "none"]);
    command.args(["--progress", "never"]).args(options);
    let fault = Fault { calls: "fdatasync", at: 1, sticky: false, action: Action::Fail(EIO) };
    let log = root.join("log");
    faults::arm(&mut command, &fault, &root.join("out"), &log);
    let output = command.output().unwrap();
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    let left = std::fs::read_dir(root.join("out")).unwrap().count();
    (output.status.code(), faults::struck(&log), reported, left)
}

/// The system reports the failure of a flush only once: the fsync at the end does not see it again.
#[test]
fn a_flush_that_fails_on_the_way_is_reported_at_the_end() {
    let (code, struck, reported, left) = long_run(&[]);
    assert_eq!((code, struck.len(), left), (Some(5), 1, 0), "{reported}");
    assert!(reported.contains("Input/output error") && reported.contains("0000.bin"), "{reported}");
}

#[test]
fn nothing_is_flushed_on_the_way_where_the_disk_is_not_waited_for() {
    let (code, struck, reported, left) = long_run(UNSYNCED);
    assert_eq!((code, struck.len(), left), (Some(0), 0, 2), "{reported}");
}
