//! Axes of arrays: their maximum number, and numbers per axis.

use smallvec::SmallVec;

/// Maximum number of axes of an array: HDF5's own limit (H5S_MAX_RANK).
pub const MAX_RANK: usize = 32;

/// One number per axis. Up to four are stored inline, so that pieces of typical arrays need no allocation.
pub type Coordinates = SmallVec<[u64; 4]>;

/// Returns the product of `factors`; `None` beyond 64 bits.
pub fn product(factors: &[u64]) -> Option<u64> {
    factors.iter().try_fold(1u64, |product, factor| product.checked_mul(*factor))
}
