//! Buffers of a fixed length, with room at the end, that are read and written a word at a time.
//!
//! Invariant: no index is out of bounds, because every index is taken modulo the length without the room. Data read or
//! written at an index that wrapped around is never kept: the limits of input and output are half that length.

use std::array;

use super::MAX_LEN_BYTES;
use crate::stream::BitSource;

const WRAP_LEN_BYTES: usize = 2 * MAX_LEN_BYTES;
pub(super) const MASK: usize = WRAP_LEN_BYTES - 1;
/// Total length, with room for a whole word at the last index.
pub(super) const BUFFER_LEN_BYTES: usize = WRAP_LEN_BYTES + WORD_LEN_BYTES;
const WORD_LEN_BYTES: usize = 8;

pub(super) type Buffer = [u8; BUFFER_LEN_BYTES];

#[inline(always)]
fn load(buffer: &Buffer, at: usize) -> u64 {
    let at = at & MASK;
    u64::from_le_bytes(array::from_fn(|byte| buffer[at + byte]))
}

#[inline(always)]
fn store(buffer: &mut Buffer, at: usize, word: u64) {
    let at = at & MASK;
    buffer[at..at + WORD_LEN_BYTES].copy_from_slice(&word.to_le_bytes());
}

/// Bits of a stream in both orders.
pub(super) struct Bits {
    stored: Buffer,
    /// The stream with the bits of each byte reversed.
    reversed: Buffer,
}

impl Bits {
    pub(super) fn new() -> Self {
        Self { stored: [0; BUFFER_LEN_BYTES], reversed: [0; BUFFER_LEN_BYTES] }
    }

    /// Copies up to [`MAX_LEN_BYTES`]. The bytes after them keep their former values.
    #[inline(always)]
    pub(super) fn fill(&mut self, stored: &[u8]) {
        self.stored[..stored.len()].copy_from_slice(stored);
        // Whole vectors, so that no remainder is processed byte by byte.
        let whole_len_bytes = stored.len().next_multiple_of(32);
        let reversed = self.reversed[..whole_len_bytes].iter_mut();
        for (reversed, byte) in reversed.zip(&self.stored[..whole_len_bytes]) {
            *reversed = byte.reverse_bits();
        }
    }
}

impl BitSource for Bits {
    #[inline(always)]
    fn low_first(&self, at_bit: usize) -> u64 {
        load(&self.stored, at_bit >> 3) >> (at_bit & 7)
    }

    #[inline(always)]
    fn high_first(&self, at_bit: usize) -> u64 {
        load(&self.reversed, at_bit >> 3).swap_bytes() << (at_bit & 7)
    }
}

/// Masks and factors that fill a word with repetitions of its first bytes, by distance up to 8.
const REPEAT_MASKS: [u64; 16] = {
    let mut masks = [u64::MAX; 16];
    let mut distance = 1;
    while distance < WORD_LEN_BYTES {
        masks[distance] = (1 << (8 * distance)) - 1;
        distance += 1;
    }
    masks
};
const REPEAT_FACTORS: [u64; 16] = {
    let mut factors = [1; 16];
    let mut distance = 1;
    while distance < WORD_LEN_BYTES {
        let mut shift = distance;
        while shift < WORD_LEN_BYTES {
            factors[distance] |= 1 << (8 * shift);
            shift += distance;
        }
        distance += 1;
    }
    factors
};
/// Smallest multiple of each distance below 8 that is at least 8: whole words can be copied from that distance.
const REPEAT_DISTANCES: [usize; 16] = [0, 8, 8, 9, 8, 10, 12, 14, 8, 0, 0, 0, 0, 0, 0, 0];

/// Copies a match to `to` from `back` bytes before, followed by up to 15 arbitrary bytes.
///
/// Its first word is filled by repeating the `back` bytes, without a branch for short distances.
#[inline(always)]
pub(super) fn copy_match(out: &mut Buffer, to: usize, back: usize, len_bytes: usize) {
    let near = back.min(WORD_LEN_BYTES);
    let repeated = (load(out, to.wrapping_sub(back)) & REPEAT_MASKS[near]).wrapping_mul(REPEAT_FACTORS[near]);
    store(out, to, repeated);
    let back = if back < WORD_LEN_BYTES { REPEAT_DISTANCES[near] } else { back };
    let end = to.wrapping_add(len_bytes);
    let mut at = to.wrapping_add(WORD_LEN_BYTES);
    // Most matches have up to two words, so the second is copied unconditionally.
    store(out, at, load(out, at.wrapping_sub(back)));
    at = at.wrapping_add(WORD_LEN_BYTES);
    while at < end {
        store(out, at, load(out, at.wrapping_sub(back)));
        at = at.wrapping_add(WORD_LEN_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_repeats_what_is_before_it() {
        for back in 1..=40 {
            for len_bytes in 3..=60 {
                let mut out = [0; BUFFER_LEN_BYTES];
                for (at, byte) in out[..50].iter_mut().enumerate() {
                    *byte = at as u8 + 1;
                }
                let mut expected = out;
                for at in 50..50 + len_bytes {
                    expected[at] = expected[at - back];
                }
                copy_match(&mut out, 50, back, len_bytes);
                assert_eq!(out[..50 + len_bytes], expected[..50 + len_bytes], "{back} back, {len_bytes} long");
            }
        }
    }

    #[test]
    fn bits_come_in_both_orders_from_any_place() {
        let stored: Vec<u8> = (0..40u32).map(|at| (at * 73 + 41) as u8).collect();
        let mut bits = Bits::new();
        bits.fill(&stored);
        for at_bit in 0..200 {
            let (low, high) = (bits.low_first(at_bit), bits.high_first(at_bit));
            for step in 0..57 {
                let expected = u64::from(stored[(at_bit + step) / 8] >> ((at_bit + step) % 8) & 1);
                assert_eq!(low >> step & 1, expected);
                assert_eq!(high >> (63 - step) & 1, expected);
            }
        }
    }
}
