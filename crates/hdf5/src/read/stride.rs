//! Boxes in row-major arrays as runs of bytes, with the offsets of each run in two arrays.
//!
//! This serves to copy from file to memory (contiguous storage) and to write fill values. `raddle_core::plan::extent`
//! copies from memory to memory. Invariant: runs come in rising order of both offsets and cover the box once.

use super::MAX_RANK;
use raddle_core::plan::extent::fill_with;

/// A row-major array and the position of a box in it, in elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoxOffset<'a> {
    pub shape: &'a [u64],
    pub origin: &'a [u64],
}

/// Offsets of the runs of one box in two arrays. Both arrays must contain the box, and their lengths in bytes must fit
/// 64 bits.
#[derive(Debug, Clone)]
pub(super) struct Runs<'a> {
    count: &'a [u64],
    /// Number of leading axes that step from run to run.
    outer: usize,
    run_len_bytes: u64,
    strides: [(u64, u64); MAX_RANK],
    done: [u64; MAX_RANK],
    next: Option<(u64, u64)>,
}

impl<'a> Runs<'a> {
    pub fn new(count: &'a [u64], from: BoxOffset<'_>, to: BoxOffset<'_>, element_len_bytes: u64) -> Self {
        let rank = count.len();
        let mut run_len_bytes = element_len_bytes;
        let mut outer = rank;
        // Trailing axes that are complete in both arrays belong to one run, as does a part of the axis before them.
        while outer > 0 {
            outer -= 1;
            run_len_bytes *= count[outer];
            if count[outer] != from.shape[outer] || count[outer] != to.shape[outer] {
                break;
            }
        }
        let mut strides = [(0, 0); MAX_RANK];
        let (mut from_at, mut to_at) = (0, 0);
        let (mut from_stride, mut to_stride) = (element_len_bytes, element_len_bytes);
        for axis in (0..rank).rev() {
            strides[axis] = (from_stride, to_stride);
            from_at += from.origin[axis] * from_stride;
            to_at += to.origin[axis] * to_stride;
            from_stride = from_stride.saturating_mul(from.shape[axis]);
            to_stride = to_stride.saturating_mul(to.shape[axis]);
        }
        let next = (!count.contains(&0)).then_some((from_at, to_at));
        Self { count, outer, run_len_bytes, strides, done: [0; MAX_RANK], next }
    }

    /// Returns the length of each run.
    pub fn run_len_bytes(&self) -> u64 {
        self.run_len_bytes
    }

    /// Returns how many bytes reading the runs from the first array costs, if another read costs as much as copying
    /// `gap_len_bytes`, saturating. Runs that are closer are read together.
    pub fn cost_len_bytes(&self, gap_len_bytes: u64) -> u64 {
        (0..self.outer).rev().fold(self.run_len_bytes, |inner, axis| {
            let step = self.strides[axis].0.min(inner.saturating_add(gap_len_bytes));
            inner.saturating_add(step.saturating_mul(self.count[axis].saturating_sub(1)))
        })
    }
}

impl Iterator for Runs<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let current = self.next?;
        let (mut from_at, mut to_at) = current;
        self.next = None;
        for axis in (0..self.outer).rev() {
            let (from_stride, to_stride) = self.strides[axis];
            self.done[axis] += 1;
            if self.done[axis] < self.count[axis] {
                self.next = Some((from_at + from_stride, to_at + to_stride));
                break;
            }
            from_at -= from_stride * (self.done[axis] - 1);
            to_at -= to_stride * (self.done[axis] - 1);
            self.done[axis] = 0;
        }
        Some(current)
    }
}

/// Fills a box of `count` elements of `out` with `pattern`, the bytes of one element; `None` means zeros.
pub(super) fn fill_box(
    count: &[u64],
    element_len_bytes: u64,
    pattern: Option<&[u8]>,
    out: &mut [u8],
    to: BoxOffset<'_>,
) {
    let runs = Runs::new(count, to, to, element_len_bytes);
    let len = runs.run_len_bytes() as usize;
    for (_, at) in runs {
        let run = &mut out[at as usize..at as usize + len];
        match pattern {
            None => run.fill(0),
            Some(pattern) => fill_with(run, pattern),
        }
    }
}
