//! Compares the small inflater with libdeflate: on valid streams, and on every kind of damage.

use proptest::prelude::*;

use super::{MAX_LEN_BYTES, MAX_STREAM_LEN_BYTES, MIN_STREAM_LEN_BYTES, SmallChunkInflater};
use crate::Inflater;
use crate::samples::{Noise, ReferenceInflaters, TestedInflater, streams};

/// Both inflaters, for comparison.
struct Pair {
    small: Box<SmallChunkInflater>,
    judges: ReferenceInflaters,
}

impl Pair {
    fn new() -> Self {
        Self { small: SmallChunkInflater::new(), judges: ReferenceInflaters::new() }
    }
}

impl TestedInflater for Pair {
    fn compare(&mut self, stored: &[u8], limit_len_bytes: usize) -> bool {
        self.judges.compare(stored, limit_len_bytes, Inflater::inflate_padded, |out| self.small.inflate(stored, out))
    }

    fn unsummed(&mut self, stored: &[u8], limit_len_bytes: usize) -> Option<(Vec<u8>, usize)> {
        let (produced, sum_at) = self.small.inflate_unsummed(stored, limit_len_bytes)?;
        Some((self.small.out.get(..produced)?.to_vec(), sum_at))
    }
}

#[test]
fn streams_of_all_encoders_are_inflated_as_by_libdeflate() {
    let mut pair = Pair::new();
    for rows in [1, 2, 3, 8, 31, 64, 128, 200, 512, 1024] {
        for (stored, raw) in streams(rows) {
            if stored.len() > MAX_LEN_BYTES || raw.len() > MAX_LEN_BYTES {
                continue;
            }
            let first_block_is_stored = stored[2] >> 1 & 3 == 0;
            let fits = (MIN_STREAM_LEN_BYTES..=MAX_STREAM_LEN_BYTES).contains(&stored.len());
            let taken = pair.compare(&stored, raw.len());
            if first_block_is_stored || !fits {
                assert!(!taken);
            } else {
                // The inflater handles everything that an encoder writes.
                assert!(taken, "{rows} rows, {} bytes: {stored:02x?}", stored.len());
                assert_eq!(pair.small.out[..raw.len()], raw);
            }
            // Too little room, and more than enough.
            pair.compare(&stored, raw.len() - 1);
            pair.compare(&stored, raw.len() / 2);
            pair.compare(&stored, (raw.len() + 100).min(MAX_LEN_BYTES));
            pair.compare(&stored, 0);
            let padded: Vec<u8> = stored.iter().copied().chain([0xa5; 9]).collect();
            assert_eq!(pair.compare(&padded, raw.len()), taken && padded.len() <= MAX_STREAM_LEN_BYTES);
        }
    }
}

#[test]
fn every_damaged_byte_and_every_cut_ends_as_with_libdeflate() {
    let mut pair = Pair::new();
    let mut inflated_anyway = 0;
    let (mut damages, mut last) = (0, Vec::new());
    for (stored, raw) in streams(40) {
        if stored[2] >> 1 & 3 == 0 || stored == last {
            continue;
        }
        for at in 0..stored.len() {
            let value = stored[at];
            let bits = (0..8).map(|bit| value ^ 1 << bit);
            let values: Vec<u8> = bits.chain([0, 0xff, !value, value.wrapping_add(1), value.wrapping_sub(1)]).collect();
            damages += values.len();
            inflated_anyway += pair.compare_damage_at(&stored, at, &values, raw.len(), 300);
        }
        last = stored;
    }
    // Otherwise the checksum would have hidden everything.
    assert!(inflated_anyway * 20 > damages, "{inflated_anyway} of {damages}");
}

#[test]
fn headers_of_random_codes_end_as_with_libdeflate() {
    // Bits that are hardly ever a code, but often nearly one: lengths of the code for lengths that make it complete,
    // followed by arbitrary bits.
    let mut noise = Noise(5);
    let mut pair = Pair::new();
    for _ in 0..20_000 {
        let mut stored = vec![0x78, 0x9c];
        let mut bits: Vec<bool> = vec![true, false, true];
        let mut put = |value: u64, count: usize| bits.extend((0..count).map(|bit| value >> bit & 1 == 1));
        put(noise.below(3), 5);
        put(noise.below(32) * noise.below(2), 5);
        put(15, 4);
        // In the order of the header; all lengths are correct for 16 of the 19 symbols, and none for three.
        let unused = noise.below(19);
        let used = 1 + noise.below(4);
        for place in 0..19 {
            let word_bits = match used {
                1 => u64::from(place == unused || place == (unused + 1) % 19),
                2 => 2 * u64::from((place + 19 - unused) % 19 < 4),
                3 => 3 * u64::from((place + 19 - unused) % 19 < 8),
                _ => 4 * u64::from((place + 19 - unused) % 19 < 16),
            };
            put(word_bits, 3);
        }
        for _ in 0..noise.below(2000) {
            put(noise.below(2), 1);
        }
        stored.extend(bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |value, &bit| value << 1 | u8::from(bit))));
        stored.extend([0; 8]);
        pair.compare_damaged(&mut stored, 64);
    }
}

#[test]
fn processors_without_wide_shifts_inflate_the_same() {
    let (mut wide, mut plain) = (SmallChunkInflater::new(), SmallChunkInflater::new());
    for (stored, raw) in streams(128) {
        let expected = wide.inflate_unsummed(&stored, raw.len());
        assert_eq!(plain.inflate_anywhere(&stored, raw.len()), expected);
        if let Some((produced, _)) = expected {
            assert_eq!(plain.out[..produced], wide.out[..produced]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_survive(
        raw in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..900),
            prop::collection::vec(0u8..4, 0..2000),
            prop::collection::vec(prop_oneof![9 => Just(0u8), 1 => any::<u8>()], 0..4096),
        ],
        level in 0u8..=10,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut stored = miniz_oxide::deflate::compress_to_vec_zlib(&raw, level);
        prop_assume!(stored.len() <= MAX_LEN_BYTES);
        let mut pair = Pair::new();
        pair.compare(&stored, raw.len());
        for (at, value) in damage {
            let at = at.index(stored.len());
            stored[at] = value;
        }
        pair.compare_damaged(&mut stored, raw.len());
    }
}
