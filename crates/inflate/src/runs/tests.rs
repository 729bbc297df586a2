//! Compares the inflater of runs with libdeflate: on valid streams of all kinds, and on every kind of damage.

use proptest::prelude::*;

use super::{MAX_EXCESS_OTHERS, RepetitiveInflater};
use crate::samples::{Noise, ReferenceInflaters, TestedInflater, by_libdeflate, damaged_values, streams};

struct Pair {
    runs: Box<RepetitiveInflater>,
    judges: ReferenceInflaters,
}

impl Pair {
    fn new() -> Self {
        Self { runs: RepetitiveInflater::new(), judges: ReferenceInflaters::new() }
    }
}

impl TestedInflater for Pair {
    fn compare(&mut self, stored: &[u8], limit_len_bytes: usize) -> bool {
        self.judges.compare(stored, limit_len_bytes, by_libdeflate, |out| self.runs.inflate(stored, out))
    }

    fn unsummed(&mut self, stored: &[u8], limit_len_bytes: usize) -> Option<(Vec<u8>, usize)> {
        let mut out = vec![0; limit_len_bytes];
        let (produced, sum_at) = self.runs.inflate_unsummed(stored, &mut out)?;
        out.truncate(produced);
        Some((out, sum_at))
    }
}

/// Returns rows of elements of `element_len_bytes`, each repeated `mean_rows` times on average.
fn runs(element_len_bytes: usize, mean_rows: u64, rows: usize) -> Vec<u8> {
    let mut noise = Noise(mean_rows);
    let mut raw = Vec::new();
    let mut value = 1000u64;
    while raw.len() < rows * element_len_bytes {
        value += 1 + noise.below(5);
        let element: Vec<u8> = (0..element_len_bytes).map(|byte| (value >> (8 * (byte % 8))) as u8).collect();
        for _ in 0..noise.below(2 * mean_rows) {
            raw.extend_from_slice(&element);
        }
    }
    raw.truncate(rows * element_len_bytes);
    raw
}

#[test]
fn streams_of_all_encoders_are_inflated_as_by_libdeflate() {
    let mut pair = Pair::new();
    for rows in [1, 3, 64, 200, 5000, 40_000] {
        for (stored, raw) in streams(rows) {
            pair.compare(&stored, raw.len());
            // Too little room, and more than enough.
            pair.compare(&stored, raw.len() - 1);
            pair.compare(&stored, raw.len() / 2);
            pair.compare(&stored, raw.len() + 1000);
            pair.compare(&[&stored[..], &[0xa5; 9]].concat(), raw.len());
        }
    }
}

#[test]
fn runs_of_elements_of_any_length_are_taken() {
    let mut pair = Pair::new();
    for element_len_bytes in (2..=12).chain([16, 24, 31, 32]) {
        for mean_rows in [20, 300] {
            let raw = runs(element_len_bytes, mean_rows, 50_000 / element_len_bytes);
            for level in [6, 9] {
                let stored = miniz_oxide::deflate::compress_to_vec_zlib(&raw, level);
                assert!(pair.compare(&stored, raw.len()), "{element_len_bytes} bytes, {mean_rows} rows, level {level}");
                assert!(!pair.compare(&stored, raw.len() - 1));
            }
        }
    }
}

#[test]
fn zeros_between_noise_are_left_to_libdeflate_soon() {
    let mut noise = Noise(3);
    let raw: Vec<u8> = (0..100_000).map(|_| if noise.below(50) == 0 { noise.below(256) as u8 } else { 0 }).collect();
    let stored = miniz_oxide::deflate::compress_to_vec_zlib(&raw, 6);
    let mut pair = Pair::new();
    assert!(!pair.compare(&stored, raw.len()));
    let mut out = vec![0xee; raw.len()];
    assert_eq!(pair.runs.inflate(&stored, &mut out), None);
    let decoded = out.iter().rposition(|&byte| byte != 0xee).unwrap();
    assert!(decoded < 4 * MAX_EXCESS_OTHERS as usize * 258, "{decoded} bytes");
}

#[test]
fn every_damaged_byte_and_every_cut_ends_as_with_libdeflate() {
    let mut pair = Pair::new();
    let (mut damages, mut inflated_anyway) = (0, 0);
    for (element_len_bytes, mean_rows) in [(2, 90), (4, 19), (4, 400), (8, 50), (12, 40)] {
        let raw = runs(element_len_bytes, mean_rows, 12_000 / element_len_bytes);
        let stored = miniz_oxide::deflate::compress_to_vec_zlib(&raw, 6);
        assert!(RepetitiveInflater::is_for(&stored, raw.len()), "{}", stored.len());
        for at in 0..stored.len() {
            let values = damaged_values(stored[at]);
            damages += values.len();
            inflated_anyway += pair.compare_damage_at(&stored, at, &values, raw.len(), 700);
        }
    }
    // Otherwise the checksum would have hidden everything.
    assert!(inflated_anyway * 20 > damages, "{inflated_anyway} of {damages}");
}

#[test]
fn processors_without_wide_registers_inflate_the_same() {
    let (mut wide, mut plain) = (RepetitiveInflater::new(), RepetitiveInflater::new());
    for element_len_bytes in [1, 2, 3, 4, 8, 17, 40] {
        let raw = runs(element_len_bytes, 30, 40_000 / element_len_bytes);
        let stored = miniz_oxide::deflate::compress_to_vec_zlib(&raw, 6);
        let [mut by_wide, mut by_plain] = [(); 2].map(|()| vec![0; raw.len()]);
        assert_eq!(wide.inflate_unsummed(&stored, &mut by_wide), plain.inflate_anywhere(&stored, &mut by_plain));
        assert_eq!(by_wide, by_plain);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_runs_survive(
        runs in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..40), 1usize..300), 1..40),
        level in 0u8..=10,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let raw: Vec<u8> = runs.iter().flat_map(|(element, count)| element.repeat(*count)).collect();
        let mut stored = miniz_oxide::deflate::compress_to_vec_zlib(&raw, level);
        let mut pair = Pair::new();
        pair.compare(&stored, raw.len());
        for (at, value) in damage {
            let at = at.index(stored.len());
            stored[at] = value;
        }
        pair.compare_damaged(&mut stored, raw.len());
    }
}
