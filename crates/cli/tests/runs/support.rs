//! Shared helpers: the command, its outcome, and small files.

use assert_cmd::Command;
use raddle_codec::{Effort, EncodeState, Encoder};
use raddle_hdf5::default_format::{DefaultDatasetSpec, DefaultFormatFile, Element};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;

/// Creates a `raddle` command in `folder` with `arguments`.
pub(crate) fn raddle(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("raddle").unwrap();
    command.current_dir(folder).env("NO_COLOR", "1").args(arguments);
    command
}

/// Runs a command; returns exit code, standard output, standard error.
pub(crate) fn outcome(mut command: Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Returns a stored chunk of `rows` numbers that compress only moderately.
fn stored_chunk(rows: u64) -> Vec<u8> {
    let mut state = 1_u32;
    let values = (0..rows).flat_map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 20).to_le_bytes()
    });
    let raw: Vec<u8> = values.collect();
    let encoder = Encoder::plain(Effort::Fast, 4);
    let mut stored = Vec::new();
    encoder.encode(&mut EncodeState::default(), &raw, &mut stored).unwrap();
    stored
}

/// Writes a file with one dataset of `chunks` equal chunks.
pub(crate) fn make(path: &Path, dataset: &str, chunks: u64, chunk_rows: u64) {
    make_several(path, &[], &[dataset], chunks, chunk_rows);
}

/// Writes a file with groups and datasets of `chunks` equal chunks.
pub(crate) fn make_several(path: &Path, groups: &[&str], datasets: &[&str], chunks: u64, chunk_rows: u64) {
    let stored = stored_chunk(chunk_rows);
    let mut file = DefaultFormatFile::create(path).unwrap();
    let (dims, chunk_shape) = (vec![chunks * chunk_rows, 1], vec![chunk_rows, 1]);
    let spec = DefaultDatasetSpec { element: Element::U32, dims, chunk_shape, gzip_level: 1 };
    groups.iter().for_each(|group| file.create_group(group.as_bytes()).unwrap());
    for dataset in datasets {
        let mut dataset = file.create_dataset(dataset.as_bytes(), &spec).unwrap();
        for chunk in 0..chunks {
            dataset.write_chunk(&[chunk * chunk_rows, 0], &stored, 0).unwrap();
        }
    }
    file.finish().unwrap();
}

/// Creates a folder with `a.h5` (200 rows) and `b.h5` (300 rows) of the dataset `/x`.
pub(crate) fn two_files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    make(&folder.path().join("a.h5"), "/x", 2, 100);
    make(&folder.path().join("b.h5"), "/x", 3, 100);
    folder
}

/// Returns the names in `folder`, sorted.
pub(crate) fn names(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<OsString> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}
