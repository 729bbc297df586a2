//! Phase 2: how the engine encodes the levels that ranks hold. A shard is assembled from its owner's boxes and from the
//! samples that other ranks send, then its chunks are compressed.
//!
//! Invariant: a shard's bytes depend only on its samples, not on the ranks that hold or encode them.

use super::plan::{ShardHolders, ShardPlace, ShardPlan};
use super::pyramid::Pyramid;
use super::shard::ChunkEncoder;
use crate::dataset::region::{SampleBox, copy_part};
use crate::error::{IdxError, Result};
use raddle_codec::Effort;
use raddle_core::engine::{Round, TileForm, TileWork};
use raddle_core::plan::Tile;
use raddle_core::ranks::communicator::{Communicator, Rank};
use raddle_core::ranks::received::{ReceivedPieces, SentTraffic};
use raddle_core::ranks::regroup::Outbox;

/// Memory of a compressor's tables, for the budget: zstd's at its default level.
const ENCODER_LEN_BYTES: u64 = 4 << 20;

/// Length of the header of a piece of a shard sent between ranks.
const PIECE_HEAD_LEN_BYTES: u64 = 128;

/// The shards of a time step, as tiles of the engine.
pub(crate) struct ShardWork<'a> {
    plan: &'a ShardPlan<'a>,
    pyramid: &'a Pyramid<'a>,
    effort: Effort,
    /// Ranks that hold samples of each shard; `None` for a single rank.
    homes: Option<ShardHolders>,
    /// Maximum length of a stored chunk of each field.
    chunk_bounds: Vec<u64>,
    received: ReceivedPieces,
}

impl<'a> ShardWork<'a> {
    pub(crate) fn new(
        plan: &'a ShardPlan<'a>,
        pyramid: &'a Pyramid<'a>,
        effort: Effort,
        homes: Option<ShardHolders>,
    ) -> Result<Self> {
        let encoder = ChunkEncoder::new(plan.form.compression, effort).map_err(IdxError::Encode)?;
        let chunk_bounds = plan.shard_forms.iter().map(|form| form.chunk_bound_len_bytes(&encoder)).collect();
        Ok(Self { plan, pyramid, effort, homes, chunk_bounds, received: ReceivedPieces::default() })
    }

    /// Returns the traffic that this rank sent.
    pub(crate) fn into_sent(self) -> SentTraffic {
        self.received.sent()
    }

    fn place(&self, tile: Tile) -> ShardPlace {
        self.plan.place(tile.array)
    }

    fn sample_len_bytes(&self, place: &ShardPlace) -> usize {
        self.plan.form.fields[place.field].1.len_bytes()
    }

    /// Packs this rank's samples of the round's shards that other ranks own.
    fn pack(&self, round: &Round<'_>, rank: Rank, outbox: &mut Outbox) -> Result<()> {
        let mut piece = Vec::new();
        for (tile, owner) in round.tiles().filter(|(_, owner)| *owner != rank) {
            let place = self.place(tile);
            let sample_len_bytes = self.sample_len_bytes(&place);
            for patch in &self.pyramid.levels[place.level] {
                let Some(part) = patch.region.intersection(&place.region) else { continue };
                piece.resize(part.sample_count().unwrap_or(0) as usize * sample_len_bytes, 0);
                let from = (&patch.region, patch.arrays[place.field].as_ref());
                copy_part(from, (&part, &mut piece), &part, sample_len_bytes)?;
                outbox.put(owner, tile, &part.start, &part.counts(), &piece)?;
            }
        }
        Ok(())
    }
}

impl TileWork for ShardWork<'_> {
    type Error = IdxError;
    type Worker = ChunkEncoder;

    fn worker(&self) -> Result<ChunkEncoder> {
        ChunkEncoder::new(self.plan.form.compression, self.effort).map_err(IdxError::Encode)
    }

    fn assemble(&self, _: &mut ChunkEncoder, tile: Tile, raw: &mut [u8]) -> Result<()> {
        let place = self.place(tile);
        let sample_len_bytes = self.sample_len_bytes(&place);
        for patch in &self.pyramid.levels[place.level] {
            if let Some(part) = patch.region.intersection(&place.region) {
                let from = (&patch.region, patch.arrays[place.field].as_ref());
                copy_part(from, (&place.region, raw), &part, sample_len_bytes)?;
            }
        }
        if self.homes.is_none() {
            return Ok(());
        }
        let inboxes = self.received.inboxes(tile);
        for piece in inboxes.iter().flat_map(|inbox| inbox.pieces(tile)) {
            let part = SampleBox::new(&piece.target, &piece.count);
            copy_part((&part, piece.bytes), (&place.region, raw), &part, sample_len_bytes)?;
        }
        Ok(())
    }

    fn encode(&self, encoder: &mut ChunkEncoder, tile: Tile, raw: &[u8], stored: &mut Vec<u8>) -> Result<TileForm> {
        let place = self.place(tile);
        let is_stored = self.plan.shard_forms[place.field].append(encoder, &place.region, raw, stored)?;
        Ok(if is_stored { TileForm::Stored { filter_mask: 0 } } else { TileForm::Fill })
    }

    fn stored_bound_len_bytes(&self, tile: Tile) -> usize {
        let place = self.place(tile);
        self.plan.shard_forms[place.field].stored_bound_len_bytes(&place.region, self.chunk_bounds[place.field])
    }

    fn worker_len_bytes(&self) -> u64 {
        let chunks = self.plan.shard_forms.iter().map(|form| form.chunk_len_bytes() as u64).max().unwrap_or(0);
        2 * chunks + ENCODER_LEN_BYTES
    }

    /// Returns the number of the array, because each shard is a separate file.
    fn file(&self, array: u32) -> u32 {
        array
    }

    fn holders(&self, tile: Tile, each: &mut dyn FnMut(Rank, u64)) {
        let Some(homes) = &self.homes else { return };
        let place = self.place(tile);
        let sample_len_bytes = self.sample_len_bytes(&place) as u64;
        for (rank, samples) in homes.largest(&place) {
            each(rank, samples.saturating_mul(sample_len_bytes));
        }
    }

    fn regroup(&self, round: &Round<'_>, communicator: &dyn Communicator) -> Result<()> {
        self.received.exchange_once(communicator, |outbox| self.pack(round, communicator.rank(), outbox))
    }

    fn received_len_bytes(&self, tile: Tile) -> u64 {
        let Some(homes) = &self.homes else { return 0 };
        let place = self.place(tile);
        let samples = place.region.sample_count().unwrap_or(u64::MAX);
        let len_bytes = samples.saturating_mul(self.sample_len_bytes(&place) as u64);
        len_bytes.saturating_add(PIECE_HEAD_LEN_BYTES * homes.count(&place))
    }
}
