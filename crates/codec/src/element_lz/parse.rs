//! Finding repeats that begin at an element: one probe per element, the first repeat found is taken; or none, where the
//! predecessor is all that an element resembles.

use super::token::Tokens;
use crate::deflate::symbols::{MAX_DISTANCE, MIN_MATCH};

/// Entries of the table of places, as a power of two: 2^13 entries of 4 bytes fit a first-level cache, and are as many as the
/// 4-byte elements that a match can reach back over.
const HASH_BITS: u32 = 13;

/// Literals without a match after which the next probe is one element farther, and again after as many.
const PATIENCE_LEN_BYTES: usize = 128;

/// Probes are never farther apart than this many elements, so that the end of noise is noticed.
const MAX_SKIP: usize = 8;

/// Where values were seen last.
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
    /// Forgets all places.
    pub(super) fn reset(&mut self) {
        self.places.fill(0);
    }

    /// Cuts `raw[start..end]` into tokens; matches may reach back before `start`.
    ///
    /// Probes are made at multiples of `STEP` bytes, by the `KEY` bytes there (at most 8): those that an earlier place
    /// has in common make a match, with what follows and what comes before. Places are kept in 32 bits; beyond 4 GiB
    /// they are wrong, which only costs matches, since every match is compared.
    pub(super) fn parse<const STEP: usize, const KEY: usize>(
        &mut self,
        raw: &[u8],
        start: usize,
        end: usize,
        tokens: &mut Tokens,
    ) {
        let places: &mut [u32; 1 << HASH_BITS] = self.places.as_mut_slice().try_into().expect("made of this length");
        let key_mask = u64::MAX >> (64 - 8 * KEY);
        // Multiplicative hashing by 2^64 over the golden ratio, whose high bits depend on all bits of the key.
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
            // An empty entry reads as place 0, which at the very start gives the distance 0.
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
            // The last element of the match, for a pattern that goes on after an interruption.
            if at < probe_end {
                let last = at - STEP;
                places[hash(load(raw, last))] = last as u32;
            }
        }
        tokens.push_literals(raw, anchor, end);
    }
}

/// Cuts `raw[start..end]` into tokens whose matches all reach back `STRIDE` bytes, a multiple of 8: what an element has in
/// common with its predecessor, and literals for the rest. Nothing is searched for.
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
        // On to the end of what differs in this element.
        let element = at - at % 8;
        if element + 8 > end {
            break;
        }
        let differing = load(raw, element) ^ load(raw, element - STRIDE);
        at = (element + 8 - differing.leading_zeros() as usize / 8).max(at + 1);
    }
    tokens.push_literals(raw, anchor, end);
}

/// How many bytes both begin with, at most the length of `a`, which is the shorter one.
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
