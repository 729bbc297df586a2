//! `raddle merge --preview`: whichever call fails or is the last one, an existing preview is that of the output next to
//! it, and the same command produces both.

use crate::distance;
use crate::workload::{GOES_ON, OLD, Outcome, Workload};
use raddle_hdf5::default_format::{DefaultDatasetSpec, DefaultFormatFile, Element};
use raddle_testing::faults::{Action, CHANGING, Fault};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const ENOSPC: i32 = 28;
const COLUMNS: u64 = 64;
const CHUNK_ROWS: u64 = 256;
const CHUNKS: u64 = 12;

/// File that names the output of a preview.
const OWNER: &str = ".preview-of";

/// Content of files below a folder, by path.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(folder: &Path) -> Files {
    let mut found = Files::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                // If removing it fails, it stays but locks nobody out.
                false if path.extension().is_some_and(|ending| ending == "raddle-lock") => {}
                false if path.ends_with(OWNER) => assert_eq!(std::fs::read(path).unwrap(), b"out.h5"),
                false => drop(found.insert(path.clone(), std::fs::read(path).unwrap())),
            }
        }
    }
    found
}

/// Writes a file with one array, whose values depend on the seed.
fn make(path: &Path, seed: u64) {
    let mut file = DefaultFormatFile::create(path).unwrap();
    let dims = vec![CHUNKS * CHUNK_ROWS, COLUMNS];
    let spec =
        DefaultDatasetSpec { element: Element::U32, dims, chunk_shape: vec![CHUNK_ROWS, COLUMNS], gzip_level: 1 };
    let mut dataset = file.create_dataset(b"/map", &spec).unwrap();
    for chunk in 0..CHUNKS {
        let first = (seed * CHUNKS + chunk) << 14;
        let numbers = (0..CHUNK_ROWS * COLUMNS).map(|number| ((first | number) as u32).wrapping_mul(2_654_435_761));
        let raw: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
        dataset.write_chunk(&[chunk * CHUNK_ROWS, 0], &raw, 1).unwrap();
    }
    drop(dataset);
    file.finish().unwrap();
}

/// A merge with a preview over an older output that has one, and the expected results.
struct Previewed {
    workload: Workload,
    right: Files,
}

impl Previewed {
    fn new() -> Self {
        let arguments = ["merge", "in", "-o", "out/out.h5", "-f", "--progress", "never", "-j", "1", "-c", "fast"];
        let preview = ["--preview", "--preview-samples", "4096"];
        let workload = Workload::of(&[&arguments[..], &preview].concat(), |inputs| {
            (0..2).for_each(|file| make(&inputs.join(format!("{file}.h5")), file));
        });
        let right = files(&workload.root().join("out/out.h5.preview"));
        assert!(right.len() == 2, "{right:?}");
        Self { workload, right }
    }

    fn folder(&self) -> PathBuf {
        self.workload.root().join("out/out.h5.preview")
    }

    fn reset(&self) {
        self.workload.reset();
        std::fs::create_dir_all(self.folder().join("map")).unwrap();
        std::fs::write(self.folder().join(OWNER), "out.h5").unwrap();
        std::fs::write(self.folder().join("map.idx"), OLD).unwrap();
        std::fs::write(self.folder().join("map/0000.bin"), OLD).unwrap();
    }

    /// Whether the merge is published; a preview, if there is one, must belong to the existing output.
    fn is_published(&self, context: &dyn std::fmt::Debug) -> bool {
        let is_published = self.workload.is_right_or_untouched(context);
        let found = files(&self.folder());
        let is_old = found.len() == 2 && found.values().all(|bytes| bytes == OLD);
        let fits = if is_published { found == self.right } else { is_old };
        assert!(fits || found.is_empty(), "{context:?}: published {is_published}, the preview is not of it");
        is_published
    }

    /// Checks that the same command produces both and leaves nothing else. Returns its output.
    fn assert_resumes(&self, context: &dyn std::fmt::Debug) -> String {
        let again = self.workload.run(self.workload.command());
        assert_eq!(again.code, 0, "{context:?}: {}", again.reported);
        assert!(self.is_published(context) && files(&self.folder()) == self.right, "{context:?}: {}", again.reported);
        assert_eq!(self.workload.left(), ["out.h5", "out.h5.preview"], "{context:?}: something is left");
        again.reported
    }

    /// Applies `action` at one call of each run, and passes the outcome to `look`; returns the number of these runs, and how
    /// many of the following runs resumed.
    fn struck(&self, action: &Action, look: impl Fn(&Outcome, bool)) -> (u64, u64) {
        let (mut runs, mut resumed) = (0, 0);
        for at in (1..).step_by(distance(3)) {
            self.reset();
            let fault = Fault { calls: CHANGING, at, sticky: false, action: action.clone() };
            let outcome = self.workload.run_with(&fault, "out");
            let context = (&fault, &outcome);
            if outcome.struck.is_empty() {
                assert_eq!(outcome.code, 0, "{context:?}");
                break;
            }
            runs += 1;
            let is_published = self.is_published(&context);
            look(&outcome, is_published);
            resumed += u64::from(self.assert_resumes(&context).contains(GOES_ON));
        }
        (runs, resumed)
    }
}

#[test]
fn a_preview_killed_at_any_call_is_of_its_output_and_made_again() {
    let previewed = Previewed::new();
    let (runs, resumed) = previewed.struck(&Action::Kill, |outcome, _| assert_eq!(outcome.code, -9));
    assert!(runs > 12 && resumed > 3, "{resumed} of {runs} runs went on");
}

#[test]
fn a_call_that_fails_leaves_the_older_output_with_its_preview() {
    let previewed = Previewed::new();
    let (runs, _) = previewed.struck(&Action::Fail(ENOSPC), |outcome, is_published| {
        let left = previewed.workload.left();
        let hidden = |name: &&std::ffi::OsString| {
            let name = name.to_string_lossy();
            name.starts_with(".out.h5.preview") && !name.ends_with("-lock")
        };
        let removing = outcome.struck.iter().any(|call| call.starts_with("unlink"));
        match outcome.code {
            0 => assert!(is_published, "{outcome:?}"),
            5 => {
                let says_complete = outcome.reported.contains("complete");
                assert!(is_published == says_complete, "{outcome:?}");
                let has_old = files(&previewed.folder()).values().any(|bytes| bytes == OLD);
                assert!(is_published || has_old, "{outcome:?}: the older preview is gone");
            }
            code => panic!("{code}: {outcome:?}"),
        }
        assert!(removing || left.iter().find(hidden).is_none(), "{outcome:?}: {left:?}");
    });
    assert!(runs > 12, "{runs}");
}
