//! The record of a run: the batches already in the output, reported in plan order, from which another run can resume.
//!
//! [`crate::output::journal`] defines the format in which the record is kept. Invariant: kept batches begin with the
//! first tile of the plan and omit no tile; their stored bytes begin at the first address and leave no gap.

use crate::output::claims::Claim;

/// A batch that has been written to the output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlacedBatch {
    /// Number of the first tile, counted across all arrays.
    pub first: u64,
    /// Number of tiles.
    pub tiles: u64,
    /// Address of the first stored byte.
    pub address: u64,
    /// Number of stored bytes.
    pub stored_len_bytes: u64,
    /// CRC-64/NVME of the stored bytes.
    pub checksum: u64,
    /// Number of tiles stored without decoding.
    pub verbatim_tiles: u64,
    /// Claims of the tiles with data, in order; tiles consisting only of fill values have none.
    pub claims: Vec<Claim>,
    /// Data that the work needs in a later run; see [`super::TileWork::note`].
    pub note: Vec<u8>,
}

/// Amount of work kept from an earlier run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// Number of tiles, counted from the first of the plan.
    pub tiles: u64,
    /// Number of stored bytes of these tiles, counted from the first address.
    pub stored_len_bytes: u64,
}

/// Recorder of placed batches. All methods are called on the engine's calling thread; with several ranks, on that
/// thread of rank 0.
pub trait Recorder {
    /// Returns the amount of work that the engine can skip.
    fn kept(&self) -> Checkpoint;

    /// Returns the next kept batch in plan order; `None` after the last.
    ///
    /// # Errors
    /// If the batch cannot be read; the run then fails.
    fn next_kept(&mut self) -> std::io::Result<Option<PlacedBatch>>;

    /// Records a batch that is in the output, whichever rank wrote it. Batches arrive in plan order without gaps. A
    /// failure to record a batch does not fail the run.
    fn placed(&mut self, batch: &PlacedBatch);
}
