//! Values of arrays in a scratch file: slabs of whole chunks, each stored tile by tile.
//!
//! One process fills the file with one array after the other. An array is filled when its first tile is needed, by all
//! threads that wait for a tile of it or of a later array, and its space is free for the next one as soon as its last
//! tile is taken. Several ranks fill it with all arrays before the first tile, each rank with a share of the slabs.

use super::tiles::RegroupedTiles;
use crate::error::{MergeError, Result};
use crate::plan::MergePlan;
use crate::plan::regrouping::space_len_bytes;
use crate::write::reader_pool::ReaderPool;
use crate::write::values::ColumnReader;
use raddle_core::engine::Context;
use raddle_core::output::scratch::Scratch;
use raddle_core::parallel::for_each;
use raddle_core::plan::ArrayPlan;
use raddle_core::ranks::communicator::CommunicatorExt;
use raddle_core::regrouping::Regrouping;
use raddle_core::regrouping::blocks::{InputBlock, blocks};
use raddle_core::regrouping::phases::{PhaseWork, Phases};
use raddle_core::regrouping::slots::Slots;
use raddle_core::report::progress::{Event, Observer, Stage};
use raddle_core::report::{StageTable, StageTimer, StageTotals};
use raddle_hdf5::source::InputPool;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Arrays in a scratch file.
pub(super) struct ScratchArrays {
    file: Scratch,
    /// Arrays that go through the file, indexed by array number.
    arrays: BTreeMap<u32, ScratchArray>,
    /// Array that uses the file, if the arrays use it one after the other.
    current: Mutex<Option<u32>>,
    are_in_turn: bool,
    timer: StageTimer,
    moved_len_bytes: AtomicU64,
}

/// An array in a scratch file.
struct ScratchArray {
    /// Offset of the array in the file.
    offset_bytes: u64,
    /// Length of the values in the slabs of this rank.
    local_len_bytes: u64,
    /// Slabs of this rank that overlap tiles of the run.
    slabs: Vec<u64>,
    phases: Phases,
    slab: Mutex<FilledSlab>,
    /// Number of tiles that are not taken.
    tiles_left: AtomicU64,
}

/// The slab that is being moved to the file.
#[derive(Default)]
struct FilledSlab {
    slots: Option<Arc<Slots>>,
    blocks: Arc<[InputBlock]>,
    runs: Arc<[SlotRun]>,
    /// Buffers of the previous slab, for the next one.
    spare: Vec<Vec<u8>>,
}

/// Slots that are written to the file together.
struct SlotRun {
    offset_bytes: u64,
    places: Range<usize>,
}

impl ScratchArrays {
    /// Collective. Prepares the scratch file for the arrays with slabs. Returns `None` if no tile of the run is in one.
    pub(super) fn create(tiles: &RegroupedTiles, plan: &MergePlan, context: &Context<'_>) -> Result<Option<Self>> {
        let ranks = context.communicator;
        let are_in_turn = ranks.size() == 1;
        let (rank, size) = (ranks.rank() as u64, ranks.size() as u64);
        let (mut arrays, mut end_bytes) = (BTreeMap::new(), 0_u64);
        let mut needed_len_bytes = Vec::new();
        for (number, array) in (0_u32..).zip(&plan.tiles.arrays) {
            let Some(Regrouping { slabs: Some(slabs), .. }) = tiles.of(number) else { continue };
            let Some((first, end)) = tiles.index.tiles_of(number) else { continue };
            let (first, end) = (first.max(tiles.all.start), end.min(tiles.all.end));
            if first >= end {
                continue;
            }
            let offset_bytes = if are_in_turn { 0 } else { end_bytes };
            end_bytes = offset_bytes + array.len_bytes();
            let local_slabs = (rank..slabs.count(array)).step_by(size as usize);
            let local_slabs: Vec<u64> =
                local_slabs.filter(|&slab| tiles.needs(number, array, &slabs.extent(array, slab))).collect();
            let elements_of_slab = |slab: &u64| slabs.extent(array, *slab).element_count().unwrap_or(0);
            let local_len_bytes = local_slabs.iter().map(elements_of_slab).sum::<u64>() * array.element_len_bytes;
            let of_array = ScratchArray {
                offset_bytes,
                local_len_bytes,
                slabs: local_slabs,
                phases: Phases::new(),
                slab: Mutex::default(),
                tiles_left: AtomicU64::new(end - first),
            };
            arrays.insert(number, of_array);
            let of_tile = |ordinal| {
                let tile = tiles.index.tile(ordinal)?;
                array.tile_extent(tile.index).element_count()
            };
            let elements = (first..end).filter_map(of_tile).fold(0, u64::saturating_add);
            needed_len_bytes.push(elements.saturating_mul(array.element_len_bytes));
        }
        if arrays.is_empty() {
            return Ok(None);
        }
        let file = Scratch::create_shared::<MergeError>(&plan.options.output, ranks)?;
        let needed_len_bytes = space_len_bytes(needed_len_bytes.into_iter(), ranks.size());
        let room = match ranks.rank() {
            0 => file.check_space(needed_len_bytes).and_then(|()| file.clear(end_bytes)),
            _ => Ok(()),
        };
        ranks.agree("make room in a scratch file", room.map_err(MergeError::from))?;
        let total_bytes = Some(arrays.values().map(|of_array| of_array.local_len_bytes).sum());
        context.observer.event(&Event::StageStarted { stage: Stage::Restructure, total_bytes });
        let moved_len_bytes = AtomicU64::new(0);
        let current = Mutex::default();
        Ok(Some(Self { file, arrays, current, are_in_turn, timer: StageTimer::start(), moved_len_bytes }))
    }
}

/// A thread that moves slabs to a scratch file.
pub(super) struct SlabMover<'a, 'p> {
    pub(super) tiles: &'a RegroupedTiles,
    pub(super) plan: &'p MergePlan,
    pub(super) reader: &'a mut ColumnReader<'p>,
    pub(super) values: &'a mut Vec<u8>,
    /// Time and bytes of moving, without reading.
    pub(super) spent: &'a mut StageTotals,
    pub(super) observer: &'a dyn Observer,
}

impl ScratchArrays {
    /// Collective. Fills a file that several ranks share with all arrays, and adds the time to `stages`. Does nothing
    /// if the arrays use the file one after the other.
    pub(super) fn fill_shared<'p>(
        &self,
        tiles: &RegroupedTiles,
        (plan, pool): (&'p MergePlan, &'p InputPool),
        context: &Context<'_>,
        stages: &mut StageTable,
    ) -> Result<()> {
        if self.are_in_turn {
            return Ok(());
        }
        let (readers, all_spent) = (ReaderPool::default(), Mutex::new(StageTotals::default()));
        let helpers = vec![(); tiles.jobs];
        let lend = || readers.lend(|| ColumnReader::new(plan, pool));
        let filled = self.arrays.keys().try_for_each(|&number| {
            for_each(&helpers, tiles.jobs, context.cancel, lend, |lent, ()| {
                let Some((reader, values)) = lent.parts() else { return Ok(()) };
                let mut spent = StageTotals::default();
                let mover = SlabMover { tiles, plan, reader, values, spent: &mut spent, observer: context.observer };
                let moved = self.help(number, mover, || context.cancel.is_cancelled());
                lock(&all_spent).add(&spent);
                if moved? { Ok(()) } else { Err(MergeError::Cancelled) }
            })
        });
        readers.retire(stages);
        stages.get_mut(Stage::Restructure).add(&lock(&all_spent));
        context.communicator.agree("fill a scratch file", filled)
    }

    /// Fills the file with an array, after the arrays before it, and helps other threads that do so. Returns false if
    /// `is_stopped`.
    pub(super) fn fill_up_to(
        &self,
        array: u32,
        mover: SlabMover<'_, '_>,
        is_stopped: impl Fn() -> bool,
    ) -> Result<bool> {
        let SlabMover { tiles, plan, reader, values, spent, observer } = mover;
        for (&number, of_array) in self.arrays.range(..=array).filter(|_| self.are_in_turn) {
            if of_array.phases.is_complete() {
                continue;
            }
            let mover =
                SlabMover { tiles, plan, reader: &mut *reader, values: &mut *values, spent: &mut *spent, observer };
            if !tiles.store.wait_for_earlier(number, &is_stopped) || !self.help(number, mover, &is_stopped)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn help(&self, number: u32, mover: SlabMover<'_, '_>, is_stopped: impl Fn() -> bool) -> Result<bool> {
        let Some(of_array) = self.arrays.get(&number) else { return Ok(true) };
        let array = &mover.plan.tiles.arrays[number as usize];
        of_array.phases.help(&mut SlabMove { scratch: self, of_array, number, array, mover }, is_stopped)
    }

    /// Records that a tile was taken. The last tile of an array frees its space.
    pub(super) fn taken(&self, array: u32) -> Result<()> {
        let is_last = self.arrays.get(&array).is_some_and(|of| of.tiles_left.fetch_sub(1, Ordering::AcqRel) == 1);
        let mut current = lock(&self.current);
        if is_last && *current == Some(array) {
            *current = None;
            self.file.clear(0)?;
        }
        Ok(())
    }

    /// Reads values of an array, starting at `start`.
    pub(super) fn read(&self, array: u32, start: u64, values: &mut [u8]) -> Result<()> {
        let offset_bytes = self.arrays.get(&array).map_or(0, |of_array| of_array.offset_bytes);
        Ok(self.file.read(offset_bytes + start, values)?)
    }

    /// Returns the number of bytes that this rank has moved to the file.
    pub(super) fn moved_len_bytes(&self) -> u64 {
        self.moved_len_bytes.load(Ordering::Relaxed)
    }
}

/// Moving of an array's slabs, in two phases per slab: its values are read, then written tile by tile.
struct SlabMove<'a, 'b, 'p> {
    scratch: &'a ScratchArrays,
    of_array: &'a ScratchArray,
    number: u32,
    array: &'a ArrayPlan,
    mover: SlabMover<'b, 'p>,
}

impl PhaseWork for SlabMove<'_, '_, '_> {
    type Error = MergeError;

    fn begin(&mut self, phase: usize) -> Result<Option<usize>> {
        let Self { scratch, of_array, number, array, mover } = self;
        let tiles = mover.tiles;
        let mut slab = lock(&of_array.slab);
        let Some(Regrouping { slabs: Some(slabs), chunk_shape, part_len_bytes, .. }) = tiles.of(*number) else {
            return Ok(None);
        };
        if !phase.is_multiple_of(2) {
            let runs = slab.slots.as_ref().map_or(Vec::new(), |slots| {
                let offset_bytes = of_array.offset_bytes + slabs.offset_bytes(array, of_array.slabs[phase / 2]);
                runs(tiles, (*number, array), slots, (offset_bytes, *part_len_bytes as usize))
            });
            slab.runs = runs.into();
            return Ok(Some(slab.runs.len()));
        }
        if phase == 0 && scratch.are_in_turn {
            *lock(&scratch.current) = Some(*number);
            scratch.file.clear(array.len_bytes())?;
        }
        if let Some(before) = slab.slots.take().and_then(Arc::into_inner) {
            before.recycle(&mut slab.spare);
        }
        let Some(&next) = of_array.slabs.get(phase / 2) else {
            *slab = FilledSlab::default();
            if scratch.arrays.last_key_value().is_some_and(|(last, _)| last == number) {
                let (stage, elapsed_s) = (Stage::Restructure, scratch.timer.elapsed_s());
                mover.observer.event(&Event::StageFinished { stage, elapsed_s });
            }
            return Ok(None);
        };
        let region = slabs.extent(array, next);
        let mut blocks = blocks(array, &region, chunk_shape, *part_len_bytes);
        blocks.retain(|block| tiles.needs(*number, array, &block.extent()));
        slab.blocks = blocks.into();
        slab.slots = Some(Arc::new(Slots::new(array, &region, &mut slab.spare)));
        Ok(Some(slab.blocks.len()))
    }

    fn carry_out(&mut self, phase: usize, job: usize) -> Result<()> {
        let Self { scratch, of_array, number, mover, .. } = self;
        let SlabMover { tiles, plan, reader, values, spent, observer } = mover;
        let (slots, blocks, runs) = {
            let slab = lock(&of_array.slab);
            let Some(slots) = slab.slots.clone() else { return Ok(()) };
            (slots, Arc::clone(&slab.blocks), Arc::clone(&slab.runs))
        };
        if phase.is_multiple_of(2) {
            return tiles.read_block((*plan, *number), reader, &blocks[job], values, |part, values| {
                let timer = StageTimer::start();
                slots.put(part, values)?;
                let bytes = values.len() as u64;
                spent.add(&timer.totals(bytes, 1));
                observer.event(&Event::Advanced { stage: Stage::Restructure, bytes, items: 1 });
                Ok(())
            });
        }
        let timer = StageTimer::start();
        let SlotRun { offset_bytes, places } = &runs[job];
        let len_bytes = if places.len() == 1 {
            // A slot may be longer than a part.
            let slot = slots.lock(places.start);
            scratch.file.write_at(*offset_bytes, &slot)?;
            slot.len()
        } else {
            values.clear();
            places.clone().for_each(|place| values.extend_from_slice(&slots.lock(place)));
            scratch.file.write_at(*offset_bytes, values)?;
            values.len()
        };
        scratch.moved_len_bytes.fetch_add(len_bytes as u64, Ordering::Relaxed);
        spent.add(&timer.totals(0, 0));
        Ok(())
    }
}

/// Returns the slots of a slab that the run needs, if the slab is at `offset_bytes`: in runs of up to `most` bytes, or of
/// one slot.
fn runs(
    tiles: &RegroupedTiles,
    (number, array): (u32, &ArrayPlan),
    slots: &Slots,
    (offset_bytes, most): (u64, usize),
) -> Vec<SlotRun> {
    let (mut runs, mut at, mut len_bytes) = (Vec::<SlotRun>::new(), offset_bytes, 0);
    for place in 0..slots.len() {
        let slot_len_bytes = slots.lock(place).len();
        if tiles.needs(number, array, &slots.part(place as u64)) {
            match runs.last_mut() {
                Some(run) if run.places.end == place && len_bytes + slot_len_bytes <= most => {
                    run.places.end = place + 1;
                    len_bytes += slot_len_bytes;
                }
                _ => {
                    runs.push(SlotRun { offset_bytes: at, places: place..place + 1 });
                    len_bytes = slot_len_bytes;
                }
            }
        }
        at += slot_len_bytes as u64;
    }
    runs
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
