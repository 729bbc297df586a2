//! Axes of arrays: their maximum number, and numbers per axis.

use smallvec::SmallVec;

/// Maximum number of axes of an array: HDF5's own limit (H5S_MAX_RANK).
pub const MAX_RANK: usize = 32;

/// One number per axis. Up to four are stored inline, so that pieces of typical arrays need no allocation.
pub type Coordinates = SmallVec<[u64; 4]>;

/// Returns the length in bytes of the values of a box with these numbers of elements per axis; saturates at 64 bits.
pub fn values_len_bytes(counts: &[u64], element_len_bytes: u64) -> u64 {
    counts.iter().fold(element_len_bytes, |len_bytes, &count| len_bytes.saturating_mul(count))
}

/// Returns the product of `factors`; `None` beyond 64 bits.
pub fn product(factors: &[u64]) -> Option<u64> {
    factors.iter().try_fold(1u64, |product, factor| product.checked_mul(*factor))
}
