//! Lattices of samples: the parts of the power-of-two box that an array and a block hold.
//!
//! Every level, block and part of a block is a lattice whose origin, spacing and counts are powers of two, in one of
//! two orders. This module plans moves and touches no data. Invariant: a run of a bitmask holds exactly the addresses
//! that it names, in their order.

use crate::dataset::bitmask::{Bitmask, MAX_RANK, Point, level_of};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Samples of an array: a box of the lattice of one resolution, x fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayGrid {
    /// First sample, in coordinates of full resolution; a multiple of the spacing.
    pub origin: Point,
    /// Number of samples per axis; 1 beyond the rank.
    pub counts: Point,
    /// Base-2 logarithm of the spacing per axis.
    pub log2_spacing: [u32; MAX_RANK],
}

impl ArrayGrid {
    /// Returns the samples of `resolution` in the box from `start` to `end` (exclusive); `None` if there are none.
    pub fn of_box(bitmask: &Bitmask, start: &Point, end: &Point, resolution: u32) -> Option<Self> {
        let counts = Self::counts_of_box(bitmask, start, end, resolution);
        let log2_spacing = bitmask.log2_spacing(resolution);
        if counts.contains(&0) {
            return None;
        }
        let origin = std::array::from_fn(|axis| start[axis].next_multiple_of(1 << log2_spacing[axis]));
        Some(Self { origin, counts, log2_spacing })
    }

    /// Returns how many samples of `resolution` the box has along each axis; 0 if the box lies between samples.
    pub(crate) fn counts_of_box(bitmask: &Bitmask, start: &Point, end: &Point, resolution: u32) -> Point {
        let log2_spacing = bitmask.log2_spacing(resolution);
        std::array::from_fn(|axis| {
            let spacing = 1u64 << log2_spacing[axis];
            let first = start[axis].checked_next_multiple_of(spacing);
            first.map_or(0, |first| end[axis].saturating_sub(first).div_ceil(spacing))
        })
    }

    /// Returns the number of samples; `None` beyond 64 bits.
    pub fn sample_count(&self) -> Option<u64> {
        raddle_core::plan::extent::product(&self.counts)
    }

    /// Returns the slowest axis with more than one sample: parts of the array along it are contiguous and follow one
    /// another.
    pub fn slowest_axis(&self) -> usize {
        (0..MAX_RANK).rev().find(|axis| self.counts[*axis] > 1).unwrap_or(0)
    }

    /// Returns the part with the samples of `range` along `axis`.
    #[must_use]
    pub fn along(&self, axis: usize, range: &Range<u64>) -> Self {
        let mut part = *self;
        part.origin[axis] += range.start << self.log2_spacing[axis];
        part.counts[axis] = range.end - range.start;
        part
    }

    /// Returns the distance in the array between neighbours along each axis, in samples.
    pub fn strides(&self) -> Point {
        let mut strides = [1; MAX_RANK];
        for axis in 1..MAX_RANK {
            strides[axis] = strides[axis - 1] * self.counts[axis - 1];
        }
        strides
    }
}

/// Order of the samples in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Rows of the block's lattice
    ///
    /// With x fastest, whole rows can be copied, and neighbours compress better.
    #[cfg_attr(feature = "clap", value(name = "rows"))]
    #[serde(rename = "rows")]
    RowMajor,
    /// By HZ address, as in PIDX
    Hz,
}

/// Samples of a block that form one lattice, and their positions in the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatticeRun {
    /// Coordinates of the first sample.
    pub origin: Point,
    /// Base-2 logarithm of the spacing per axis.
    pub log2_spacing: [u32; MAX_RANK],
    /// Base-2 logarithm of the samples per axis.
    pub log2_counts: [u32; MAX_RANK],
    /// Position of the first sample in the block.
    pub first: usize,
    /// Order of the remaining samples in the block.
    pub order: Order,
}

/// Positions of the samples of a run, relative to its first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Distance between neighbours along each axis.
    Strides([usize; MAX_RANK]),
    /// The axis of each bit of the position, lowest first: a Z curve.
    Bits(Vec<u8>),
}

impl LatticeRun {
    /// Returns the run of the `2^log2_len` addresses of one level starting at `hz`, a multiple of that length, in HZ
    /// order.
    fn of_addresses(bitmask: &Bitmask, hz: u64, log2_len: u32, first: usize) -> Self {
        let level = level_of(hz);
        let above = bitmask.splits(level.saturating_sub(1));
        let outside = bitmask.splits(level.saturating_sub(1) - log2_len);
        let all = bitmask.log2_counts();
        Self {
            origin: bitmask.point_of_hz(hz),
            log2_spacing: std::array::from_fn(|axis| all[axis] - above[axis]),
            log2_counts: std::array::from_fn(|axis| above[axis] - outside[axis]),
            first,
            order: Order::Bits((0..log2_len).map(|bit| bitmask.axis(level - 1 - bit) as u8).collect()),
        }
    }

    /// Returns the run of every `2^skip`-th sample per axis of a lattice with x fastest.
    fn rows(origin: Point, log2_spacing: [u32; MAX_RANK], log2_counts: [u32; MAX_RANK], skip: [u32; MAX_RANK]) -> Self {
        let mut strides = [0; MAX_RANK];
        let mut log2_stride = 0;
        for axis in 0..MAX_RANK {
            strides[axis] = 1usize << (log2_stride + skip[axis]);
            log2_stride += log2_counts[axis] + skip[axis];
        }
        Self { origin, log2_spacing, log2_counts, first: 0, order: Order::Strides(strides) }
    }

    /// Returns the part of the lattice that `array` holds, as ranges of indexes per axis; `None` if it holds nothing.
    ///
    /// The run's samples must belong to the array's resolution.
    pub fn clip(&self, array: &ArrayGrid) -> Option<[Range<u64>; MAX_RANK]> {
        let mut ranges = std::array::from_fn(|_| 0..0);
        for (axis, range) in ranges.iter_mut().enumerate() {
            let end = array.origin[axis] + (array.counts[axis] << array.log2_spacing[axis]);
            let index = |at: u64| at.saturating_sub(self.origin[axis]).div_ceil(1 << self.log2_spacing[axis]);
            *range = index(array.origin[axis])..index(end).min(1 << self.log2_counts[axis]);
            if range.is_empty() {
                return None;
            }
        }
        Some(ranges)
    }
}

/// Returns the runs of `block` (`2^bits_per_block` samples) that hold its samples up to `resolution`. Every block
/// except block 0 is one run; block 0 holds all levels up to `bits_per_block`, and in HZ order each is a run.
pub fn runs(bitmask: &Bitmask, bits_per_block: u32, block: u64, layout: Layout, resolution: u32) -> Vec<LatticeRun> {
    let first_hz = block << bits_per_block;
    let level = level_of(first_hz);
    match layout {
        _ if level > resolution => Vec::new(),
        Layout::Hz if block > 0 => vec![LatticeRun::of_addresses(bitmask, first_hz, bits_per_block, 0)],
        Layout::RowMajor if block > 0 => {
            let run = LatticeRun::of_addresses(bitmask, first_hz, bits_per_block, 0);
            vec![LatticeRun::rows(run.origin, run.log2_spacing, run.log2_counts, [0; MAX_RANK])]
        }
        Layout::Hz => {
            let levels = 1..=bits_per_block.min(resolution);
            let origin = LatticeRun::of_addresses(bitmask, 0, 0, 0);
            let level = |level: u32| LatticeRun::of_addresses(bitmask, 1 << (level - 1), level - 1, 1 << (level - 1));
            std::iter::once(origin).chain(levels.map(level)).collect()
        }
        Layout::RowMajor => {
            let resolution = resolution.min(bits_per_block);
            let (stored, meant) = (bitmask.splits(bits_per_block), bitmask.splits(resolution));
            let skip = std::array::from_fn(|axis| stored[axis] - meant[axis]);
            vec![LatticeRun::rows([0; MAX_RANK], bitmask.log2_spacing(resolution), meant, skip)]
        }
    }
}

/// Returns the first and last level in a block of `2^bits_per_block` samples: block 0 holds several levels, any other
/// block one.
pub fn level_range(block: u64, bits_per_block: u32) -> (u32, u32) {
    match block {
        0 => (0, bits_per_block),
        _ => (level_of(block << bits_per_block), level_of(block << bits_per_block)),
    }
}

/// Iterates over the blocks that hold samples of `array`, in ascending order. `resolution` is the resolution of the
/// array.
pub fn blocks(bitmask: &Bitmask, bits_per_block: u32, array: &ArrayGrid, resolution: u32) -> Vec<u64> {
    Blocks::new(bitmask, bits_per_block, array, resolution).collect()
}

/// Iterator over the blocks that hold samples of an array, in ascending order. There may be more than fit in memory.
///
/// It walks down the tree of power-of-two boxes that the bitmask describes and skips boxes outside the array, so the
/// cost depends on the number of blocks found, not on the size of the dataset.
#[derive(Debug)]
pub struct Blocks<'a> {
    bitmask: &'a Bitmask,
    bits_per_block: u32,
    array: &'a ArrayGrid,
    resolution: u32,
    /// Level whose blocks are being found; block 0 holds all levels up to `bits_per_block`.
    level: u32,
    /// Boxes of the level still to be visited: the number of letters that cut each one out, and their bits.
    open: Vec<(u32, u64)>,
}

impl<'a> Blocks<'a> {
    /// Starts the iteration; see [`blocks`].
    pub fn new(bitmask: &'a Bitmask, bits_per_block: u32, array: &'a ArrayGrid, resolution: u32) -> Self {
        Self { bitmask, bits_per_block, array, resolution, level: bits_per_block, open: vec![(0, 0)] }
    }

    fn has_first(&self) -> bool {
        let runs = runs(self.bitmask, self.bits_per_block, 0, Layout::RowMajor, self.resolution);
        runs.iter().any(|run| run.clip(self.array).is_some())
    }
}

impl Iterator for Blocks<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            let Some((depth, prefix)) = self.open.pop() else {
                if self.level >= self.resolution {
                    return None;
                }
                self.level += 1;
                self.open.push((0, 0));
                continue;
            };
            if self.level == self.bits_per_block {
                if self.has_first() {
                    return Some(0);
                }
                continue;
            }
            if depth_run(self.bitmask, self.level, depth, prefix).clip(self.array).is_none() {
                continue;
            }
            // A block of this level is the part of the level inside a box. The first letters, one per bit of the
            // block's number, cut out that box.
            let letters = self.level - 1 - self.bits_per_block;
            if depth == letters {
                return Some(1 << letters | prefix);
            }
            // The lower half is popped first.
            self.open.push((depth + 1, prefix << 1 | 1));
            self.open.push((depth + 1, prefix << 1));
        }
    }
}

/// Returns the samples of `level` in the box that `depth` letters cut out.
fn depth_run(bitmask: &Bitmask, level: u32, depth: u32, prefix: u64) -> LatticeRun {
    let log2_len = level - 1 - depth;
    let hz = (1 << depth | prefix) << log2_len;
    let mut run = LatticeRun::of_addresses(bitmask, hz, log2_len, 0);
    run.order = Order::Bits(Vec::new());
    run
}

/// Returns all samples of a block as one lattice, independent of their order in it.
pub(crate) fn lattice(bitmask: &Bitmask, bits_per_block: u32, block: u64) -> Option<LatticeRun> {
    runs(bitmask, bits_per_block, block, Layout::RowMajor, bitmask.max_level()).pop()
}

/// Returns how many samples of a block lie in `grid`.
pub(crate) fn samples_in(lattice: &LatticeRun, grid: &ArrayGrid) -> u64 {
    lattice.clip(grid).map_or(0, |ranges| ranges.iter().map(|range| range.end - range.start).product())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates a small bitmask of any rank, bits per block, and a box.
    fn cases() -> impl Strategy<Value = (Bitmask, u32, Point, Point)> {
        (prop::collection::vec(0u8..5, 1..13), any::<u64>(), any::<u64>(), any::<u32>()).prop_map(
            |(letters, low, high, bits)| {
                let text: String = letters.iter().map(|axis| char::from(b'0' + axis)).collect();
                let bitmask = Bitmask::parse(&format!("V{text}")).unwrap();
                let modulus = 1 << bitmask.max_level();
                let (a, b) = (bitmask.point_of_z(low % modulus), bitmask.point_of_z(high % modulus));
                let start = std::array::from_fn(|axis| a[axis].min(b[axis]));
                let end = std::array::from_fn(|axis| a[axis].max(b[axis]) + 1);
                let bits = bits % (bitmask.max_level() + 1);
                (bitmask, bits, start, end)
            },
        )
    }

    proptest! {
        #[test]
        fn runs_hold_their_addresses((bitmask, bits, _, _) in cases(), seed: u64, cut in 0u32..13) {
            let blocks = 1u64 << (bitmask.max_level() - bits);
            let block = seed % blocks;
            let resolution = cut.min(bitmask.max_level());
            let want: Vec<Point> = (block << bits..(block + 1) << bits)
                .filter(|hz| level_of(*hz) <= resolution)
                .map(|hz| bitmask.point_of_hz(hz))
                .collect();
            let mut places = vec![];
            for run in runs(&bitmask, bits, block, Layout::Hz, resolution) {
                let Order::Bits(axes) = &run.order else { panic!("not in HZ order") };
                for place in 0..1usize << axes.len() {
                    let mut point = run.origin;
                    let mut next = run.log2_spacing;
                    for (bit, axis) in axes.iter().enumerate() {
                        let axis = usize::from(*axis);
                        point[axis] += ((place >> bit & 1) as u64) << next[axis];
                        next[axis] += 1;
                    }
                    places.push((run.first + place, point));
                }
            }
            places.sort();
            prop_assert_eq!(places, want.iter().copied().enumerate().collect::<Vec<_>>());
            // Row-major order: the same points, with x fastest.
            let mut rows = want;
            rows.sort_by_key(|point| std::array::from_fn::<u64, MAX_RANK, _>(|axis| point[MAX_RANK - 1 - axis]));
            let mut points = vec![];
            for run in runs(&bitmask, bits, block, Layout::RowMajor, resolution) {
                let count: u64 = 1 << run.log2_counts.iter().sum::<u32>();
                for mut number in 0..count {
                    let mut point = run.origin;
                    for (axis, at) in point.iter_mut().enumerate() {
                        *at += (number & ((1 << run.log2_counts[axis]) - 1)) << run.log2_spacing[axis];
                        number >>= run.log2_counts[axis];
                    }
                    points.push(point);
                }
            }
            prop_assert_eq!(points, rows);
        }

        #[test]
        fn blocks_are_those_with_samples_in_the_box((bitmask, bits, start, end) in cases(), cut in 0u32..13) {
            let resolution = cut.min(bitmask.max_level());
            let spacing = bitmask.log2_spacing(resolution);
            let mut want = std::collections::BTreeSet::new();
            let mut samples = 0;
            for hz in 0..1u64 << resolution {
                let point = bitmask.point_of_hz(hz);
                if (0..MAX_RANK).all(|axis| (start[axis]..end[axis]).contains(&point[axis])) {
                    prop_assert!((0..MAX_RANK).all(|axis| point[axis] % (1 << spacing[axis]) == 0));
                    want.insert(hz >> bits);
                    samples += 1;
                }
            }
            let got = ArrayGrid::of_box(&bitmask, &start, &end, resolution);
            prop_assert_eq!(got.map_or(Some(0), |grid| grid.sample_count()), Some(samples));
            let got = got.map_or(vec![], |grid| blocks(&bitmask, bits, &grid, resolution));
            prop_assert_eq!(got, want.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_small_box_of_a_huge_dataset_costs_little() {
        let bitmask = Bitmask::for_counts(&[1 << 20, 1 << 20, 1 << 20]).unwrap();
        let start = [777_777, 123_456, 1_000_000, 0, 0];
        let end = [777_777 + 64, 123_456 + 64, 1_000_000 + 40, 1, 1];
        let grid = ArrayGrid::of_box(&bitmask, &start, &end, 60).unwrap();
        let found = blocks(&bitmask, 15, &grid, 60);
        assert!(found.len() > 8 && found.len() < 200, "{}", found.len());
    }
}
