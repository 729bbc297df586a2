//! Assembling of tiles in groups: every chunk of the inputs is decoded once for all tiles of a group, or once into a
//! scratch file from which the groups are read.
//!
//! Invariant: a tile gets the same bytes as if it were assembled on its own.

mod scratch;
mod tiles;

pub(crate) use tiles::{FillerState, read_part};

use crate::error::Result;
use crate::plan::MergePlan;
use crate::plan::regrouping::{RegroupedDataset, regroupings, scratch_space_len_bytes};
use crate::schema::ColumnIndex;
use crate::write::values::ColumnReader;
use raddle_core::engine::{Assignment, Context};
use raddle_core::plan::extent::Extent;
use raddle_core::plan::{ArrayPlan, Tile};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::regrouping::Regrouping;
use raddle_core::regrouping::blocks::{InputBlock, blocks};
use raddle_core::report::StageTable;
use raddle_core::report::progress::{Observer, Silent};
use raddle_hdf5::source::InputPool;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, OnceLock, PoisonError};
use tiles::RegroupedTiles;

/// Report on datasets whose tiles were assembled in groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegroupingReport {
    /// Datasets, with predictions for one process.
    pub datasets: Vec<RegroupedDataset>,
    /// Number of chunks that were decoded for these datasets.
    pub decoded_chunks: u64,
    /// Number of bytes that went through a scratch file.
    pub scratch_len_bytes: u64,
    /// Predicted space of the scratch file in one process.
    pub scratch_space_len_bytes: u64,
}

/// Regrouping of a plan's tiles on one rank.
pub(crate) struct Regrouper<'p> {
    plan: &'p MergePlan,
    /// Regrouping of each array, if its tiles are assembled in groups.
    regroupings: Vec<Option<Regrouping>>,
    observer: &'p dyn Observer,
    /// Tiles, once the run has begun.
    tiles: OnceLock<RegroupedTiles>,
    /// Times of reading before the first tile.
    early_stages: Mutex<StageTable>,
}

impl<'p> Regrouper<'p> {
    /// Creates the regrouping for one of `ranks` ranks with this memory.
    pub(crate) fn new(plan: &'p MergePlan, ranks: usize, memory_limit_bytes: u64) -> Self {
        let regroupings = regroupings(plan, ranks, memory_limit_bytes);
        Self { plan, regroupings, observer: &Silent, tiles: OnceLock::new(), early_stages: Mutex::default() }
    }

    /// Returns the same regrouping, reported to `observer`.
    pub(crate) fn observed(self, observer: &'p dyn Observer) -> Self {
        Self { observer, ..self }
    }

    /// Returns whether the tiles of a column are assembled in groups, from values that their owner reads.
    pub(crate) fn has(&self, column: ColumnIndex) -> bool {
        let array = self.plan.columns[column as usize].route.array();
        array.is_some_and(|array| self.regroupings.get(array as usize).is_some_and(Option::is_some))
    }

    /// Returns the way in which the tiles of an array are assembled in groups; `None` if they are not.
    pub(crate) fn of(&self, array: u32) -> Option<&Regrouping> {
        self.regroupings.get(array as usize)?.as_ref()
    }

    /// Returns the parts of a region of an array whose tiles are assembled in groups, as threads read them.
    pub(crate) fn parts(&self, array: u32, region: &Extent) -> impl Iterator<Item = InputBlock> {
        let (found, array) = (self.of(array), &self.plan.tiles.arrays[array as usize]);
        let blocks = found.map(|found| blocks(array, region, &found.chunk_shape, found.part_len_bytes));
        let part_len_bytes = found.map_or(0, |found| found.part_len_bytes);
        let of_block = move |block: InputBlock| block.parts_within(array.element_len_bytes, part_len_bytes);
        blocks.unwrap_or_default().into_iter().flat_map(of_block)
    }

    /// Returns the memory for groups and slabs.
    pub(crate) fn shared_len_bytes(&self) -> u64 {
        self.largest(|array, found| found.len_bytes(array))
    }

    /// Returns the memory of each worker for parts of groups and slabs.
    pub(crate) fn worker_len_bytes(&self) -> u64 {
        self.largest(|_, found| found.part_len_bytes)
    }

    fn largest(&self, len_bytes: impl Fn(&ArrayPlan, &Regrouping) -> u64) -> u64 {
        let arrays = self.plan.tiles.arrays.iter().zip(&self.regroupings);
        arrays.filter_map(|(array, found)| Some(len_bytes(array, found.as_ref()?))).max().unwrap_or(0)
    }

    /// Collective. Prepares the groups of the assigned tiles, and moves values through a scratch file where that is
    /// planned.
    pub(crate) fn begin(&self, pool: &'p InputPool, assignment: Assignment, context: &Context<'_>) -> Result<()> {
        if self.regroupings.iter().all(Option::is_none) {
            return Ok(());
        }
        let (limit, mut stages) = (self.shared_len_bytes(), StageTable::default());
        let from = (self.plan, pool, self.regroupings.as_slice());
        let begun = RegroupedTiles::begin(from, limit, assignment, context, &mut stages);
        self.early_stages.lock().unwrap_or_else(PoisonError::into_inner).add(&stages);
        let _ = self.tiles.set(begun?);
        Ok(())
    }

    /// Passes the values of `tile`, without padding, to `place`, after helping to assemble its group. Returns `None` if
    /// the tile is not assembled in a group.
    pub(crate) fn assemble(
        &self,
        tile: Tile,
        reader: &mut ColumnReader<'p>,
        state: &mut FillerState,
        place: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Option<Result<()>> {
        let tiles = self.tiles.get().filter(|tiles| tiles.of(tile.array).is_some())?;
        Some(tiles.take(self.plan, tile, reader, state, self.observer).and_then(|values| {
            let placed = place(&values);
            tiles.recycle(values);
            placed
        }))
    }

    /// Collective. Reports on the datasets whose tiles were assembled in groups, if there are any.
    pub(crate) fn report(&self, ranks: &dyn Communicator) -> Result<Option<RegroupingReport>> {
        let datasets = self.plan.regrouped();
        if datasets.is_empty() {
            return Ok(None);
        }
        let tiles = self.tiles.get();
        let decoded_chunks = ranks.all_gather_u64(tiles.map_or(0, RegroupedTiles::decoded_chunks))?.iter().sum();
        let scratch_len_bytes = ranks.all_gather_u64(tiles.map_or(0, RegroupedTiles::scratch_len_bytes))?.iter().sum();
        let scratch_space_len_bytes = scratch_space_len_bytes(&datasets);
        Ok(Some(RegroupingReport { datasets, decoded_chunks, scratch_len_bytes, scratch_space_len_bytes }))
    }

    /// Takes the times of reading before the first tile.
    pub(crate) fn take_early_stages(&self) -> StageTable {
        std::mem::take(&mut *self.early_stages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
