//! Search for repeats that begin at an element: one or two probes per element, and the first repeat found is taken. For
//! data that resembles only its predecessor, nothing is searched for.

use super::token::Tokens;
use raddle_inflate::format::{MAX_DISTANCE, MIN_MATCH};

/// Number of entries in a table of positions, as a power of two: the number of 4-byte elements within reach of a match.
/// Two tables fit a first-level cache.
const HASH_BITS: u32 = 13;

/// Number of literals without a match after which the distance of probes grows by one element, each time.
const PATIENCE_LEN_BYTES: usize = 128;

/// Maximum distance between probes in elements, so that the end of noise is noticed.
const MAX_SKIP: usize = 8;

/// Positions where keys were last seen, indexed by the hash of the key.
///
/// Positions are stored modulo 2^16, so an old position seems nearer than it is. No match is made before its bytes were
/// compared.
struct Places(Box<[u16; 1 << HASH_BITS]>);

impl Default for Places {
    fn default() -> Self {
        Self(Box::new([0; 1 << HASH_BITS]))
    }
}

impl Places {
    /// Remembers the position of a key.
    #[inline(always)]
    fn put(&mut self, key: u64, at: usize) {
        self.0[hash(key)] = at as u16;
    }

    /// Remembers the position of a key. Returns the distance to the position remembered before, if a match may have
    /// that distance. It is at most `at`, because positions are remembered in ascending order.
    #[inline(always)]
    fn replace(&mut self, key: u64, at: usize) -> Option<usize> {
        let place = &mut self.0[hash(key)];
        let distance = usize::from((at as u16).wrapping_sub(*place));
        *place = at as u16;
        (1..=MAX_DISTANCE).contains(&distance).then_some(distance)
    }
}

/// Returns the place of a key. Multiplication by 2^64 divided by the golden ratio makes the high bits depend on all
/// bits of the key.
#[inline(always)]
fn hash(key: u64) -> usize {
    (key.wrapping_mul(GOLDEN_RATIO) >> (64 - HASH_BITS)) as usize
}

const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

/// Tables of the positions where values were last seen.
#[derive(Default)]
pub(super) struct Finder {
    /// Positions of short keys.
    places: Places,
    /// Positions of long keys.
    long_places: Places,
}

#[inline(always)]
fn load(raw: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*raw[at..].first_chunk().expect("8 bytes are left"))
}

impl Finder {
    /// Clears the remembered positions.
    pub(super) fn reset(&mut self) {
        self.places.0.fill(0);
        self.long_places.0.fill(0);
    }

    /// Splits `raw[start..end]` into tokens; matches may refer back to before `start`.
    ///
    /// Probes are made at multiples of `STEP` bytes. If an earlier position has the same `LONG` bytes (8 to 16, or 0
    /// for no such probe), or else the same `KEY` bytes (at most 8), they become a match, extended forwards and
    /// backwards. A short key repeats often, and its last position is rarely where a long repeat begins. The last
    /// position of a long key usually is.
    pub(super) fn parse<const STEP: usize, const KEY: usize, const LONG: usize>(
        &mut self,
        raw: &[u8],
        start: usize,
        end: usize,
        tokens: &mut Tokens,
    ) {
        const { assert!(KEY <= 8 && (LONG == 0 || LONG >= 8 && LONG <= 16)) };
        let key_mask = u64::MAX >> (64 - 8 * KEY);
        // The last 8 bytes of a long key that has more.
        let rest = |at: usize| if LONG > 8 { load(raw, at + LONG - 8) } else { 0 };
        let long_key = |value: u64, rest: u64| {
            if LONG > 8 { value.wrapping_mul(GOLDEN_RATIO).rotate_left(29) ^ rest } else { value }
        };
        tokens.reset(end - start);
        // Literals from here on are not in `tokens` yet.
        let mut anchor = start;
        let mut at = start;
        let probe_end = end.saturating_sub(LONG.max(8));
        while at < probe_end {
            let value = load(raw, at);
            let near = self.places.replace(value & key_mask, at);
            let long = if LONG > 0 {
                let rest_here = rest(at);
                let long = self.long_places.replace(long_key(value, rest_here), at);
                long.filter(|long| load(raw, at - long) == value && rest(at - long) == rest_here)
            } else {
                None
            };
            let found = match long {
                Some(distance) => Some((distance, LONG)),
                None => near
                    .filter(|distance| (load(raw, at - distance) ^ value) & key_mask == 0)
                    .map(|distance| (distance, KEY)),
            };
            let (first, len, distance) = match found {
                Some((distance, known_len)) => {
                    let before = at - distance;
                    let len =
                        known_len + common_elements::<STEP>(&raw[at + known_len..end], &raw[before + known_len..end]);
                    let common_before =
                        (anchor..at).rev().take(before).take_while(|&i| raw[i] == raw[i - distance]).count();
                    (at - common_before, common_before + len, distance)
                }
                None => match upper_bytes::<STEP, KEY>(raw, at, end, value) {
                    Some((first, len)) => (first, len, STEP),
                    None => {
                        at += STEP * (1 + (at - anchor) / PATIENCE_LEN_BYTES).min(MAX_SKIP);
                        continue;
                    }
                },
            };
            tokens.push_literals(raw, anchor, first);
            tokens.push_match(len, distance);
            anchor = first + len;
            at = anchor.next_multiple_of(STEP);
            // The last element of the match, for a pattern that continues after an interruption.
            if at < probe_end {
                let last = at - STEP;
                let value = load(raw, last);
                self.places.put(value & key_mask, last);
                if LONG > 0 {
                    self.long_places.put(long_key(value, rest(last)), last);
                }
            }
        }
        tokens.push_literals(raw, anchor, end);
    }
}

/// Returns the first byte and the length of a match between the upper bytes of an element and those of its predecessor.
/// Numbers that change little have equal upper bytes.
#[inline(always)]
fn upper_bytes<const STEP: usize, const KEY: usize>(
    raw: &[u8],
    at: usize,
    end: usize,
    value: u64,
) -> Option<(usize, usize)> {
    if KEY != STEP || STEP < 4 || at < STEP {
        return None;
    }
    let differing = (value ^ load(raw, at - STEP)) << (64 - 8 * STEP);
    // An equal element may not have been found, because another one took its place.
    let len = (differing.leading_zeros() as usize / 8).min(STEP);
    let next = at + STEP;
    (len >= MIN_MATCH).then(|| (next - len, len + common_elements::<STEP>(&raw[next..end], &raw[at..end])))
}

/// Splits `raw[start..end]` into tokens without a search: all matches have the distance `STRIDE`, a multiple of 8. The
/// bytes that an element shares with its predecessor become matches, and the rest become literals.
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

/// Returns the length of the equal elements of `STEP` bytes at the front of both, at most the length of `a`, which is
/// the shorter one.
///
/// Bytes of the next element are not counted: it may itself be a repeat, which saves more. The branches are predicted,
/// so the search at the next position does not wait for the comparison.
#[inline(always)]
fn common_elements<const STEP: usize>(a: &[u8], b: &[u8]) -> usize {
    if STEP == 1 {
        return common_len(a, b);
    }
    let mut len = 0;
    while let (Some(a), Some(b)) = (a[len..].first_chunk(), b[len..].first_chunk()) {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing == 0 {
            len += 8;
            continue;
        }
        let mut equal = 0;
        while equal + STEP < 8 && differing << (64 - 8 * (equal + STEP)) == 0 {
            equal += STEP;
        }
        return len + equal;
    }
    len
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
