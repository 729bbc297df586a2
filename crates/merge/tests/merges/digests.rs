//! Checks a merged file against its own digests: an untouched file is intact, and every changed byte of data is found,
//! with its dataset and rows.

use crate::watched::{merge_to, replacing, watched};
use proptest::prelude::*;
use raddle_core::report::progress::Stage;
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::model::{CreationOrder, Dataspace};
use raddle_merge::plan::chunk::Chunk;
use raddle_merge::verify::VerifyReport;
use raddle_merge::verify::digests::check::check;
use raddle_merge::{Compress, MergeError, MergeOptions, verify};
use raddle_testing::plain::{self, numbers, storage};
use raddle_testing::spec::{AttributeSpec, DatasetSpec, FileSpec, FilterSpec, ObjectSpec, What};
use raddle_testing::strategy::{SchemaOptions, files};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn check_file(path: &Path) -> Result<VerifyReport, MergeError> {
    watched(|watch| check(path, &MergeOptions { jobs: 1, ..MergeOptions::new("") }, watch))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn what_was_merged_is_intact(
        specs in files(SchemaOptions::default()),
        compress in prop_oneof![Just(Compress::default()), Just(Compress::Keep), Just(Compress::None)],
        rows in prop::option::of(1_u64..20),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        let output = folder.path().join("merged.h5");
        let chunk = rows.map(|rows| vec![rows]);
        merge_to(&output, &inputs, &MergeOptions { compress, chunk: chunk.map(Chunk::from), ..MergeOptions::new("") }).unwrap();
        prop_assert_eq!(check_file(&output).unwrap().mismatches, []);
        // Another layout of the same values has the same digests; a merge of a merge has its own.
        let again = folder.path().join("again.h5");
        merge_to(&again, &[output], &MergeOptions::new("")).unwrap();
        prop_assert_eq!(check_file(&again).unwrap().mismatches, []);
    }
}

fn ramp(rows: u32) -> Vec<u8> {
    (0..rows).flat_map(|row| (row * row * 7 + 3).to_le_bytes()).collect()
}

fn texts(rows: u32) -> Vec<u8> {
    let canonical = |text: String| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    (0..rows).flat_map(|row| canonical(format!("event {row}"))).collect()
}

/// Returns a file with a chunked, a contiguous, a small and a variable-length dataset, a scalar, attributes and links.
fn small_file(rows: u32) -> FileSpec {
    let unit = AttributeSpec {
        name: b"unit".to_vec(),
        class: Arc::new(numbers::i32()),
        dataspace: Dataspace::Scalar,
        values: 17_i32.to_le_bytes().to_vec(),
    };
    let mut column = DatasetSpec::plain(numbers::u32(), &[rows.into(), 1], ramp(rows))
        .chunked(&[16, 1], &[FilterSpec::Deflate(6)])
        .at("/table/column");
    column.attributes.push(unit);
    let scalar = DatasetSpec { dataspace: Dataspace::Scalar, ..DatasetSpec::plain(numbers::f64(), &[1], vec![7; 8]) };
    FileSpec {
        objects: vec![
            ObjectSpec { path: b"/table".to_vec(), what: What::Group(CreationOrder::default()), attributes: vec![] },
            column,
            DatasetSpec::plain(numbers::u32(), &[rows.into()], ramp(rows)).at("/table/plain"),
            DatasetSpec::plain(numbers::text(), &[rows.into()], texts(rows)).at("/texts"),
            scalar.at("/scalar"),
            ObjectSpec::link("/soft", What::SoftLink(b"/table/column".to_vec())),
            ObjectSpec::link("/z hard", What::HardLink(b"/table/column".to_vec())),
        ],
        ..FileSpec::default()
    }
}

struct Merged {
    _folder: tempfile::TempDir,
    inputs: Vec<PathBuf>,
    output: PathBuf,
    bytes: Vec<u8>,
}

fn merged(compress: Compress) -> Merged {
    let folder = tempfile::tempdir().unwrap();
    let inputs = plain::make_all(folder.path(), &[small_file(40), small_file(25)]).unwrap();
    let output = folder.path().join("merged.h5");
    let chunk = Some(vec![16]);
    merge_to(&output, &inputs, &MergeOptions { compress, chunk: chunk.map(Chunk::from), ..MergeOptions::new("") })
        .unwrap();
    let bytes = std::fs::read(&output).unwrap();
    Merged { _folder: folder, inputs, output, bytes }
}

impl Merged {
    fn flipped(&self, at: usize) -> Result<VerifyReport, MergeError> {
        let mut bytes = self.bytes.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&self.output, bytes).unwrap();
        check_file(&self.output)
    }
}

#[test]
fn a_changed_value_is_found_by_comparing_with_the_inputs() {
    let merged = merged(Compress::None);
    let plain = storage::data_address(&merged.output, b"/table/plain").unwrap() as usize;
    // First and last rows of both inputs.
    for (row, input) in [(0, 0), (39, 0), (40, 1), (64, 1)] {
        let mut bytes = merged.bytes.clone();
        bytes[plain + 4 * row + 1] ^= 0x10;
        std::fs::write(&merged.output, bytes).unwrap();
        let options = MergeOptions::new("");
        let report = watched(|watch| verify(&merged.output, &merged.inputs, &options, watch)).unwrap();
        let [mismatch] = report.mismatches.as_slice() else { panic!("row {row}: {:?}", report.mismatches) };
        assert_eq!((mismatch.path.as_str(), mismatch.row), ("/table/plain", Some(row as u64)));
        assert_eq!(mismatch.input.as_ref(), Some(&merged.inputs[input]));
    }
}

#[test]
fn every_changed_byte_of_data_is_found_with_its_rows_and_input() {
    for compress in [Compress::None, Compress::default()] {
        let merged = merged(compress);
        let chunks = storage::chunks(&merged.output, b"/table/column").unwrap();
        assert_eq!(chunks.len(), 5);
        for chunk in &chunks {
            let mut meaningless = 0;
            for at in chunk.address..chunk.address + chunk.len_bytes {
                let report = merged.flipped(at as usize).unwrap();
                // Rows after the last one are not data.
                if compress == Compress::None && chunk.origin[0] == 64 && at >= chunk.address + 4 {
                    assert_eq!(report.mismatches, [], "byte {at}");
                    continue;
                }
                let Some(mismatch) = report.mismatches.first() else {
                    meaningless += 1;
                    continue;
                };
                assert_eq!((mismatch.path.as_str(), report.mismatches.len()), ("/table/column", 1), "byte {at}");
                assert!(mismatch.what.starts_with("rows 0 to 64 "), "{}", mismatch.what);
                assert_eq!(mismatch.input.as_ref(), Some(&merged.inputs[0]));
            }
            // The last byte of a deflate stream may hold unused bits.
            assert!(meaningless <= u32::from(compress == Compress::default()), "{meaningless} changes not found");
        }
        let plain = storage::data_address(&merged.output, b"/table/plain").unwrap() as usize;
        for at in (plain..plain + 65 * 4).step_by(3) {
            let report = merged.flipped(at).unwrap();
            assert_eq!(report.mismatches.len(), 1, "byte {at}");
            assert_eq!(report.mismatches[0].path, "/table/plain");
        }
    }
}

#[test]
fn a_changed_byte_anywhere_is_found_or_means_nothing() {
    let merged = merged(Compress::default());
    let mut outcomes: HashMap<&str, u32> = HashMap::new();
    for at in (0..merged.bytes.len()).step_by(5) {
        let outcome = match merged.flipped(at) {
            Err(_) => "refused",
            Ok(report) if !report.mismatches.is_empty() => "found",
            Ok(_) => {
                let options = MergeOptions { jobs: 1, ..MergeOptions::new("") };
                let report = watched(|watch| verify(&merged.output, &merged.inputs, &options, watch)).unwrap();
                assert_eq!(report.mismatches, [], "byte {at} changed what a reader sees, and was not found");
                "means nothing"
            }
        };
        *outcomes.entry(outcome).or_default() += 1;
    }
    assert!(outcomes["refused"] > 100 && outcomes["found"] > 100, "{outcomes:?}");
}

#[test]
fn a_change_of_the_digests_themselves_is_distinguished() {
    let merged = merged(Compress::default());
    for table in ["block_digest", "datasets/digest", "row_starts", "objects/structure", "inputs/len_bytes"] {
        let path = format!("/_raddle/{table}");
        let at = storage::data_address(&merged.output, path.as_bytes()).unwrap() as usize;
        let report = merged.flipped(at).unwrap();
        assert_eq!(report.mismatches.len(), 1, "{table}");
        assert_eq!(report.mismatches[0].path, "/_raddle", "{table}");
        std::fs::write(&merged.output, &merged.bytes).unwrap();
    }
}

#[test]
fn damage_is_located_to_a_block_of_rows_and_its_input() {
    let folder = tempfile::tempdir().unwrap();
    // 4,500 rows of 1 KiB: 70 rows per block.
    let part = |rows: u64| FileSpec {
        objects: vec![DatasetSpec::plain(numbers::u8(), &[rows, 1024], vec![3; rows as usize * 1024]).at("/maps")],
        ..FileSpec::default()
    };
    let inputs = plain::make_all(folder.path(), &[part(1500), part(3000)]).unwrap();
    let output = folder.path().join("merged.h5");
    merge_to(&output, &inputs, &MergeOptions { compress: Compress::None, ..MergeOptions::new("") }).unwrap();
    assert_eq!(check_file(&output).unwrap().mismatches, []);
    let mut bytes = std::fs::read(&output).unwrap();
    for chunk in storage::chunks(&output, b"/maps").unwrap() {
        let rows = chunk.origin[0]..chunk.origin[0] + chunk.len_bytes / 1024;
        for row in [100, 2500, 2520, 3100].into_iter().filter(|row| rows.contains(row)) {
            bytes[(chunk.address + (row - rows.start) * 1024) as usize] ^= 1;
        }
    }
    std::fs::write(&output, bytes).unwrap();
    let report = check_file(&output).unwrap();
    let found: Vec<_> =
        report.mismatches.iter().map(|mismatch| (mismatch.what.as_str(), mismatch.input.as_ref())).collect();
    assert_eq!(
        found,
        [
            ("rows 70 to 139 differ from what was written", Some(&inputs[0])),
            ("rows 2450 to 2589 differ from what was written", Some(&inputs[1])),
            ("rows 3080 to 3149 differ from what was written", Some(&inputs[1])),
        ]
    );
}

#[test]
fn a_file_without_digests_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = plain::make_all(folder.path(), &[small_file(4)]).unwrap();
    assert!(matches!(check_file(&inputs[0]), Err(MergeError::NoDigests { .. })));
    let output = folder.path().join("merged.h5");
    merge_to(&output, &inputs, &MergeOptions { provenance: false, ..MergeOptions::new("") }).unwrap();
    assert!(matches!(check_file(&output), Err(MergeError::NoDigests { .. })));
}

#[test]
fn a_file_that_is_replaced_during_the_check_is_not_called_damaged() {
    for stage in [Stage::Scan, Stage::Verify] {
        for is_against_inputs in [false, true] {
            let merged = merged(Compress::None);
            let new = merged.output.with_extension("new");
            let reversed: Vec<PathBuf> = merged.inputs.iter().rev().cloned().collect();
            merge_to(&new, &reversed, &MergeOptions::new("")).unwrap();
            let options = MergeOptions::new(&merged.output);
            let outcome = replacing((&merged.output, &new), stage, 1, |watch| match is_against_inputs {
                true => verify(&merged.output, &merged.inputs, &options, watch),
                false => check(&merged.output, &options, watch),
            });
            assert!(!new.exists(), "{stage:?}");
            assert!(matches!(outcome, Err(MergeError::Hdf5(Hdf5Error::Changed { .. }))), "{stage:?}: {outcome:?}");
        }
    }
}
