//! Inputs that are replaced while a merge is planned.

use crate::watched::replacing;
use raddle_core::report::progress::Stage;
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::model::Dataspace;
use raddle_merge::subset::DimensionRange;
use raddle_merge::{MergeError, MergeOptions, plan};
use raddle_testing::plain::{self, numbers};
use raddle_testing::spec::{AttributeSpec, DatasetSpec, FileSpec};
use std::sync::Arc;

/// Returns a file with a dataset whose dimension is labelled `row`.
fn labelled(first: u32) -> FileSpec {
    let values = (first..first + 10).flat_map(u32::to_le_bytes).collect();
    let mut dataset = DatasetSpec::plain(numbers::u32(), &[10], values).at("/x");
    dataset.attributes.push(AttributeSpec {
        name: b"DIMENSION_LABELS".to_vec(),
        class: Arc::new(numbers::text()),
        dataspace: Dataspace::Simple { dims: vec![1], max_dims: vec![1] },
        values: [&3_u64.to_le_bytes()[..], b"row"].concat(),
    });
    FileSpec { objects: vec![dataset], ..FileSpec::default() }
}

/// The elements are found in the files of the first scan, and the plan is made from those of the second one.
#[test]
fn elements_are_selected_in_the_files_that_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let files = plain::make_all(folder.path(), &[labelled(0), labelled(10), labelled(90)]).unwrap();
    let range: DimensionRange = "row=5:12".parse().unwrap();
    let options = MergeOptions { subset: vec![range], ..MergeOptions::new(folder.path().join("out.h5")) };
    let outcome = replacing((&files[0], &files[2]), Stage::Scan, 2, |watch| plan(&files[..2], &options, watch));
    assert!(!files[2].exists(), "the inputs are scanned once");
    assert!(matches!(outcome, Err(MergeError::Hdf5(Hdf5Error::Changed { .. }))), "{:?}", outcome.err());
}
