//! Chunk shapes of gridded variables, for reading maps or series.
//!
//! A map consists of all places at one time, and a series of all times at one place. All functions depend only on
//! sizes. Invariant: a chunk shape has no zero and is not larger than the data.

use raddle_core::plan::extent::values_len_bytes;

/// Size up to which a map is one chunk.
const MAX_MAP_LEN_BYTES: u64 = 4 << 20;
/// Size to which chunks of small maps are extended: first by other levels, then by later times. HDF5's chunk cache of 1
/// MiB holds two of them. Measured on 2920 x 96 x 192 4-byte values: chunks of 1 MiB take twice the time to read,
/// chunks of 72 KiB compress 5 % worse, and chunks of this size 0.3 % worse.
const SMALL_MAPS_LEN_BYTES: u64 = 512 << 10;
/// Size of chunks of series. Measured on the same values: a series from chunks of 1 MiB takes twice the time, and
/// smaller chunks compress worse.
const SERIES_LEN_BYTES: u64 = 512 << 10;

/// Sizes and axes of a gridded variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid<'a> {
    /// Dimensions in the output.
    pub dims: &'a [u64],
    /// Size of one element in bytes.
    pub element_len_bytes: u64,
    /// The time axis.
    pub time: usize,
    /// Axes that are neither the time nor horizontal, the slowest first.
    pub others: &'a [usize],
}

impl Grid<'_> {
    /// Returns the horizontal axes: the last two that are neither the time nor vertical.
    fn places(&self) -> Vec<usize> {
        (0..self.dims.len()).filter(|axis| *axis != self.time && !self.others.contains(axis)).collect()
    }

    /// Returns the chunk shape for reading maps: one time and whole maps; several times if maps are small.
    pub fn chunk_of_maps(&self) -> Vec<u64> {
        let mut chunk = vec![1; self.dims.len()];
        for axis in self.places().into_iter().rev() {
            self.extend(&mut chunk, axis, MAX_MAP_LEN_BYTES);
        }
        for &axis in self.others.iter().rev().chain([&self.time]) {
            self.extend(&mut chunk, axis, SMALL_MAPS_LEN_BYTES);
        }
        chunk
    }

    /// Returns the chunk shape for reading series: all times, and as many neighbouring places as fit.
    pub fn chunk_of_series(&self) -> Vec<u64> {
        let mut chunk = vec![1; self.dims.len()];
        self.extend(&mut chunk, self.time, SERIES_LEN_BYTES);
        let places = self.places();
        // A square block, because neighbours in both directions are equally likely to be read.
        while let Some(&axis) = places
            .iter()
            .filter(|&&axis| chunk[axis] < self.dims[axis])
            .min_by_key(|&&axis| (chunk[axis], std::cmp::Reverse(axis)))
        {
            let longer = (chunk[axis] * 2).min(self.dims[axis]);
            let len_bytes = values_len_bytes(&chunk, self.element_len_bytes) / chunk[axis] * longer;
            if len_bytes > SERIES_LEN_BYTES {
                break;
            }
            chunk[axis] = longer;
        }
        for &axis in self.others.iter().rev() {
            self.extend(&mut chunk, axis, SERIES_LEN_BYTES);
        }
        chunk.iter().zip(self.dims).map(|(&size, &dim)| even(size, dim)).collect()
    }

    /// Lengthens a chunk along an axis, up to a size and in even parts.
    fn extend(&self, chunk: &mut [u64], axis: usize, largest_len_bytes: u64) {
        let fitting = largest_len_bytes / values_len_bytes(chunk, self.element_len_bytes).max(1);
        chunk[axis] = even(fitting.clamp(1, self.dims[axis].max(1)), self.dims[axis]);
    }
}

/// Reduces the size of a chunk along an axis so that the last chunk is about as long as the others.
fn even(size: u64, dim: u64) -> u64 {
    let dim = dim.max(1);
    dim.div_ceil(dim.div_ceil(size.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid<'a>(dims: &'a [u64], others: &'a [usize]) -> Grid<'a> {
        Grid { dims, element_len_bytes: 4, time: 0, others }
    }

    #[test]
    fn maps_are_whole() {
        assert_eq!(grid(&[14_600, 180, 360], &[]).chunk_of_maps(), [2, 180, 360]);
        assert_eq!(grid(&[14_600, 721, 1440], &[]).chunk_of_maps(), [1, 721, 1440]);
        assert_eq!(grid(&[100, 1801, 3600], &[]).chunk_of_maps(), [1, 258, 3600], "in even bands of latitudes");
        assert_eq!(grid(&[100, 37, 180, 360], &[1]).chunk_of_maps(), [1, 2, 180, 360]);
        assert_eq!(grid(&[14_600], &[]).chunk_of_maps(), [14_600]);
        assert_eq!(Grid { time: 2, ..grid(&[180, 360, 31], &[]) }.chunk_of_maps(), [180, 360, 2]);
    }

    #[test]
    fn series_are_long_and_narrow() {
        assert_eq!(grid(&[14_600, 180, 360], &[]).chunk_of_series(), [14_600, 2, 4]);
        assert_eq!(grid(&[365, 180, 360], &[]).chunk_of_series(), [365, 15, 16]);
        assert_eq!(grid(&[1_000_000, 10, 10], &[]).chunk_of_series(), [125_000, 1, 1]);
        assert_eq!(grid(&[100, 37, 10, 10], &[1]).chunk_of_series(), [100, 13, 10, 10]);
        assert_eq!(grid(&[0, 10, 10], &[]).chunk_of_series()[0], 1, "no data yet");
    }

    #[test]
    fn chunks_have_a_useful_size() {
        for dims in [[31, 73, 144], [8760, 721, 1440], [1, 2000, 4000], [100_000, 1, 1], [3, 5, 7]] {
            let grid = grid(&dims, &[]);
            for chunk in [grid.chunk_of_maps(), grid.chunk_of_series()] {
                let len_bytes = values_len_bytes(&chunk, 4);
                let all = dims.iter().product::<u64>() * 4;
                assert!(len_bytes <= 4 << 20 && len_bytes >= all.min(128 << 10), "{dims:?}: {chunk:?}");
                assert!(chunk.iter().zip(dims).all(|(&size, dim)| size <= dim));
            }
        }
    }
}
