//! Values of arrays in a scratch file: slabs of whole chunks, each stored tile by tile.

use super::tiles::RegroupedTiles;
use crate::error::{MergeError, Result};
use crate::plan::MergePlan;
use crate::write::reader_pool::ReaderPool;
use crate::write::values::ColumnReader;
use raddle_core::engine::Context;
use raddle_core::output::scratch::Scratch;
use raddle_core::parallel::for_each;
use raddle_core::plan::{ArrayPlan, Tile};
use raddle_core::ranks::communicator::CommunicatorExt;
use raddle_core::regrouping::Regrouping;
use raddle_core::regrouping::blocks::{Block, blocks};
use raddle_core::regrouping::slots::Slots;
use raddle_core::report::progress::{Event, Stage};
use raddle_core::report::{StageTable, StageTimer};
use raddle_hdf5::source::InputPool;
use std::ops::Range;

/// Arrays in a scratch file.
pub(super) struct ScratchArrays {
    file: Scratch,
    /// Place of each array in the file, in bytes.
    offsets: Vec<u64>,
    /// Length of all arrays.
    pub(super) len_bytes: u64,
}

impl ScratchArrays {
    /// Collective. Moves the values of all arrays with slabs to a scratch file. Tiles that are not among the tiles `all`
    /// are left out.
    pub(super) fn fill<'p>(
        tiles: &RegroupedTiles,
        plan: &'p MergePlan,
        pool: &'p InputPool,
        all: &Range<u64>,
        context: &Context<'_>,
        stages: &mut StageTable,
    ) -> Result<Option<Self>> {
        let (mut offsets, mut len_bytes) = (vec![0; plan.tiles.arrays.len()], 0_u64);
        let mut with_slabs = Vec::new();
        for (number, array) in (0_u32..).zip(&plan.tiles.arrays) {
            let (Some(found), Some((first, end))) = (tiles.of(number), tiles.index.tiles_of(number)) else { continue };
            if found.slabs.is_some() && first.max(all.start) < end.min(all.end) {
                offsets[number as usize] = len_bytes;
                len_bytes += found.scratch_len_bytes(array);
                with_slabs.push(number);
            }
        }
        if with_slabs.is_empty() {
            return Ok(None);
        }
        let ranks = context.communicator;
        let file = Scratch::create_shared::<MergeError>(&plan.options.output, ranks)?;
        let room = if ranks.rank() == 0 { file.reserve(len_bytes) } else { Ok(()) };
        ranks.agree("make room in a scratch file", room.map_err(MergeError::from))?;
        let scratch = Self { file, offsets, len_bytes };
        let (timer, stage) = (StageTimer::start(), Stage::Restructure);
        context.observer.event(&Event::StageStarted { stage, total_bytes: Some(len_bytes / ranks.size() as u64) });
        let readers = ReaderPool::default();
        let filled = with_slabs.iter().try_for_each(|&array| {
            let part = SlabFilling { tiles, plan, pool, scratch: &scratch, readers: &readers, all, context };
            part.fill(array)
        });
        readers.retire(stages);
        let reading_ns = stages.get(Stage::Read).wall_ns + stages.get(Stage::Decode).wall_ns;
        let mut totals = timer.totals(len_bytes / ranks.size() as u64, 1);
        totals.wall_ns = totals.wall_ns.saturating_sub(reading_ns / tiles.jobs.max(1) as u64);
        stages.get_mut(stage).add(&totals);
        context.observer.event(&Event::StageFinished { stage, elapsed_s: timer.elapsed_s() });
        ranks.agree("fill a scratch file", filled)?;
        Ok(Some(scratch))
    }

    /// Reads values of an array, from `start` on.
    pub(super) fn read(&self, array: u32, start: u64, values: &mut [u8]) -> Result<()> {
        Ok(self.file.read(self.offsets[array as usize] + start, values)?)
    }
}

/// Moving of an array's values to a scratch file, by all threads of a rank.
struct SlabFilling<'a, 'p> {
    tiles: &'a RegroupedTiles,
    plan: &'p MergePlan,
    pool: &'p InputPool,
    scratch: &'a ScratchArrays,
    /// Readers that no thread is using.
    readers: &'a ReaderPool<'p>,
    all: &'a Range<u64>,
    context: &'a Context<'a>,
}

impl<'p> SlabFilling<'_, 'p> {
    /// Moves this rank's share of the slabs of an array.
    fn fill(&self, number: u32) -> Result<()> {
        let array = &self.plan.tiles.arrays[number as usize];
        let Some(Regrouping { slabs: Some(slabs), chunk_shape, .. }) = self.tiles.of(number) else { return Ok(()) };
        let (ranks, mut spare) = (self.context.communicator, Vec::new());
        for slab in (ranks.rank() as u64..slabs.count(array)).step_by(ranks.size()) {
            let region = slabs.extent(array, slab);
            let slots = Slots::new(array, &region, &mut spare);
            if (0..slots.len() as u64).any(|place| self.is_needed(number, array, &slots, place)) {
                let blocks = blocks(array, &region, chunk_shape, self.tiles.buffers.block_len_bytes);
                self.read(number, &slots, &blocks)?;
                let offset = self.scratch.offsets[number as usize] + slabs.offset_bytes(array, slab);
                self.write(number, array, &slots, offset)?;
            }
            slots.recycle(&mut spare);
        }
        Ok(())
    }

    /// Whether the tile of a slot is among those that the run produces.
    fn is_needed(&self, number: u32, array: &ArrayPlan, slots: &Slots, place: u64) -> bool {
        let part = slots.part(place);
        let along =
            |index: u64, axis: usize| index * array.tiles_along(axis) + part.start[axis] / array.tile_shape[axis];
        let tile = Tile { array: number, index: (0..part.rank()).fold(0, along) };
        self.tiles.index.ordinal(tile).is_some_and(|ordinal| self.all.contains(&ordinal))
    }

    fn read(&self, number: u32, slots: &Slots, blocks: &[Block]) -> Result<()> {
        let Self { tiles, plan, pool, readers, .. } = *self;
        let lend = || readers.lend(|| ColumnReader::new(plan, pool));
        let (jobs, cancel) = (tiles.jobs, self.context.cancel);
        for_each(blocks, jobs, cancel, lend, |lent, block| {
            let Some((reader, values)) = lent.parts() else { return Ok(()) };
            tiles.read_block(plan, number, reader, block, values)?;
            slots.put(&block.extent(), values)?;
            let bytes = values.len() as u64;
            self.context.observer.event(&Event::Advanced { stage: Stage::Restructure, bytes, items: 1 });
            Ok(())
        })
    }

    /// Writes the slots of a slab one after another from `offset_bytes` on, in long runs.
    fn write(&self, number: u32, array: &ArrayPlan, slots: &Slots, offset_bytes: u64) -> Result<()> {
        let mut runs: Vec<(u64, Range<usize>, bool)> = Vec::new();
        let (mut at, mut len_bytes) = (offset_bytes, 0);
        for place in 0..slots.len() {
            let (slot, needed) = (slots.lock(place).len(), self.is_needed(number, array, slots, place as u64));
            match runs.last_mut() {
                Some((_, places, is_needed))
                    if *is_needed == needed
                        && len_bytes + slot <= self.tiles.buffers.scratch_run_len_bytes as usize =>
                {
                    places.end = place + 1;
                    len_bytes += slot;
                }
                _ => {
                    runs.push((at, place..place + 1, needed));
                    len_bytes = slot;
                }
            }
            at += slot as u64;
        }
        runs.retain(|(_, _, is_needed)| *is_needed);
        let (jobs, cancel) = (self.tiles.jobs, self.context.cancel);
        for_each(&runs, jobs, cancel, Vec::new, |bytes, (at, places, _)| {
            bytes.clear();
            places.clone().for_each(|place| bytes.extend_from_slice(&slots.lock(place)));
            Ok(self.scratch.file.write_at(*at, bytes)?)
        })
    }
}
