//! Lists and steps of any storage give the listed elements, and cost no more than these need.

use crate::maker::{SampleDataset, Spec, Storage, make};
use raddle_hdf5::bulk::{AxisSelection, BulkReader, ReadOutcome, Request};
use raddle_hdf5::read::{DatasetSource, ReaderLimits};

const ROWS: u64 = 1_000_000;

/// Checks the elements of an axis; returns the number of bytes read.
fn check(sample: &SampleDataset, axis: AxisSelection, elements: impl Iterator<Item = u64>) -> u64 {
    let len = sample.dataset.datatype.class.len_bytes() as usize;
    let expected: Vec<u8> =
        elements.flat_map(|element| sample.values[element as usize * len..][..len].to_vec()).collect();
    let mut out = vec![0; expected.len()];
    let source = DatasetSource {
        file: &sample.file,
        encoding: sample.encoding,
        dataset: &sample.dataset,
        pipeline: &sample.pipeline,
    };
    let axes = [axis];
    let requests = vec![Request { source, axes: &axes, out: &mut out }];
    let outcome = BulkReader::new(1, ReaderLimits::default()).read(requests, &mut || true).unwrap();
    assert!(out == expected);
    let ReadOutcome::Complete(counts) = outcome else { panic!("stopped") };
    counts.stored_len_bytes
}

#[test]
fn few_elements_of_long_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let chunked = Storage::Chunked { shape: vec![ROWS / 2], partial_unfiltered: false };
    for (name, storage) in [("contiguous.h5", Storage::Contiguous), ("chunked.h5", chunked)] {
        let sample = make(&folder.path().join(name), &Spec::plain(&[ROWS], storage));
        // Elements that are far from each other are read alone.
        let far = vec![600_000, 7, 999_999];
        assert_eq!(check(&sample, AxisSelection::Listed(far.clone()), far.into_iter()), 3 * 4, "{name}");
        // Neighbours are read together.
        let near: Vec<u64> = (499_900..500_100).step_by(2).collect();
        let stored_len_bytes = check(&sample, AxisSelection::Listed(near.clone()), near.into_iter());
        assert!(stored_len_bytes <= 200 * 4, "{name}: {stored_len_bytes}");
        // So are all of a step that leaves short gaps.
        let steps = AxisSelection::Range { start: 3, count: ROWS / 7, step: 7 };
        let stored_len_bytes = check(&sample, steps, (3..).step_by(7).take((ROWS / 7) as usize));
        assert!(stored_len_bytes <= ROWS * 4, "{name}: {stored_len_bytes}");
    }
}
