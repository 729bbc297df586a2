//! Metadata space used by operations on chunks compared with their bounds, at the sizes where indexes grow.
//!
//! `OutputFile` itself compares after each operation (with debug assertions) and panics if more space was used than
//! required. Each file holds a single dataset, so that nothing else makes the bounds wider.

use crate::{UNORDERED, integer, spec};
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::model::{CreationOrder, Dataspace, FillValue, Filter, InlineData, TypeClass};
use raddle_hdf5::write::{
    AttributeSpec, Compat, DatasetSpec, MetadataPrediction, OutputFile, OutputLayout, OutputOptions, TypeRef,
};
use std::path::Path;
use std::sync::Arc;

const ALL_BOUNDS: [Compat; 4] = [Compat::Earliest, Compat::V18, Compat::V110, Compat::Latest];
const UNLIMITED: u64 = u64::MAX;

fn create(path: &Path, compat: Compat, metadata_region_len_bytes: u64) -> OutputFile {
    if path.exists() {
        std::fs::remove_file(path).unwrap();
    }
    OutputFile::create(path, &OutputOptions { compat, metadata_region_len_bytes, ..OutputOptions::default() }).unwrap()
}

fn shuffle_and_deflate(element_len_bytes: u32) -> Vec<Filter> {
    [(2, b"shuffle".to_vec(), element_len_bytes), (1, b"deflate".to_vec(), 6)]
        .map(|(id, name, parameter)| Filter { id, optional: true, name, parameters: vec![parameter] })
        .into()
}

/// How space for chunks is reserved.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Promise {
    /// Separately for each chunk.
    None,
    /// For all chunks together.
    All,
    /// Separately for one half; then the dataset is opened again, and space is reserved for the other half together.
    Half,
}

/// A dataset with its extent and maximum in chunks.
struct Shape {
    dims: Vec<u64>,
    max_dims: Vec<u64>,
    chunk_shape: Vec<u64>,
}

impl Shape {
    fn new<const RANK: usize>(dims: [u64; RANK], max_dims: [u64; RANK]) -> Self {
        // Chunks of different lengths: the length determines the width of a slot.
        let chunk_shape = (0..RANK as u64).map(|axis| 3 + 40 * axis).collect();
        Self { dims: dims.to_vec(), max_dims: max_dims.to_vec(), chunk_shape }
    }

    fn spec(&self, filtered: bool) -> DatasetSpec {
        let elements = |sizes: &[u64]| -> Vec<u64> {
            let along = sizes.iter().zip(&self.chunk_shape);
            along.map(|(&size, &chunk)| if size == UNLIMITED { size } else { size * chunk }).collect()
        };
        let layout = OutputLayout::Chunked { chunk_shape: self.chunk_shape.clone() };
        let mut spec = spec(integer(4, false), &elements(&self.dims), &elements(&self.max_dims), layout);
        spec.filters = if filtered { shuffle_and_deflate(4) } else { Vec::new() };
        spec
    }

    fn count(&self) -> u64 {
        self.dims.iter().product()
    }

    /// Returns the first element of the chunk with this number in row-major order.
    fn origin(&self, mut number: u64) -> Vec<u64> {
        let mut origin = vec![0; self.dims.len()];
        for axis in (0..origin.len()).rev() {
            origin[axis] = number % self.dims[axis] * self.chunk_shape[axis];
            number /= self.dims[axis];
        }
        origin
    }

    /// Returns the length of all metadata with these chunks.
    fn metadata_len_bytes(&self, path: &Path, compat: Compat, filtered: bool, chunks: &[u64], promise: Promise) -> u64 {
        let spec = self.spec(filtered);
        let mut out = create(path, compat, 64 << 20);
        let mut address = out.raw_start();
        let mut dataset = out.create_dataset(b"/d", &spec).unwrap();
        if promise == Promise::All {
            dataset.expect_chunks(chunks.len() as u64).unwrap();
        }
        for (done, &chunk) in chunks.iter().enumerate() {
            if promise == Promise::Half && done == chunks.len() / 2 {
                drop(dataset);
                dataset = out.open_dataset(b"/d", &spec).unwrap();
                dataset.expect_chunks((chunks.len() - done) as u64).unwrap();
            }
            dataset.insert(&self.origin(chunk), address, 16, 0).unwrap();
            address += 16;
        }
        drop(dataset);
        out.finish().unwrap().metadata_len_bytes
    }

    /// Inserts chunks in this order, with every kind of reservation; in row-major order, the prediction is checked too.
    fn check(&self, path: &Path, chunks: &[u64]) {
        let in_order = chunks.is_sorted();
        for (compat, filtered) in ALL_BOUNDS.iter().flat_map(|&compat| [(compat, false), (compat, true)]) {
            let empty = self.metadata_len_bytes(path, compat, filtered, &[], Promise::None);
            for promise in [Promise::None, Promise::All, Promise::Half] {
                let taken = self.metadata_len_bytes(path, compat, filtered, chunks, promise) - empty;
                let predicted = |count| {
                    let mut prediction = MetadataPrediction::new(compat);
                    prediction.add_dataset(&self.spec(filtered), count, &[]);
                    prediction.len_bytes()
                };
                let predicted = predicted(chunks.len() as u64) - predicted(0);
                let (dims, max_dims) = (&self.dims, &self.max_dims);
                assert!(
                    !in_order || taken <= predicted,
                    "{compat:?}, filtered {filtered}, {promise:?}, {} of {dims:?} to {max_dims:?} chunks: {predicted} \
                     bytes were predicted, {taken} taken",
                    chunks.len(),
                );
            }
        }
    }
}

/// Returns orders of `count` chunks: all chunks forwards, backwards and in leaps; then only some of them.
fn orders(count: u64) -> Vec<Vec<u64>> {
    // Coprime to nearly every count that is used; repeated numbers are left out.
    let mut leaps: Vec<u64> = Vec::new();
    let mut seen = vec![false; count as usize];
    for number in (0..count).map(|number| number * 37 % count) {
        if !std::mem::replace(&mut seen[number as usize], true) {
            leaps.push(number);
        }
    }
    vec![
        (0..count).collect(),
        (0..count).rev().collect(),
        leaps,
        (0..count).filter(|number| number % 5 == 3).collect(),
        vec![count - 1],
    ]
}

#[test]
fn no_chunk_takes_more_than_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    // Extensible arrays grow after 4, 20, 52, 84, 148, 212, and 276 positions, version 1 B-trees of 64 after 64 chunks
    // and then every 57, version 2 B-trees (records of 24 to 52 bytes) after 39 to 84.
    for count in [1, 2, 4, 5, 6, 20, 21, 52, 53, 64, 65, 84, 85, 121, 122, 148, 149, 212, 213, 276, 277, 400] {
        let along = [
            Shape::new([count], [UNLIMITED]),
            Shape::new([count], [count]),
            Shape::new([count], [count + 1]),
            Shape::new([count, 1], [UNLIMITED, UNLIMITED]),
        ];
        for (shape, chunks) in along.iter().flat_map(|shape| orders(count).into_iter().map(move |order| (shape, order)))
        {
            shape.check(&path, &chunks);
        }
    }
}

#[test]
fn places_of_extensible_arrays_are_those_of_the_maximal_extent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let shapes = [
        // Chunks of one row, far fewer than the maximum: 4 chunks, the last at position 300.
        Shape::new([4, 1], [UNLIMITED, 100]),
        Shape::new([1, 4], [UNLIMITED, 4]),
        Shape::new([3, 7], [UNLIMITED, 50]),
        // The second axis is the unlimited one, and comes first.
        Shape::new([2, 3], [40, UNLIMITED]),
        Shape::new([9, 9], [9, UNLIMITED]),
        Shape::new([2, 2, 3], [5, UNLIMITED, 70]),
        Shape::new([3, 3, 3], [UNLIMITED, 3, 3]),
        Shape::new([2, 2, 2], [UNLIMITED, 1000, 1000]),
        // Two unlimited axes, and none, use other indexes.
        Shape::new([5, 6], [UNLIMITED, UNLIMITED]),
        Shape::new([5, 6, 7], [9, UNLIMITED, UNLIMITED]),
        Shape::new([3, 3], [40, 90]),
    ];
    for shape in &shapes {
        for chunks in orders(shape.count()) {
            shape.check(&path, &chunks);
        }
    }
}

#[test]
fn far_places_take_long_blocks_with_pages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    // Super block `k` begins at position 4 + 16 * (2^k - 1); from the thirteenth on, data blocks are paged.
    for super_block in 4..22 {
        let begin = 4 + 16 * ((1_u64 << super_block) - 1);
        let shape = Shape::new([begin + 2], [UNLIMITED]);
        for chunks in [vec![begin - 1], vec![begin], vec![begin + 1, begin, begin - 1], vec![0, begin - 1, begin]] {
            shape.check(&path, &chunks);
        }
    }
    // Fixed arrays of one page and more.
    for count in [1023, 1024, 1025, 2048, 2049, 70_000] {
        Shape::new([count], [count]).check(&path, &[0, count - 1]);
    }
}

#[test]
fn deep_trees_grow_by_no_more_than_a_node_per_level() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    for shape in [Shape::new([4800, 1], [UNLIMITED, UNLIMITED]), Shape::new([8, 15, 20], [8, UNLIMITED, UNLIMITED])] {
        for chunks in orders(shape.count()).into_iter().take(3) {
            shape.check(&path, &chunks);
        }
    }
}

/// Space for chunks that are still in libhdf5's cache is reserved until the dataset is closed, whatever happens in
/// between.
#[test]
fn what_is_cached_has_room_when_the_dataset_is_closed() {
    const ROWS: u64 = 300;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let text = Arc::new(TypeClass::VariableString { padding: 0, charset: 0, len_bytes: 16 });
    let attribute_type = TypeRef::Own(integer(1, false));
    let mut written = 0;
    for (compat, max_rows, filtered) in ALL_BOUNDS.iter().flat_map(|&compat| {
        [ROWS, UNLIMITED]
            .into_iter()
            .flat_map(move |max_rows| [false, true].map(|filtered| (compat, max_rows, filtered)))
    }) {
        for region_pages in 8..20 {
            let layout = OutputLayout::Chunked { chunk_shape: vec![2] };
            let mut spec = spec(Arc::clone(&text), &[ROWS], &[max_rows], layout);
            spec.filters = if filtered { shuffle_and_deflate(16) } else { Vec::new() };
            spec.has_attributes = true;
            let mut out = create(&path, compat, region_pages * 4096);
            let mut dataset = out.create_dataset(b"/text", &spec).unwrap();
            // Canonical form: length and bytes.
            let rows: Vec<u8> = (0..ROWS).flat_map(|row| [1, 0, 0, 0, 0, 0, 0, 0, b'a' + (row % 26) as u8]).collect();
            let full = |result: Result<(), Hdf5Error>| match result {
                Ok(()) => false,
                Err(Hdf5Error::MetadataRegionFull { .. }) => true,
                Err(error) => panic!("{compat:?} {max_rows} {filtered} {region_pages}: {error}"),
            };
            written += u32::from(!full(dataset.write(&rows)));
            let value = [7; 60];
            for number in 0.. {
                let name = format!("attribute {number}").into_bytes();
                let dataspace = Dataspace::Simple { dims: vec![60], max_dims: vec![60] };
                let datatype = &attribute_type;
                let attribute =
                    AttributeSpec { name: &name, utf8: false, datatype, dataspace: &dataspace, value: &value };
                if full(dataset.write_attribute(&attribute)) {
                    break;
                }
            }
            drop(dataset);
            assert!((0..).any(|number| full(out.create_group(format!("/g{number}").as_bytes(), UNORDERED, UNORDERED))));
            out.finish().unwrap();
        }
    }
    assert!(written > 20, "only {written} regions had room for the values");
}

/// Values in the global heap: of all lengths around those of its collections, several per element, nested in others.
#[test]
fn no_value_takes_more_than_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let text = Arc::new(TypeClass::VariableString { padding: 0, charset: 0, len_bytes: 16 });
    let many = Arc::new(TypeClass::Array { base: Arc::clone(&text), dims: vec![7] });
    let bytes = Arc::new(TypeClass::Sequence { base: integer(1, false), len_bytes: 16 });
    let nested = Arc::new(TypeClass::Sequence { base: bytes, len_bytes: 16 });
    let value = |len: usize| [&(len as u64).to_le_bytes()[..], &vec![b'x'; len]].concat();
    for compat in ALL_BOUNDS {
        for len in [0, 1, 7, 8, 9, 100, 1300, 1340, 2020, 2030, 2100, 4040, 4070, 4100, 9000] {
            let one = value(len);
            let cases = [
                (&text, one.repeat(40)),
                (&many, one.repeat(7 * 40)),
                (&nested, [&30_u64.to_le_bytes()[..], &one.repeat(30)].concat().repeat(40)),
            ];
            for (class, values) in cases {
                for layout in [OutputLayout::Contiguous, OutputLayout::Chunked { chunk_shape: vec![3] }] {
                    let mut out = create(&path, compat, 256 << 20);
                    let spec = spec(Arc::clone(class), &[40], &[40], layout);
                    let mut dataset = out.create_dataset(b"/values", &spec).unwrap();
                    dataset.write(&values).unwrap();
                    drop(dataset);
                    out.finish().unwrap();
                }
                if values.len() > 60_000 {
                    continue;
                }
                let mut out = create(&path, compat, 256 << 20);
                let datatype = TypeRef::Own(Arc::clone(class));
                let dataspace = Dataspace::Simple { dims: vec![40], max_dims: vec![40] };
                for name in [b"first", b"other"] {
                    let (datatype, dataspace, value) = (&datatype, &dataspace, values.as_slice());
                    out.write_attribute(b"/", &AttributeSpec { name, utf8: false, datatype, dataspace, value })
                        .unwrap();
                }
                out.finish().unwrap();
            }
        }
    }
}

#[test]
fn headers_with_long_messages_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let mut wrong = Vec::new();
    for compat in ALL_BOUNDS {
        for (len_bytes, has_attributes, rows) in [1, 100, 190, 250, 408, 5000, 30_000]
            .into_iter()
            .flat_map(|len_bytes| [false, true].map(|has_attributes| (len_bytes, has_attributes)))
            .flat_map(|(len_bytes, has_attributes)| [0, 2, 13].map(|rows| (len_bytes, has_attributes, rows)))
        {
            for layout in [OutputLayout::Compact, OutputLayout::Contiguous] {
                if layout == OutputLayout::Compact && u64::from(len_bytes) * rows > 60_000 {
                    continue;
                }
                let class = TypeClass::Opaque { len_bytes, tag: b"tag".to_vec() };
                let mut spec = spec(class.into(), &[rows], &[rows], layout);
                let value = InlineData::Stored(vec![7; len_bytes as usize]);
                spec.fill = FillValue { value: Some(value), user_defined: true, ..spec.fill };
                spec.has_attributes = has_attributes;
                let mut out = create(&path, compat, 1 << 20);
                let before = out.finish().unwrap().metadata_len_bytes;
                out = create(&path, compat, 1 << 20);
                drop(out.create_dataset(b"/d", &spec).unwrap());
                let taken = out.finish().unwrap().metadata_len_bytes - before;
                let predicted = |names: &[&str]| {
                    let mut prediction = MetadataPrediction::new(compat);
                    names.iter().for_each(|_| prediction.add_dataset(&spec, 0, &[]));
                    let count = names.len() as u64;
                    prediction.add_group(count, count, CreationOrder::default(), &[]);
                    prediction.len_bytes()
                };
                let predicted = predicted(&["d"]) - predicted(&[]);
                if predicted < taken {
                    let layout = &spec.layout;
                    wrong.push(format!(
                        "{compat:?} {layout:?} {rows} x {len_bytes} bytes, attributes {has_attributes}: {predicted} \
                         bytes were predicted, {taken} taken"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Groups of more than eight links keep them in heaps. libhdf5 assigns addresses to heap blocks when its cache is full,
/// during an unrelated operation, whose bound must not include them.
#[test]
fn blocks_of_heaps_that_get_addresses_meanwhile_count_for_no_operation() {
    const CHUNKS: u64 = 3;
    for compat in ALL_BOUNDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.h5");
        let mut out = create(&path, compat, 8 << 20);
        let shape = Shape::new([CHUNKS], [CHUNKS]);
        let mut address = out.raw_start();
        for group in 0..150 {
            out.create_group(format!("/group{group:03}").as_bytes(), UNORDERED, UNORDERED).unwrap();
        }
        for (group, dataset) in (0..150).flat_map(|group| (0..10).map(move |dataset| (group, dataset))) {
            let path = format!("/group{group:03}/data{dataset}").into_bytes();
            let mut dataset = out.create_dataset(&path, &shape.spec(true)).unwrap();
            dataset.expect_chunks(CHUNKS).unwrap();
            for number in 0..CHUNKS {
                dataset.insert(&shape.origin(number), address, 12, 0).unwrap();
                address += 12;
            }
        }
        let written = out.finish().unwrap();
        assert_eq!((written.claim_count, written.tail_len_bytes), (150 * 10 * CHUNKS, 0), "{compat:?}");
    }
}
