//! Estimated cost of the tiles of each array, in picoseconds of one core, to load-balance work before it begins.
//!
//! This is not a prediction of time (see [`crate::plan::prediction`]): only ratios between arrays matter. The time is
//! proportional to the bytes that codecs must examine closely. Detector maps consist mostly of zeros, and runs of zeros
//! cost little more than a copy; the stored size of a column in an input indicates how many other bytes there are.
//! Invariant: a pure function of the plan, the same on every rank and in every part.

use crate::plan::{MergePlan, Route};
use raddle_codec::{Compression, Effort};
use raddle_core::plan::extent::values_len_bytes;
use raddle_core::plan::{ArrayPlan, Tile};

/// Time for copying, digesting and skipping zeros, per uncompressed byte: about 10 GB/s.
const PASSING_PS_PER_BYTE: u64 = 100;
/// Time for inflating, per busy byte: 420 to 590 MB/s of columns.
const INFLATING_PS_PER_BYTE: u64 = 2_000;
/// Maximum number of bytes outside runs of zeros per stored byte: columns compress 2 to 12 times, some maps several
/// hundred times.
const BUSY_BYTES_PER_STORED_BYTE: u64 = 12;

/// Returns the cost of compressing, per busy byte.
fn compressing_ps_per_byte(compression: Option<Compression>) -> u64 {
    match compression {
        None => 0,
        Some(Compression::Lz4) => 1_000,
        Some(Compression::Deflate(Effort::Fast)) => 1_500,
        Some(Compression::Zstd(..4)) => 3_000,
        Some(Compression::Deflate(Effort::Balanced)) => 6_000,
        Some(_) => 20_000,
    }
}

/// Costs of the tiles of a plan.
#[derive(Debug)]
pub(crate) struct TileCosts {
    /// Cost per KiB of each array.
    per_kib: Vec<u64>,
}

impl TileCosts {
    /// Computes the costs for the tiles of `plan`.
    pub(crate) fn of(plan: &MergePlan) -> Self {
        let arrays = plan.tiles.arrays.iter().zip(&plan.column_of_array);
        let of_array = arrays.map(|(array, &column)| {
            let stored_len_bytes = plan.schema.columns[column as usize].stored_len_bytes();
            let raw_len_bytes = array.len_bytes().max(1);
            let busy_len_bytes = raw_len_bytes.min(stored_len_bytes.saturating_mul(BUSY_BYTES_PER_STORED_BYTE));
            let compressing = match &plan.columns[column as usize].route {
                Route::Encoded { encoder, .. } => compressing_ps_per_byte(encoder.compression()),
                _ => 0,
            };
            let busy_per_kib = (u128::from(busy_len_bytes) << 10) / u128::from(raw_len_bytes);
            (PASSING_PS_PER_BYTE << 10) + busy_per_kib as u64 * (INFLATING_PS_PER_BYTE + compressing)
        });
        Self { per_kib: of_array.collect() }
    }

    /// Returns the cost of `tile` of `array`. Padding costs nothing, so only elements of the array count.
    pub(crate) fn of_tile(&self, tile: Tile, array: &ArrayPlan) -> u64 {
        let elements = array.tile_extent(tile.index).count;
        let len_bytes = values_len_bytes(&elements, array.element_len_bytes);
        let cost = (u128::from(len_bytes) * u128::from(self.per_kib[tile.array as usize])) >> 10;
        u64::try_from(cost).unwrap_or(u64::MAX)
    }
}
