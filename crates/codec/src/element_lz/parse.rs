//! Search for repeats that begin at an element: one probe per element, and the first repeat found is taken. For data
//! that resembles only its predecessor, nothing is searched for.

use super::token::Tokens;
use raddle_inflate::format::{MAX_DISTANCE, MIN_MATCH};

/// Number of entries in the table of positions, as a power of two. 2^13 entries of 4 bytes fit a first-level cache, and
/// equal the number of 4-byte elements within reach of a match.
const HASH_BITS: u32 = 13;

/// Number of literals without a match after which the distance of probes grows by one element, each time.
const PATIENCE_LEN_BYTES: usize = 128;

/// Maximum distance between probes in elements, so that the end of noise is noticed.
const MAX_SKIP: usize = 8;

/// Table of the positions where values were last seen.
pub(super) struct Finder {
    places: Vec<u32>,
}

impl Default for Finder {
    fn default() -> Self {
        Self { places: vec![0; 1 << HASH_BITS] }
    }
}

#[inline(always)]
fn load(raw: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*raw[at..].first_chunk().expect("8 bytes are left"))
}

impl Finder {
    /// Clears the remembered positions.
    pub(super) fn reset(&mut self) {
        self.places.fill(0);
    }

    /// Splits `raw[start..end]` into tokens; matches may refer back to before `start`.
    ///
    /// Probes are made at multiples of `STEP` bytes, with the `KEY` bytes there (at most 8). If an earlier position has
    /// the same bytes, they become a match, extended forwards and backwards. Positions are stored in 32 bits; beyond 4
    /// GiB they are wrong, which only loses matches, because every match is verified.
    pub(super) fn parse<const STEP: usize, const KEY: usize>(
        &mut self,
        raw: &[u8],
        start: usize,
        end: usize,
        tokens: &mut Tokens,
    ) {
        let places: &mut [u32; 1 << HASH_BITS] = self.places.as_mut_slice().try_into().expect("made of this length");
        let key_mask = u64::MAX >> (64 - 8 * KEY);
        // Multiplicative hashing by 2^64 divided by the golden ratio: the high bits depend on all bits of the key.
        let hash = |value: u64| ((value & key_mask).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - HASH_BITS)) as usize;
        tokens.reset(end - start);
        // Literals from here on are not in `tokens` yet.
        let mut anchor = start;
        let mut at = start;
        let probe_end = end.saturating_sub(8);
        while at < probe_end {
            let value = load(raw, at);
            let place = &mut places[hash(value)];
            let before = *place as usize;
            *place = at as u32;
            // An empty entry reads as position 0, which at the very start gives a distance of 0.
            let distance = at.wrapping_sub(before);
            let is_near = distance.wrapping_sub(1) < MAX_DISTANCE;
            if !is_near || (load(raw, before) ^ value) & key_mask != 0 {
                at += STEP * (1 + (at - anchor) / PATIENCE_LEN_BYTES).min(MAX_SKIP);
                continue;
            }
            let len = KEY + common_len(&raw[at + KEY..end], &raw[before + KEY..end]);
            let common_before = (anchor..at).rev().take(before).take_while(|&i| raw[i] == raw[i - distance]).count();
            let first = at - common_before;
            tokens.push_literals(raw, anchor, first);
            tokens.push_match(common_before + len, distance);
            anchor = at + len;
            at = anchor.next_multiple_of(STEP);
            // The last element of the match, for a pattern that continues after an interruption.
            if at < probe_end {
                let last = at - STEP;
                places[hash(load(raw, last))] = last as u32;
            }
        }
        tokens.push_literals(raw, anchor, end);
    }
}

/// Splits `raw[start..end]` into tokens without a search: all matches have the distance `STRIDE`, a multiple of 8. The
/// bytes that an element shares with its predecessor become matches, the rest literals.
pub(super) fn parse_stride<const STRIDE: usize>(raw: &[u8], start: usize, end: usize, tokens: &mut Tokens) {
    const { assert!(STRIDE > 0 && STRIDE.is_multiple_of(8)) };
    tokens.reset(end - start);
    // Literals from here on are not in `tokens` yet.
    let mut anchor = start;
    let mut at = start.max(STRIDE);
    while at < end {
        let len = common_len(&raw[at..end], &raw[at - STRIDE..end]);
        if len >= MIN_MATCH {
            tokens.push_literals(raw, anchor, at);
            tokens.push_match(len, STRIDE);
            anchor = at + len;
        }
        at += len;
        // Continue to the end of the differing bytes of this element.
        let element = at - at % 8;
        if element + 8 > end {
            break;
        }
        let differing = load(raw, element) ^ load(raw, element - STRIDE);
        at = (element + 8 - differing.leading_zeros() as usize / 8).max(at + 1);
    }
    tokens.push_literals(raw, anchor, end);
}

/// Returns the length of the common prefix, at most the length of `a`, which is the shorter one.
#[inline(always)]
fn common_len(a: &[u8], b: &[u8]) -> usize {
    let mut len = 0;
    while let (Some(a), Some(b)) = (a[len..].first_chunk(), b[len..].first_chunk()) {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return len + differing.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    len + a[len..].iter().zip(&b[len..]).take_while(|(a, b)| a == b).count()
}
