//! Boxes of samples at full resolution, as ranks hold and exchange them.
//!
//! Lattices of coarser levels are in `grid`. Invariant: copying moves only samples that both boxes hold.

use crate::dataset::bitmask::{MAX_RANK, Point};
use crate::dataset::grid::ArrayGrid;
use raddle_core::CoreError;
use raddle_core::plan::extent::{BoxSource, BoxTarget, copy_box, product};

/// A box from `start` to `end` (exclusive) along each axis, x first; axes beyond the rank go from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleBox {
    /// First sample.
    pub start: Point,
    /// End of the box, exclusive.
    pub end: Point,
}

impl SampleBox {
    /// Creates the box of `counts` samples from `start`; both have x first and the same length, at most [`MAX_RANK`].
    pub fn new(start: &[u64], counts: &[u64]) -> Self {
        let at = |axis: usize| start.get(axis).copied().unwrap_or(0);
        let count = |axis: usize| counts.get(axis).copied().unwrap_or(1);
        Self { start: std::array::from_fn(at), end: std::array::from_fn(|axis| at(axis).saturating_add(count(axis))) }
    }

    /// Returns the number of samples per axis.
    pub fn counts(&self) -> Point {
        std::array::from_fn(|axis| self.end[axis].saturating_sub(self.start[axis]))
    }

    /// Returns the number of samples; `None` beyond 64 bits.
    pub fn sample_count(&self) -> Option<u64> {
        product(&self.counts())
    }

    /// Returns whether the box has no samples.
    pub fn is_empty(&self) -> bool {
        self.counts().contains(&0)
    }

    /// Returns the samples common to both boxes; `None` if there are none.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let both = Self {
            start: std::array::from_fn(|axis| self.start[axis].max(other.start[axis])),
            end: std::array::from_fn(|axis| self.end[axis].min(other.end[axis])),
        };
        (!both.is_empty()).then_some(both)
    }

    /// Returns whether this box contains all samples of `other`.
    pub fn contains(&self, other: &Self) -> bool {
        (0..MAX_RANK).all(|axis| self.start[axis] <= other.start[axis] && other.end[axis] <= self.end[axis])
    }

    /// Returns the grid of an array that holds this box, x fastest.
    pub fn grid(&self) -> ArrayGrid {
        ArrayGrid { origin: self.start, counts: self.counts(), log2_spacing: [0; MAX_RANK] }
    }

    /// Splits the box in two across the slowest axis with more than one sample.
    pub fn halves(&self) -> Option<(Self, Self)> {
        let axis = (0..MAX_RANK).rev().find(|axis| self.counts()[*axis] > 1)?;
        let middle = self.start[axis] + self.counts()[axis] / 2;
        let (mut low, mut high) = (*self, *self);
        low.end[axis] = middle;
        high.start[axis] = middle;
        Some((low, high))
    }
}

impl std::fmt::Display for SampleBox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for axis in 0..MAX_RANK {
            if axis > 0 {
                formatter.write_str(",")?;
            }
            write!(formatter, "{}:{}", self.start[axis], self.end[axis])?;
        }
        Ok(())
    }
}

/// Copies the samples of `part`, which both boxes contain, between the arrays of those boxes, x fastest.
///
/// # Errors
/// If a box or an array does not contain the part.
pub fn copy_part(
    (from_box, from): (&SampleBox, &[u8]),
    (to_box, to): (&SampleBox, &mut [u8]),
    part: &SampleBox,
    sample_len_bytes: usize,
) -> Result<(), CoreError> {
    // The copy routine has the slowest axis first.
    let reversed = |point: Point| -> Point { std::array::from_fn(|axis| point[MAX_RANK - 1 - axis]) };
    let origin = |of: &SampleBox| reversed(std::array::from_fn(|axis| part.start[axis].wrapping_sub(of.start[axis])));
    let (from_shape, to_shape) = (reversed(from_box.counts()), reversed(to_box.counts()));
    let source = BoxSource { bytes: from, shape: &from_shape, origin: &origin(from_box) };
    let target = BoxTarget { bytes: to, shape: &to_shape, origin: &origin(to_box) };
    copy_box(source, target, &reversed(part.counts()), sample_len_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_meet_and_are_halved() {
        let a = SampleBox::new(&[0, 0], &[4, 3]);
        let b = SampleBox::new(&[2, 1], &[4, 9]);
        assert_eq!(a.intersection(&b), Some(SampleBox::new(&[2, 1], &[2, 2])));
        assert_eq!(a.intersection(&SampleBox::new(&[4, 0], &[1, 1])), None);
        assert_eq!(a.halves(), Some((SampleBox::new(&[0, 0], &[4, 1]), SampleBox::new(&[0, 1], &[4, 2]))));
        assert_eq!(SampleBox::new(&[5], &[1]).halves(), None);
        assert!(a.contains(&SampleBox::new(&[1, 1], &[3, 2])) && !a.contains(&b));
        assert_eq!((a.sample_count(), a.is_empty()), (Some(12), false));
    }

    #[test]
    fn parts_are_copied_where_they_belong() {
        let (from, to) = (SampleBox::new(&[10, 0], &[3, 2]), SampleBox::new(&[11, 1], &[4, 2]));
        let bytes = [1, 2, 3, 4, 5, 6];
        let mut out = [0; 8];
        let part = from.intersection(&to).unwrap();
        copy_part((&from, &bytes), (&to, &mut out), &part, 1).unwrap();
        assert_eq!(out, [5, 6, 0, 0, 0, 0, 0, 0]);
        assert!(copy_part((&from, &bytes), (&to, &mut out), &to, 1).is_err());
    }
}
