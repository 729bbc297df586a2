//! The two directions of moving samples, each with three loops: rows, single samples of a curve, and cells of a curve.
//!
//! The caller decides which samples go where. Invariant: a position outside the array or block panics before anything
//! is read or written there.

use super::CELL_ROWS;
use prefetch_index::prefetch_index;

/// Cache line size of most processors, in bytes.
const LINE_LEN_BYTES: usize = 64;

/// A direction of moving samples between positions of the array and of the block. The default methods move one sample
/// at a time; sides with samples of known length override them with faster loops.
pub(super) trait Side {
    /// Whether [`Side::cells`] may be called.
    const HAS_CELLS: bool = false;

    /// Moves one sample.
    fn sample(&mut self, block_at: usize, array_at: usize);

    /// Moves `count` samples at equal steps: (first, step) in the block and in the array.
    fn row(&mut self, block: (usize, usize), array: (usize, usize), count: usize) {
        (0..count).for_each(|index| self.sample(block.0 + index * block.1, array.0 + index * array.1));
    }

    /// Moves one sample per entry of `table`, which holds its position in the block relative to `block_at`.
    fn spread(&mut self, block_at: usize, table: &[u32], array_at: usize, array_step: usize) {
        for (index, place) in table.iter().enumerate() {
            self.sample(block_at + *place as usize, array_at + index * array_step);
        }
    }

    /// Hints that `span` samples of the array from `at` are moved soon; they may lie outside the array.
    fn soon(&self, _at: usize, _span: usize) {}

    /// Moves cells of LEN samples, one per pair of entries of `table`, which hold their positions relative to
    /// `block_at`; all are multiples of LEN. Bit P of the position in a cell is that of x; the other bits form the
    /// number of the row, one of ROWS, whose first sample is in `rows`. The rows `ahead` of these are moved soon.
    fn cells<const LEN: usize, const ROWS: usize, const P: usize>(
        &mut self,
        _block_at: usize,
        _table: &[u32],
        _rows: [usize; CELL_ROWS],
        _array_step: usize,
        _ahead: usize,
    ) {
        unreachable!("has no cells")
    }
}

/// Returns the row of a position in a cell: the position without bit `x_bit`.
const fn row_of(place: usize, x_bit: usize) -> usize {
    (place >> (x_bit + 1) << x_bit) | (place & ((1 << x_bit) - 1))
}

/// Returns the position in a cell of a sample of a row: the row's bits with the x bit inserted.
const fn place_of<const P: usize>(row: usize, x: usize) -> usize {
    (row >> P << (P + 1)) | x << P | (row & ((1 << P) - 1))
}

/// Prefetches the cache lines of the samples.
#[inline]
fn soon<const N: usize>(array: &[[u8; N]], at: usize, span: usize) {
    let Some(samples) = array.get(at..).and_then(|rest| rest.get(..span)) else { return };
    let bytes = samples.as_flattened();
    (0..bytes.len()).step_by(LINE_LEN_BYTES).for_each(|byte| prefetch_index(bytes, byte));
}

/// Copying of samples of a known length from the array to the block.
pub(super) struct Encode<'a, const N: usize> {
    pub(super) array: &'a [[u8; N]],
    pub(super) block: &'a mut [[u8; N]],
}

/// Copying of samples of a known length from the block to the array.
pub(super) struct Decode<'a, const N: usize> {
    pub(super) array: &'a mut [[u8; N]],
    pub(super) block: &'a [[u8; N]],
}

/// Copying of samples of any length from the array to the block.
pub(super) struct EncodeAny<'a> {
    pub(super) array: &'a [u8],
    pub(super) block: &'a mut [u8],
    pub(super) sample_len_bytes: usize,
}

/// Copying of samples of any length from the block to the array.
pub(super) struct DecodeAny<'a> {
    pub(super) array: &'a mut [u8],
    pub(super) block: &'a [u8],
    pub(super) sample_len_bytes: usize,
}

/// Copies every `step`-th element of `from` to consecutive positions; steps known at compile time become vector
/// shuffles.
#[inline]
fn gather<const N: usize>(to: &mut [[u8; N]], from: &[[u8; N]], step: usize) {
    match step {
        1 => to.copy_from_slice(&from[..to.len()]),
        2 => {
            let (last, to) = match to.split_last_mut() {
                Some(split) => split,
                None => return,
            };
            for (to, pair) in to.iter_mut().zip(from.as_chunks::<2>().0) {
                *to = pair[0];
            }
            *last = from[2 * to.len()];
        }
        _ => to.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, from)| *to = *from),
    }
}

impl<const N: usize> Side for Encode<'_, N> {
    const HAS_CELLS: bool = true;

    fn sample(&mut self, block_at: usize, array_at: usize) {
        self.block[block_at] = self.array[array_at];
    }

    fn row(&mut self, (block_at, block_step): (usize, usize), (array_at, array_step): (usize, usize), count: usize) {
        let from = &self.array[array_at..=array_at + (count - 1) * array_step];
        if block_step == 1 {
            return gather(&mut self.block[block_at..block_at + count], from, array_step);
        }
        for index in 0..count {
            self.block[block_at + index * block_step] = from[index * array_step];
        }
    }

    fn spread(&mut self, block_at: usize, table: &[u32], array_at: usize, array_step: usize) {
        let block = &mut self.block[block_at..];
        for (index, place) in table.iter().enumerate() {
            block[*place as usize] = self.array[array_at + index * array_step];
        }
    }

    #[inline]
    fn soon(&self, at: usize, span: usize) {
        soon(self.array, at, span);
    }

    fn cells<const LEN: usize, const ROWS: usize, const P: usize>(
        &mut self,
        block_at: usize,
        table: &[u32],
        rows: [usize; CELL_ROWS],
        array_step: usize,
        ahead: usize,
    ) {
        let table = table.as_chunks::<2>().0;
        let span = (2 * table.len() - 1) * array_step + 1;
        rows.iter().take(ROWS).for_each(|row| self.soon(row.wrapping_add(ahead), span));
        let cells = &mut self.block.as_chunks_mut::<LEN>().0[block_at / LEN..];
        let array = self.array;
        let rows: [&[[u8; N]]; ROWS] = std::array::from_fn(|row| &array[rows[row]..rows[row] + span]);
        if array_step == 1 {
            let rows = rows.map(|row| &row.as_chunks::<2>().0[..table.len()]);
            for (index, place) in table.iter().enumerate() {
                let pairs: [[[u8; N]; 2]; ROWS] = std::array::from_fn(|row| rows[row][index]);
                cells[place[0] as usize / LEN] = std::array::from_fn(|bits| pairs[row_of(bits, P)][bits >> P & 1]);
            }
            return;
        }
        // Half of the remaining cells have steps of 2, known at compile time; the last cell is excluded.
        let fours = rows.map(|row| row.as_chunks::<4>().0);
        let known = if array_step == 2 { table.len() - 1 } else { 0 };
        let fours = fours.map(|row| &row[..known]);
        for (index, place) in table[..known].iter().enumerate() {
            let pairs: [[[u8; N]; 2]; ROWS] = std::array::from_fn(|row| [fours[row][index][0], fours[row][index][2]]);
            cells[place[0] as usize / LEN] = std::array::from_fn(|bits| pairs[row_of(bits, P)][bits >> P & 1]);
        }
        for (index, place) in table.iter().enumerate().skip(known) {
            let low = 2 * index * array_step;
            let pairs: [[[u8; N]; 2]; ROWS] = std::array::from_fn(|row| [rows[row][low], rows[row][low + array_step]]);
            cells[place[0] as usize / LEN] = std::array::from_fn(|bits| pairs[row_of(bits, P)][bits >> P & 1]);
        }
    }
}

impl<const N: usize> Side for Decode<'_, N> {
    const HAS_CELLS: bool = true;

    fn sample(&mut self, block_at: usize, array_at: usize) {
        self.array[array_at] = self.block[block_at];
    }

    fn row(&mut self, (block_at, block_step): (usize, usize), (array_at, array_step): (usize, usize), count: usize) {
        let to = &mut self.array[array_at..=array_at + (count - 1) * array_step];
        if array_step == 1 {
            return gather(to, &self.block[block_at..=block_at + (count - 1) * block_step], block_step);
        }
        if block_step == 1 {
            let from = &self.block[block_at..block_at + count];
            to.iter_mut().step_by(array_step).zip(from).for_each(|(to, from)| *to = *from);
            return;
        }
        for index in 0..count {
            to[index * array_step] = self.block[block_at + index * block_step];
        }
    }

    fn spread(&mut self, block_at: usize, table: &[u32], array_at: usize, array_step: usize) {
        let block = &self.block[block_at..];
        for (index, place) in table.iter().enumerate() {
            self.array[array_at + index * array_step] = block[*place as usize];
        }
    }

    #[inline]
    fn soon(&self, at: usize, span: usize) {
        soon(self.array, at, span);
    }

    fn cells<const LEN: usize, const ROWS: usize, const P: usize>(
        &mut self,
        block_at: usize,
        table: &[u32],
        rows: [usize; CELL_ROWS],
        array_step: usize,
        ahead: usize,
    ) {
        let table = table.as_chunks::<2>().0;
        let span = (2 * table.len() - 1) * array_step + 1;
        rows.iter().take(ROWS).for_each(|row| self.soon(row.wrapping_add(ahead), span));
        let cells = &self.block.as_chunks::<LEN>().0[block_at / LEN..];
        // Rows of an array do not overlap.
        let spans = std::array::from_fn(|row| rows[row]..rows[row] + span);
        let mut rows: [&mut [[u8; N]]; ROWS] =
            self.array.get_disjoint_mut(spans).expect("rows of an array lie in it, apart from each other");
        if array_step == 1 {
            let mut rows = rows.map(|row| row.as_chunks_mut::<2>().0);
            for (index, place) in table.iter().enumerate() {
                let cell = cells[place[0] as usize / LEN];
                for (row, pairs) in rows.iter_mut().enumerate() {
                    pairs[index] = [cell[place_of::<P>(row, 0)], cell[place_of::<P>(row, 1)]];
                }
            }
            return;
        }
        for (index, place) in table.iter().enumerate() {
            let (cell, low) = (cells[place[0] as usize / LEN], 2 * index * array_step);
            for (row, samples) in rows.iter_mut().enumerate() {
                samples[low] = cell[place_of::<P>(row, 0)];
                samples[low + array_step] = cell[place_of::<P>(row, 1)];
            }
        }
    }
}

/// Returns the byte range of the sample at a position.
fn bytes_at(place: usize, sample_len_bytes: usize) -> std::ops::Range<usize> {
    place * sample_len_bytes..(place + 1) * sample_len_bytes
}

impl Side for EncodeAny<'_> {
    fn sample(&mut self, block_at: usize, array_at: usize) {
        let len = self.sample_len_bytes;
        self.block[bytes_at(block_at, len)].copy_from_slice(&self.array[bytes_at(array_at, len)]);
    }
}

impl Side for DecodeAny<'_> {
    fn sample(&mut self, block_at: usize, array_at: usize) {
        let len = self.sample_len_bytes;
        self.array[bytes_at(array_at, len)].copy_from_slice(&self.block[bytes_at(block_at, len)]);
    }
}
