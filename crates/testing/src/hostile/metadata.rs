//! Files whose structures are truncated, changed or claim too much.

use super::{Case, Expectation, base, bytes_of, make, only_place, patch, patch_only, replace};
use crate::canonical::push_sized;
use crate::plain::numbers;
use crate::plain::storage::{Foreign, copy_while_written, create_foreign, data_address};
use crate::spec::{DatasetSpec, FileSpec, FilterSpec, Format};
use raddle_hdf5::model::{ReferenceKind, TypeClass};
use std::path::Path;

pub const CASES: &[Case] = &[
    Case { name: "empty_file", about: "no bytes", row: 1, make: empty_file },
    Case { name: "not_hdf5", about: "text", row: 1, make: not_hdf5 },
    Case { name: "cut_signature", about: "ends after the signature", row: 1, make: cut_signature },
    Case { name: "cut_half", about: "ends in the middle", row: 1, make: cut_half },
    Case { name: "cut_last_byte", about: "lacks its last byte", row: 1, make: cut_last_byte },
    Case { name: "cut_last_byte_v110", about: "lacks its last byte, newer format", row: 1, make: cut_last_byte_v110 },
    Case { name: "checksum_superblock", about: "a bit flipped in a checksummed superblock", row: 2, make: superblock },
    Case { name: "checksum_header", about: "a bit flipped in a checksummed object header", row: 2, make: header },
    Case { name: "open_for_write", about: "left by a writer that crashed", row: 2, make: open_for_write },
    Case { name: "huge_contiguous", about: "2^62 bytes, never written", row: 5, make: huge_contiguous },
    Case { name: "huge_chunked", about: "2^50 bytes in 2^30 chunks, none allocated", row: 5, make: huge_chunked },
    Case { name: "many_chunks", about: "2^40 chunks of one byte, none allocated", row: 5, make: many_chunks },
    Case { name: "overflow_dims", about: "dimensions whose product exceeds 64 bits", row: 5, make: overflow_dims },
    Case { name: "overflow_chunk", about: "a chunk shape of 2^32 - 1 rows of 2^32 - 1", row: 5, make: overflow_chunk },
    Case { name: "userblock", about: "512 bytes before the superblock", row: 6, make: userblock },
    Case { name: "cycle_btree", about: "a group's B-tree node is its own child", row: 7, make: cycle_btree },
    Case {
        name: "heap_beyond_end",
        about: "a string's heap address lies beyond the end",
        row: 6,
        make: heap_beyond_end,
    },
    Case { name: "heap_index", about: "a string's heap index does not exist", row: 6, make: heap_index },
    Case { name: "sequence_huge", about: "a sequence claims 2^32 - 1 items", row: 5, make: sequence_huge },
    Case { name: "reference_dangling", about: "an object reference points nowhere", row: 6, make: dangling },
];

const DEFLATE: &[FilterSpec] = &[FilterSpec::Deflate(6)];

fn empty_file(path: &Path) -> Expectation {
    replace(path, b"");
    Expectation::Refused
}

fn not_hdf5(path: &Path) -> Expectation {
    replace(path, &b"# run subrun evt\n".repeat(200));
    Expectation::Refused
}

fn cut_to(path: &Path, format: Format, len_bytes: impl Fn(usize) -> usize) -> Expectation {
    make(path, &base(format, DEFLATE));
    let bytes = bytes_of(path);
    replace(path, &bytes[..len_bytes(bytes.len())]);
    Expectation::Refused
}

fn cut_signature(path: &Path) -> Expectation {
    cut_to(path, Format::Earliest, |_| 8)
}

fn cut_half(path: &Path) -> Expectation {
    cut_to(path, Format::Earliest, |len_bytes| len_bytes / 2)
}

fn cut_last_byte(path: &Path) -> Expectation {
    cut_to(path, Format::Earliest, |len_bytes| len_bytes - 1)
}

fn cut_last_byte_v110(path: &Path) -> Expectation {
    cut_to(path, Format::V110, |len_bytes| len_bytes - 1)
}

fn superblock(path: &Path) -> Expectation {
    make(path, &base(Format::V110, DEFLATE));
    // Address of the root group in a superblock of version 2 or 3: signature 8, version and sizes 4, base 8, extension
    // 8, end 8.
    let flipped = bytes_of(path)[36] ^ 0x40;
    patch(path, 36, &[flipped]);
    Expectation::Refused
}

fn header(path: &Path) -> Expectation {
    make(path, &base(Format::V110, DEFLATE));
    let bytes = bytes_of(path);
    // After the signature of the first object header of version 2: version, flags, then sizes and messages.
    let start = bytes.windows(4).position(|window| window == b"OHDR").expect("a header of version 2");
    patch(path, start + 12, &[bytes[start + 12] ^ 0x04]);
    Expectation::Refused
}

fn open_for_write(path: &Path) -> Expectation {
    let whole = path.with_extension("whole");
    make(&whole, &base(Format::Latest, DEFLATE));
    copy_while_written(&whole, path).expect("a writer can open the file").expect("a copy can be made");
    Expectation::Refused
}

/// Writes a file with an ordinary dataset, to which a test adds something.
fn ordinary(path: &Path) {
    make(path, &base(Format::Earliest, DEFLATE));
}

fn huge_contiguous(path: &Path) -> Expectation {
    let mut spec = base(Format::Earliest, DEFLATE);
    let mut huge = DatasetSpec::plain(numbers::u8(), &[1 << 62], Vec::new());
    huge.written_rows = 0;
    spec.objects.push(huge.at("/huge"));
    make(path, &spec);
    Expectation::Cheap
}

fn huge_chunked(path: &Path) -> Expectation {
    ordinary(path);
    create_foreign(path, b"/huge", 1 << 50, Foreign::Unallocated(1 << 20)).expect("chunks need not exist");
    Expectation::Cheap
}

fn many_chunks(path: &Path) -> Expectation {
    ordinary(path);
    create_foreign(path, b"/many", 1 << 40, Foreign::Unallocated(1)).expect("chunks need not exist");
    Expectation::Cheap
}

/// Dimensions that occur nowhere else in the file, so that they can be found.
const MARKED_DIMS: [u64; 2] = [0x0123_4567, 0x0089_ABCD];

fn overflow_dims(path: &Path) -> Expectation {
    let mut marked = DatasetSpec::plain(numbers::u8(), &MARKED_DIMS, Vec::new());
    marked.written_rows = 0;
    make(path, &FileSpec { objects: vec![marked.at("/marked")], ..FileSpec::default() });
    let bytes = bytes_of(path);
    let old = MARKED_DIMS.map(u64::to_le_bytes).concat();
    let new = [1_u64 << 33, 1 << 33].map(u64::to_le_bytes).concat();
    // Both the current and the maximum dimensions.
    let places: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(&old)).collect();
    assert!(!places.is_empty(), "the dataspace message holds the dimensions");
    places.into_iter().for_each(|place| patch(path, place, &new));
    Expectation::Refused
}

fn overflow_chunk(path: &Path) -> Expectation {
    let shape = [0x0023_4567_u64, 0x0000_00CD];
    let dataset = DatasetSpec::plain(numbers::u8(), &[0, 0x0000_00CD], Vec::new()).chunked(&shape, DEFLATE);
    make(path, &FileSpec { objects: vec![dataset.at("/marked")], ..FileSpec::default() });
    // Layout version 3 stores chunk dimensions in 4 bytes each.
    let old: Vec<u8> = shape.iter().flat_map(|&dim| (dim as u32).to_le_bytes()).collect();
    patch_only(path, &old, &[0xFF; 8]);
    Expectation::RefusedOrReadsAs(Box::new(
        FileSpec {
            objects: vec![
                DatasetSpec::plain(numbers::u8(), &[0, 0x0000_00CD], Vec::new()).chunked(&shape, &[]).at("/marked"),
            ],
            ..FileSpec::default()
        }
        .content(),
    ))
}

fn userblock(path: &Path) -> Expectation {
    let spec = FileSpec { userblock_len_bytes: 512, ..base(Format::Earliest, DEFLATE) };
    make(path, &spec);
    patch(path, 0, b"#!/bin/sh\necho a script before the file\n");
    Expectation::ReadsAs(Box::new(spec.content()))
}

fn cycle_btree(path: &Path) -> Expectation {
    ordinary(path);
    let bytes = bytes_of(path);
    // A version 1 node of a group (type 0): signature, type, level, entries used, siblings 16, key 8, child 8.
    let node = only_place(&bytes, b"TREE\x00\x00");
    patch(path, node + 5, &[1]);
    patch(path, node + 32, &(node as u64).to_le_bytes());
    Expectation::Refused
}

/// Writes a file with one string at `/text`; returns the position of its descriptor: length 4, heap address 8, heap
/// index 4.
fn with_text(path: &Path, class: TypeClass) -> usize {
    let mut values = Vec::new();
    if matches!(class, TypeClass::VariableString { .. }) {
        push_sized(b"somewhere in the heap", &mut values);
    } else {
        values.extend_from_slice(&3_u64.to_le_bytes());
        values.extend_from_slice(&[1, 2, 3]);
    }
    let dataset = DatasetSpec::plain(class, &[1], values);
    make(path, &FileSpec { objects: vec![dataset.at("/text")], ..FileSpec::default() });
    data_address(path, b"/text").expect("contiguous storage has an address") as usize
}

fn heap_beyond_end(path: &Path) -> Expectation {
    let descriptor = with_text(path, numbers::text());
    patch(path, descriptor + 4, &(1_u64 << 40).to_le_bytes());
    Expectation::Refused
}

fn heap_index(path: &Path) -> Expectation {
    let descriptor = with_text(path, numbers::text());
    patch(path, descriptor + 12, &4711_u32.to_le_bytes());
    Expectation::Refused
}

fn sequence_huge(path: &Path) -> Expectation {
    let base = std::sync::Arc::new(numbers::u8());
    let descriptor = with_text(path, TypeClass::Sequence { base, len_bytes: 16 });
    patch(path, descriptor, &u32::MAX.to_le_bytes());
    Expectation::Refused
}

fn dangling(path: &Path) -> Expectation {
    let mut values = Vec::new();
    push_sized(b"/data", &mut values);
    let reference = DatasetSpec::plain(TypeClass::Reference(ReferenceKind::Object), &[1], values);
    let mut spec = base(Format::Earliest, DEFLATE);
    spec.objects.push(reference.at("/reference"));
    make(path, &spec);
    let place = data_address(path, b"/reference").expect("contiguous storage has an address") as usize;
    patch(path, place, &(1_u64 << 40).to_le_bytes());
    Expectation::Refused
}
