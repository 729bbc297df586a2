//! A run with known output, repeated with faults, and the properties that must hold afterwards.

use raddle_codec::{Effort, EncodeState, Encoder};
use raddle_core::cancel::CancelToken;
use raddle_core::report::progress::Silent;
use raddle_events::pds::{PdsCodec, PdsOptions, PdsSink};
use raddle_events::sources::generated::{RandomOptions, RandomProducts, SizeLaw};
use raddle_events::{ConvertOptions, convert};
use raddle_hdf5::default_format::{DefaultDatasetSpec, DefaultFormatFile, Element};
use raddle_testing::faults::{self, Fault};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Content under the output's name before the run.
pub const OLD: &[u8] = b"what was there before";

/// Outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Exit code, or the signal that killed it, negative.
    pub code: i32,
    /// Standard output and standard error.
    pub reported: String,
    /// The faults that happened.
    pub struck: Vec<String>,
}

/// Creates a `raddle` command in a folder.
pub fn raddle(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("raddle"));
    command.current_dir(root).env("NO_COLOR", "1").args(arguments);
    command
}

/// Runs a command to completion; `log` is the log of its faults.
pub fn run(mut command: Command, log: &Path) -> Outcome {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let reported = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let code = output.status.code().or(output.status.signal().map(|signal| -signal)).unwrap();
    Outcome { code, reported, struck: faults::struck(log) }
}

/// Inputs in `in/`, outputs in `out/`, and the right output.
pub struct Workload {
    folder: TempDir,
    root: PathBuf,
    right: Vec<u8>,
    arguments: Vec<&'static str>,
}

/// Returns numbers that compress only moderately.
fn numbers(seed: u32, count: u64) -> Vec<u8> {
    let mut state = seed;
    let next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 20).to_le_bytes()
    };
    std::iter::repeat_with(next).take(count as usize).flatten().collect()
}

/// Writes a file with datasets of distinct chunks of `chunk_rows` numbers each. Datasets with names ending in
/// "unfiltered" are stored without filters, so no checksum detects a change.
pub fn make(path: &Path, seed: u32, datasets: &[(&str, u64)], chunk_rows: u64) {
    let mut file = DefaultFormatFile::create(path).unwrap();
    file.create_group(b"/table").unwrap();
    let encoder = Encoder::plain(Effort::Fast, 4);
    for (place, (name, chunks)) in (0..).zip(datasets) {
        let (dims, chunk_shape) = (vec![chunks * chunk_rows, 1], vec![chunk_rows, 1]);
        let spec = DefaultDatasetSpec { element: Element::U32, dims, chunk_shape, gzip_level: 1 };
        let mut dataset = file.create_dataset(name.as_bytes(), &spec).unwrap();
        for chunk in 0..*chunks {
            let mut stored = Vec::new();
            let raw = numbers(seed * 1000 + place * 100 + chunk as u32, chunk_rows);
            let filter_mask = if name.ends_with("unfiltered") {
                stored.extend_from_slice(&raw);
                1
            } else {
                encoder.encode(&mut EncodeState::default(), &raw, &mut stored).unwrap()
            };
            dataset.write_chunk(&[chunk * chunk_rows, 0], &stored, filter_mask).unwrap();
        }
        drop(dataset);
    }
    file.finish().unwrap();
}

/// A ROOT file with a tree of 12 entries, `events`; its generator is stored next to it.
pub const TREE: &[u8] = include_bytes!("../../../root/tests/samples/split.root");

/// Writes a stream of events.
fn make_stream(path: &Path, seed: u64) {
    let size = SizeLaw::Exponential { mean_len_bytes: 40 };
    let source = RandomProducts::new(RandomOptions { len_entries: 2000, products: 3, size, seed });
    let schema = raddle_events::Source::schema(&source);
    let sink = PdsSink::begin(path, schema, PdsOptions { codec: PdsCodec::None, replace: false }).unwrap();
    convert(&source, sink, &ConvertOptions::default(), &Silent, &CancelToken::default()).unwrap();
}

impl Workload {
    /// Creates `files` inputs with a dataset of `chunks` chunks of 64 KiB and some small ones.
    pub fn new(files: u32, chunks: u64, options: &[&'static str]) -> Self {
        let arguments = ["merge", "in", "-o", "out/out.h5", "-f", "--progress", "never"];
        let workload = Self::of(&[&arguments, options].concat(), |inputs| {
            for file in 0..files {
                let datasets = [("/large", chunks), ("/table/a", 1), ("/table/unfiltered", 1)];
                make(&inputs.join(format!("{file}.h5")), file, &datasets, 16 * 1024);
            }
        });
        let verified = workload.run(workload.raddle(&["verify", "out/out.h5", "--against", "in", "-q"]));
        assert_eq!(verified.code, 0, "{}", verified.reported);
        workload
    }

    /// Creates two inputs with events that become one file, using one thread: ROOT files if the arguments are those of
    /// columns or RNTuples, otherwise streams. `arguments` select the layout.
    pub fn of_events(arguments: &[&'static str]) -> Self {
        let inputs = ["in/*", "-o", "out/out.h5", "-f", "--progress", "never", "-j", "1"];
        Self::of(&[&["events"], arguments, &inputs].concat(), |inputs| {
            for seed in 0..2 {
                if ["columns", "rntuple"].iter().any(|layout| arguments.contains(layout)) {
                    std::fs::write(inputs.join(format!("{seed}.root")), TREE).unwrap();
                } else {
                    make_stream(&inputs.join(format!("{seed}.pds")), seed);
                }
            }
        })
    }

    /// Runs `raddle` with these arguments, which write `out/out.h5` from the files that `make` creates in `in/`.
    pub fn of(arguments: &[&'static str], make: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The shim compares with the paths reported by the kernel.
        let root = folder.path().canonicalize().unwrap();
        for name in ["in", "out"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        make(&root.join("in"));
        let mut workload = Self { folder, root, right: Vec::new(), arguments: arguments.to_vec() };
        let outcome = workload.run(workload.command());
        assert_eq!(outcome.code, 0, "{arguments:?}: {}", outcome.reported);
        workload.right = std::fs::read(workload.output()).unwrap();
        workload
    }

    /// Creates a small workload for faults at every call: one thread, six batches.
    pub fn small() -> Self {
        Self::new(2, 12, &["-j", "1", "-c", "fast"])
    }

    /// Creates a workload that takes about a second.
    pub fn long() -> Self {
        Self::new(3, 200, &[])
    }

    /// Returns the folder of inputs and outputs.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the final path.
    pub fn output(&self) -> PathBuf {
        self.root.join("out/out.h5")
    }

    /// Returns the path of the temporary file.
    pub fn part(&self) -> PathBuf {
        self.root.join("out/.out.h5.raddle-part")
    }

    /// Returns the path of the journal.
    pub fn journal(&self) -> PathBuf {
        self.root.join("out/.out.h5.raddle-journal")
    }

    /// Returns the names in `out/`, sorted.
    pub fn left(&self) -> Vec<OsString> {
        let entries = std::fs::read_dir(self.root.join("out")).unwrap();
        let mut names: Vec<OsString> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    /// Removes everything from `out/` except an old file under the output's name.
    pub fn reset(&self) {
        for name in self.left() {
            let path = self.root.join("out").join(name);
            let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
            removed.unwrap();
        }
        std::fs::write(self.output(), OLD).unwrap();
    }

    /// Creates a `raddle` command in the root folder.
    pub fn raddle(&self, arguments: &[&str]) -> Command {
        raddle(&self.root, arguments)
    }

    /// Creates the command of the workload.
    pub fn command(&self) -> Command {
        self.raddle(&self.arguments)
    }

    /// Runs with a fault on files under `under`, a folder of the root.
    pub fn run_with(&self, fault: &Fault, under: &str) -> Outcome {
        let mut command = self.command();
        faults::arm(&mut command, fault, &self.root.join(under), &self.log());
        self.run(command)
    }

    /// Returns the log of faults that happened.
    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Runs a command to completion.
    pub fn run(&self, command: Command) -> Outcome {
        run(command, &self.log())
    }

    /// Checks that the output is right and nothing else is left.
    pub fn assert_right(&self, context: &dyn std::fmt::Debug) {
        assert!(std::fs::read(self.output()).unwrap() == self.right, "{context:?}: the output is wrong");
        assert_eq!(self.left(), ["out.h5"], "{context:?}: something is left");
    }

    /// Whether the final name has the right output; it must have that or its previous content.
    pub fn is_right_or_untouched(&self, context: &dyn std::fmt::Debug) -> bool {
        let found = std::fs::read(self.output()).unwrap();
        assert!(found == OLD || found == self.right, "{context:?}: the final name was touched");
        found == self.right
    }

    /// Checks that nothing is left, or only what is needed to resume, which the message must then mention.
    pub fn assert_tidy(&self, outcome: &Outcome) {
        match self.left().as_slice() {
            [only] if only == "out.h5" => {}
            [journal, part, output] => {
                assert_eq!([journal, part, output], [".out.h5.raddle-journal", ".out.h5.raddle-part", "out.h5"]);
                assert!(outcome.reported.contains("are kept in"), "{outcome:?}");
            }
            other => panic!("{outcome:?}: {other:?} is left"),
        }
    }

    /// Checks that the same command without a fault produces the right output. Returns its messages.
    pub fn assert_resumes(&self, context: &dyn std::fmt::Debug) -> String {
        let again = self.run(self.command());
        assert_eq!(again.code, 0, "{context:?}: {}", again.reported);
        self.assert_right(context);
        again.reported
    }
}

/// Message of a run that resumes.
pub const GOES_ON: &str = "kept from an interrupted run";
