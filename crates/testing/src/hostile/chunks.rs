//! Chunks with wrong contents or at wrong addresses.

use super::{Case, Expectation, base, bytes_of, make, only_place, patch, patch_only};
use crate::content::Node;
use crate::plain::storage::{chunks, write_chunk};
use crate::spec::{FilterSpec, Format};
use raddle_codec::{Effort, EncodeState, Encoder};
use std::path::Path;

pub const CASES: &[Case] = &[
    Case { name: "chunk_short", about: "inflates to fewer bytes than a chunk has", row: 3, make: short },
    Case { name: "chunk_long", about: "inflates to more bytes than a chunk has", row: 3, make: long },
    Case { name: "chunk_adler", about: "wrong checksum at the end of the stream", row: 3, make: adler },
    Case { name: "chunk_cut", about: "the stream stops in the middle", row: 3, make: cut },
    Case { name: "chunk_garbage", about: "not a zlib stream", row: 3, make: garbage },
    Case { name: "chunk_trailing", about: "bytes after the end of the stream", row: 3, make: trailing },
    Case { name: "chunk_unfiltered", about: "stored without filters, and marked so", row: 3, make: unfiltered },
    Case { name: "chunk_unfiltered_short", about: "unfiltered, but too short", row: 3, make: unfiltered_short },
    Case { name: "chunk_unfiltered_long", about: "unfiltered, but too long", row: 3, make: unfiltered_long },
    Case { name: "chunk_fletcher", about: "a flipped bit under fletcher32", row: 3, make: fletcher },
    Case { name: "bomb", about: "a chunk of 16 bytes inflates to 64 MiB", row: 4, make: bomb },
    Case { name: "bomb_nested", about: "deflate twice: a small stream of a 64 MiB stream", row: 4, make: nested_bomb },
    Case { name: "chunk_overlap", about: "two chunks at one address", row: 6, make: overlap },
    Case { name: "chunk_beyond_end", about: "a chunk beyond the end of the file", row: 6, make: beyond_end },
    Case { name: "chunk_at_superblock", about: "a chunk at address 0", row: 6, make: at_superblock },
    Case { name: "chunk_at_2_63", about: "a chunk at address 2^63", row: 6, make: at_2_63 },
    Case { name: "chunk_len_4_gib", about: "a chunk of 4 GiB stored bytes", row: 6, make: len_4_gib },
    Case {
        name: "chunk_off_grid",
        about: "a chunk's origin is not a multiple of the chunk shape",
        row: 6,
        make: off_grid,
    },
];

const DEFLATE: &[FilterSpec] = &[FilterSpec::Deflate(6)];

/// Returns a zlib stream of at most 65,535 bytes in one stored block: longer than its content, and easy to damage.
fn stream_of(raw: &[u8]) -> Vec<u8> {
    let len_bytes = u16::try_from(raw.len()).expect("a stored block holds 65,535 bytes");
    let (mut low, mut high) = (1_u32, 0_u32);
    for &byte in raw {
        low = (low + u32::from(byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    let header = [0x78, 0x01, 0x01];
    let (len, inverse) = (len_bytes.to_le_bytes(), (!len_bytes).to_le_bytes());
    [&header[..], &len, &inverse, raw, &(high << 16 | low).to_be_bytes()].concat()
}

/// Returns a compressed zlib stream.
fn deflated(raw: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    let mask =
        Encoder::plain(Effort::Gzip(6), 1).encode(&mut EncodeState::default(), raw, &mut stream).expect("deflate");
    assert_eq!(mask, 0, "zeros and streams of zeros can be compressed");
    stream
}

/// Writes the base file with the stored bytes of its first chunk replaced.
fn with_first_chunk(path: &Path, filter_mask: u32, stored: &[u8]) {
    make(path, &base(Format::Earliest, DEFLATE));
    write_chunk(path, b"/data", &[0], filter_mask, stored).expect("libhdf5 stores any chunk");
}

/// Returns the content of the base file with this first chunk.
fn content_with(first_chunk: &[u8; 16]) -> Box<crate::content::Content> {
    let mut content = base(Format::Earliest, DEFLATE).content();
    if let Some(Node::Dataset(dataset)) = content.nodes.get_mut(&b"/data"[..]) {
        dataset.values[..16].copy_from_slice(first_chunk);
    }
    Box::new(content)
}

fn short(path: &Path) -> Expectation {
    with_first_chunk(path, 0, &stream_of(&[7; 15]));
    Expectation::Refused
}

fn long(path: &Path) -> Expectation {
    with_first_chunk(path, 0, &stream_of(&[7; 17]));
    Expectation::Refused
}

fn adler(path: &Path) -> Expectation {
    let mut stream = stream_of(&[7; 16]);
    if let Some(last) = stream.last_mut() {
        *last ^= 1;
    }
    with_first_chunk(path, 0, &stream);
    Expectation::Refused
}

fn cut(path: &Path) -> Expectation {
    let stream = stream_of(&[7; 16]);
    with_first_chunk(path, 0, &stream[..stream.len() / 2]);
    Expectation::Refused
}

fn garbage(path: &Path) -> Expectation {
    with_first_chunk(path, 0, b"this is no zlib stream");
    Expectation::Refused
}

fn trailing(path: &Path) -> Expectation {
    let stream = [stream_of(&[7; 16]), vec![0; 5]].concat();
    with_first_chunk(path, 0, &stream);
    // The values are complete, and libhdf5 accepts them.
    Expectation::RefusedOrReadsAs(content_with(&[7; 16]))
}

fn unfiltered(path: &Path) -> Expectation {
    with_first_chunk(path, 1, &[9; 16]);
    Expectation::ReadsAs(content_with(&[9; 16]))
}

fn unfiltered_short(path: &Path) -> Expectation {
    with_first_chunk(path, 1, &[9; 15]);
    Expectation::Refused
}

fn unfiltered_long(path: &Path) -> Expectation {
    with_first_chunk(path, 1, &[9; 4096]);
    Expectation::Refused
}

fn fletcher(path: &Path) -> Expectation {
    make(path, &base(Format::Earliest, &[FilterSpec::Fletcher32]));
    let address = chunks(path, b"/data").expect("chunks are listed")[0].address as usize;
    let flipped = bytes_of(path)[address + 3] ^ 0x10;
    patch(path, address + 3, &[flipped]);
    Expectation::Refused
}

/// Decompressed length of the bombs: a hundred times the memory that reading the file should need.
const BOMB_LEN_BYTES: usize = 64 << 20;

fn bomb(path: &Path) -> Expectation {
    with_first_chunk(path, 0, &deflated(&vec![0; BOMB_LEN_BYTES]));
    Expectation::Refused
}

fn nested_bomb(path: &Path) -> Expectation {
    make(path, &base(Format::Earliest, &[FilterSpec::Deflate(6), FilterSpec::Deflate(6)]));
    let stored = deflated(&deflated(&vec![0; BOMB_LEN_BYTES]));
    write_chunk(path, b"/data", &[0], 0, &stored).expect("libhdf5 stores any chunk");
    Expectation::Refused
}

/// Changes the address of a chunk in the B-tree of the base file.
fn move_chunk(path: &Path, number: usize, address: u64) -> Expectation {
    make(path, &base(Format::Earliest, DEFLATE));
    let chunk = &chunks(path, b"/data").expect("chunks are listed")[number];
    patch_only(path, &chunk.address.to_le_bytes(), &address.to_le_bytes());
    Expectation::Refused
}

fn overlap(path: &Path) -> Expectation {
    // Without filters all chunks have the same length, so each decodes on its own and only the overlap is wrong.
    make(path, &base(Format::Earliest, &[]));
    let found = chunks(path, b"/data").expect("chunks are listed");
    patch_only(path, &found[1].address.to_le_bytes(), &found[2].address.to_le_bytes());
    Expectation::Refused
}

fn beyond_end(path: &Path) -> Expectation {
    move_chunk(path, 1, 1 << 20)
}

fn at_superblock(path: &Path) -> Expectation {
    move_chunk(path, 1, 0)
}

fn at_2_63(path: &Path) -> Expectation {
    move_chunk(path, 1, 1 << 63)
}

fn len_4_gib(path: &Path) -> Expectation {
    change_key(path, 0, &u32::MAX.to_le_bytes());
    Expectation::Refused
}

fn off_grid(path: &Path) -> Expectation {
    change_key(path, 8, &17_u64.to_le_bytes());
    Expectation::Refused
}

/// Changes the B-tree key before the second chunk's address: stored length (4 bytes), filter mask (4), origin (8 for
/// the dataset's dimension and 8 for the element's bytes).
fn change_key(path: &Path, offset_in_key: usize, new: &[u8]) {
    const KEY_LEN_BYTES: usize = 24;
    make(path, &base(Format::Earliest, DEFLATE));
    let address = chunks(path, b"/data").expect("chunks are listed")[1].address;
    let place = only_place(&bytes_of(path), &address.to_le_bytes());
    patch(path, place - KEY_LEN_BYTES + offset_in_key, new);
}
