//! Movement of samples between arrays and blocks: the hot loops of writing and reading.
//!
//! A block is filled directly from the array's rows, or copied directly into them, without an intermediate array in HZ
//! order. In row-major blocks, rows are copied. In HZ order, the lowest bits of the position usually belong to one axis
//! each: a cell of 2, 4 or 8 samples that are contiguous in the block and form pairs in 1, 2 or 4 rows of the array.
//! Whole cells are moved at once, the rest at the edge of the array sample by sample. Samples are byte arrays of a
//! length known at compile time, or slices for unusual lengths.
//!
//! Invariant: the result equals moving every sample by its address alone, which the tests check.

mod sides;

use crate::dataset::bitmask::MAX_RANK;
use crate::dataset::grid::{ArrayGrid, LatticeRun, Order};
use sides::{Decode, DecodeAny, Encode, EncodeAny, Side};
use std::ops::Range;

/// Maximum number of samples per cell.
const CELL: usize = 8;

/// Maximum number of rows per cell.
const CELL_ROWS: usize = CELL / 2;

/// Number of rows by which the array is prefetched: a memory access takes as long as moving a few rows, and rows of a
/// block are too short for the hardware prefetcher.
const ROWS_AHEAD: usize = 8;

/// Calls `$walk` with a side of `$array` and `$block`: `$fixed` if the sample length is known at compile time,
/// otherwise `$any`.
macro_rules! by_length {
    ($array:expr, $block:expr, $len:expr, $way:ident, |$side:ident| $walk:expr) => {
        by_length!($array, $block, $len, $way, |$side| $walk, 1 2 4 8 12 16 24)
    };
    ($array:expr, $block:expr, $len:expr, encode, |$side:ident| $walk:expr, $($fixed:literal)*) => {
        match $len {
            $($fixed => {
                let $side =
                    &mut Encode { array: $array.as_chunks::<$fixed>().0, block: $block.as_chunks_mut::<$fixed>().0 };
                $walk
            })*
            len => {
                let $side = &mut EncodeAny { array: $array, block: $block, sample_len_bytes: len };
                $walk
            }
        }
    };
    ($array:expr, $block:expr, $len:expr, decode, |$side:ident| $walk:expr, $($fixed:literal)*) => {
        match $len {
            $($fixed => {
                let $side =
                    &mut Decode { array: $array.as_chunks_mut::<$fixed>().0, block: $block.as_chunks::<$fixed>().0 };
                $walk
            })*
            len => {
                let $side = &mut DecodeAny { array: $array, block: $block, sample_len_bytes: len };
                $walk
            }
        }
    };
}

/// Copies the samples of `run` that `array` holds into `block`; other positions of the block stay unchanged.
///
/// # Panics
/// If `array` or `block` is shorter than its grid requires, or the run is not of the array's resolution.
pub fn encode(run: &LatticeRun, grid: &ArrayGrid, array: &[u8], block: &mut [u8], sample_len_bytes: usize) {
    let Some(overlap) = Overlap::of(run, grid) else { return };
    by_length!(array, block, sample_len_bytes, encode, |side| walk(run, &overlap, side));
}

/// Appends the samples of `run` that `array` holds to `out`, x fastest and without gaps, and returns their grid; `None`
/// if there are none.
///
/// # Panics
/// As for [`encode`].
pub fn gather(
    run: &LatticeRun,
    grid: &ArrayGrid,
    array: &[u8],
    out: &mut Vec<u8>,
    sample_len_bytes: usize,
) -> Option<ArrayGrid> {
    let (gathered, overlap, strides) = packed(run, grid)?;
    let start = out.len();
    out.resize(start + gathered.counts.iter().product::<u64>() as usize * sample_len_bytes, 0);
    let packed = &mut out[start..];
    by_length!(array, packed, sample_len_bytes, encode, |side| rows(&overlap, 0, &strides, side));
    Some(gathered)
}

/// Copies samples packed by [`gather`] into `array`.
///
/// # Panics
/// As for [`encode`].
pub fn scatter(run: &LatticeRun, grid: &ArrayGrid, array: &mut [u8], packed_samples: &[u8], sample_len_bytes: usize) {
    let Some((_, overlap, strides)) = packed(run, grid) else { return };
    by_length!(array, packed_samples, sample_len_bytes, decode, |side| rows(&overlap, 0, &strides, side));
}

/// Returns the grid of the samples that [`gather`] packs; `None` if there are none.
pub fn gathered(run: &LatticeRun, grid: &ArrayGrid) -> Option<ArrayGrid> {
    packed(run, grid).map(|(gathered, ..)| gathered)
}

/// Returns the samples of a run that an array holds: their grid, their overlap with the array, and the strides of the
/// packed samples.
fn packed(run: &LatticeRun, grid: &ArrayGrid) -> Option<(ArrayGrid, Overlap, [usize; MAX_RANK])> {
    let overlap = Overlap::of(run, grid)?;
    let first = |axis: usize| overlap.ranges[axis].start;
    let counts: [usize; MAX_RANK] = std::array::from_fn(|axis| overlap.ranges[axis].len());
    let gathered = ArrayGrid {
        origin: std::array::from_fn(|axis| run.origin[axis] + ((first(axis) as u64) << run.log2_spacing[axis])),
        counts: counts.map(|count| count as u64),
        log2_spacing: run.log2_spacing,
    };
    let from_first = Overlap {
        ranges: counts.map(|count| 0..count),
        steps: overlap.steps,
        bases: std::array::from_fn(|axis| {
            overlap.bases[axis].wrapping_add(first(axis).wrapping_mul(overlap.steps[axis]))
        }),
    };
    Some((gathered, from_first, gathered.strides().map(|stride| stride as usize)))
}

/// Copies the samples of `run` that `array` holds from `block` into `array`.
///
/// # Panics
/// As for [`encode`].
pub fn decode(run: &LatticeRun, grid: &ArrayGrid, array: &mut [u8], block: &[u8], sample_len_bytes: usize) {
    let Some(overlap) = Overlap::of(run, grid) else { return };
    by_length!(array, block, sample_len_bytes, decode, |side| walk(run, &overlap, side));
}

/// The samples of a run that lie in the array, and their positions there.
struct Overlap {
    ranges: [Range<usize>; MAX_RANK],
    /// Distance in the array between neighbours in the run.
    steps: [usize; MAX_RANK],
    /// Position in the array of index 0 along each axis, modulo 2^64: it may lie before the array.
    bases: [usize; MAX_RANK],
}

impl Overlap {
    fn of(run: &LatticeRun, grid: &ArrayGrid) -> Option<Self> {
        let ranges = run.clip(grid)?.map(|range| range.start as usize..range.end as usize);
        let strides = grid.strides();
        let (mut steps, mut bases) = ([0; MAX_RANK], [0; MAX_RANK]);
        for axis in 0..MAX_RANK {
            let (spacing, stride) = (grid.log2_spacing[axis], strides[axis] as usize);
            // The spacing is that of a lattice in the array only along axes with more than one sample.
            let ratio = 1usize.checked_shl(run.log2_spacing[axis] - spacing).unwrap_or(0);
            steps[axis] = ratio.wrapping_mul(stride);
            let start = run.origin[axis].wrapping_sub(grid.origin[axis]) as i64 >> spacing;
            bases[axis] = (start as usize).wrapping_mul(stride);
        }
        Some(Self { ranges, steps, bases })
    }

    /// Returns the position in the array of an index of the run.
    fn place(&self, index: &[usize; MAX_RANK]) -> usize {
        (0..MAX_RANK).fold(0, |place: usize, axis| {
            place.wrapping_add(self.bases[axis]).wrapping_add(index[axis].wrapping_mul(self.steps[axis]))
        })
    }
}

fn walk(run: &LatticeRun, overlap: &Overlap, side: &mut impl Side) {
    match &run.order {
        Order::Strides(strides) => rows(overlap, run.first, strides, side),
        Order::Bits(axes) => curve(overlap, run, axes, side),
    }
}

/// Calls `each` with every index of `ranges`, where axis 0 stays at its start, and with the distance in the array from
/// there to the row `ahead` calls later. `steps` are the distances between neighbours in the array.
fn each_row(
    ranges: &[Range<usize>; MAX_RANK],
    steps: &[usize; MAX_RANK],
    ahead: usize,
    mut each: impl FnMut(&[usize; MAX_RANK], usize),
) {
    let mut index: [usize; MAX_RANK] = std::array::from_fn(|axis| ranges[axis].start);
    let count = ranges[1].len();
    let within = steps[1].wrapping_mul(ahead);
    loop {
        let mut next = index;
        let mut to_next = 0usize;
        let mut axis = 2;
        while axis < MAX_RANK {
            next[axis] += 1;
            to_next = to_next.wrapping_add(steps[axis]);
            if next[axis] < ranges[axis].end {
                break;
            }
            next[axis] = ranges[axis].start;
            to_next = to_next.wrapping_sub(ranges[axis].len().wrapping_mul(steps[axis]));
            axis += 1;
        }
        // After the last row of a plane comes the first row of the next one.
        let beyond = within.wrapping_add(to_next).wrapping_sub(count.wrapping_mul(steps[1]));
        for number in 0..count {
            index[1] = ranges[1].start + number;
            each(&index, if number + ahead < count { within } else { beyond });
        }
        if axis == MAX_RANK {
            return;
        }
        index = next;
    }
}

fn rows(overlap: &Overlap, first: usize, strides: &[usize; MAX_RANK], side: &mut impl Side) {
    each_row(&overlap.ranges, &overlap.steps, ROWS_AHEAD, |index, ahead| {
        let place = (0..MAX_RANK).fold(first, |place, axis| place + index[axis] * strides[axis]);
        let (at, step, count) = (overlap.place(index), overlap.steps[0], overlap.ranges[0].len());
        side.soon(at.wrapping_add(ahead), (count - 1) * step + 1);
        side.row((place, strides[0]), (at, step), count);
    });
}

/// Returns, for each axis, the contribution of each index to the position in the block.
fn spread(axes: &[u8], log2_counts: &[u32; MAX_RANK]) -> [Vec<u32>; MAX_RANK] {
    std::array::from_fn(|axis| {
        let mut table = Vec::with_capacity(1 << log2_counts[axis]);
        table.push(0);
        for (bit, _) in axes.iter().enumerate().filter(|(_, of)| usize::from(**of) == axis) {
            for entry in 0..table.len() {
                table.push(table[entry] | 1u32 << bit);
            }
        }
        table
    })
}

/// Returns the axes of the cell of a Z curve, in the order of their bits; x is one of them. The result is empty if the
/// bit of x is too high.
fn cell_axes(axes: &[u8]) -> &[u8] {
    let distinct =
        (1..=axes.len().min(CELL.ilog2() as usize)).take_while(|len| !axes[..len - 1].contains(&axes[len - 1]));
    let cell = &axes[..distinct.last().unwrap_or(0)];
    if cell.contains(&0) { cell } else { &[] }
}

fn curve<S: Side>(overlap: &Overlap, run: &LatticeRun, axes: &[u8], side: &mut S) {
    let tables = spread(axes, &run.log2_counts);
    let place_of = |index: &[usize; MAX_RANK]| {
        (1..MAX_RANK).fold(run.first, |place, axis| place + tables[axis][index[axis]] as usize)
    };
    let cell = if S::HAS_CELLS { cell_axes(axes) } else { &[] };
    let x = overlap.ranges[0].clone();
    let x_cells = x.start.div_ceil(2)..(x.end / 2).max(x.start.div_ceil(2));
    let x_place = |place: usize, x: usize| place.wrapping_add(x.wrapping_mul(overlap.steps[0]));
    if cell.is_empty() {
        each_row(&overlap.ranges, &overlap.steps, 0, |index, _| {
            side.spread(place_of(index), &tables[0][x.clone()], overlap.place(index), overlap.steps[0]);
        });
        return;
    }
    // Along the cell's other axes, indexes come in pairs.
    let paired: [bool; MAX_RANK] = std::array::from_fn(|axis| axis > 0 && cell.contains(&(axis as u8)));
    let groups = std::array::from_fn(|axis| {
        let range = &overlap.ranges[axis];
        if paired[axis] { range.start / 2..range.end.div_ceil(2) } else { range.clone() }
    });
    let others: Vec<usize> = cell.iter().map(|axis| usize::from(*axis)).filter(|axis| *axis > 0).collect();
    let row_count = 1 << others.len();
    let x_bit = cell.iter().position(|axis| *axis == 0).unwrap_or(0);
    // Distances in the array from the first row of a cell to its other rows.
    let row_offsets: [usize; CELL_ROWS] = std::array::from_fn(|row| {
        let bits = others.iter().enumerate();
        bits.fold(0usize, |sum, (bit, axis)| sum.wrapping_add((row >> bit & 1).wrapping_mul(overlap.steps[*axis])))
    });
    let table = &tables[0][2 * x_cells.start..2 * x_cells.end];
    let has_edges = x != (2 * x_cells.start..2 * x_cells.end);
    let group_steps = std::array::from_fn(|axis| overlap.steps[axis].wrapping_mul(if paired[axis] { 2 } else { 1 }));
    let groups_ahead = ROWS_AHEAD / row_count;
    each_row(&groups, &group_steps, groups_ahead, |group, ahead| {
        let mut corner: [usize; MAX_RANK] =
            std::array::from_fn(|axis| if paired[axis] { 2 * group[axis] } else { group[axis] });
        corner[0] = 0;
        let is_whole = others.iter().all(|axis| {
            let range = &overlap.ranges[*axis];
            corner[*axis] >= range.start && corner[*axis] + 1 < range.end
        });
        let is_cells = is_whole && !table.is_empty();
        if is_cells {
            let first = x_place(overlap.place(&corner), 2 * x_cells.start);
            let rows = row_offsets.map(|offset| first.wrapping_add(offset));
            let (at, step) = (place_of(&corner), overlap.steps[0]);
            match (cell.len(), x_bit) {
                (1, _) => side.cells::<2, 1, 0>(at, table, rows, step, ahead),
                (2, 0) => side.cells::<4, 2, 0>(at, table, rows, step, ahead),
                (2, _) => side.cells::<4, 2, 1>(at, table, rows, step, ahead),
                (_, 0) => side.cells::<8, 4, 0>(at, table, rows, step, ahead),
                (_, 1) => side.cells::<8, 4, 1>(at, table, rows, step, ahead),
                (_, _) => side.cells::<8, 4, 2>(at, table, rows, step, ahead),
            }
        }
        if is_cells && !has_edges {
            return;
        }
        for row in 0..row_count {
            let mut index = corner;
            for (bit, axis) in others.iter().enumerate() {
                index[*axis] += row >> bit & 1;
            }
            if !others.iter().all(|axis| overlap.ranges[*axis].contains(&index[*axis])) {
                continue;
            }
            let mut single = |x: Range<usize>| {
                if !x.is_empty() {
                    let place = x_place(overlap.place(&index), x.start);
                    side.spread(place_of(&index), &tables[0][x], place, overlap.steps[0]);
                }
            };
            if is_cells {
                single(x.start..2 * x_cells.start);
                single(2 * x_cells.end..x.end);
            } else {
                single(x.clone());
            }
        }
    });
}

#[cfg(test)]
mod tests;
