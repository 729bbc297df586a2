//! Estimate, from samples, of the bytes that matches would save.

use super::literals::Literals;
use crate::element_lz::ElementLzEncoder;
use crate::libdeflate::Deflater;
use raddle_inflate::format::MAX_DISTANCE;
use std::ops::RangeInclusive;

/// Length of a sampled slice, which spans two rows of most grids.
const SLICE_LEN_BYTES: usize = 1024;

/// Sampling interval: one byte in this many is sampled.
const SPARSITY: usize = 32;

/// Interval of the positions whose bytes are remembered, to find repeats that are longer and farther away than a slice.
const PLACE_STRIDE: usize = 16;

/// Minimum length of a repeat; shorter ones are found in the slices, or are chance.
const REPEAT_LEN_BYTES: usize = 32;

/// Number of entries in the table of positions, as a power of two: more than the positions within reach of a match.
const HASH_BITS: u32 = 12;

/// Distances of repeats that the slices do not reveal.
const REACH: RangeInclusive<usize> = SLICE_LEN_BYTES..=MAX_DISTANCE;

const _: () = assert!(MAX_DISTANCE / PLACE_STRIDE < 1 << HASH_BITS);

/// Length of the trial with libdeflate. A shorter one reveals less than half of the savings of its short matches.
const TRIAL_LEN_BYTES: usize = 1 << 14;

/// Estimator of the savings by matches, with reused tables.
#[derive(Default)]
pub(super) struct Sampler {
    slices: Vec<u8>,
    trial: Vec<u8>,
    places: Vec<u32>,
    matches: ElementLzEncoder,
}

impl Sampler {
    /// Estimates how many bits matches save in `raw`, which takes `literal_len_bits` without them.
    pub(super) fn saved_len_bits(&mut self, raw: &[u8], literal_len_bits: u64, deflater: &mut Deflater) -> u64 {
        let saved_len_bits = self.of_samples(raw, literal_len_bits);
        let is_visible = 8 * saved_len_bits > literal_len_bits;
        let is_noise = 8 * raw.len() as u64 <= literal_len_bits + literal_len_bits / 64;
        if is_visible || is_noise || !is_coherent(raw) {
            return saved_len_bits;
        }
        let begin = (raw.len() - raw.len().min(TRIAL_LEN_BYTES)) / 2;
        let trial = &raw[begin..][..raw.len().min(TRIAL_LEN_BYTES)];
        let literal = Literals::new(trial).len_bits();
        self.trial.clear();
        deflater.deflate_bare(trial, &mut self.trial, 2 * TRIAL_LEN_BYTES);
        share(literal_len_bits, literal.saturating_sub(8 * self.trial.len() as u64), literal).max(saved_len_bits)
    }

    /// Estimates the savings from slices, and from positions far apart.
    fn of_samples(&mut self, raw: &[u8], literal_len_bits: u64) -> u64 {
        let far = self.far_repeats(raw);
        self.slices.clear();
        for slice in raw.chunks_exact(SLICE_LEN_BYTES).step_by(SPARSITY) {
            self.slices.extend_from_slice(slice);
        }
        let literal = Literals::new(&self.slices).body_len_bits().max(1);
        let near = literal.saturating_sub(self.matches.body_len_bits(&self.slices));
        share(literal_len_bits, near, literal).max(share(literal_len_bits, far.0.min(far.1), far.1))
    }

    /// Returns the estimated number of bytes in repeats of positions within reach, and the number of bytes probed.
    fn far_repeats(&mut self, raw: &[u8]) -> (u64, u64) {
        self.places.clear();
        self.places.resize(1 << HASH_BITS, u32::MAX);
        let key = |at: usize| u64::from_le_bytes(*raw[at..].first_chunk().expect("a key is left"));
        let hash = |key: u64| (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - HASH_BITS)) as usize;
        let (mut found, mut probed) = (0, 0);
        let repeat = |at: usize| &raw[at..at + REPEAT_LEN_BYTES];
        for (nth, at) in
            (0..raw.len().saturating_sub(REPEAT_LEN_BYTES + PLACE_STRIDE)).step_by(PLACE_STRIDE).enumerate()
        {
            if nth % SPARSITY == SPARSITY - 1 {
                for at in at..at + PLACE_STRIDE {
                    let before = self.places[hash(key(at))] as usize;
                    found += u64::from(REACH.contains(&at.wrapping_sub(before)) && repeat(before) == repeat(at));
                }
                probed += PLACE_STRIDE as u64;
            }
            self.places[hash(key(at))] = at as u32;
        }
        // In a repeat, one byte of every stride coincides with a remembered position.
        (found * PLACE_STRIDE as u64, probed.max(1))
    }
}

/// Returns `whole` times `part` divided by `of`.
fn share(whole: u64, part: u64, of: u64) -> u64 {
    (u128::from(whole) * u128::from(part) / u128::from(of)) as u64
}

/// Returns whether neighbours resemble each other: differences of sampled neighbours coincide more often than the bytes
/// themselves.
///
/// Such bytes, from fields that vary slowly, have repeats of three and four bytes within the reach of a match more
/// often than slices reveal.
fn is_coherent(raw: &[u8]) -> bool {
    let (mut bytes, mut differences) = ([0_u32; 256], [0_u32; 256]);
    for [first, second] in raw.as_chunks::<2>().0.iter().step_by(SPARSITY / 4) {
        bytes[usize::from(*first)] += 1;
        differences[usize::from(second.wrapping_sub(*first))] += 1;
    }
    let coincidences = |counts: &[u32; 256]| counts.iter().map(|&count| u64::from(count).pow(2)).sum::<u64>();
    5 * coincidences(&differences) > 6 * coincidences(&bytes)
}
