//! Any box of any dataset equals the same box of the values written.

use crate::maker::{Made, Spec, Storage, for_each_position, make};
use raddle_hdf5::model::{ChunkIndex, Layout};
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReaderLimits, check_chunks, for_each_chunk};
use raddle_hdf5::source::MetadataView;
use std::ops::ControlFlow;

/// A box, and the margins around it in the output.
#[derive(Debug, Clone)]
struct BoxCase {
    start: Vec<u64>,
    count: Vec<u64>,
    before: Vec<u64>,
    after: Vec<u64>,
}

fn check_box(made: &Made, reader: &mut DatasetReader, case: &BoxCase) {
    let element_len = made.dataset.datatype.class.len_bytes();
    let rank = case.count.len();
    let out_shape: Vec<u64> = (0..rank).map(|axis| case.before[axis] + case.count[axis] + case.after[axis]).collect();
    let mut out = vec![0xAA; (out_shape.iter().product::<u64>() * element_len) as usize];
    let source =
        DatasetSource { file: &made.file, encoding: made.encoding, dataset: &made.dataset, pipeline: &made.pipeline };
    let target = BoxRead { start: &case.start, count: &case.count, out_shape: &out_shape, out_origin: &case.before };
    reader.read_box(&source, &target, &mut out).unwrap();
    let mut expected = vec![0xAA; out.len()];
    let mut from = Vec::new();
    for_each_position(made.dataset.dataspace.dims(), &case.start, &case.count, &mut |position| from.push(position));
    let mut from = from.into_iter();
    for_each_position(&out_shape, &case.before, &case.count, &mut |to| {
        let (from, to) = ((from.next().unwrap() * element_len) as usize, (to * element_len) as usize);
        let len = element_len as usize;
        expected[to..to + len].copy_from_slice(&made.values[from..from + len]);
    });
    assert!(out == expected, "{case:?}");
}

fn whole(dims: &[u64]) -> BoxCase {
    let none = vec![0; dims.len()];
    BoxCase { start: none.clone(), count: dims.to_vec(), before: none.clone(), after: none }
}

fn check_whole(spec: &Spec) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let made = make(&folder.path().join("file.h5"), spec);
    check_box(&made, &mut DatasetReader::new(ReaderLimits::default()), &whole(&spec.dims));
    let mut view = MetadataView::new(&made.file, 1 << 20);
    let summary = check_chunks(&mut view, made.encoding, &made.dataset).unwrap();
    let mut visited = 0;
    for_each_chunk(&mut view, made.encoding, &made.dataset, None, &mut |_| {
        visited += 1;
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(summary.count, visited);
    if matches!(spec.storage, Storage::Chunked { .. }) && !spec.early {
        assert_eq!(visited, spec.chunks.len() as u64);
    }
    made
}

fn index(made: &Made) -> ChunkIndex {
    match &made.dataset.layout {
        Layout::Chunked { index, .. } => index.clone(),
        other => panic!("{other:?}"),
    }
}

fn chunked(shape: &[u64]) -> Storage {
    Storage::Chunked { shape: shape.to_vec(), partial_unfiltered: false }
}

#[test]
fn compact_and_contiguous() {
    check_whole(&Spec::plain(&[7, 5], Storage::Compact));
    check_whole(&Spec::plain(&[7, 5], Storage::Contiguous));
    check_whole(&Spec { chunks: vec![], fill: Some(9), ..Spec::plain(&[7, 5], Storage::Contiguous) });
}

#[test]
fn btree_version_1_of_several_levels() {
    let spec = Spec { deflate: Some(6), fanout: Some(2), ..Spec::plain(&[1000, 3], chunked(&[4, 3])) };
    let made = check_whole(&spec);
    assert!(matches!(index(&made), ChunkIndex::BtreeV1 { .. }));
    check_whole(&Spec { userblock: 512, ..spec });
}
