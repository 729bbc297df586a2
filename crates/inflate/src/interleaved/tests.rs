//! Compares the inflater of columns with libdeflate: on valid streams of all kinds, alone and two interleaved, and on
//! every kind of damage.
//!
//! Input and output buffers lie between inaccessible pages.

use miniz_oxide::MZFlush;
use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use proptest::prelude::*;

use super::InterleavedInflater;
use crate::Inflater;
use crate::guarded::{Edge, GuardedBuffer};
use crate::samples::{
    Noise, ReferenceInflaters, TestedInflater, by_libdeflate, columns, damaged_values, deflated, streams,
};
use crate::stream::{MIN_LEN_BYTES, is_sum_right};

struct Pair {
    joint: Box<InterleavedInflater>,
    judges: ReferenceInflaters,
}

impl Pair {
    /// Creates the inflaters; returns `None` if the processor lacks the required instructions.
    fn new() -> Option<Self> {
        Some(Self { joint: InterleavedInflater::new()?, judges: ReferenceInflaters::new() })
    }

    /// Inflates two streams interleaved, and compares each with libdeflate's result.
    fn compare_two(&mut self, stored: [&[u8]; 2], limits_len_bytes: [usize; 2]) -> [bool; 2] {
        let stored = stored.map(|stored| GuardedBuffer::new(stored, Edge::Back));
        let mut out = limits_len_bytes.map(|len_bytes| GuardedBuffer::new(&vec![0xee; len_bytes], Edge::Back));
        let inflated =
            self.joint.inflate(stored.each_ref().map(|stored| &**stored), out.each_mut().map(|out| &mut **out));
        std::array::from_fn(|at| {
            let mut expected = vec![0xee; limits_len_bytes[at]];
            let verdict = by_libdeflate(&mut Inflater::new().unwrap(), &stored[at], &mut expected);
            if let Some(produced) = inflated[at] {
                assert_eq!(verdict, Ok(produced));
                assert_eq!(out[at][..produced], expected[..produced]);
            }
            inflated[at].is_some()
        })
    }
}

impl TestedInflater for Pair {
    fn compare(&mut self, stored: &[u8], limit_len_bytes: usize) -> bool {
        let Self { joint, judges } = self;
        judges.compare(stored, limit_len_bytes, by_libdeflate, |out| {
            let [by_front, by_back] = [Edge::Front, Edge::Back].map(|edge| {
                let (stored, mut out) = (GuardedBuffer::new(stored, edge), GuardedBuffer::new(out, edge));
                let [inflated] = joint.inflate_unsummed([&stored], [&mut out], 1.0);
                let (produced, sum_at) = inflated?;
                is_sum_right(&stored, sum_at, out.get(..produced)?).then(|| out[..produced].to_vec())
            });
            assert_eq!(by_front, by_back);
            let inflated = by_back?;
            out[..inflated.len()].copy_from_slice(&inflated);
            Some(inflated.len())
        })
    }

    fn unsummed(&mut self, stored: &[u8], limit_len_bytes: usize) -> Option<(Vec<u8>, usize)> {
        let mut out = vec![0; limit_len_bytes];
        let [inflated] = self.joint.inflate_unsummed([stored], [&mut out], 1.0);
        let (produced, sum_at) = inflated?;
        out.truncate(produced);
        Some((out, sum_at))
    }
}

#[test]
fn streams_of_all_encoders_are_inflated_as_by_libdeflate() {
    let Some(mut pair) = Pair::new() else { return };
    for rows in [1, 3, 64, 200, 5000, 40_000] {
        for (stored, raw) in streams(rows) {
            assert!(pair.compare(&stored, raw.len()), "{rows} rows");
            assert!(pair.compare(&stored, raw.len() + 1000));
            // Too little room, and data after the stream.
            assert!(!pair.compare(&stored, raw.len() - 1));
            assert!(!pair.compare(&stored, raw.len() / 2));
            assert!(pair.compare(&[&stored[..], &[0xa5; 9]].concat(), raw.len()));
        }
    }
}

#[test]
fn two_streams_in_turn_are_inflated_as_one_after_the_other() {
    let Some(mut pair) = Pair::new() else { return };
    // Streams of all lengths, so that either ends first; damage of one must not affect the other.
    let streams: Vec<_> = [300, 9000, 40_000].into_iter().flat_map(streams).collect();
    let mut noise = Noise(11);
    for (stored, raw) in &streams {
        let (other_stored, other_raw) = &streams[noise.below(streams.len() as u64) as usize];
        assert_eq!(pair.compare_two([stored, other_stored], [raw.len(), other_raw.len()]), [true; 2]);
        assert_eq!(pair.compare_two([stored, other_stored], [raw.len(), other_raw.len() - 1]), [true, false]);
        let cut = &stored[..noise.below(stored.len() as u64) as usize];
        assert_eq!(pair.compare_two([cut, other_stored], [raw.len(), other_raw.len()]), [false, true]);
        let mut damaged = stored.clone();
        damaged[noise.below(stored.len() as u64) as usize] ^= 1 << noise.below(8);
        assert!(pair.compare_two([&damaged, other_stored], [raw.len(), other_raw.len()])[1]);
    }
}

#[test]
fn long_columns_of_numbers_are_taken_and_what_libdeflate_decodes_faster_is_not() {
    let Some(mut pair) = Pair::new() else { return };
    let (mut taken, mut left) = (0, 0);
    for raw in columns(MIN_LEN_BYTES) {
        for level in [1, 3, 6, 9] {
            let stored = deflated(&raw, level);
            if !InterleavedInflater::is_for(&stored, raw.len()) {
                left += 1;
                continue;
            }
            let mut out = vec![0; raw.len()];
            match pair.joint.inflate([&stored], [&mut out]) {
                [Some(produced)] => {
                    assert_eq!(out[..produced], raw);
                    taken += 1;
                }
                [None] => left += 1,
            }
        }
    }
    assert!(taken >= 12 && left >= 12, "{taken} taken, {left} left");
}

#[test]
fn streams_of_short_blocks_are_left_to_libdeflate() {
    let Some(mut pair) = Pair::new() else { return };
    let raw = &columns(MIN_LEN_BYTES)[6];
    for (block_len_bytes, is_taken) in [(1000, false), (4000, false), (20_000, true)] {
        let mut compressor = CompressorOxide::new(create_comp_flags_from_zip_params(6, 15, 0));
        let (mut stored, mut at) = (vec![0; 2 * raw.len()], 0);
        for block in raw.chunks(block_len_bytes) {
            at += deflate(&mut compressor, block, &mut stored[at..], MZFlush::Sync).bytes_written;
        }
        at += deflate(&mut compressor, &[], &mut stored[at..], MZFlush::Finish).bytes_written;
        assert_eq!(pair.compare(&stored[..at], raw.len()), is_taken, "{block_len_bytes} bytes");
    }
}

#[test]
fn matches_of_any_length_from_any_distance_are_copied() {
    let Some(mut pair) = Pair::new() else { return };
    let mut noise = Noise(5);
    for distance in (1..40).chain([63, 64, 255, 256, 1000, 4095, 20_000, 32_767, 32_768]) {
        let mut raw: Vec<u8> = (0..distance.max(50)).map(|_| noise.below(256) as u8).collect();
        for len_bytes in (3..80).chain([127, 128, 200, 257, 258, 259, 500]) {
            let from = raw.len() - distance;
            (from..from + len_bytes).for_each(|at| raw.push(raw[at]));
            (0..2).for_each(|_| raw.push(noise.below(256) as u8));
        }
        for level in [1, 6, 9, 12] {
            let stored = deflated(&raw, level);
            assert!(pair.compare(&stored, raw.len()), "{distance} back");
            assert_eq!(pair.compare_two([&stored, &stored], [raw.len(); 2]), [true; 2], "{distance} back");
        }
    }
}

#[test]
fn every_damaged_byte_and_every_cut_ends_as_with_libdeflate() {
    let Some(mut pair) = Pair::new() else { return };
    let (mut damages, mut inflated_anyway) = (0, 0);
    for raw in columns(900) {
        for level in [0, 1, 6] {
            let stored = deflated(&raw, level);
            // All of the header, where most errors are possible, and some of the data.
            for at in (0..stored.len()).filter(|&at| at < 120 || at % 37 == 0 || at + 20 > stored.len()) {
                let values = damaged_values(stored[at]);
                damages += values.len();
                inflated_anyway += pair.compare_damage_at(&stored, at, &values, raw.len(), 700);
            }
        }
    }
    // Otherwise the checksum would have hidden everything.
    assert!(inflated_anyway * 20 > damages, "{inflated_anyway} of {damages}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_pieces_survive(
        pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..60), 1usize..80, 0usize..3000), 1..40),
        level in 0u8..=10,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let Some(mut pair) = Pair::new() else { return Ok(()) };
        let mut raw = Vec::new();
        for (bytes, repeats, back) in &pieces {
            raw.extend(bytes.repeat(*repeats));
            let from = raw.len().saturating_sub(*back);
            raw.extend_from_within(from..(from + bytes.len()).min(raw.len()));
        }
        let whole = miniz_oxide::deflate::compress_to_vec_zlib(&raw, level);
        assert!(pair.compare(&whole, raw.len()));
        let mut stored = whole.clone();
        for (at, value) in damage {
            let at = at.index(stored.len());
            stored[at] = value;
        }
        pair.compare_two([&stored, &whole], [raw.len(); 2]);
        pair.compare_damaged(&mut stored, raw.len());
    }
}
