//! Any box of any dataset equals the same box of the written values.

use crate::maker::{SampleDataset, Spec, Storage, for_each_position, make};
use proptest::prelude::*;
use raddle_hdf5::model::{ChunkIndex, Layout};
use raddle_hdf5::read::{
    BoxRead, DatasetReader, DatasetSource, ReadCounts, ReaderLimits, check_chunks, for_each_chunk,
};
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

/// Checks the values of a box; returns the statistics of reading it.
fn check_box(sample: &SampleDataset, reader: &mut DatasetReader, case: &BoxCase) -> ReadCounts {
    let element_len = sample.dataset.datatype.class.len_bytes();
    let rank = case.count.len();
    let out_shape: Vec<u64> = (0..rank).map(|axis| case.before[axis] + case.count[axis] + case.after[axis]).collect();
    let mut out = vec![0xAA; (out_shape.iter().product::<u64>() * element_len) as usize];
    let source = DatasetSource {
        file: &sample.file,
        encoding: sample.encoding,
        dataset: &sample.dataset,
        pipeline: &sample.pipeline,
    };
    let target = BoxRead { start: &case.start, count: &case.count, out_shape: &out_shape, out_origin: &case.before };
    let counts = reader.read_box(&source, &target, &mut out).unwrap();
    let mut expected = vec![0xAA; out.len()];
    let mut from = Vec::new();
    for_each_position(sample.dataset.dataspace.dims(), &case.start, &case.count, &mut |position| from.push(position));
    let mut from = from.into_iter();
    for_each_position(&out_shape, &case.before, &case.count, &mut |to| {
        let (from, to) = ((from.next().unwrap() * element_len) as usize, (to * element_len) as usize);
        let len = element_len as usize;
        expected[to..to + len].copy_from_slice(&sample.values[from..from + len]);
    });
    assert!(out == expected, "{case:?}");
    counts
}

fn whole(dims: &[u64]) -> BoxCase {
    let none = vec![0; dims.len()];
    BoxCase { start: none.clone(), count: dims.to_vec(), before: none.clone(), after: none }
}

fn check_whole(spec: &Spec) -> SampleDataset {
    let folder = tempfile::tempdir().unwrap();
    let sample = make(&folder.path().join("file.h5"), spec);
    check_box(&sample, &mut DatasetReader::new(ReaderLimits::default()), &whole(&spec.dims));
    let mut view = MetadataView::new(&sample.file, 1 << 20);
    let summary = check_chunks(&mut view, sample.encoding, &sample.dataset).unwrap();
    let mut visited = 0;
    for_each_chunk(&mut view, sample.encoding, &sample.dataset, None, &mut |_| {
        visited += 1;
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(summary.count, visited);
    if matches!(spec.storage, Storage::Chunked { .. }) && !spec.early {
        assert_eq!(visited, spec.chunks.len() as u64);
    }
    sample
}

fn index(sample: &SampleDataset) -> ChunkIndex {
    match &sample.dataset.layout {
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
    let sample = check_whole(&spec);
    assert!(matches!(index(&sample), ChunkIndex::BtreeV1 { .. }));
    check_whole(&Spec { userblock: 512, ..spec });
}

const UNLIMITED: u64 = u64::MAX;

fn latest(dims: &[u64], max_dims: &[u64], shape: &[u64]) -> Spec {
    Spec { latest: true, max_dims: max_dims.to_vec(), ..Spec::plain(dims, chunked(shape)) }
}

/// A box inside a long chunk without filters costs what it needs of the chunk, not the chunk.
#[test]
fn parts_of_unfiltered_chunks() {
    let folder = tempfile::tempdir().unwrap();
    // Chunks of 128,000 bytes in rows of 200 bytes and planes of 8,000; the last one lies beyond the extent for the
    // most part.
    let spec = Spec::plain(&[36, 40, 50], chunked(&[16, 40, 50]));
    let sample = make(&folder.path().join("unfiltered.h5"), &spec);
    let spec = Spec { latest: true, deflate: Some(1), ..spec };
    let storage = Storage::Chunked { shape: vec![16, 40, 50], partial_unfiltered: true };
    let partial = make(&folder.path().join("partial.h5"), &Spec { storage, ..spec });
    let mut reader = DatasetReader::new(ReaderLimits::default());
    let boxes: [([u64; 3], [u64; 3], u64); 7] = [
        ([5, 6, 7], [1, 1, 1], 4),
        ([5, 0, 0], [1, 40, 50], 8_000),
        ([15, 0, 0], [2, 40, 50], 16_000),
        ([5, 3, 9], [1, 30, 2], 29 * 200 + 8),
        ([0, 6, 7], [36, 1, 1], 36 * 4),
        ([10, 2, 3], [24, 2, 2], 24 * 208),
        ([32, 0, 0], [4, 40, 50], 32_000),
    ];
    for (start, count, stored_len_bytes) in boxes {
        let margins = [[0, 0, 0], [1, 2, 3]];
        for (before, after) in [(margins[0], margins[1]), (margins[1], margins[0])] {
            let lists = [start, count, before, after].map(|list| list.to_vec());
            let [start, count, before, after] = lists;
            let case = BoxCase { start, count, before, after };
            assert_eq!(check_box(&sample, &mut reader, &case).stored_len_bytes, stored_len_bytes, "{case:?}");
            check_box(&partial, &mut reader, &case);
        }
    }
    // Most of a chunk is read at once.
    let case = BoxCase { start: vec![0, 1, 0], count: vec![16, 39, 49], before: vec![0; 3], after: vec![0; 3] };
    assert_eq!(check_box(&sample, &mut reader, &case).stored_len_bytes, 128_000);
    // A chunk without filters at the border of a compressed dataset.
    let case = BoxCase { start: vec![34, 5, 5], count: vec![1, 1, 1], before: vec![0; 3], after: vec![0; 3] };
    assert_eq!(check_box(&partial, &mut reader, &case).stored_len_bytes, 4);
}

#[test]
fn single_chunk() {
    let spec = latest(&[5, 3], &[5, 3], &[5, 3]);
    assert!(matches!(index(&check_whole(&spec)), ChunkIndex::Single { len_bytes: None, .. }));
    let filtered = Spec { deflate: Some(1), ..spec };
    assert!(matches!(index(&check_whole(&filtered)), ChunkIndex::Single { len_bytes: Some(_), .. }));
}

#[test]
fn implicit_index() {
    let spec = Spec { early: true, ..latest(&[7, 5], &[9, 12], &[2, 2]) };
    let sample = check_whole(&spec);
    assert!(matches!(index(&sample), ChunkIndex::Implicit { .. }));
}

#[test]
fn fixed_array() {
    for deflate in [None, Some(6)] {
        // Maximum extent larger than the extent: the array is laid out for the maximum.
        let spec = Spec { deflate, ..latest(&[7, 5], &[9, 12], &[2, 2]) };
        assert!(matches!(index(&check_whole(&spec)), ChunkIndex::FixedArray { .. }));
        check_whole(&Spec { chunks: vec![5, 0, 11], fill: Some(3), ..spec });
    }
}

#[test]
fn paged_fixed_array() {
    for deflate in [None, Some(1)] {
        let spec = Spec { deflate, ..latest(&[5000, 2], &[5100, 3], &[2, 2]) };
        check_whole(&Spec { chunks: vec![0, 511, 1023, 1024, 2047, 2499], ..spec.clone() });
        check_whole(&spec);
    }
}

#[test]
fn extensible_array() {
    for deflate in [None, Some(6)] {
        let spec = Spec { deflate, ..latest(&[3000, 2], &[UNLIMITED, 3], &[2, 2]) };
        assert!(matches!(index(&check_whole(&spec)), ChunkIndex::ExtensibleArray { .. }));
        check_whole(&Spec { chunks: vec![0, 3, 4, 5, 35, 36, 300, 1000, 1499], fill: Some(3), ..spec });
        // The unlimited dimension comes first in the array, whatever its position.
        let inner = Spec { deflate, ..latest(&[6, 500, 3], &[7, UNLIMITED, 4], &[2, 2, 2]) };
        assert!(matches!(index(&check_whole(&inner)), ChunkIndex::ExtensibleArray { .. }));
    }
}

#[test]
fn extensible_array_with_paged_data_blocks() {
    // By libhdf5's parameters, data blocks have pages from chunk 4 + 16 * (2^13 - 1) on.
    let first_paged = 4 + 16 * ((1 << 13) - 1);
    for deflate in [None, Some(1)] {
        let spec = Spec { deflate, element_len: 1, ..latest(&[300_000], &[UNLIMITED], &[1]) };
        let chunks = [0, 1, first_paged - 1, first_paged, first_paged + 1023, first_paged + 1024, 290_000, 299_999];
        check_whole(&Spec { chunks: chunks.to_vec(), ..spec.clone() });
        check_whole(&Spec { chunks: (first_paged - 50..first_paged + 5000).collect(), ..spec });
    }
}

#[test]
fn btree_version_2() {
    for deflate in [None, Some(1)] {
        let spec = Spec { deflate, ..latest(&[200, 150], &[UNLIMITED, UNLIMITED], &[2, 3]) };
        let sample = check_whole(&spec);
        assert!(matches!(index(&sample), ChunkIndex::BtreeV2 { .. }));
        check_whole(&Spec { chunks: vec![4999, 0, 2500, 7], userblock: 1024, ..spec });
    }
}

#[test]
fn chunks_written_in_any_order() {
    let plain = Spec { deflate: Some(1), fanout: Some(2), ..Spec::plain(&[600, 4], chunked(&[4, 2])) };
    let count = plain.chunk_count();
    // 7 and 299 have no factor in common with 300, so they generate permutations of all chunks.
    for step in [7, 299] {
        let chunks: Vec<u64> = (0..count).map(|number| number * step % count).collect();
        check_whole(&Spec { chunks: chunks.clone(), ..plain.clone() });
        let unlimited = Spec { latest: true, max_dims: vec![UNLIMITED, UNLIMITED], ..plain.clone() };
        check_whole(&Spec { chunks, ..unlimited });
    }
}

#[test]
fn only_the_nodes_of_the_asked_rows_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let spec = Spec { deflate: Some(1), fanout: Some(2), ..Spec::plain(&[4000], chunked(&[4])) };
    let sample = make(&folder.path().join("file.h5"), &spec);
    let mut view = MetadataView::new(&sample.file, 1 << 20);
    let mut origins = Vec::new();
    for_each_chunk(&mut view, sample.encoding, &sample.dataset, Some(2001..2010), &mut |chunk| {
        origins.push(chunk.origin[0]);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(origins, [2000, 2004, 2008]);
    let mut first = 0;
    for_each_chunk(&mut view, sample.encoding, &sample.dataset, None, &mut |_| {
        first += 1;
        ControlFlow::Break(())
    })
    .unwrap();
    assert_eq!(first, 1);
}

#[test]
fn a_chunk_that_straddles_boxes_is_decoded_once() {
    let folder = tempfile::tempdir().unwrap();
    let spec = Spec { deflate: Some(1), ..Spec::plain(&[100, 3], chunked(&[10, 3])) };
    let sample = make(&folder.path().join("file.h5"), &spec);
    let source = DatasetSource {
        file: &sample.file,
        encoding: sample.encoding,
        dataset: &sample.dataset,
        pipeline: &sample.pipeline,
    };
    let mut reader = DatasetReader::new(ReaderLimits::default());
    let mut all = Vec::new();
    let (mut chunks, mut kept) = (0, 0);
    for start in (0..100).step_by(4) {
        let mut out = vec![0; 4 * 3 * 4];
        let target = BoxRead { start: &[start, 0], count: &[4, 3], out_shape: &[4, 3], out_origin: &[0, 0] };
        let counts = reader.read_box(&source, &target, &mut out).unwrap();
        (chunks, kept) = (chunks + counts.chunks, kept + counts.kept_chunks);
        all.extend(out);
    }
    assert!(all == sample.values);
    assert_eq!(chunks, 10);
    assert!(kept > 10, "{kept}");
}

#[test]
fn long_chunks_are_decoded_two_in_turn() {
    // Chunks of 64 KiB and more are worth interleaving. Some chunks are missing, and the last one extends beyond the
    // dataset.
    for (chunk, written) in
        [(65_536, vec![0, 1, 2, 3, 4, 5]), (20_000, vec![0, 1, 3, 4, 6, 9, 10]), (262_144, vec![1, 0])]
    {
        let dims = [5 * 65_536 + 777];
        for (latest, fill) in [(false, None), (true, Some(7))] {
            let spec = Spec {
                latest,
                fill,
                deflate: Some(4),
                max_dims: vec![u64::MAX],
                chunks: written.clone(),
                ..Spec::plain(&dims, chunked(&[chunk]))
            };
            let sample = check_whole(&spec);
            let mut reader = DatasetReader::new(ReaderLimits::default());
            for (start, count) in
                [(0, 3 * chunk.min(100_000)), (5, dims[0] - 5), (chunk - 1, 20_002), (40_000, 240_001)]
            {
                for (before, after) in [(0, 0), (3, 9)] {
                    let [start, count, before, after] = [start, count, before, after].map(|number| vec![number]);
                    check_box(&sample, &mut reader, &BoxCase { start, count, before, after });
                }
            }
        }
    }
}

#[test]
fn huge_sparse_extents_cost_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (number, max) in [[1 << 40, 1 << 40], [UNLIMITED, 1 << 40], [UNLIMITED, UNLIMITED]].iter().enumerate() {
        for latest in [false, true] {
            let dims = [1 << 40, 1 << 20];
            let mut spec =
                Spec { latest, max_dims: max.to_vec(), chunks: vec![], ..Spec::plain(&[1, 1], chunked(&[1, 16])) };
            spec.dims = dims.to_vec();
            spec.deflate = Some(1);
            spec.fill = Some(7);
            let path = folder.path().join(format!("{number}{latest}.h5"));
            let sample = crate::maker::make_empty(&path, &spec);
            let mut view = MetadataView::new(&sample.file, 1 << 20);
            assert_eq!(check_chunks(&mut view, sample.encoding, &sample.dataset).unwrap().count, 0);
            let mut reader = DatasetReader::new(ReaderLimits::default());
            let mut out = vec![0; 4000];
            let source = DatasetSource {
                file: &sample.file,
                encoding: sample.encoding,
                dataset: &sample.dataset,
                pipeline: &sample.pipeline,
            };
            let start = [(1 << 40) - 100, 5];
            let target = BoxRead { start: &start, count: &[100, 10], out_shape: &[100, 10], out_origin: &[0, 0] };
            reader.read_box(&source, &target, &mut out).unwrap();
            assert!(out.iter().all(|&byte| byte == 7));
        }
    }
}

/// Per axis: extent, chunk size, margin in the maximum extent (0 none, 1 some, 2 unlimited), and a box as fractions.
type Axis = (u64, u64, u8, (u64, u64, u64, u64));

fn spec_of(axes: &[Axis], (latest, kind, options): (bool, u8, (bool, bool, bool, bool, bool)), order: u64) -> Spec {
    let (deflate, shuffle, fletcher32, filled, early) = options;
    let dims: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
    let is_chunked = kind < 8;
    let max_dims: Vec<u64> = axes
        .iter()
        .map(|&(dim, _, room, _)| match (is_chunked, room) {
            (false, _) | (_, 0) => dim,
            (_, 1) => dim + 3,
            _ => UNLIMITED,
        })
        .collect();
    let shape: Vec<u64> = axes.iter().zip(&max_dims).map(|(axis, &max)| axis.1.min(max).max(1)).collect();
    let storage = match kind {
        // libhdf5 accepts at most 64 KiB in the object header.
        8 if dims.iter().product::<u64>() < 8000 => Storage::Compact,
        8 | 9 => Storage::Contiguous,
        _ => Storage::Chunked { shape, partial_unfiltered: latest && kind >= 6 },
    };
    let mut spec = Spec {
        latest,
        max_dims,
        element_len: [1, 2, 4, 8][order as usize % 4],
        fill: filled.then_some(0x5A),
        early,
        userblock: [0, 0, 512, 2048][(order / 4) as usize % 4],
        fanout: (order / 16 % 2 == 1).then_some(2),
        ..Spec::plain(&dims, storage)
    };
    if is_chunked {
        (spec.deflate, spec.shuffle, spec.fletcher32) = (deflate.then_some(6), shuffle, fletcher32);
    }
    // A random subset in random order.
    let mut state = order | 1;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut chunks: Vec<(u64, u64)> = spec.chunks.iter().map(|&chunk| (random(), chunk)).collect();
    chunks.sort_unstable();
    if !order.is_multiple_of(3) {
        chunks.retain(|_| random() % 4 > 0);
    }
    spec.chunks = chunks.into_iter().map(|(_, chunk)| chunk).collect();
    spec
}

proptest! {
    #[test]
    fn any_box_of_any_dataset(
        axes in prop::collection::vec((1_u64..14, 1_u64..8, 0_u8..3, (0_u64..100, 0_u64..100, 0_u64..3, 0_u64..3)), 1..5),
        form in any::<(bool, (bool, bool, bool, bool, bool))>(),
        kind in 0_u8..10,
        order in any::<u64>(),
        boxes in prop::collection::vec(prop::collection::vec((0_u64..100, 1_u64..100, 0_u64..3, 0_u64..3), 4), 1..6),
    ) {
        let spec = spec_of(&axes, (form.0, kind, form.1), order);
        let folder = tempfile::tempdir().unwrap();
        let sample = make(&folder.path().join("file.h5"), &spec);
        // A small limit, so that kept chunks are evicted.
        let mut reader = DatasetReader::new(ReaderLimits { kept_len_bytes: 2048, ..ReaderLimits::default() });
        check_box(&sample, &mut reader, &whole(&spec.dims));
        for fractions in boxes {
            let case = |value: fn(&(u64, u64, u64, u64), u64) -> u64| -> Vec<u64> {
                fractions.iter().zip(&spec.dims).map(|(fraction, &dim)| value(fraction, dim)).collect()
            };
            let start = case(|fraction, dim| fraction.0 * dim / 100);
            let count = case(|fraction, dim| (dim - fraction.0 * dim / 100) * fraction.1 / 99);
            let (before, after) = (case(|fraction, _| fraction.2), case(|fraction, _| fraction.3));
            check_box(&sample, &mut reader, &BoxCase { start, count, before, after });
        }
        let mut view = MetadataView::new(&sample.file, 1 << 20);
        let count = check_chunks(&mut view, sample.encoding, &sample.dataset).unwrap().count;
        if kind < 8 && !spec.early {
            prop_assert_eq!(count, spec.chunks.len() as u64);
        }
    }
}
