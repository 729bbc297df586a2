//! Decoding of pages into little-endian elements; indexes become 64-bit ends.
//!
//! Invariant: a page has exactly the number of elements that its list states, or decoding fails.

use super::clusters::Page;
use super::schema::ColumnKind;
use crate::compression;
use crate::file::RootFile;
use raddle_codec::DecodeState;
use raddle_codec::shuffle::unshuffle;
use raddle_columns::error::UnlocatedError;
use xxhash_rust::xxh3::xxh3_64;

const STRUCTURE: &str = "page";
const CHECKSUM_LEN_BYTES: u64 = 8;

/// Reused buffers.
#[derive(Default)]
pub(super) struct PageBuffers {
    state: DecodeState,
    stored: Vec<u8>,
    decoded: Vec<u8>,
}

/// Decodes a page of a column of kind `kind`; its elements replace the contents of `out`.
pub(super) fn decode(
    file: &RootFile,
    page: &Page,
    kind: ColumnKind,
    buffers: &mut PageBuffers,
    out: &mut Vec<u8>,
) -> Result<(), UnlocatedError> {
    decompress(file, page, kind, buffers)?;
    let PageBuffers { stored, decoded, .. } = buffers;
    out.clear();
    match kind {
        ColumnKind::Bits => {
            out.extend((0..page.len as usize).map(|bit| (decoded[bit / 8] >> (bit % 8)) & 1));
        }
        ColumnKind::Plain(_) => out.extend_from_slice(decoded),
        ColumnKind::Split(number) => join_bytes(decoded, number.len_bytes(), out),
        ColumnKind::SplitZigzag(number) => {
            join_bytes(decoded, number.len_bytes(), out);
            match number.len_bytes() {
                2 => each::<2>(out, |word| {
                    let word = u16::from_le_bytes(word);
                    ((word >> 1) ^ (word & 1).wrapping_neg()).to_le_bytes()
                }),
                4 => each::<4>(out, |word| {
                    let word = u32::from_le_bytes(word);
                    ((word >> 1) ^ (word & 1).wrapping_neg()).to_le_bytes()
                }),
                _ => each::<8>(out, |word| {
                    let word = u64::from_le_bytes(word);
                    ((word >> 1) ^ (word & 1).wrapping_neg()).to_le_bytes()
                }),
            }
        }
        ColumnKind::Index { len_bytes } => push_ends(decoded, len_bytes, false, out),
        ColumnKind::SplitIndex { len_bytes } => {
            join_bytes(decoded, len_bytes, stored);
            push_ends(stored, len_bytes, true, out);
        }
        ColumnKind::Truncated { bits } => {
            for number in 0..page.len {
                out.extend_from_slice(&(packed(decoded, number, bits) << (32 - bits)).to_le_bytes());
            }
        }
        ColumnKind::Quantized { bits, least, greatest } => {
            let steps = ((1_u64 << bits) - 1) as f64;
            for number in 0..page.len {
                let value = least + f64::from(packed(decoded, number, bits)) * (greatest - least) / steps;
                out.extend_from_slice(&(value as f32).to_le_bytes());
            }
        }
        ColumnKind::Unknown(_) => return Err(damaged(page, "of an unknown kind of column")),
    }
    Ok(())
}

/// Reads a page, checks it, and leaves its decompressed bytes in the buffers.
fn decompress(file: &RootFile, page: &Page, kind: ColumnKind, buffers: &mut PageBuffers) -> Result<(), UnlocatedError> {
    let PageBuffers { state, stored, decoded } = buffers;
    let checksum_len_bytes = if page.has_checksum { CHECKSUM_LEN_BYTES } else { 0 };
    let address = page.place.address;
    file.input().read_into(
        address,
        page.place.stored_len_bytes.saturating_add(checksum_len_bytes),
        STRUCTURE,
        stored,
    )?;
    if page.has_checksum {
        let Some(checksum) = stored.last_chunk::<8>().copied() else { return Err(damaged(page, "no checksum")) };
        stored.truncate(stored.len() - checksum.len());
        if u64::from_le_bytes(checksum) != xxh3_64(stored) {
            return Err(damaged(page, "its checksum does not match"));
        }
    }
    // A list records the length in 32 bits, so this cannot overflow.
    let len_bytes = (page.len * kind.bits()).div_ceil(8) as usize;
    if stored.len() == len_bytes {
        std::mem::swap(stored, decoded);
    } else {
        compression::decode(stored, address, len_bytes, state, decoded, 0)?;
        decoded.truncate(len_bytes);
    }
    Ok(())
}

/// Returns the error for a page that is damaged.
fn damaged(page: &Page, what: &str) -> UnlocatedError {
    UnlocatedError::Damaged { address: page.place.address, structure: STRUCTURE, what: what.to_owned() }
}

/// Joins the separately stored bytes of each element, which replace the contents of `out`.
fn join_bytes(split: &[u8], element_len_bytes: usize, out: &mut Vec<u8>) {
    out.clear();
    out.resize(split.len(), 0);
    unshuffle(split, element_len_bytes, out);
}

/// Applies `change` to each word.
fn each<const LEN: usize>(bytes: &mut [u8], change: impl Fn([u8; LEN]) -> [u8; LEN]) {
    bytes.as_chunks_mut::<LEN>().0.iter_mut().for_each(|word| *word = change(*word));
}

/// Appends 64-bit ends; stored differences begin from zero on each page.
fn push_ends(words: &[u8], len_bytes: usize, are_differences: bool, out: &mut Vec<u8>) {
    let mut sum = 0_u64;
    let mut push = |word: u64| {
        sum = if are_differences { sum.wrapping_add(word) } else { word };
        out.extend_from_slice(&sum.to_le_bytes());
    };
    match len_bytes {
        4 => words.as_chunks::<4>().0.iter().for_each(|word| push(u64::from(u32::from_le_bytes(*word)))),
        _ => words.as_chunks::<8>().0.iter().for_each(|word| push(u64::from_le_bytes(*word))),
    }
}

/// Returns element `number` of an array of packed elements with `bits` bits, least significant first.
fn packed(bytes: &[u8], number: u64, bits: u32) -> u32 {
    let first = number * u64::from(bits);
    let mut word = [0; 8];
    let start = (first / 8) as usize;
    let end = bytes.len().min(start + 8);
    word[..end - start].copy_from_slice(&bytes[start..end]);
    let shifted = u64::from_le_bytes(word) >> (first % 8);
    (shifted & ((1_u64 << bits) - 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_are_cut_at_their_bits() {
        // 13 bits each, packed by hand.
        let numbers = [0x1abc_u64, 0x0123, 0x1fff, 0];
        let all = numbers.iter().rev().fold(0_u128, |all, &number| (all << 13) | u128::from(number));
        let bytes = &all.to_le_bytes()[..(4 * 13_usize).div_ceil(8)];
        for (number, &expected) in numbers.iter().enumerate() {
            assert_eq!(u64::from(packed(bytes, number as u64, 13)), expected);
        }
    }

    #[test]
    fn differences_are_added_up() {
        let mut out = Vec::new();
        push_ends(&[3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0], 4, true, &mut out);
        let ends: Vec<u64> = out.as_chunks::<8>().0.iter().map(|end| u64::from_le_bytes(*end)).collect();
        assert_eq!(ends, [3, 3, 5]);
    }
}
