//! Edits of a seed file that keep its checksums right, to reach the code behind the checks.
//!
//! Input: number of the seed (1 byte), then edits of 5 bytes each: position (3 bytes), operation, value. Newer metadata
//! has a checksum per structure, which a fuzzer that only changes bytes never passes.

use crate::seeds;
use raddle_hdf5::native::checksum::lookup3;
use std::ops::Range;
use std::sync::LazyLock;

const EDIT_LEN_BYTES: usize = 5;

/// Signatures of structures that end in a four-byte checksum (file format specification, III).
const SIGNATURES: [&[u8; 4]; 15] = [
    b"\x89HDF", b"OHDR", b"OCHK", b"BTHD", b"BTIN", b"BTLF", b"FRHP", b"FHIB", b"FAHD", b"FADB", b"EAHD", b"EAIB",
    b"EASB", b"EADB", b"SMTB",
];

/// Maximum length of a structure with a checksum.
const MAX_LEN_BYTES: usize = 2048;

struct Seed {
    bytes: Vec<u8>,
    /// Range covered by each checksum, which follows the range.
    checked: Vec<Range<usize>>,
}

static SEEDS: LazyLock<Vec<Seed>> = LazyLock::new(|| {
    let with_checked = |bytes: Vec<u8>| Seed { checked: checked(&bytes), bytes };
    let found: Vec<Seed> = seeds::files().into_iter().map(with_checked).collect();
    assert!(found.iter().filter(|seed| seed.checked.len() > 3).count() > 3, "no structure with a checksum is found");
    found
});

/// Finds ranges that begin with a signature and are followed by their checksum.
fn checked(bytes: &[u8]) -> Vec<Range<usize>> {
    let starts = (0..bytes.len()).filter(|&at| SIGNATURES.iter().any(|signature| bytes[at..].starts_with(*signature)));
    let ends = |start: usize| {
        let last = bytes.len().saturating_sub(4).min(start + MAX_LEN_BYTES);
        (start + 8..=last).find(|&end| bytes[end..end + 4] == lookup3(&bytes[start..end]).to_le_bytes())
    };
    starts.filter_map(|start| ends(start).map(|end| start..end)).collect()
}

/// Returns the edited file and the number of its seed.
pub(crate) fn edited(input: &[u8]) -> (Vec<u8>, usize) {
    let (number, edits) = input.split_first().unwrap_or((&0, &[]));
    let number = usize::from(*number) % SEEDS.len();
    let seed = &SEEDS[number];
    let mut bytes = seed.bytes.clone();
    for edit in edits.chunks_exact(EDIT_LEN_BYTES) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], 0]) as usize % bytes.len();
        apply(&mut bytes, at, edit[3], edit[4]);
    }
    // Structures are not nested, so the order does not matter.
    for range in &seed.checked {
        let sum = lookup3(&bytes[range.clone()]).to_le_bytes();
        bytes[range.end..range.end + 4].copy_from_slice(&sum);
    }
    (bytes, number)
}

fn apply(bytes: &mut [u8], at: usize, what: u8, value: u8) {
    let width = [1, 2, 4, 8][usize::from(what >> 4) % 4].min(bytes.len() - at);
    match what % 8 {
        0 | 1 => bytes[at] = value,
        2 => bytes[at] ^= 1 << (value % 8),
        3 => bytes[at..at + width].fill(value),
        4 => bytes[at] = bytes[at].wrapping_add(value),
        5 => {
            // An address or a length from another place in the file.
            let from = (at + usize::from(value) * 8) % (bytes.len() - width + 1);
            bytes.copy_within(from..from + width, at);
        }
        6 => bytes[at..at + width].fill(0xFF),
        _ => bytes[at..at + width].reverse(),
    }
}

/// Returns the unchanged seeds, and some of them with an edit that the fuzzer can change.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let untouched = (0..SEEDS.len()).map(|number| vec![number as u8]);
    let edited = (0..SEEDS.len()).flat_map(|number| {
        let seed = &SEEDS[number];
        let len_bytes = seed.bytes.len();
        (0..8).map(move |part| {
            let mut input = vec![number as u8];
            for edit in 0..=part % 3 {
                let at = (len_bytes * (part * 3 + edit) / 24) as u32;
                input.extend_from_slice(&at.to_le_bytes()[..3]);
                input.extend_from_slice(&[part as u8, 1 << (part % 8)]);
            }
            input
        })
    });
    untouched.chain(edited).collect()
}
