//! An array cut into slabs that several threads fill with the samples of their blocks.
//!
//! A slab is cut across the slowest axis and is contiguous in memory; a fine block overlaps few slabs. Blocks are
//! chosen elsewhere. Invariant: a slab is written by one thread at a time.

use crate::dataset::grid::{ArrayGrid, LatticeRun};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Slabs per thread: enough that threads rarely want the same one.
const SLABS_PER_JOB: u64 = 8;

/// Minimum number of rows of a slab, a power of two, so that cells of Z curves stay whole.
const MIN_ROWS: u64 = 4;

/// An array cut into slabs.
#[derive(Debug)]
pub(crate) struct Slabs<'a> {
    slabs: Vec<(ArrayGrid, Mutex<&'a mut [u8]>)>,
}

impl<'a> Slabs<'a> {
    /// Cuts `out`, the array of `grid`, for `jobs` threads.
    ///
    /// # Panics
    /// If `out` is shorter than the grid requires.
    pub(crate) fn cut(grid: &ArrayGrid, mut out: &'a mut [u8], sample_len_bytes: usize, jobs: usize) -> Self {
        let axis = grid.slowest_axis();
        let (rows, wanted) = (grid.counts[axis], if jobs > 1 { jobs as u64 * SLABS_PER_JOB } else { 1 });
        let thickness = rows.div_ceil(wanted).max(MIN_ROWS).checked_next_power_of_two().unwrap_or(rows);
        // Boundaries lie at multiples of the thickness in the whole dataset, like those of blocks.
        let before = (grid.origin[axis] >> grid.log2_spacing[axis]) % thickness;
        let row_len = out.len() / rows as usize;
        debug_assert_eq!(Some(out.len() as u64), grid.sample_count().map(|count| count * sample_len_bytes as u64));
        let (mut slabs, mut row) = (Vec::new(), 0);
        while row < rows {
            let end = (row + thickness - if row == 0 { before } else { 0 }).min(rows);
            let end = if wanted == 1 { rows } else { end };
            let (slab, rest) = std::mem::take(&mut out).split_at_mut((end - row) as usize * row_len);
            slabs.push((grid.along(axis, &(row..end)), Mutex::new(slab)));
            (out, row) = (rest, end);
        }
        Self { slabs }
    }

    /// Calls `fill` with every slab that holds samples of `runs`; slabs in use by other threads come last.
    pub(crate) fn each(&self, runs: &[LatticeRun], fill: impl Fn(&ArrayGrid, &mut [u8])) {
        let holds = |slab: &ArrayGrid| runs.iter().any(|run| run.clip(slab).is_some());
        let fill = |slab: &ArrayGrid, mut out: MutexGuard<'_, &mut [u8]>| fill(slab, &mut out);
        let mut busy = Vec::new();
        for (slab, out) in self.slabs.iter().filter(|(slab, _)| holds(slab)) {
            match out.try_lock() {
                Ok(out) => fill(slab, out),
                // If a thread panicked, the result is discarded.
                Err(TryLockError::Poisoned(out)) => fill(slab, out.into_inner()),
                Err(TryLockError::WouldBlock) => busy.push((slab, out)),
            }
        }
        for (slab, out) in busy {
            fill(slab, out.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_are_the_whole_array_in_order() {
        for (rows, origin, jobs) in [(1, 0, 4), (5, 3, 4), (64, 0, 2), (1000, 24, 3), (1000, 24, 1)] {
            let grid =
                ArrayGrid { origin: [0, 0, origin, 0, 0], counts: [3, 2, rows, 1, 1], log2_spacing: [1, 0, 3, 0, 0] };
            let mut out = vec![0; 6 * rows as usize * 4];
            let slabs = Slabs::cut(&grid, &mut out, 4, jobs);
            let mut row = 0;
            for (slab, bytes) in &slabs.slabs {
                let axis = grid.slowest_axis();
                assert_eq!(slab.origin[axis], grid.origin[axis] + (row << grid.log2_spacing[axis]));
                assert_eq!(bytes.lock().unwrap().len() as u64, slab.sample_count().unwrap() * 4);
                row += slab.counts[axis];
            }
            assert_eq!(row, grid.counts[grid.slowest_axis()]);
            assert!(jobs > 1 || slabs.slabs.len() == 1);
            assert!(jobs == 1 || rows < 64 || slabs.slabs.len() > jobs);
        }
    }
}
