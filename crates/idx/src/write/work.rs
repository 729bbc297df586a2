//! Phase 2: how the engine encodes the samples that ranks hold. A block is filled directly from its owner's arrays and
//! from the samples sent by other ranks, then compressed; there is no intermediate array in HZ order.
//!
//! Invariant: a block's bytes depend only on its samples, not on the ranks that hold or encode them.

use crate::dataset::compression::{BlockEncoder, Coding, Compression, DatasetBlock};
use crate::dataset::grid::{ArrayGrid, Layout, blocks, runs};
use crate::dataset::grid::{lattice, samples_in};
use crate::dataset::header::Header;
use crate::error::{IdxError, Result};
use crate::kernel;
use crate::write::exchange::BoxData;
use crate::write::step_plan::{BlockHolders, BlockPlace, StepPlan};
use raddle_codec::Effort;
use raddle_core::engine::{Round, TileForm, TileWork};
use raddle_core::plan::Tile;
use raddle_core::plan::extent::fill_with;
use raddle_core::ranks::communicator::{Communicator, Rank};
use raddle_core::ranks::received::{ReceivedPieces, SentTraffic};
use raddle_core::ranks::regroup::Outbox;
use raddle_core::report::progress::Stage;
use raddle_core::report::{StageTable, StageTimer, StageTotals};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Filter mask of a block that is stored raw although its field is compressed.
const STORED_RAW: u32 = 1;

/// Length of the header of a piece of a block sent between ranks.
const PIECE_HEAD_LEN_BYTES: u64 = 128;

/// Samples that a rank holds, the source of blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RankSamples<'a> {
    pub(crate) header: &'a Header,
    /// All samples of the dataset.
    pub(crate) domain: &'a ArrayGrid,
    /// Patches that this rank holds.
    pub(crate) patches: &'a [BoxData<'a>],
}

impl RankSamples<'_> {
    /// Returns the numbers of the blocks with samples of this rank.
    pub(crate) fn blocks(&self) -> BTreeSet<u64> {
        let (bitmask, bits) = (&self.header.bitmask, self.header.bits_per_block);
        let grids = self.patches.iter().map(|patch| patch.region.grid());
        grids.flat_map(|grid| blocks(bitmask, bits, &grid, bitmask.max_level())).collect()
    }

    /// Fills `raw`, a whole block, with the samples of this rank, and with the default value outside the dataset.
    /// Positions of other ranks' samples have arbitrary contents.
    pub(crate) fn fill(&self, place: BlockPlace, raw: &mut [u8]) {
        let header = self.header;
        let of = &header.fields[place.field];
        let is_whole = lattice(&header.bitmask, header.bits_per_block, place.block)
            .is_some_and(|lattice| samples_in(&lattice, self.domain) == 1 << header.bits_per_block);
        if !is_whole {
            fill_with(raw, &of.default_sample());
        }
        self.put(place, of.default_layout(), raw);
    }

    /// Copies the samples of this rank into `raw`, a whole block of this layout, and leaves the others unchanged.
    fn put(&self, place: BlockPlace, layout: Layout, raw: &mut [u8]) {
        let (header, len) = (self.header, self.header.fields[place.field].sample.len_bytes());
        let level = header.bitmask.max_level();
        let runs = runs(&header.bitmask, header.bits_per_block, place.block, layout, level);
        for patch in self.patches {
            let grid = patch.region.grid();
            for run in &runs {
                kernel::encode(run, &grid, &patch.arrays[place.field], raw, len);
            }
        }
    }
}

/// The blocks of a time step, as tiles of the engine.
pub(crate) struct StepWork<'a> {
    samples: RankSamples<'a>,
    step: &'a StepPlan,
    path: PathBuf,
    compressions: &'a [Compression],
    effort: Effort,
    /// Ranks that hold samples of each block; `None` for a single rank.
    homes: Option<BlockHolders>,
    local_blocks: BTreeSet<u64>,
    received: ReceivedPieces,
}

/// State of a worker thread.
pub(crate) struct Worker {
    encoder: BlockEncoder,
    /// Time spent filling blocks, that is, encoding them in HZ order.
    filling: StageTotals,
}

impl<'a> StepWork<'a> {
    pub(crate) fn new(
        samples: RankSamples<'a>,
        step: &'a StepPlan,
        path: PathBuf,
        compressions: &'a [Compression],
        effort: Effort,
        homes: Option<BlockHolders>,
    ) -> Self {
        let local_blocks = if homes.is_some() { samples.blocks() } else { BTreeSet::new() };
        Self { samples, step, path, compressions, effort, homes, local_blocks, received: ReceivedPieces::default() }
    }

    /// Returns the traffic that this rank sent.
    pub(crate) fn into_sent(self) -> SentTraffic {
        self.received.sent()
    }

    /// Returns the coding of a block whose claim has this filter mask.
    pub(crate) fn coding(&self, field: usize, filter_mask: u32) -> Coding {
        if filter_mask == STORED_RAW { Coding::Raw } else { self.compressions[field].coding() }
    }

    /// Copies new samples of this and other ranks into `raw`, a whole block of this layout, and leaves the others
    /// unchanged.
    pub(crate) fn put(&self, worker: &mut Worker, tile: Tile, layout: Layout, raw: &mut [u8]) {
        let timer = StageTimer::start();
        self.samples.put(self.step.place(tile), layout, raw);
        worker.filling.add(&timer.totals(0, 0));
        self.put_received(tile, layout, raw);
    }

    /// Copies the samples that other ranks sent into a block.
    fn put_received(&self, tile: Tile, layout: Layout, raw: &mut [u8]) {
        if self.homes.is_none() {
            return;
        }
        let (place, header) = (self.step.place(tile), self.samples.header);
        let inboxes = self.received.inboxes(tile);
        let len = header.fields[place.field].sample.len_bytes();
        let (bitmask, bits) = (&header.bitmask, header.bits_per_block);
        let Some(lattice) = lattice(bitmask, bits, place.block) else { return };
        let runs = runs(bitmask, bits, place.block, layout, bitmask.max_level());
        for piece in inboxes.iter().flat_map(|inbox| inbox.pieces(tile)) {
            let of_axis = |numbers: &[u64], axis: usize| numbers.get(axis).copied().unwrap_or(1);
            let grid = ArrayGrid {
                origin: std::array::from_fn(|axis| of_axis(&piece.target, axis)),
                counts: std::array::from_fn(|axis| of_axis(&piece.count, axis)),
                log2_spacing: lattice.log2_spacing,
            };
            for run in &runs {
                kernel::encode(run, &grid, piece.bytes, raw, len);
            }
        }
    }

    /// Appends the stored form of a block to `stored` and returns how it is stored.
    pub(crate) fn compress(&self, worker: &mut Worker, tile: Tile, raw: &[u8], stored: &mut Vec<u8>) -> Result<Coding> {
        let (place, header) = (self.step.place(tile), self.samples.header);
        let block = DatasetBlock { header, field: place.field, number: place.block };
        let got = worker.encoder.append(self.compressions[place.field], block, raw, stored);
        got.map_err(|source| IdxError::Block {
            path: self.path.clone(),
            field: header.fields[place.field].name.clone(),
            block: place.block,
            source: source.into(),
        })
    }

    /// Packs this rank's samples of the round's blocks that other ranks own.
    fn pack(&self, round: &Round<'_>, rank: Rank, outbox: &mut Outbox) -> Result<()> {
        let header = self.samples.header;
        let mut piece = Vec::new();
        for (tile, owner) in round.tiles().filter(|(_, owner)| *owner != rank) {
            let place = self.step.place(tile);
            if !self.local_blocks.contains(&place.block) {
                continue;
            }
            let Some(lattice) = lattice(&header.bitmask, header.bits_per_block, place.block) else { continue };
            let sample_len_bytes = header.fields[place.field].sample.len_bytes();
            for patch in self.samples.patches {
                piece.clear();
                let (grid, array) = (patch.region.grid(), &patch.arrays[place.field]);
                if array.is_empty() {
                    continue; // the field is not written
                }
                let gathered = kernel::gather(&lattice, &grid, array, &mut piece, sample_len_bytes);
                if let Some(gathered) = gathered {
                    outbox.put(owner, tile, &gathered.origin, &gathered.counts, &piece)?;
                }
            }
        }
        Ok(())
    }
}

impl TileWork for StepWork<'_> {
    type Error = IdxError;
    type Worker = Worker;

    fn worker(&self) -> Result<Worker> {
        Ok(Worker { encoder: BlockEncoder::new(self.effort), filling: StageTotals::default() })
    }

    /// Fills raw blocks directly in the buffer they are written from.
    fn verbatim(&self, worker: &mut Worker, tile: Tile, stored: &mut Vec<u8>) -> Result<Option<TileForm>> {
        let (_, field) = self.step.array_place(tile.array);
        if self.compressions[field] != Compression::None {
            return Ok(None);
        }
        let before = stored.len();
        stored.resize(before + self.samples.header.block_len_bytes(field), 0);
        self.assemble(worker, tile, &mut stored[before..])?;
        Ok(Some(TileForm::Stored { filter_mask: 0 }))
    }

    fn assemble(&self, worker: &mut Worker, tile: Tile, raw: &mut [u8]) -> Result<()> {
        let (place, timer) = (self.step.place(tile), StageTimer::start());
        self.samples.fill(place, raw);
        // The engine counts the block when it is compressed.
        worker.filling.add(&timer.totals(0, 0));
        self.put_received(tile, self.samples.header.fields[place.field].default_layout(), raw);
        Ok(())
    }

    fn retire(&self, worker: Worker, stages: &mut StageTable) {
        stages.get_mut(Stage::Encode).add(&worker.filling);
    }

    fn encode(&self, worker: &mut Worker, tile: Tile, raw: &[u8], stored: &mut Vec<u8>) -> Result<TileForm> {
        let (_, field) = self.step.array_place(tile.array);
        let got = self.compress(worker, tile, raw, stored)?;
        Ok(TileForm::Stored { filter_mask: if got == self.compressions[field].coding() { 0 } else { STORED_RAW } })
    }

    fn stored_bound_len_bytes(&self, tile: Tile) -> usize {
        let (_, field) = self.step.array_place(tile.array);
        self.samples.header.block_len_bytes(field)
    }

    fn worker_len_bytes(&self) -> u64 {
        let of_field = |(field, compression): (usize, &Compression)| {
            BlockEncoder::len_bytes(*compression, self.samples.header.block_len_bytes(field))
        };
        self.compressions.iter().enumerate().map(of_field).max().unwrap_or(0)
    }

    fn file(&self, array: u32) -> u32 {
        self.step.array_place(array).0 as u32
    }

    fn holders(&self, tile: Tile, each: &mut dyn FnMut(Rank, u64)) {
        let Some(homes) = &self.homes else { return };
        let place = self.step.place(tile);
        let sample_len_bytes = self.samples.header.fields[place.field].sample.len_bytes() as u64;
        for (rank, samples) in homes.largest(place.block) {
            each(rank, samples.saturating_mul(sample_len_bytes));
        }
    }

    fn regroup(&self, round: &Round<'_>, communicator: &dyn Communicator) -> Result<()> {
        self.received.exchange_once(communicator, |outbox| self.pack(round, communicator.rank(), outbox))
    }

    fn received_len_bytes(&self, tile: Tile) -> u64 {
        let Some(homes) = &self.homes else { return 0 };
        let place = self.step.place(tile);
        let len_bytes = self.samples.header.block_len_bytes(place.field) as u64;
        len_bytes + PIECE_HEAD_LEN_BYTES * homes.count(place.block)
    }
}
