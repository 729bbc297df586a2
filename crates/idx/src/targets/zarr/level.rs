//! A level of an image: its samples, and how they relate to those of the previous level.

use crate::dataset::bitmask::{MAX_RANK, Point};
use crate::dataset::region::SampleBox;
use serde::Serialize;

/// A level of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Level {
    /// Number of samples per axis, x first.
    pub counts: Point,
    /// Number of samples of the previous level per sample of this level, per axis: 1 or 2.
    pub factors: Point,
    /// Distance between neighbouring samples, in samples of the first level, per axis.
    pub spacing: Point,
}

impl Level {
    /// Returns all samples of the level.
    pub fn domain(&self) -> SampleBox {
        SampleBox { start: [0; MAX_RANK], end: self.counts }
    }
}
