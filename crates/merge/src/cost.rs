//! What the tiles of each array cost to make, in picoseconds of one core, so that work can be dealt before it is begun.
//!
//! Not a prediction of time (see [`crate::prediction`]): only relations between arrays count. The time goes with the bytes
//! that codecs have to look at closely. Maps of detectors are zeros for the most part, and runs of them cost little more
//! than a copy; what an input stores of a column tells how much there is beside them.
//! Invariant: a pure function of the plan, the same on every rank and in every part.

use crate::options::Compress;
use crate::plan::{MergePlan, Route};
use raddle_codec::Effort;

/// Copying, digesting and skipping zeros, per raw byte: about 7 GB/s.
const PASSING_PS_PER_BYTE: u64 = 150;
/// Inflating, per busy byte: 420 to 590 MB/s of columns.
const INFLATING_PS_PER_BYTE: u64 = 2_000;
/// A stored byte stands for at most so many bytes that are not runs of zeros: integers of columns compress 4 to 8 times.
const BUSY_BYTES_PER_STORED_BYTE: u64 = 8;

/// Deflating, per busy byte.
fn deflating_ps_per_byte(compress: Compress) -> u64 {
    match compress.effort() {
        None => 0,
        Some(Effort::Fast) => 1_500,
        Some(Effort::Balanced) => 6_000,
        Some(_) => 20_000,
    }
}

/// The cost of a tile of each array of `plan`.
pub(crate) fn of_tiles(plan: &MergePlan) -> Vec<u64> {
    let arrays = plan.tiles.arrays.iter().zip(&plan.column_of_array);
    let of_array = arrays.map(|(array, &column)| {
        let stored_len_bytes = plan.schema.columns[column as usize].stored_len_bytes();
        let raw_len_bytes = array.len_bytes();
        let busy_len_bytes = raw_len_bytes.min(stored_len_bytes.saturating_mul(BUSY_BYTES_PER_STORED_BYTE));
        let deflating = match plan.columns[column as usize].route {
            Route::Encoded { .. } => deflating_ps_per_byte(plan.options.compress),
            _ => 0,
        };
        let passing = u128::from(raw_len_bytes) * u128::from(PASSING_PS_PER_BYTE);
        let looking = u128::from(busy_len_bytes) * u128::from(INFLATING_PS_PER_BYTE + deflating);
        u64::try_from((passing + looking) / u128::from(array.tile_count().max(1))).unwrap_or(u64::MAX)
    });
    of_array.collect()
}
