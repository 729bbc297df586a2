//! Fill value of a dataset, for boxes of elements that are not stored.
//!
//! Invariant: a pattern is one element long, even if no fill value is defined.

use crate::error::Result;
use raddle_core::plan::extent::{BoxSource, BoxTarget, copy_box, fill_with};
use raddle_hdf5::model::{Dataset, InlineData};

/// The fill value of a column as bytes of one element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillPattern {
    /// Bytes of one element.
    pub pattern: Vec<u8>,
    /// Whether readers return it for chunks that are not stored. If the fill value is undefined or never written, HDF5
    /// leaves the reader's buffer unchanged, so such chunks must be stored.
    pub is_returned_by_readers: bool,
}

/// `H5D_FILL_TIME_NEVER`.
const FILL_TIME_NEVER: u8 = 1;

impl FillPattern {
    /// Returns the fill value of `dataset`; zeros if none is defined.
    pub fn of(dataset: &Dataset) -> Self {
        let len_bytes = dataset.datatype.class.len_bytes() as usize;
        let fill = &dataset.fill;
        let stored = match &fill.value {
            Some(InlineData::Stored(bytes)) if bytes.len() == len_bytes && !fill.undefined => Some(bytes.clone()),
            _ => None,
        };
        Self {
            pattern: stored.unwrap_or_else(|| vec![0; len_bytes.max(1)]),
            is_returned_by_readers: !fill.undefined && fill.write_time != FILL_TIME_NEVER,
        }
    }

    /// Fills a box of `count` elements in `target`.
    pub fn fill_box(&self, target: BoxTarget<'_>, count: &[u64]) -> Result<()> {
        let elements = count.iter().product::<u64>() as usize;
        let mut values = vec![0; elements * self.pattern.len()];
        fill_with(&mut values, &self.pattern);
        let origin = vec![0; count.len()];
        let source = BoxSource { bytes: &values, shape: count, origin: &origin };
        Ok(copy_box(source, target, count, self.pattern.len())?)
    }
}
