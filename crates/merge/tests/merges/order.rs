//! Sorting files by their first values.

use crate::watched::watched;
use raddle_hdf5::model::ByteOrder;
use raddle_merge::inputs::order::{SortedInputs, sort};
use raddle_merge::{MergeError, MergeOptions};
use raddle_testing::plain::{self, numbers};
use raddle_testing::spec::{DatasetSpec, FileSpec, FilterSpec, ObjectSpec};

/// Returns a file whose `/spill/run` and `/spill/subrun` begin with these values; `None`: a file without rows.
fn file(first: Option<(i32, u16)>) -> FileSpec {
    let rows = if first.is_some() { 300 } else { 0 };
    let (run, subrun) = first.unwrap_or_default();
    let runs: Vec<u8> = (0..rows).flat_map(|row| (run + row).to_le_bytes()).collect();
    let subruns: Vec<u8> = (0..rows).flat_map(|row| (subrun + row as u16).to_be_bytes()).collect();
    FileSpec {
        objects: vec![
            ObjectSpec::group("/spill"),
            DatasetSpec::plain(numbers::i32(), &[rows as u64, 1], runs)
                .chunked(&[128, 1], &[FilterSpec::Deflate(6)])
                .at("/spill/run"),
            DatasetSpec::plain(numbers::integer(2, false, ByteOrder::Big), &[rows as u64], subruns).at("/spill/subrun"),
        ],
        ..FileSpec::default()
    }
}

#[test]
fn files_are_ordered_by_what_they_begin_with() {
    let folder = tempfile::tempdir().unwrap();
    let specs = [file(Some((5, 2))), file(None), file(Some((-3, 9))), file(Some((5, 1))), file(Some((5, 2)))];
    let inputs = plain::make_all(folder.path(), &specs).unwrap();
    let options = MergeOptions { jobs: 2, ..MergeOptions::new("") };
    let sorted = |columns: [&str; 2], descending| {
        let columns = columns.map(|column| column.as_bytes().to_vec());
        watched(|watch| sort(&inputs, &columns, descending, &options, watch))
    };
    let order = |places: [usize; 5]| SortedInputs {
        paths: places.map(|place| inputs[place].clone()).to_vec(),
        without_rows: vec![inputs[1].clone()],
    };
    assert_eq!(sorted(["/spill/run", "/spill/subrun"], false).unwrap(), order([2, 3, 0, 4, 1]));
    assert_eq!(sorted(["/spill/run", "/spill/subrun"], true).unwrap(), order([0, 4, 3, 2, 1]));
    let Err(MergeError::SortKeys { missing }) = sorted(["/spill/none", "/spill/run"], false) else { panic!() };
    assert_eq!(missing.len(), 5);
    assert_eq!((missing[0].dataset.as_str(), missing[0].reason), ("/spill/none", "does not exist"));
}
