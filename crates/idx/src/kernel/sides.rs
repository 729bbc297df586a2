//! The two directions of moving samples, each as three loops: rows, single samples of a curve, cells of a curve.
//!
//! Not for deciding what goes where. Invariant: a place outside array or block panics, nothing is read or written there.

use super::CELL_ROWS;

/// Moves samples between places of the array and of the block. What is said of one sample holds for many; sides that know
/// more of samples have faster loops of their own.
pub(super) trait Side {
    /// Whether [`Side::cells`] may be called.
    const HAS_CELLS: bool = false;

    /// One sample.
    fn sample(&mut self, block_at: usize, array_at: usize);

    /// `count` samples at equal steps: (first, step) in the block and in the array.
    fn row(&mut self, block: (usize, usize), array: (usize, usize), count: usize) {
        (0..count).for_each(|index| self.sample(block.0 + index * block.1, array.0 + index * array.1));
    }

    /// One sample per entry of `table`, which gives its place in the block from `block_at`.
    fn spread(&mut self, block_at: usize, table: &[u32], array_at: usize, array_step: usize) {
        for (index, place) in table.iter().enumerate() {
            self.sample(block_at + *place as usize, array_at + index * array_step);
        }
    }

    /// Cells of 2^K samples, one per pair of entries of `table`. Bit P of the place in a cell is that along x, the others
    /// together are the number of the row, of which `rows` gives the first sample.
    fn cells<const K: usize, const P: usize>(
        &mut self,
        _block_at: usize,
        _table: &[u32],
        _rows: &[usize; CELL_ROWS],
        _array_step: usize,
    ) {
        unreachable!("has no cells")
    }
}

/// The row of a place in a cell: the place without bit `x_bit`.
const fn row_of(place: usize, x_bit: usize) -> usize {
    (place >> (x_bit + 1) << x_bit) | (place & ((1 << x_bit) - 1))
}

/// Array to block.
pub(super) struct Encode<'a, const N: usize> {
    pub(super) array: &'a [[u8; N]],
    pub(super) block: &'a mut [[u8; N]],
}

/// Block to array.
pub(super) struct Decode<'a, const N: usize> {
    pub(super) array: &'a mut [[u8; N]],
    pub(super) block: &'a [[u8; N]],
}

/// Array to block, samples of any length.
pub(super) struct EncodeAny<'a> {
    pub(super) array: &'a [u8],
    pub(super) block: &'a mut [u8],
    pub(super) sample_len_bytes: usize,
}

/// Block to array, samples of any length.
pub(super) struct DecodeAny<'a> {
    pub(super) array: &'a mut [u8],
    pub(super) block: &'a [u8],
    pub(super) sample_len_bytes: usize,
}

/// Copies every `step`-th of `from` to consecutive places; steps known to the compiler become shuffles of vectors.
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

    fn cells<const K: usize, const P: usize>(
        &mut self,
        block_at: usize,
        table: &[u32],
        rows: &[usize; CELL_ROWS],
        array_step: usize,
    ) {
        let block = &mut self.block[block_at..];
        let table = table.as_chunks::<2>().0;
        let cells = table.len();
        if array_step == 1 {
            let rows: [&[[[u8; N]; 2]]; CELL_ROWS] = std::array::from_fn(|row| {
                let at = rows[if row < 1 << (K - 1) { row } else { 0 }];
                &self.array[at..at + 2 * cells].as_chunks::<2>().0[..cells]
            });
            for (index, place) in table.iter().enumerate() {
                let cell = &mut block[place[0] as usize..][..1 << K];
                for (bits, sample) in cell.iter_mut().enumerate() {
                    *sample = rows[row_of(bits, P)][index][bits >> P & 1];
                }
            }
            return;
        }
        let span = (2 * cells - 1) * array_step + 1;
        let rows: [&[[u8; N]]; CELL_ROWS] = std::array::from_fn(|row| {
            let at = rows[if row < 1 << (K - 1) { row } else { 0 }];
            &self.array[at..at + span]
        });
        for (index, place) in table.iter().enumerate() {
            let cell = &mut block[place[0] as usize..][..1 << K];
            for (bits, sample) in cell.iter_mut().enumerate() {
                *sample = rows[row_of(bits, P)][(2 * index + (bits >> P & 1)) * array_step];
            }
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

    fn cells<const K: usize, const P: usize>(
        &mut self,
        block_at: usize,
        table: &[u32],
        rows: &[usize; CELL_ROWS],
        array_step: usize,
    ) {
        let block = &self.block[block_at..];
        // Row by row: two rows of one array cannot be held for writing at once without proof that they are apart.
        for (row, row_at) in rows.iter().enumerate().take(1 << (K - 1)) {
            for (index, place) in table.as_chunks::<2>().0.iter().enumerate() {
                let cell = &block[place[0] as usize..][..1 << K];
                let low = (row >> P << (P + 1)) | (row & ((1 << P) - 1));
                let at = row_at + 2 * index * array_step;
                self.array[at] = cell[low];
                self.array[at + array_step] = cell[low | 1 << P];
            }
        }
    }
}

/// The bytes of the sample at a place.
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
