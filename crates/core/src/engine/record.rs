//! What outlives a run: the batches that lie in the output, told in plan order, so that another run can go on behind
//! them.
//!
//! Not for how it is kept (see [`crate::journal`]). Invariant: kept batches begin with the plan's first tile and leave
//! no tile out; their stored bytes begin at the first address and leave no gap.

use crate::claims::Claim;

/// A batch that lies in the output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlacedBatch {
    /// Number of its first tile, counted through all arrays.
    pub first: u64,
    /// Number of tiles.
    pub tiles: u64,
    /// Address of its first stored byte.
    pub address: u64,
    /// Stored bytes.
    pub stored_len_bytes: u64,
    /// CRC-64/NVME of the stored bytes.
    pub checksum: u64,
    /// Tiles stored without decoding.
    pub verbatim_tiles: u64,
    /// Claims of the tiles that are not wholly fill, in order.
    pub claims: Vec<Claim>,
    /// What the work wants to know of them later; see [`super::TileWork::note`].
    pub note: Vec<u8>,
}

/// What an earlier run left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// Tiles, from the plan's first on.
    pub tiles: u64,
    /// Their stored bytes, from the first address on.
    pub stored_len_bytes: u64,
}

/// Remembers placed batches. All methods are called on the calling thread of the engine, of several ranks on rank 0.
pub trait Recorder {
    /// What the engine need not make again.
    fn kept(&self) -> Kept;

    /// The kept batches, one per call, in plan order; `None` behind the last.
    ///
    /// # Errors
    /// If they cannot be read; the run then fails.
    fn next_kept(&mut self) -> std::io::Result<Option<PlacedBatch>>;

    /// A batch lies in the output, whichever rank has written it. Batches come in plan order, without gap. Failing to
    /// remember it is no failure of the run.
    fn placed(&mut self, batch: &PlacedBatch);
}
