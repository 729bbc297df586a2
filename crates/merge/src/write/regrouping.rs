//! Assembling of tiles in groups: every chunk of the inputs is decoded once for all tiles of a group, or once into a
//! scratch file from which the groups are read.
//!
//! Invariant: a tile gets the same bytes as if it were assembled on its own.

use crate::error::{MergeError, Result};
use crate::plan::MergePlan;
use crate::plan::regrouping::{RegroupedDataset, SCRATCH_RUN_LEN_BYTES};
use crate::write::values::ColumnReader;
use raddle_core::engine::{Assignment, Context, StopSignal};
use raddle_core::output::scratch::Scratch;
use raddle_core::parallel::for_each;
use raddle_core::plan::extent::{BoxTarget, Coordinates};
use raddle_core::plan::{ArrayPlan, Tile, TileIndex};
use raddle_core::ranks::communicator::CommunicatorExt;
use raddle_core::regrouping::Regrouping;
use raddle_core::regrouping::blocks::{Block, blocks};
use raddle_core::regrouping::slots::Slots;
use raddle_core::regrouping::store::{FillGroup, Group, GroupStore, Taken};
use raddle_core::report::progress::{Event, Stage};
use raddle_core::report::{StageTable, StageTimer};
use raddle_hdf5::source::InputPool;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Groups of tiles of a run.
pub(crate) struct Groups {
    regroupings: Vec<Option<Regrouping>>,
    store: GroupStore,
    scratch: Option<ScratchArrays>,
    index: TileIndex,
    stop: StopSignal,
    decoded_chunks: AtomicU64,
}

/// Arrays in a scratch file.
struct ScratchArrays {
    file: Scratch,
    /// Place of each array in the file, in bytes.
    offsets: Vec<u64>,
    len_bytes: u64,
}

/// Report on datasets whose tiles were assembled in groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegroupingReport {
    /// Datasets, with predictions for one process.
    pub datasets: Vec<RegroupedDataset>,
    /// Number of chunks that were decoded for them.
    pub decoded_chunks: u64,
    /// Bytes that went through a scratch file.
    pub scratch_len_bytes: u64,
}

/// Filling of groups by one thread.
#[derive(Default)]
pub(crate) struct GroupJobs {
    group: Option<Group>,
    blocks: Vec<Block>,
    /// Runs of the scratch file that hold the group, with their slabs.
    runs: Vec<(u64, Range<u64>)>,
    values: Vec<u8>,
}

/// Filler of groups: the state of one thread, and what all threads share.
struct Filler<'a, 'p> {
    groups: &'a Groups,
    plan: &'p MergePlan,
    reader: &'a mut ColumnReader<'p>,
    jobs: &'a mut GroupJobs,
}

impl Groups {
    /// Collective. Prepares the assembling of groups, and moves values through a scratch file where that is planned.
    /// Adds the time of reading for it to `stages`.
    pub(crate) fn begin<'p>(
        plan: &'p MergePlan,
        pool: &'p InputPool,
        regroupings: &[Option<Regrouping>],
        Assignment { all, own, stop }: Assignment,
        context: &Context<'_>,
        stages: &mut StageTable,
    ) -> Result<Self> {
        let regroupings = regroupings.to_vec();
        let index = plan.tiles.tile_index();
        let arrays = plan.tiles.arrays.iter().zip(&regroupings);
        let limit = arrays.filter_map(|(array, found)| Some(found.as_ref()?.len_bytes(array))).max().unwrap_or(0);
        let store = GroupStore::new(&plan.tiles, &index, &regroupings, &own, limit);
        let decoded_chunks = AtomicU64::new(0);
        let mut groups = Self { regroupings, store, scratch: None, index, stop, decoded_chunks };
        groups.scratch = groups.fill_scratch(plan, pool, &all, context, stages)?;
        Ok(groups)
    }

    /// Returns the number of chunks that this rank has decoded for groups.
    pub(crate) fn decoded_chunks(&self) -> u64 {
        self.decoded_chunks.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes in the scratch file.
    pub(crate) fn scratch_len_bytes(&self) -> u64 {
        self.scratch.as_ref().map_or(0, |scratch| scratch.len_bytes)
    }

    /// Reads a block of an array into `values`.
    fn read_block<'p>(
        &self,
        plan: &'p MergePlan,
        array: u32,
        reader: &mut ColumnReader<'p>,
        block: &Block,
        values: &mut Vec<u8>,
    ) -> Result<()> {
        let (column, array) = (plan.column_of_array[array as usize], &plan.tiles.arrays[array as usize]);
        let count = &block.source.count;
        values.resize(count.iter().fold(array.element_len_bytes, |len, &count| len * count) as usize, 0);
        let origin = Coordinates::from_elem(0, count.len());
        let target = BoxTarget { bytes: values, shape: count, origin: &origin };
        let decoded_before = reader.decoded_chunks();
        reader.read_any(column, block.input, &block.source, target)?;
        self.decoded_chunks.fetch_add(reader.decoded_chunks() - decoded_before, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the tiles of an array are assembled in groups.
    pub(crate) fn has(&self, array: u32) -> bool {
        self.of(array).is_some()
    }

    fn of(&self, array: u32) -> Option<&Regrouping> {
        self.regroupings.get(array as usize)?.as_ref()
    }

    /// Returns the values of `tile` without padding, after helping to assemble its group.
    pub(crate) fn take<'p>(
        &self,
        plan: &'p MergePlan,
        tile: Tile,
        reader: &mut ColumnReader<'p>,
        jobs: &mut GroupJobs,
    ) -> Result<Vec<u8>> {
        let array = &plan.tiles.arrays[tile.array as usize];
        let Some(regrouping) = self.of(tile.array) else { return Err(MergeError::Cancelled) };
        let ordinal = self.index.ordinal(tile).unwrap_or(u64::MAX);
        let mut filler = Filler { groups: self, plan, reader, jobs };
        let is_stopped = || self.stop.is_stopped_at(ordinal);
        match self.store.take((array, regrouping.groups), tile, &mut filler, is_stopped)? {
            Taken::Values(values) => Ok(values),
            // The engine has an earlier error and does not report this one.
            Taken::Stopped => Err(MergeError::Cancelled),
        }
    }

    /// Collective. Moves the values of all arrays with slabs to a scratch file. Tiles that are not among the tiles `all`
    /// are left out.
    fn fill_scratch<'p>(
        &self,
        plan: &'p MergePlan,
        pool: &'p InputPool,
        all: &Range<u64>,
        context: &Context<'_>,
        stages: &mut StageTable,
    ) -> Result<Option<ScratchArrays>> {
        let (mut offsets, mut len_bytes) = (vec![0; self.regroupings.len()], 0_u64);
        let mut with_slabs = Vec::new();
        for (number, (found, array)) in (0_u32..).zip(self.regroupings.iter().zip(&plan.tiles.arrays)) {
            let (Some(found), Some((first, end))) = (found, self.index.tiles_of(number)) else { continue };
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
        let scratch = ScratchArrays { file, offsets, len_bytes };
        let (timer, stage) = (StageTimer::start(), Stage::Restructure);
        context.observer.event(&Event::StageStarted { stage, total_bytes: Some(len_bytes / ranks.size() as u64) });
        let readers = Mutex::new(Vec::new());
        let filled = with_slabs.iter().try_for_each(|&array| {
            let part = SlabFilling { groups: self, plan, pool, scratch: &scratch, readers: &readers, all, context };
            part.fill(array)
        });
        for reader in readers.into_inner().unwrap_or_else(PoisonError::into_inner) {
            ColumnReader::retire(reader, stages);
        }
        let reading_ns = stages.get(Stage::Read).wall_ns + stages.get(Stage::Decode).wall_ns;
        let mut totals = timer.totals(len_bytes / ranks.size() as u64, 1);
        totals.wall_ns = totals.wall_ns.saturating_sub(reading_ns / plan.options.jobs.max(1) as u64);
        stages.get_mut(stage).add(&totals);
        context.observer.event(&Event::StageFinished { stage, elapsed_s: timer.elapsed_s() });
        ranks.agree("fill a scratch file", filled)?;
        Ok(Some(scratch))
    }
}

/// Moving of an array's values to a scratch file, by all threads of a rank.
struct SlabFilling<'a, 'p> {
    groups: &'a Groups,
    plan: &'p MergePlan,
    pool: &'p InputPool,
    scratch: &'a ScratchArrays,
    /// Readers that no thread is using.
    readers: &'a Mutex<Vec<ColumnReader<'p>>>,
    all: &'a Range<u64>,
    context: &'a Context<'a>,
}

impl<'p> SlabFilling<'_, 'p> {
    /// Moves this rank's share of the slabs of an array.
    fn fill(&self, number: u32) -> Result<()> {
        let array = &self.plan.tiles.arrays[number as usize];
        let Some(Regrouping { slabs: Some(slabs), chunk_shape, .. }) = self.groups.of(number) else { return Ok(()) };
        let ranks = self.context.communicator;
        for slab in (ranks.rank() as u64..slabs.count(array)).step_by(ranks.size()) {
            let region = slabs.extent(array, slab);
            let slots = Slots::new(array, &region);
            if !(0..slots.len() as u64).any(|place| self.is_needed(number, array, &slots, place)) {
                continue;
            }
            self.read(number, &slots, &blocks(array, &region, chunk_shape))?;
            let offset = self.scratch.offsets[number as usize] + slabs.offset_bytes(array, slab);
            self.write(number, array, &slots, offset)?;
        }
        Ok(())
    }

    /// Whether the tile of a slot is among those that the run produces.
    fn is_needed(&self, number: u32, array: &ArrayPlan, slots: &Slots, place: u64) -> bool {
        let part = slots.part(place);
        let along =
            |index: u64, axis: usize| index * array.tiles_along(axis) + part.start[axis] / array.tile_shape[axis];
        let tile = Tile { array: number, index: (0..part.rank()).fold(0, along) };
        self.groups.index.ordinal(tile).is_some_and(|ordinal| self.all.contains(&ordinal))
    }

    fn read(&self, number: u32, slots: &Slots, blocks: &[Block]) -> Result<()> {
        let Self { plan, pool, readers, .. } = *self;
        let array = &plan.tiles.arrays[number as usize];
        let lend = || {
            let reader = readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            Lent { reader: Some(reader.unwrap_or_else(|| ColumnReader::new(plan, pool))), values: Vec::new(), readers }
        };
        let (jobs, cancel) = (plan.options.jobs, self.context.cancel);
        for_each(blocks, jobs, cancel, lend, |lent, block| {
            let Lent { reader: Some(reader), values, .. } = lent else { return Ok(()) };
            self.groups.read_block(plan, number, reader, block, values)?;
            slots.put(&block.extent(), values)?;
            let bytes = values.len() as u64;
            self.context.observer.event(&Event::Advanced { stage: Stage::Restructure, bytes, items: 1 });
            debug_assert_eq!(bytes % array.element_len_bytes, 0);
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
                    if *is_needed == needed && len_bytes + slot <= SCRATCH_RUN_LEN_BYTES as usize =>
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
        let (jobs, cancel) = (self.plan.options.jobs, self.context.cancel);
        for_each(&runs, jobs, cancel, Vec::new, |bytes, (at, places, _)| {
            bytes.clear();
            places.clone().for_each(|place| bytes.extend_from_slice(&std::mem::take(&mut *slots.lock(place))));
            Ok(self.scratch.file.write_at(*at, bytes)?)
        })
    }
}

/// A reader on loan to a thread.
struct Lent<'a, 'p> {
    reader: Option<ColumnReader<'p>>,
    values: Vec<u8>,
    readers: &'a Mutex<Vec<ColumnReader<'p>>>,
}

impl Drop for Lent<'_, '_> {
    fn drop(&mut self) {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).extend(self.reader.take());
    }
}

impl FillGroup for Filler<'_, '_> {
    type Error = MergeError;

    fn jobs(&mut self, group: Group) -> usize {
        self.find(group);
        self.jobs.blocks.len() + self.jobs.runs.len()
    }

    fn fill(&mut self, group: Group, job: usize, slots: &Slots) -> Result<()> {
        self.find(group);
        let Self { groups, plan, reader, jobs } = self;
        let GroupJobs { blocks, runs, values, .. } = &mut **jobs;
        let Some((slab, run)) = runs.get(job) else {
            let Some(block) = blocks.get(job) else { return Ok(()) };
            groups.read_block(plan, group.array, reader, block, values)?;
            return Ok(slots.put(&block.extent(), values)?);
        };
        let (Some(scratch), Some(Regrouping { slabs: Some(slabs), .. })) = (&groups.scratch, groups.of(group.array))
        else {
            return Ok(());
        };
        let array = &plan.tiles.arrays[group.array as usize];
        values.resize((run.end - run.start) as usize, 0);
        scratch.file.read(scratch.offsets[group.array as usize] + run.start, values)?;
        let region = slabs.extent(array, *slab);
        let mut rest = values.as_slice();
        for place in 0..slots.len() as u64 {
            let Some(part) = slots.part(place).intersection(&region) else { continue };
            let len = part.count.iter().fold(array.element_len_bytes, |len, &count| len * count) as usize;
            slots.put(&part, &rest[..len])?;
            rest = &rest[len..];
        }
        Ok(())
    }
}

impl Filler<'_, '_> {
    /// Makes the jobs of `group` the current ones.
    fn find(&mut self, group: Group) {
        if self.jobs.group == Some(group) {
            return;
        }
        self.jobs.group = Some(group);
        (self.jobs.blocks, self.jobs.runs) = (Vec::new(), Vec::new());
        let array = &self.plan.tiles.arrays[group.array as usize];
        let Some(Regrouping { groups, slabs, chunk_shape, .. }) = self.groups.of(group.array) else { return };
        match slabs {
            None => self.jobs.blocks = blocks(array, &groups.extent(array, group.group), chunk_shape),
            Some(slabs) => {
                let run = |slab| Some((slab, slabs.run_of(array, slab, *groups, group.group)?));
                self.jobs.runs = (0..slabs.count(array)).filter_map(run).collect();
            }
        }
    }
}
