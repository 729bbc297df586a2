//! Tests that compare the kernel with the definition, in which every sample is moved by its address.

use super::*;
use crate::dataset::bitmask::{Bitmask, Point, level_of};
use crate::dataset::grid::{Layout, blocks, runs};
use proptest::prelude::*;

const EMPTY: u8 = 0xee;

/// Returns a sample that encodes its position.
fn sample(point: &Point, len_bytes: usize) -> Vec<u8> {
    let number = point.iter().fold(1u64, |number, at| number.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(*at));
    (0..len_bytes).map(|byte| (number.rotate_left(byte as u32 * 8 % 61) >> 7) as u8).collect()
}

fn points(grid: &ArrayGrid) -> Vec<Point> {
    (0..grid.sample_count().unwrap())
        .map(|mut number| {
            std::array::from_fn(|axis| {
                let index = number % grid.counts[axis];
                number /= grid.counts[axis];
                grid.origin[axis] + (index << grid.log2_spacing[axis])
            })
        })
        .collect()
}

/// Sort key by which x varies fastest.
fn x_last(mut point: Point) -> Point {
    point.reverse();
    point
}

fn filled(grid: &ArrayGrid, len_bytes: usize) -> Vec<u8> {
    points(grid).iter().flat_map(|point| sample(point, len_bytes)).collect()
}

/// Checks both layouts of all blocks of a box against the definition, and back at `resolution`.
fn check(bitmask: &Bitmask, bits: u32, start: &Point, end: &Point, len_bytes: usize, resolution: u32) {
    let max_level = bitmask.max_level();
    let grid = ArrayGrid::of_box(bitmask, start, end, max_level).expect("a box of full resolution is not empty");
    let array = filled(&grid, len_bytes);
    let coarse = ArrayGrid::of_box(bitmask, start, end, resolution);
    for layout in [Layout::Hz, Layout::RowMajor] {
        let mut back = coarse.map(|coarse| vec![EMPTY; coarse.sample_count().unwrap() as usize * len_bytes]);
        for block in blocks(bitmask, bits, &grid, max_level) {
            let mut addresses: Vec<u64> = (block << bits..(block + 1) << bits).collect();
            if layout == Layout::RowMajor {
                addresses.sort_by_cached_key(|hz| x_last(bitmask.point_of_hz(*hz)));
            }
            let want: Vec<u8> = addresses
                .iter()
                .flat_map(|hz| {
                    let point = bitmask.point_of_hz(*hz);
                    let inside = (0..MAX_RANK).all(|axis| (start[axis]..end[axis]).contains(&point[axis]));
                    if inside { sample(&point, len_bytes) } else { vec![EMPTY; len_bytes] }
                })
                .collect();
            let mut got = vec![EMPTY; len_bytes << bits];
            for run in runs(bitmask, bits, block, layout, max_level) {
                encode(&run, &grid, &array, &mut got, len_bytes);
            }
            assert!(got == want, "{bitmask} bits {bits} block {block} {layout:?} {start:?} {end:?} length {len_bytes}");
            if let (Some(coarse), Some(back)) = (&coarse, &mut back) {
                for run in runs(bitmask, bits, block, layout, resolution) {
                    decode(&run, coarse, back, &got, len_bytes);
                }
            }
        }
        if let (Some(coarse), Some(back)) = (coarse, back) {
            assert!(
                back == filled(&coarse, len_bytes),
                "{bitmask} {bits} {layout:?} {start:?} {end:?} to {resolution}"
            );
            assert!(points(&coarse).iter().all(|point| level_of(bitmask.hz_address(point)) <= resolution));
        }
    }
}

#[test]
fn irregular_boxes_of_rank_two_to_five() {
    let sizes: [&[u64]; 7] =
        [&[22, 36, 22], &[17, 33, 9], &[45, 70], &[7, 5, 9, 6], &[3, 4, 5, 3, 4], &[1, 9, 4], &[64, 1, 8]];
    for counts in sizes {
        let bitmask = Bitmask::for_counts(counts).unwrap();
        let end = std::array::from_fn(|axis| counts.get(axis).copied().unwrap_or(1));
        for bits in [1, 5, 9, bitmask.max_level()] {
            for resolution in [3, bitmask.max_level()] {
                check(&bitmask, bits.min(bitmask.max_level()), &[0; 5], &end, 4, resolution);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn any_bitmask_box_and_sample_length(
        letters in prop::collection::vec(0u8..5, 1..12),
        (low, high, bits, cut) in any::<(u64, u64, u32, u32)>(),
        len_bytes in prop::sample::select(vec![1usize, 2, 3, 4, 8, 12, 16, 24, 88]),
    ) {
        let text: String = letters.iter().map(|axis| char::from(b'0' + axis)).collect();
        let bitmask = Bitmask::parse(&format!("V{text}")).unwrap();
        let modulus = 1 << bitmask.max_level();
        let (a, b) = (bitmask.point_of_z(low % modulus), bitmask.point_of_z(high % modulus));
        let start = std::array::from_fn(|axis| a[axis].min(b[axis]));
        let end = std::array::from_fn(|axis| a[axis].max(b[axis]) + 1);
        let levels = bitmask.max_level() + 1;
        check(&bitmask, bits % levels, &start, &end, len_bytes, cut % levels);
    }
}
