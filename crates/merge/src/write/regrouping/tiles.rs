//! Groups of tiles of a run: their values are read from the inputs, or from a scratch file.

use super::scratch::{ScratchArrays, SlabMover};
use crate::error::{MergeError, Result};
use crate::plan::MergePlan;
use crate::write::values::ColumnReader;
use raddle_core::engine::{Assignment, Context, StopSignal};
use raddle_core::plan::extent::{BoxTarget, Coordinates, Extent, values_len_bytes};
use raddle_core::plan::{ArrayPlan, Tile, TileIndex};
use raddle_core::regrouping::Regrouping;
use raddle_core::regrouping::blocks::{InputBlock, blocks};
use raddle_core::regrouping::slots::Slots;
use raddle_core::regrouping::store::{FillGroup, GroupStore, TakeOutcome, TileGroup};
use raddle_core::report::progress::Observer;
use raddle_core::report::{StageTable, StageTotals};
use raddle_hdf5::source::InputPool;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tiles that are assembled in groups, on one rank.
pub(super) struct RegroupedTiles {
    regroupings: Vec<Option<Regrouping>>,
    /// Number of threads that fit into the memory.
    pub(super) jobs: usize,
    pub(super) store: GroupStore,
    scratch: Option<ScratchArrays>,
    pub(super) index: TileIndex,
    /// Numbers of the tiles of the run.
    pub(super) all: Range<u64>,
    stop: StopSignal,
    decoded_chunks: AtomicU64,
}

/// State of a thread that fills groups.
#[derive(Default)]
pub(crate) struct FillerState {
    group: Option<TileGroup>,
    blocks: Vec<InputBlock>,
    /// Runs of the scratch file that hold the group, with their slabs.
    runs: Vec<(u64, Range<u64>)>,
    values: Vec<u8>,
    /// Time and bytes of moving values to a scratch file, without reading.
    restructuring: StageTotals,
}

/// Reads a part of a block of an array of a column into `values`.
pub(crate) fn read_part(
    array: &ArrayPlan,
    column: u32,
    reader: &mut ColumnReader<'_>,
    part: &InputBlock,
    values: &mut Vec<u8>,
) -> Result<()> {
    let count = &part.source.count;
    values.resize(len_bytes(array, &part.source) as usize, 0);
    let origin = Coordinates::from_elem(0, count.len());
    reader.read_any(column, part.input, &part.source, BoxTarget { bytes: values, shape: count, origin: &origin })
}

/// Returns the length of the values of a box of an array.
fn len_bytes(array: &ArrayPlan, extent: &Extent) -> u64 {
    values_len_bytes(&extent.count, array.element_len_bytes)
}

impl FillerState {
    /// Returns time and bytes of moving values to a scratch file, without reading.
    pub(crate) fn restructuring(&self) -> StageTotals {
        self.restructuring
    }
}

/// A thread that fills groups.
struct Filler<'a, 'p> {
    tiles: &'a RegroupedTiles,
    plan: &'p MergePlan,
    reader: &'a mut ColumnReader<'p>,
    state: &'a mut FillerState,
}

impl RegroupedTiles {
    /// Collective. Prepares groups of up to `limit_len_bytes` in total, and moves values through a scratch file where
    /// that is planned. Adds the time of reading for it to `stages`.
    pub(super) fn begin<'p>(
        (plan, pool, regroupings): (&'p MergePlan, &'p InputPool, &[Option<Regrouping>]),
        limit_len_bytes: u64,
        Assignment { all, local, jobs, stop }: Assignment,
        context: &Context<'_>,
        stages: &mut StageTable,
    ) -> Result<Self> {
        let regroupings = regroupings.to_vec();
        let index = plan.tiles.tile_index();
        let store = GroupStore::new(&plan.tiles, &index, &regroupings, &local, limit_len_bytes);
        let decoded_chunks = AtomicU64::new(0);
        let mut tiles = Self { regroupings, jobs, store, scratch: None, index, all, stop, decoded_chunks };
        tiles.scratch = ScratchArrays::create(&tiles, plan, context)?;
        if let Some(scratch) = &tiles.scratch {
            scratch.fill_shared(&tiles, (plan, pool), context, stages)?;
        }
        Ok(tiles)
    }

    /// Returns the number of chunks that this rank has decoded for groups.
    pub(super) fn decoded_chunks(&self) -> u64 {
        self.decoded_chunks.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that this rank has moved to a scratch file.
    pub(super) fn scratch_len_bytes(&self) -> u64 {
        self.scratch.as_ref().map_or(0, ScratchArrays::moved_len_bytes)
    }

    /// Returns whether a box of an array may overlap tiles of the run: in plan order, they are between the first and
    /// the last tile of the box. This is exact for the box of a tile.
    pub(super) fn needs(&self, number: u32, array: &ArrayPlan, region: &Extent) -> bool {
        let ordinal = |corner: &dyn Fn(usize) -> u64| {
            let along =
                |index: u64, axis: usize| index * array.tiles_along(axis) + corner(axis) / array.tile_shape[axis];
            let tile = Tile { array: number, index: (0..region.rank()).fold(0, along) };
            self.index.ordinal(tile).unwrap_or(u64::MAX)
        };
        let (first, last) = (ordinal(&|axis| region.start[axis]), ordinal(&|axis| region.end(axis) - 1));
        last >= self.all.start && first < self.all.end
    }

    /// Reads a block of an array, part by part into `values`, and passes each part to `put`.
    pub(super) fn read_block<'p>(
        &self,
        (plan, number): (&'p MergePlan, u32),
        reader: &mut ColumnReader<'p>,
        block: &InputBlock,
        values: &mut Vec<u8>,
        mut put: impl FnMut(&Extent, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let (column, array) = (plan.column_of_array[number as usize], &plan.tiles.arrays[number as usize]);
        let Some(Regrouping { part_len_bytes, .. }) = self.of(number) else { return Ok(()) };
        let (decoded_before, mut parts) = (reader.decoded_chunks(), 0);
        for part in block.clone().parts_within(array.element_len_bytes, *part_len_bytes) {
            read_part(array, column, reader, &part, values)?;
            put(&part.extent(), values)?;
            parts += 1;
        }
        // A block of several parts is a single chunk. Without filters, its parts are read from the file one by one.
        let decoded = reader.decoded_chunks() - decoded_before;
        self.decoded_chunks.fetch_add(if parts > 1 { decoded.min(1) } else { decoded }, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the way in which the tiles of an array are assembled in groups; `None` if they are not.
    pub(super) fn of(&self, array: u32) -> Option<&Regrouping> {
        self.regroupings.get(array as usize)?.as_ref()
    }

    /// Returns the values of `tile` without padding, after helping to assemble its group.
    pub(super) fn take<'p>(
        &self,
        plan: &'p MergePlan,
        tile: Tile,
        reader: &mut ColumnReader<'p>,
        state: &mut FillerState,
        observer: &dyn Observer,
    ) -> Result<Vec<u8>> {
        let array = &plan.tiles.arrays[tile.array as usize];
        let Some(regrouping) = self.of(tile.array) else { return Err(MergeError::Cancelled) };
        let ordinal = self.index.ordinal(tile).unwrap_or(u64::MAX);
        let is_stopped = || self.stop.is_stopped_at(ordinal);
        let scratch = self.scratch.as_ref().filter(|_| regrouping.slabs.is_some());
        if let Some(scratch) = scratch {
            let FillerState { values, restructuring: spent, .. } = &mut *state;
            let mover = SlabMover { tiles: self, plan, reader: &mut *reader, values, spent, observer };
            if !scratch.fill_up_to(tile.array, mover, is_stopped)? {
                return Err(MergeError::Cancelled);
            }
        }
        let mut filler = Filler { tiles: self, plan, reader, state };
        let taken = self.store.take((array, regrouping.groups), tile, &mut filler, is_stopped)?;
        if let Some(scratch) = scratch {
            scratch.taken(tile.array)?;
        }
        match taken {
            TakeOutcome::Values(values) => Ok(values),
            // The engine has an earlier error and does not report this one.
            TakeOutcome::Stopped => Err(MergeError::Cancelled),
        }
    }

    /// Returns the buffer of a tile that was taken.
    pub(super) fn recycle(&self, values: Vec<u8>) {
        self.store.recycle(values);
    }
}

impl FillGroup for Filler<'_, '_> {
    type Error = MergeError;

    fn jobs(&mut self, group: TileGroup) -> usize {
        self.find(group);
        self.state.blocks.len() + self.state.runs.len()
    }

    fn fill(&mut self, group: TileGroup, job: usize, slots: &Slots) -> Result<()> {
        self.find(group);
        let Self { tiles, plan, reader, state } = self;
        let FillerState { blocks, runs, values, .. } = &mut **state;
        let Some((slab, run)) = runs.get(job) else {
            let Some(block) = blocks.get(job) else { return Ok(()) };
            return tiles
                .read_block((plan, group.array), reader, block, values, |part, values| Ok(slots.put(part, values)?));
        };
        let (Some(scratch), Some(Regrouping { slabs: Some(slabs), part_len_bytes, .. })) =
            (&tiles.scratch, tiles.of(group.array))
        else {
            return Ok(());
        };
        let array = &plan.tiles.arrays[group.array as usize];
        let region = slabs.extent(array, *slab);
        let in_slab = (0..slots.len() as u64).filter_map(|place| slots.part(place).intersection(&region));
        let mut parts = in_slab.flat_map(|part| part.parts_within(array.element_len_bytes, *part_len_bytes)).peekable();
        let (mut at, mut together) = (run.start, Vec::new());
        // Parts that follow one another in the file are read together.
        while parts.peek().is_some() {
            let mut room_len_bytes = *part_len_bytes;
            while let Some(part) = parts.next_if(|part| together.is_empty() || len_bytes(array, part) <= room_len_bytes)
            {
                room_len_bytes = room_len_bytes.saturating_sub(len_bytes(array, &part));
                together.push(part);
            }
            values.resize(together.iter().map(|part| len_bytes(array, part) as usize).sum(), 0);
            scratch.read(group.array, at, values)?;
            at += values.len() as u64;
            let mut rest = values.as_slice();
            for part in together.drain(..) {
                let (of_part, later) = rest.split_at(len_bytes(array, &part) as usize);
                slots.put(&part, of_part)?;
                rest = later;
            }
        }
        Ok(())
    }
}

impl Filler<'_, '_> {
    /// Makes the jobs of `group` the current ones.
    fn find(&mut self, group: TileGroup) {
        if self.state.group == Some(group) {
            return;
        }
        self.state.group = Some(group);
        (self.state.blocks, self.state.runs) = (Vec::new(), Vec::new());
        let array = &self.plan.tiles.arrays[group.array as usize];
        let Some(Regrouping { groups, slabs, chunk_shape, part_len_bytes, .. }) = self.tiles.of(group.array) else {
            return;
        };
        match slabs {
            None => {
                let region = groups.extent(array, group.group);
                let mut blocks = blocks(array, &region, chunk_shape, *part_len_bytes);
                // Tiles that an earlier run placed are not assembled again.
                blocks.retain(|block| self.tiles.needs(group.array, array, &block.extent()));
                self.state.blocks = blocks;
            }
            Some(slabs) => {
                let run = |slab| Some((slab, slabs.run_of(array, slab, *groups, group.group)?));
                self.state.runs = (0..slabs.count(array)).filter_map(run).collect();
            }
        }
    }
}
