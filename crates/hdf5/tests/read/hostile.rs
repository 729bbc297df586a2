//! Damaged and malicious indexes, chunks and heaps: an error or the correct values, never a panic, a hang or a large
//! buffer.

use crate::maker::{SampleDataset, Spec, Storage, make};
use raddle_codec::{Effort, EncodeState, Encoder, Pipeline};
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::default_format::{DefaultDatasetSpec, DefaultFormatFile, Element};
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::model::*;
use raddle_hdf5::native::{Encoding, ReadLimits, read_tree};
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReaderLimits, check_chunks};
use raddle_hdf5::source::{InputFile, MetadataView};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Modification of the bytes of a file.
type Change<'c> = &'c dyn Fn(&mut Vec<u8>);

const UNLIMITED: u64 = u64::MAX;

fn chunked(shape: &[u64]) -> Storage {
    Storage::Chunked { shape: shape.to_vec(), partial_unfiltered: false }
}

/// Reads all values of `dataset` in the file at `path`, and checks its chunks.
fn read_all(
    path: &Path,
    encoding: Encoding,
    dataset: &Dataset,
) -> (Result<Vec<u8>, Hdf5Error>, Result<u64, Hdf5Error>) {
    let file = InputFile::open(path).unwrap();
    let element_len = dataset.datatype.class.len_bytes();
    let pipeline = Pipeline::new(&dataset.filters, element_len as usize).unwrap();
    let source = DatasetSource { file: &file, encoding, dataset, pipeline: &pipeline };
    let dims = dataset.dataspace.dims();
    let mut out = vec![0; (dims.iter().product::<u64>() * element_len) as usize];
    let origin = vec![0; dims.len()];
    let target = BoxRead { start: &origin, count: dims, out_shape: dims, out_origin: &origin };
    let read = DatasetReader::new(ReaderLimits::default()).read_box(&source, &target, &mut out).map(|_| out);
    let mut view = MetadataView::new(&file, 1 << 20);
    (read, check_chunks(&mut view, encoding, dataset).map(|summary| summary.count))
}

/// A file in memory that is written back with changes.
struct Patient {
    path: PathBuf,
    bytes: Vec<u8>,
    sample: SampleDataset,
    _folder: tempfile::TempDir,
}

impl Patient {
    fn new(spec: &Spec) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        let sample = make(&path, spec);
        Self { bytes: std::fs::read(&path).unwrap(), path, sample, _folder: folder }
    }

    /// Reads the file after `change`.
    fn after(&self, change: impl FnOnce(&mut Vec<u8>)) -> (Result<Vec<u8>, Hdf5Error>, Result<u64, Hdf5Error>) {
        let mut bytes = self.bytes.clone();
        change(&mut bytes);
        std::fs::write(&self.path, bytes).unwrap();
        read_all(&self.path, self.sample.encoding, &self.sample.dataset)
    }

    fn root(&self) -> usize {
        match &self.sample.dataset.layout {
            Layout::Chunked { index: ChunkIndex::BtreeV1 { address }, .. } => *address as usize,
            other => panic!("{other:?}"),
        }
    }
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

fn get(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn assert_malformed(result: Result<impl std::fmt::Debug, Hdf5Error>, part: &str) {
    let text = result.unwrap_err().to_string();
    assert!(text.contains(part) && text.contains("file.h5"), "{text}");
}

#[test]
fn every_flipped_byte_is_an_error_or_harmless() {
    // Fletcher32 and deflate's own checksum protect the chunks, so no flip there may go unnoticed.
    let base = Spec { deflate: Some(6), fletcher32: true, ..Spec::plain(&[40, 3], chunked(&[4, 2])) };
    let latest = |dims: &[u64], max: &[u64]| Spec {
        latest: true,
        deflate: Some(6),
        fletcher32: true,
        max_dims: max.to_vec(),
        ..Spec::plain(dims, chunked(&[4, 2]))
    };
    let specs = [
        Spec { fanout: Some(2), ..base },
        latest(&[4, 2], &[4, 2]),
        latest(&[40, 3], &[40, 3]),
        latest(&[40, 3], &[UNLIMITED, 3]),
        latest(&[40, 3], &[UNLIMITED, UNLIMITED]),
    ];
    for spec in specs {
        let patient = Patient::new(&spec);
        let mut same = 0;
        let file = std::fs::File::options().write(true).open(&patient.path).unwrap();
        for (at, &byte) in patient.bytes.iter().enumerate() {
            for flip in [0x01, 0x80, 0xff] {
                file.write_all_at(&[byte ^ flip], at as u64).unwrap();
                let (values, chunks) = read_all(&patient.path, patient.sample.encoding, &patient.sample.dataset);
                file.write_all_at(&[byte], at as u64).unwrap();
                let Ok(values) = values else { continue };
                same += 1;
                if values != patient.sample.values {
                    // Version 1 B-trees have no checksum: a chunk whose stored origin is changed to that of a missing
                    // chunk moves there, for libhdf5 too.
                    assert!(!spec.latest, "byte {at} ^ {flip:#x} changed values in silence");
                    assert_eq!(chunks.unwrap(), spec.chunks.len() as u64, "byte {at} ^ {flip:#x} lost a chunk");
                }
            }
        }
        assert!(same > 0, "bytes of no concern to the dataset are read well");
    }
}

#[test]
fn the_damaged_one_of_two_chunks_decoded_in_turn_is_named() {
    let spec = Spec { deflate: Some(6), ..Spec::plain(&[5 * 65_536], chunked(&[65_536])) };
    let patient = Patient::new(&spec);
    let SampleDataset { file, encoding, dataset, pipeline, .. } = &patient.sample;
    let source = DatasetSource { file, encoding: *encoding, dataset, pipeline };
    for number in 0..5 {
        let mut reader = DatasetReader::new(ReaderLimits::default());
        let chunk = reader.stored_chunk(&source, &[number * 65_536], &mut Vec::new()).unwrap().unwrap();
        // In the codes, in the data, in the sum.
        for at in [20, chunk.len_bytes / 2, chunk.len_bytes - 2] {
            let (values, _) = patient.after(|bytes| bytes[(chunk.address + at) as usize] ^= 0x55);
            let error = values.unwrap_err();
            assert!(
                matches!(error, Hdf5Error::Chunk { address, len_bytes, .. } if (address, len_bytes) == (chunk.address, chunk.len_bytes)),
                "{error}"
            );
        }
    }
    assert_eq!(patient.after(|_| ()).0.unwrap(), patient.sample.values);
}

#[test]
fn every_truncation_is_an_error_or_harmless() {
    for latest in [false, true] {
        let spec =
            Spec { latest, deflate: Some(6), max_dims: vec![UNLIMITED, 3], ..Spec::plain(&[60, 3], chunked(&[4, 2])) };
        let patient = Patient::new(&spec);
        for len in 0..patient.bytes.len() {
            if let (Ok(values), _) = patient.after(|bytes| bytes.truncate(len)) {
                assert_eq!(values, patient.sample.values, "cut at {len}");
            }
        }
    }
}

#[test]
fn btrees_that_are_no_trees() {
    // Nodes of at most four entries: chunks of one row, several levels.
    let spec = Spec { fanout: Some(2), deflate: Some(1), ..Spec::plain(&[40], chunked(&[1])) };
    let patient = Patient::new(&spec);
    let root = patient.root();
    let (header_len, key_len) = (24, 8 + 16);
    let child_at = |node: usize, number: usize| node + header_len + number * (key_len + 8) + key_len;
    let key_at = |node: usize, number: usize| node + header_len + number * (key_len + 8);
    let level = patient.bytes[root + 5];
    assert!(level >= 2);
    let first_child = get(&patient.bytes, child_at(root, 0)) as usize;
    let changes: [(&str, Change); 7] = [
        // A cycle: the level cannot decrease forever.
        ("does not belong here", &|bytes| put(bytes, child_at(root, 0), root as u64)),
        ("does not belong here", &|bytes| put(bytes, child_at(first_child, 0), root as u64)),
        // One node with two parents.
        ("keys differ", &|bytes| put(bytes, child_at(root, 1), first_child as u64)),
        ("wrong signature", &|bytes| bytes[first_child] = b'X'),
        ("empty", &|bytes| bytes[first_child + 6] = 0),
        ("undefined address", &|bytes| put(bytes, child_at(root, 0), u64::MAX)),
        ("keys differ", &|bytes| put(bytes, key_at(root, 1) + 8, 1)),
    ];
    for (part, change) in changes {
        let (values, chunks) = patient.after(change);
        assert_malformed(values, part);
        assert_malformed(chunks, part);
    }
    let (values, _) = patient.after(|bytes| put(bytes, child_at(root, 0), 1 << 62));
    assert!(matches!(values, Err(Hdf5Error::Truncated { .. })));
}

#[test]
fn chunks_where_none_can_be() {
    let spec = Spec { deflate: Some(1), ..Spec::plain(&[10], chunked(&[2])) };
    let patient = Patient::new(&spec);
    let root = patient.root();
    let (header_len, key_len) = (24, 8 + 16);
    let key_at = |number: usize| root + header_len + number * (key_len + 8);
    let address_at = |number: usize| key_at(number) + key_len;
    let first = get(&patient.bytes, address_at(0));
    let changes: [(&str, Change); 6] = [
        ("over the superblock", &|bytes| put(bytes, address_at(0), 0)),
        ("overlap", &|bytes| put(bytes, address_at(1), first)),
        ("overlap", &|bytes| put(bytes, address_at(1), first + 1)),
        ("not a multiple of the chunk shape", &|bytes| put(bytes, key_at(1) + 8, 3)),
        ("listed twice", &|bytes| put(bytes, key_at(1) + 8, 0)),
        ("out of order", &|bytes| put(bytes, key_at(1) + 8, 8)),
    ];
    for (part, change) in changes {
        let (values, chunks) = patient.after(change);
        assert_malformed(values, part);
        assert_malformed(chunks, part);
    }
    for address in [1 << 63, u64::MAX - 1, patient.bytes.len() as u64] {
        let (values, chunks) = patient.after(|bytes| put(bytes, address_at(2), address));
        assert!(matches!(values, Err(Hdf5Error::Truncated { .. })), "{values:?}");
        assert!(chunks.is_err());
    }
    let (values, chunks) = patient.after(|bytes| put(bytes, key_at(4) + 8, 10));
    assert_malformed(values, "beyond the maximum extent");
    assert_malformed(chunks, "beyond the maximum extent");
    // A chunk beyond the extent of a dataset that may grow is ignored.
    let patient = Patient::new(&Spec { max_dims: vec![UNLIMITED], ..spec });
    assert_eq!(patient.root(), root);
    let (values, chunks) = patient.after(|bytes| put(bytes, key_at(4) + 8, 1 << 40));
    let mut expected = patient.sample.values.clone();
    expected[8 * 4..].fill(0);
    assert_eq!((values.unwrap(), chunks.unwrap()), (expected, 4));
}

/// Writes a dataset of two chunks of 64 bytes: zeros, and the chunk that `stored` decodes to.
fn with_second_chunk(path: &Path, stored: &[u8], filter_mask: u32) -> (Encoding, Dataset) {
    let mut file = DefaultFormatFile::create(path).unwrap();
    let spec = DefaultDatasetSpec { element: Element::U8, dims: vec![128], chunk_shape: vec![64], gzip_level: 6 };
    let mut dataset = file.create_dataset(b"/d", &spec).unwrap();
    dataset.write_chunk(&[0], &deflated(&[0; 64]), 0).unwrap();
    dataset.write_chunk(&[64], stored, filter_mask).unwrap();
    drop(dataset);
    file.finish().unwrap();
    let tree = read_tree(&InputFile::open(path).unwrap(), &ReadLimits::default()).unwrap();
    let dataset = tree.objects.iter().find_map(|object| match &object.kind {
        ObjectKind::Dataset(dataset) => Some((**dataset).clone()),
        _ => None,
    });
    (Encoding::of(&tree), dataset.unwrap())
}

fn deflated(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mask = Encoder::plain(Effort::Gzip(6), 1).encode(&mut EncodeState::default(), raw, &mut out).unwrap();
    assert_eq!(mask, 0, "these bytes deflate");
    out
}

#[test]
fn chunks_of_another_length() {
    let folder = tempfile::tempdir().unwrap();
    let mut number = 0;
    let mut read = |stored: &[u8], mask| {
        number += 1;
        let path = folder.path().join(format!("{number}.h5"));
        let (encoding, dataset) = with_second_chunk(&path, stored, mask);
        read_all(&path, encoding, &dataset).0.map(|values| values[64..].to_vec())
    };
    let whole = deflated(&[b'a'; 64]);
    assert_eq!(read(&whole, 0).unwrap(), [b'a'; 64]);
    // The mask marks deflate as skipped.
    assert_eq!(read(&[b'A'; 64], 1).unwrap(), [b'A'; 64]);
    let mut broken = whole.clone();
    *broken.last_mut().unwrap() ^= 1;
    let damaged = [deflated(&[b'a'; 63]), deflated(&[b'a'; 65]), deflated(&vec![0; 1 << 20]), broken, vec![b'a'; 64]];
    for stored in &damaged {
        let error = read(stored, 0).unwrap_err();
        assert!(matches!(error, Hdf5Error::Chunk { .. }), "{error}");
    }
    assert!(read(&[b'A'; 63], 1).is_err());
    // Longer than any filter makes a chunk.
    assert!(matches!(read(&vec![0; 200_000], 0), Err(Hdf5Error::Limit { .. })));
}

#[test]
fn datasets_that_contradict_themselves() {
    let patient = Patient::new(&Spec::plain(&[10, 3], chunked(&[2, 3])));
    let sound = &patient.sample.dataset;
    let with = |change: &dyn Fn(&mut Vec<u64>, &mut Dataspace)| {
        let mut dataset = sound.clone();
        let Layout::Chunked { chunk_shape, .. } = &mut dataset.layout else { panic!("not chunked") };
        let mut space = dataset.dataspace.clone();
        change(chunk_shape, &mut space);
        dataset.dataspace = space;
        read_all(&patient.path, patient.sample.encoding, &dataset)
    };
    for (values, chunks) in [
        with(&|shape, _| shape[0] = 0),
        with(&|shape, _| shape.push(1)),
        with(&|shape, _| *shape = vec![1 << 40, 1 << 40]),
        with(&|shape, _| *shape = vec![1 << 29, 3]),
    ] {
        assert!(values.is_err());
        // A chunk of 6 GiB is beyond the reader's limit, but not a contradiction.
        let _ = chunks;
    }
    let mut short = sound.clone();
    short.layout = Layout::Contiguous { address: Some(100), len_bytes: 119 };
    assert!(read_all(&patient.path, patient.sample.encoding, &short).0.is_err());
    short.layout = Layout::Compact(InlineData::Stored(vec![0; 119]));
    assert!(read_all(&patient.path, patient.sample.encoding, &short).0.is_err());
    short.layout = Layout::Contiguous { address: Some(u64::MAX - 10), len_bytes: 120 };
    assert!(read_all(&patient.path, patient.sample.encoding, &short).0.is_err());
    short.layout = Layout::Virtual;
    assert!(read_all(&patient.path, patient.sample.encoding, &short).0.unwrap_err().is_unsupported());
    let mut filled = sound.clone();
    filled.layout = Layout::Contiguous { address: None, len_bytes: 120 };
    filled.fill.value = Some(InlineData::Stored(vec![1, 2, 3]));
    assert!(read_all(&patient.path, patient.sample.encoding, &filled).0.is_err());
    let file = InputFile::open(&patient.path).unwrap();
    let pipeline = Pipeline::new(&[], 4).unwrap();
    let source = DatasetSource { file: &file, encoding: patient.sample.encoding, dataset: sound, pipeline: &pipeline };
    let mut reader = DatasetReader::new(ReaderLimits::default());
    let mut out = vec![0; 120];
    for (start, count, out_shape, out_origin) in [
        (&[0, 0][..], &[10, 4][..], &[10, 4][..], &[0, 0][..]),
        (&[10, 0], &[1, 3], &[10, 3], &[0, 0]),
        (&[u64::MAX, 0], &[2, 3], &[10, 3], &[0, 0]),
        (&[0], &[10], &[30], &[0]),
        (&[0, 0], &[10, 3], &[10, 3], &[1, 0]),
        (&[0, 0], &[10, 3], &[9, 3], &[0, 0]),
        (&[0, 0], &[1, 3], &[u64::MAX, u64::MAX], &[0, 0]),
    ] {
        let target = BoxRead { start, count, out_shape, out_origin };
        let error = reader.read_box(&source, &target, &mut out).unwrap_err();
        assert!(matches!(error, Hdf5Error::BoxOutside { .. }), "{error}");
    }
    for origin in [&[1, 0][..], &[0], &[10, 0], &[0, 0, 0]] {
        assert!(reader.stored_chunk(&source, origin, &mut Vec::new()).is_err());
    }
    let mut stored = Vec::new();
    let found = reader.stored_chunk(&source, &[2, 0], &mut stored).unwrap();
    assert!(found.is_some() || !stored.is_empty() || patient.bytes.is_empty());
}

/// Creates a file that contains only a heap collection at byte 64 with `objects`.
fn heap_file(folder: &Path, objects: &[Vec<u8>]) -> (InputFile, FileTree) {
    let mut collection = b"GCOL\x01\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    for (number, object) in objects.iter().enumerate() {
        collection.extend((number as u16 + 1).to_le_bytes());
        collection.extend([1, 0, 0, 0, 0, 0]);
        collection.extend((object.len() as u64).to_le_bytes());
        collection.extend(object);
        collection.resize(collection.len().next_multiple_of(8), 0);
    }
    let len = collection.len() as u64;
    put(&mut collection, 8, len);
    let path = folder.join("file.h5");
    std::fs::write(&path, [vec![0; 64], collection].concat()).unwrap();
    let tree = FileTree {
        superblock_version: 0,
        userblock_len_bytes: 0,
        address_len_bytes: 8,
        length_len_bytes: 8,
        objects: Vec::new(),
    };
    (InputFile::open(&path).unwrap(), tree)
}

/// Returns a descriptor of `count` items in heap object `index` of the collection at `address`.
fn descriptor(count: u32, address: u64, index: u32) -> Vec<u8> {
    [&count.to_le_bytes()[..], &address.to_le_bytes(), &index.to_le_bytes()].concat()
}

fn string() -> Arc<TypeClass> {
    Arc::new(TypeClass::VariableString { padding: 0, charset: 0, len_bytes: 16 })
}

#[test]
fn heap_objects_that_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let (file, tree) = heap_file(folder.path(), &[b"abc".to_vec(), b"a\0c".to_vec()]);
    let canonical = |element: &[u8]| {
        let mut out = Vec::new();
        Resolver::new(&file, &tree).canonical(&string(), element, &mut out).map(|()| out)
    };
    assert_eq!(canonical(&descriptor(3, 64, 1)).unwrap(), b"\x03\0\0\0\0\0\0\0abc");
    assert_eq!(canonical(&descriptor(3, 64, 2)).unwrap(), b"\x01\0\0\0\0\0\0\0a");
    assert_eq!(canonical(&descriptor(0, 0, 0)).unwrap(), [0xff; 8], "null");
    assert_eq!(canonical(&descriptor(0, 64, 1)).unwrap(), [0; 8], "empty");
    assert_malformed(canonical(&descriptor(3, 64, 3)), "no object 3");
    assert_malformed(canonical(&descriptor(3, 64, 65_537)), "no object 65537");
    assert_malformed(canonical(&descriptor(4, 64, 1)), "which has 3 bytes");
    assert_malformed(canonical(&descriptor(3, 65, 1)), "GCOL");
    assert!(matches!(canonical(&descriptor(3, 1 << 60, 1)), Err(Hdf5Error::Truncated { .. })));
    assert_malformed(canonical(&[1, 2, 3]), "not a multiple of the element size");
    let reference = TypeClass::Reference(ReferenceKind::Object);
    let mut out = Vec::new();
    assert_malformed(
        Resolver::new(&file, &tree).canonical(&reference, &96_u64.to_le_bytes(), &mut out),
        "where the file has no object",
    );
}

/// An entry of index 0 and length 0 makes libhdf5 loop forever.
#[test]
fn free_space_of_no_length() {
    let folder = tempfile::tempdir().unwrap();
    let (file, tree) = heap_file(folder.path(), &[b"abc".to_vec(), vec![0; 16], Vec::new()]);
    let canonical = |file: &InputFile| {
        let mut out = Vec::new();
        Resolver::new(file, &tree).canonical(&string(), &descriptor(3, 64, 1), &mut out).map(|()| out)
    };
    assert_eq!(canonical(&file).unwrap(), b"\x03\0\0\0\0\0\0\0abc");
    let end = std::fs::metadata(file.path()).unwrap().len() as usize;
    let changed = |entries: &[usize], len: u64| {
        let mut bytes = std::fs::read(file.path()).unwrap();
        for &entry in entries {
            bytes[entry] = 0;
            bytes[entry + 8..entry + 16].copy_from_slice(&len.to_le_bytes());
        }
        std::fs::write(file.path(), bytes).unwrap();
        canonical(&InputFile::open(file.path()).unwrap())
    };
    let (second, third) = (end - 48, end - 16);
    assert!(changed(&[third], 16).is_ok(), "free space to the end");
    assert!(changed(&[third], 1 << 40).is_ok(), "beyond the end");
    assert!(changed(&[second], 32).is_ok(), "free space before an object");
    assert_malformed(changed(&[third], 0), "free space of 0 bytes");
    assert_malformed(changed(&[second, third], 8), "free space of 8 bytes");
}

#[test]
fn a_small_heap_cannot_stand_for_any_number_of_bytes() {
    let folder = tempfile::tempdir().unwrap();
    // Five levels of 256 items, each of which is the same object of the next level: 2^40 strings from 20 KiB.
    let mut objects: Vec<Vec<u8>> = (2..6).map(|next| descriptor(256, 64, next).repeat(256)).collect();
    objects.push(descriptor(1, 64, 6).repeat(256));
    objects.push(b"x".to_vec());
    let (file, tree) = heap_file(folder.path(), &objects);
    let class = (0..5).fold(string(), |base, _| Arc::new(TypeClass::Sequence { base, len_bytes: 16 }));
    let mut out = Vec::new();
    let error = Resolver::new(&file, &tree).canonical(&class, &descriptor(256, 64, 1), &mut out).unwrap_err();
    assert!(matches!(error, Hdf5Error::Limit { .. }), "{error}");
    assert!(out.len() < 1 << 20);
}

#[test]
fn every_flipped_byte_of_a_heap() {
    let folder = tempfile::tempdir().unwrap();
    let objects = [b"abc".to_vec(), descriptor(3, 64, 1).repeat(3), vec![7; 30]];
    let (file, tree) = heap_file(folder.path(), &objects);
    let bytes = std::fs::read(file.path()).unwrap();
    let class = TypeClass::Sequence { base: string(), len_bytes: 16 };
    for at in 64..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            std::fs::write(file.path(), bytes).unwrap();
            let file = InputFile::open(file.path()).unwrap();
            let _ = Resolver::new(&file, &tree).canonical(&class, &descriptor(3, 64, 2), &mut Vec::new());
        }
    }
}
