//! Chunks and contiguous values at addresses chosen by the test.

use crate::readback::Readback;
use crate::tree::Tree;
use crate::{UNORDERED, integer, spec};
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::model::Dataspace;
use raddle_hdf5::write::{AttributeSpec, Compat, OutputFile, OutputLayout, OutputOptions, TypeRef};
use std::os::unix::fs::FileExt;

const ALL_BOUNDS: [Compat; 4] = [Compat::Earliest, Compat::V18, Compat::V110, Compat::Latest];
const UNLIMITED: u64 = u64::MAX;

fn options(compat: Compat, metadata_region_len_bytes: u64) -> OutputOptions {
    OutputOptions { compat, metadata_region_len_bytes, ..OutputOptions::default() }
}

/// Returns row `row` of a dataset of 32-bit integers.
fn row(seed: u32, row: u64) -> [u8; 4] {
    (seed.wrapping_mul(0x9E37_79B9) ^ row as u32).to_le_bytes()
}

#[test]
fn chunks_are_read_where_they_were_written_after_the_file_was_closed() {
    for compat in ALL_BOUNDS {
        for max_rows in [950, UNLIMITED] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("out.h5");
            let mut out = OutputFile::create(&path, &options(compat, 1 << 16)).unwrap();
            out.create_group(b"/g", UNORDERED, UNORDERED).unwrap();
            let chunked = OutputLayout::Chunked { chunk_shape: vec![100] };
            let mut address = out.raw_start() + 17;
            let mut payloads: Vec<(u64, Vec<u8>)> = Vec::new();
            for seed in 0..3 {
                let path = format!("/g/d{seed}").into_bytes();
                let spec = spec(integer(4, false), &[950], &[max_rows], chunked.clone());
                let mut dataset = out.create_dataset(&path, &spec).unwrap();
                // Out of order, and chunk 4 is never inserted: the reader must return the fill value there.
                for chunk in [3, 0, 9, 1, 2, 8, 7, 5, 6] {
                    let bytes: Vec<u8> = (0..100).flat_map(|i| row(seed, chunk * 100 + i)).collect();
                    dataset.insert(&[chunk * 100], address, 400, 0).unwrap();
                    payloads.push((address, bytes));
                    address += 400 + 3;
                }
            }
            let written = out.finish().unwrap();
            assert_eq!(written.claim_count, 27);
            assert!(written.metadata_len_bytes <= written.metadata_region_len_bytes);
            for (address, bytes) in &payloads {
                written.file.write_all_at(bytes, *address).unwrap();
            }
            assert_eq!(std::fs::metadata(&path).unwrap().len(), written.file_len_bytes);
            let back = Readback::open(&path);
            for seed in 0..3 {
                let expected: Vec<u8> =
                    (0..950).flat_map(|i| if (400..500).contains(&i) { [0; 4] } else { row(seed, i) }).collect();
                assert_eq!(back.values(&format!("/g/d{seed}")), expected, "{compat:?} {max_rows} {seed}");
                assert_eq!(back.chunk(&format!("/g/d{seed}"), &[300]).0, payloads[seed as usize * 9].0);
            }
        }
    }
}

#[test]
fn a_contiguous_dataset_lies_where_it_was_placed() {
    for compat in ALL_BOUNDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.h5");
        let mut out = OutputFile::create(&path, &options(compat, 1 << 14)).unwrap();
        let address = out.raw_start();
        let mut dataset = out
            .create_dataset(b"/flat", &spec(integer(4, true), &[70_000], &[70_000], OutputLayout::Contiguous))
            .unwrap();
        dataset.place(address).unwrap();
        drop(dataset);
        let mut small =
            out.create_dataset(b"/small", &spec(integer(4, true), &[3], &[3], OutputLayout::Compact)).unwrap();
        small.write(&[7; 12]).unwrap();
        drop(small);
        let raw = out.raw_file().unwrap();
        let bytes: Vec<u8> = (0..70_000).flat_map(|i| row(5, i)).collect();
        raw.write_all_at(&bytes, address).unwrap();
        out.finish().unwrap();
        let back = Readback::open(&path);
        assert_eq!(back.offset("/flat"), address);
        assert_eq!(back.values("/flat"), bytes);
        assert_eq!(back.values("/small"), [7; 12]);
    }
}

/// libhdf5 receives the length of all values at once, which must not be truncated to 32 bits on the way.
#[test]
fn a_contiguous_dataset_may_be_longer_than_four_gib() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let mut out = OutputFile::create(&path, &options(Compat::V18, 1 << 14)).unwrap();
    let address = out.raw_start();
    let count = (5 << 30) + 3;
    let mut dataset =
        out.create_dataset(b"/long", &spec(integer(1, false), &[count], &[count], OutputLayout::Contiguous)).unwrap();
    dataset.place(address).unwrap();
    drop(dataset);
    out.raw_file().unwrap().write_all_at(&[7], address + count - 1).unwrap();
    assert!(out.finish().unwrap().file_len_bytes >= address + count);
    assert_eq!(Readback::open(&path).offset("/long"), address);
}

#[test]
fn the_same_calls_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for run in 0..2 {
        let path = folder.path().join(format!("{run}.h5"));
        let mut out = OutputFile::create(&path, &options(Compat::V18, 1 << 20)).unwrap();
        let mut address = out.raw_start();
        for group in 0..5 {
            let group = format!("/g{group}");
            out.create_group(group.as_bytes(), UNORDERED, UNORDERED).unwrap();
            for dataset in 0..20 {
                let chunked = OutputLayout::Chunked { chunk_shape: vec![10] };
                let spec = spec(integer(8, false), &[300], &[UNLIMITED], chunked);
                let mut dataset = out.create_dataset(format!("{group}/d{dataset}").as_bytes(), &spec).unwrap();
                for chunk in 0..30 {
                    dataset.insert(&[chunk * 10], address, 80, 0).unwrap();
                    address += 80;
                }
            }
        }
        // Time must not matter: neither time stamps nor the order of hashes.
        std::thread::sleep(std::time::Duration::from_millis(if run == 0 { 1100 } else { 0 }));
        out.finish().unwrap();
        files.push(std::fs::read(&path).unwrap());
    }
    assert!(files[0] == files[1], "two runs differ");
}

#[test]
fn twenty_thousand_chunks_fit_into_one_dataset() {
    for compat in ALL_BOUNDS {
        for max_rows in [20_000, UNLIMITED] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("out.h5");
            let mut out = OutputFile::create(&path, &options(compat, 4 << 20)).unwrap();
            let start = out.raw_start();
            let chunked = OutputLayout::Chunked { chunk_shape: vec![1] };
            let spec = spec(integer(2, false), &[20_000], &[max_rows], chunked);
            let mut dataset = out.create_dataset(b"/long", &spec).unwrap();
            for chunk in 0..20_000 {
                dataset.insert(&[chunk], start + 2 * chunk, 2, 0).unwrap();
            }
            drop(dataset);
            let raw = out.raw_file().unwrap();
            let bytes: Vec<u8> = (0..20_000_u16).flat_map(u16::to_le_bytes).collect();
            raw.write_all_at(&bytes, start).unwrap();
            out.finish().unwrap();
            let back = Readback::open(&path);
            assert_eq!(back.chunk_count("/long"), 20_000);
            assert_eq!(back.values("/long"), bytes, "{compat:?} {max_rows}");
        }
    }
}

#[test]
fn a_full_region_is_reported_before_anything_is_changed_and_the_rest_follows_the_raw_data() {
    for compat in ALL_BOUNDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.h5");
        let mut out = OutputFile::create(&path, &options(compat, 1 << 16)).unwrap();
        let start = out.raw_start();
        let chunked = OutputLayout::Chunked { chunk_shape: vec![4] };
        let spec = spec(integer(4, false), &[40], &[UNLIMITED], chunked);
        let raw_end = start + 200 * 160;
        let mut refused = Vec::new();
        let fill = |out: &mut OutputFile, index: u64| -> Result<(), Hdf5Error> {
            let mut dataset = out.create_dataset(format!("/d{index:03}").as_bytes(), &spec)?;
            for chunk in 0..10 {
                dataset.insert(&[chunk * 4], start + index * 160 + chunk * 16, 16, 0)?;
            }
            Ok(())
        };
        for index in 0..200 {
            if out.metadata_left_bytes() < 16_384 {
                refused.push(index);
            } else {
                fill(&mut out, index).unwrap();
            }
        }
        assert!(refused.len() > 20 && refused.len() < 190, "{compat:?}: {}", refused.len());
        // Use up the rest of the region until an operation is refused, which must leave no trace.
        let refusal =
            (0..).find_map(|index| out.create_group(format!("/g{index:05}").as_bytes(), UNORDERED, UNORDERED).err());
        assert!(matches!(refusal, Some(Hdf5Error::MetadataRegionFull { .. })), "{refusal:?}");
        out.set_raw_end(raw_end);
        assert_eq!(out.metadata_left_bytes(), u64::MAX);
        for &index in &refused {
            fill(&mut out, index).unwrap();
        }
        let mut dataset = out.create_dataset(b"/last", &spec).unwrap();
        assert!(matches!(dataset.insert(&[0], raw_end, 16, 0), Err(Hdf5Error::Placement { .. })));
        drop(dataset);
        let raw = out.raw_file().unwrap();
        let bytes: Vec<u8> = (0..8000).flat_map(|i| row(1, i)).collect();
        raw.write_all_at(&bytes, start).unwrap();
        let written = out.finish().unwrap();
        assert!(written.tail_len_bytes > 0 && written.file_len_bytes > raw_end, "{compat:?}");
        let back = Readback::open(&path);
        for index in 0..200 {
            let values = back.values(&format!("/d{index:03}"));
            assert!(values == bytes[index * 160..][..160], "{compat:?} dataset {index}");
        }
    }
}

#[test]
fn without_raw_data_metadata_continues_where_its_region_ends() {
    // libhdf5 joins neighbouring writes: for some lengths, one write extends beyond the end of the region.
    for (compat, len) in ALL_BOUNDS.iter().flat_map(|compat| (1..120).map(move |len| (*compat, len))) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.h5");
        let mut out = OutputFile::create(&path, &options(compat, 4096)).unwrap();
        let raw_start = out.raw_start();
        out.set_raw_end(raw_start);
        let value = vec![7; len * 8];
        let attribute = AttributeSpec {
            name: b"value",
            utf8: false,
            datatype: &TypeRef::Own(integer(1, false)),
            dataspace: &Dataspace::Simple { dims: vec![value.len() as u64], max_dims: vec![value.len() as u64] },
            value: &value,
        };
        let names: Vec<String> = (0..12).map(|number| format!("/group {number}")).collect();
        for name in &names {
            out.create_group(name.as_bytes(), UNORDERED, UNORDERED).unwrap();
            out.write_attribute(name.as_bytes(), &attribute).unwrap();
        }
        out.finish().unwrap();
        let tree = Tree::read(&path);
        assert!(names.iter().all(|name| tree.group(name.as_bytes()).links.is_empty()), "{compat:?} {len}");
    }
}
