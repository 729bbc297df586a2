//! Counts of `inspect` on files made by libhdf5 with known sizes.

use raddle_hdf5::default_format::{DefaultDatasetSpec, DefaultFormatFile, Element};
use raddle_hdf5::inspect::{Advice, Bucket, Inspection, StorageKind, inspect};
use raddle_hdf5::native::ReadLimits;
use raddle_hdf5::source::InputFile;
use std::path::Path;

fn inspection(path: &Path) -> Inspection {
    inspect(&InputFile::open(path).unwrap(), &ReadLimits::default(), None).unwrap()
}

fn column(rows: u64, chunk_rows: u64) -> DefaultDatasetSpec {
    DefaultDatasetSpec { element: Element::I32, dims: vec![rows, 1], chunk_shape: vec![chunk_rows, 1], gzip_level: 6 }
}

/// Creates a table of three columns: one with `chunks` chunks of 128 rows, each stored in 100 bytes; one with a single
/// chunk; one that is empty.
fn make_table(path: &Path, chunks: u64) {
    let mut file = DefaultFormatFile::create(path).unwrap();
    file.create_group(b"/table").unwrap();
    let mut evt = file.create_dataset(b"/table/evt", &column(128 * chunks, 128)).unwrap();
    for chunk in 0..chunks {
        // Never decoded, so any bytes will do.
        evt.write_chunk(&[128 * chunk, 0], &[7; 100], 0).unwrap();
    }
    drop(evt);
    let mut whole = file.create_dataset(b"/table/whole", &column(128 * chunks, 128 * chunks)).unwrap();
    whole.write_chunk(&[0, 0], &[7; 2000], 0).unwrap();
    drop(whole);
    drop(file.create_dataset(b"/table/none", &column(0, 128)).unwrap());
    file.finish().unwrap();
}

#[test]
fn sizes_are_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.h5");
    make_table(&path, 20);
    let found = inspection(&path);

    assert_eq!((found.objects.groups, found.objects.datasets, found.objects.empty_datasets), (2, 3, 1));
    assert_eq!(found.space.raw_len_bytes, 20 * 100 + 2000);
    let space = &found.space;
    let sum = space.raw_len_bytes + space.metadata_len_bytes + space.heap_len_bytes + space.unused_len_bytes;
    assert_eq!(sum, std::fs::metadata(&path).unwrap().len());
    assert_eq!(found.logical_len_bytes, 2 * 20 * 128 * 4);
    assert_eq!(found.stored_len_bytes, 4000);
    assert_eq!(found.chunks.count, 21);
    assert_eq!(
        found.chunks.by_logical_len,
        [Bucket { from_len_bytes: 512, count: 20 }, Bucket { from_len_bytes: 8192, count: 1 }]
    );
    assert_eq!(
        found.chunks.by_stored_len,
        [Bucket { from_len_bytes: 64, count: 20 }, Bucket { from_len_bytes: 1024, count: 1 }]
    );
    assert_eq!((found.filters.len(), found.filters[0].name.as_str(), found.filters[0].datasets), (1, "deflate", 3));

    let group = &found.groups[0];
    assert_eq!((group.path.as_slice(), group.datasets, group.empty_datasets), (&b"/table"[..], 3, 1));
    assert_eq!(group.rows, None, "the empty column has another number of rows");
    let evt = &found.datasets[0];
    assert_eq!((evt.path.as_slice(), evt.chunks, evt.stored_len_bytes), (&b"/table/evt"[..], 20, 2000));
    assert_eq!((evt.storage, evt.has_index), (StorageKind::Chunked, true));
    assert!(found.faults.is_empty() && found.advice.is_empty(), "{:?} {:?}", found.faults, found.advice);
}

#[test]
fn many_small_chunks_are_advised_against() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.h5");
    make_table(&path, 1500);
    let found = inspection(&path);
    let expected = Advice::SmallChunks { chunks: 1500, datasets: 1, typical_len_bytes: 512 };
    assert_eq!(found.advice, [expected]);
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["advice"][0]["rule"], "small_chunks");
    assert_eq!(json["datasets"][0]["path"], "/table/evt");
}

#[test]
fn a_damaged_index_is_a_fault_of_its_dataset_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.h5");
    make_table(&path, 20);
    let mut bytes = std::fs::read(&path).unwrap();
    // The last tree node is that of /table/whole or /table/evt; groups come first in the file.
    let node = bytes.windows(5).rposition(|window| window == b"TREE\x01").unwrap();
    bytes[node] = b'X';
    std::fs::write(&path, &bytes).unwrap();
    let found = inspection(&path);
    assert_eq!((found.faults.len(), found.objects.datasets), (1, 3));
    assert!(found.faults[0].path.starts_with(b"/table/"), "{:?}", found.faults);
}

#[test]
fn anything_but_hdf5_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.h5");
    std::fs::write(&path, "no HDF5").unwrap();
    let file = InputFile::open(&path).unwrap();
    assert!(inspect(&file, &ReadLimits::default(), None).unwrap_err().to_string().contains("not an HDF5 file"));
}
