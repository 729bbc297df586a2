//! The store of groups: the tiles of the groups that are being assembled, filled by all threads that wait for them.
//!
//! Groups are admitted in plan order, as far as the memory allows. A thread that needs a tile of an admitted group
//! helps to fill the group, one job at a time, until no job is left, and then takes the tile. The last tile that is
//! taken frees the memory of the group. Invariants: a thread never waits for a group after its own, so the threads of
//! the first group always proceed; a job that failed is repeated by every thread that needs it, so that each reports
//! the error at its own tile and the first error in plan order does not depend on the threads.

use super::Regrouping;
use super::groups::TileGroups;
use super::slots::Slots;
use crate::plan::extent::values_len_bytes;
use crate::plan::{ArrayPlan, Plan, Tile, TileIndex};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::PoisonError;

/// Interval at which waiting threads check whether the run has stopped.
#[cfg(not(loom))]
pub(super) const STOP_POLL: std::time::Duration = std::time::Duration::from_millis(50);

/// A group of tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileGroup {
    /// Number of the array in the plan.
    pub array: u32,
    /// Number of the group in the array.
    pub group: u64,
}

/// A group with tiles that this process assembles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ExpectedGroup {
    group: TileGroup,
    /// Number of tiles that this process assembles.
    tiles: u64,
    /// Length of the values of all tiles of the group.
    len_bytes: u64,
}

/// A group that has been admitted: its values, and the work left.
#[derive(Debug)]
struct AdmittedGroup {
    slots: Arc<Slots>,
    /// Jobs that no thread has begun, last one first.
    waiting: Vec<usize>,
    /// Number of jobs that are not done.
    undone: usize,
    /// Number of tiles that are not taken.
    tiles: u64,
}

#[derive(Debug, Default)]
struct State {
    /// Number of groups admitted so far.
    admitted: usize,
    groups: BTreeMap<usize, AdmittedGroup>,
    len_bytes: u64,
    /// Buffers of tiles that were taken, for the next group.
    spare: Vec<Vec<u8>>,
}

/// The store of groups of one process.
#[derive(Debug)]
pub struct GroupStore {
    limit_len_bytes: u64,
    /// Groups in plan order.
    expected: Vec<ExpectedGroup>,
    state: Mutex<State>,
    changed: Condvar,
}

/// Outcome of waiting for a tile.
#[derive(Debug, PartialEq, Eq)]
pub enum TakeOutcome {
    /// Values of the tile's part of the array, in row-major order and without padding.
    Values(Vec<u8>),
    /// The run stopped before the values were complete.
    Stopped,
}

/// Filler of groups. The values that the inputs hold of a group are divided into jobs.
pub trait FillGroup {
    /// Error of a job.
    type Error;

    /// Returns the number of jobs of `group`.
    fn jobs(&mut self, group: TileGroup) -> usize;

    /// Carries out job number `job` of `group`.
    ///
    /// # Errors
    /// If values cannot be read.
    fn fill(&mut self, group: TileGroup, job: usize, slots: &Slots) -> Result<(), Self::Error>;
}

impl GroupStore {
    /// Creates a store for the groups of the `tiles` of `plan` that this process assembles, given as ranges of tile
    /// numbers in order. `regroupings` has an element for each array.
    pub fn new(
        plan: &Plan,
        index: &TileIndex,
        regroupings: &[Option<Regrouping>],
        tiles: &[Range<u64>],
        limit_len_bytes: u64,
    ) -> Self {
        let mut expected: Vec<ExpectedGroup> = Vec::new();
        for range in tiles {
            let mut next = range.start;
            while next < range.end
                && let Some(tile) = index.tile(next)
                && let Some((first, end)) = index.tiles_of(tile.array)
            {
                let array = &plan.arrays[tile.array as usize];
                let Some(Some(Regrouping { groups, .. })) = regroupings.get(tile.array as usize) else {
                    next = end;
                    continue;
                };
                let group = TileGroup { array: tile.array, group: groups.group_of(array, tile.index) };
                let reached = (first + groups.tiles_of(array, group.group).end).min(range.end);
                let tiles = reached - next;
                match expected.last_mut() {
                    Some(last) if last.group == group => last.tiles += tiles,
                    _ => {
                        let len_bytes = len_bytes(array, *groups, group.group);
                        expected.push(ExpectedGroup { group, tiles, len_bytes });
                    }
                }
                next = reached;
            }
        }
        Self { limit_len_bytes, expected, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Returns the values of `tile`, which is one of the tiles of this process and taken only once, after helping to
    /// fill its group. `is_stopped` is polled while waiting.
    ///
    /// # Errors
    /// If a job of the tile's group fails.
    pub fn take<F: FillGroup>(
        &self,
        (plan, groups): (&ArrayPlan, TileGroups),
        tile: Tile,
        filler: &mut F,
        is_stopped: impl Fn() -> bool,
    ) -> Result<TakeOutcome, F::Error> {
        let group = TileGroup { array: tile.array, group: groups.group_of(plan, tile.index) };
        let Ok(at) = self.expected.binary_search_by_key(&group, |expected| expected.group) else {
            return Ok(TakeOutcome::Stopped);
        };
        let place = tile.index - groups.tiles_of(plan, group.group).start;
        let mut state = self.lock();
        loop {
            if is_stopped() {
                return Ok(TakeOutcome::Stopped);
            }
            self.admit(&mut state, at, plan, groups, filler);
            let Some(admitted) = state.groups.get_mut(&at) else {
                state = self.wait(state);
                continue;
            };
            if let Some(job) = admitted.waiting.pop() {
                let slots = Arc::clone(&admitted.slots);
                drop(state);
                let filled = filler.fill(group, job, &slots);
                drop(slots);
                state = self.lock();
                let Some(admitted) = state.groups.get_mut(&at) else { return Ok(TakeOutcome::Stopped) };
                if let Err(error) = filled {
                    admitted.waiting.push(job);
                    self.changed.notify_all();
                    return Err(error);
                }
                admitted.undone -= 1;
                if admitted.undone == 0 {
                    self.changed.notify_all();
                }
                continue;
            }
            if admitted.undone > 0 {
                state = self.wait(state);
                continue;
            }
            let values = std::mem::take(&mut *admitted.slots.lock(place as usize));
            admitted.tiles -= 1;
            if admitted.tiles == 0 {
                state.groups.remove(&at);
                state.len_bytes -= self.expected[at].len_bytes;
                self.changed.notify_all();
            }
            return Ok(TakeOutcome::Values(values));
        }
    }

    /// Waits until all tiles of this process in groups of arrays before `array` are taken, so that the memory of the
    /// store is free until the groups of `array` are admitted. Returns false if `is_stopped`, which is polled, ended
    /// the wait.
    pub fn wait_for_earlier(&self, array: u32, is_stopped: impl Fn() -> bool) -> bool {
        let first = self.expected.partition_point(|expected| expected.group.array < array);
        let mut state = self.lock();
        loop {
            if is_stopped() {
                return false;
            }
            if state.admitted > first {
                return true;
            }
            if state.admitted == first && state.groups.is_empty() {
                state.spare = Vec::new();
                return true;
            }
            state = self.wait(state);
        }
    }

    /// Returns the buffer of a tile that was taken, for the next group.
    pub fn recycle(&self, values: Vec<u8>) {
        self.lock().spare.push(values);
    }

    /// Admits group number `at` if it is the next one and memory is left for it. A group that alone exceeds the limit
    /// is admitted once the store is empty.
    fn admit<F: FillGroup>(&self, state: &mut State, at: usize, plan: &ArrayPlan, groups: TileGroups, filler: &mut F) {
        let ExpectedGroup { group, tiles, len_bytes } = self.expected[at];
        let fits = state.groups.is_empty() || state.len_bytes.saturating_add(len_bytes) <= self.limit_len_bytes;
        if state.admitted != at || !fits {
            return;
        }
        let undone = filler.jobs(group);
        let slots = Arc::new(Slots::new(plan, &groups.extent(plan, group.group), &mut state.spare));
        // Memory that the group does not need is freed, so that it does not add to the group's.
        state.spare = Vec::new();
        state.groups.insert(at, AdmittedGroup { slots, waiting: (0..undone).rev().collect(), undone, tiles });
        state.admitted += 1;
        state.len_bytes += len_bytes;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(not(loom))]
    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, STOP_POLL).unwrap_or_else(PoisonError::into_inner).0
    }

    #[cfg(loom)]
    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

fn len_bytes(array: &ArrayPlan, groups: TileGroups, group: u64) -> u64 {
    values_len_bytes(&groups.extent(array, group).count, array.element_len_bytes)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::plan::Segment;
    use crate::plan::extent::Extent;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    /// Filler of groups with the numbers of the elements, along the borders of chunks.
    struct ElementNumbers<'a> {
        plan: &'a Plan,
        regroupings: &'a [Option<Regrouping>],
        jobs_done: &'a AtomicUsize,
        /// Job of the last group that fails.
        failing: Option<usize>,
    }

    impl ElementNumbers<'_> {
        /// Returns the rows of chunks of a group.
        fn boxes(&self, group: TileGroup) -> Vec<Extent> {
            let (array, found) = (&self.plan.arrays[group.array as usize], &self.regroupings[group.array as usize]);
            let Regrouping { groups, chunk_shape, .. } = found.as_ref().unwrap();
            let whole = groups.extent(array, group.group);
            let rows = (whole.start[0]..whole.end(0)).step_by(chunk_shape[0] as usize);
            let of_rows = |row| {
                let mut extent = whole.clone();
                (extent.start[0], extent.count[0]) = (row, chunk_shape[0].min(whole.end(0) - row));
                extent
            };
            rows.map(of_rows).collect()
        }
    }

    impl FillGroup for ElementNumbers<'_> {
        type Error = (TileGroup, usize);

        fn jobs(&mut self, group: TileGroup) -> usize {
            self.boxes(group).len()
        }

        fn fill(&mut self, group: TileGroup, job: usize, slots: &Slots) -> Result<(), Self::Error> {
            let array = &self.plan.arrays[group.array as usize];
            if self.failing == Some(job) && group.array as usize + 1 == self.plan.arrays.len() {
                return Err((group, job));
            }
            let extent = self.boxes(group)[job].clone();
            slots.put(&extent, &numbers(array, &extent)).unwrap();
            self.jobs_done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    /// Returns the number of each element of a box of a two-dimensional array.
    fn numbers(array: &ArrayPlan, extent: &Extent) -> Vec<u8> {
        let rows = extent.start[0]..extent.end(0);
        let columns = extent.start[1]..extent.end(1);
        rows.flat_map(|row| columns.clone().map(move |column| (row * array.shape[1] + column) as u32))
            .flat_map(u32::to_le_bytes)
            .collect()
    }

    fn plan() -> (Plan, Vec<Option<Regrouping>>) {
        let array = |rows: u64, columns: u64, tile_shape: &[u64]| ArrayPlan {
            shape: vec![rows, columns],
            tile_shape: tile_shape.to_vec(),
            element_len_bytes: 4,
            segments: vec![Segment { input: 0, start: 0, rows, source_row: 0 }].into(),
            ..ArrayPlan::default()
        };
        let plan = Plan { arrays: vec![array(60, 50, &[60, 7]), array(9, 9, &[9, 9]), array(40, 40, &[13, 3])] };
        let regrouping = |axis, tiles, chunk_shape: [u64; 2]| Regrouping {
            groups: TileGroups { axis, tiles },
            slabs: None,
            chunk_shape: chunk_shape.to_vec(),
            part_len_bytes: 1 << 20,
            decodes: 1.0,
            decodes_by_tile: 8.0,
        };
        let regroupings = vec![Some(regrouping(1, 3, [4, 50])), None, Some(regrouping(0, 1, [3, 40]))];
        (plan, regroupings)
    }

    fn take_all(threads: usize, failing: Option<usize>) -> (Vec<u64>, Vec<(u64, TileGroup)>, usize) {
        let (plan, regroupings) = plan();
        let index = plan.tile_index();
        let (whole, next, jobs_done) = (0..index.tile_count(), AtomicU64::new(0), AtomicUsize::new(0));
        let store = GroupStore::new(&plan, &index, &regroupings, &[whole], 6000);
        let (taken, failed) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut filler =
                        ElementNumbers { plan: &plan, regroupings: &regroupings, jobs_done: &jobs_done, failing };
                    loop {
                        let ordinal = next.fetch_add(1, Ordering::Relaxed);
                        let Some(tile) = index.tile(ordinal) else { return };
                        let array = &plan.arrays[tile.array as usize];
                        let Some(found) = &regroupings[tile.array as usize] else { continue };
                        match store.take((array, found.groups), tile, &mut filler, || false) {
                            Ok(TakeOutcome::Values(values)) => {
                                assert_eq!(values, numbers(array, &array.tile_extent(tile.index)));
                                taken.lock().unwrap().push(ordinal);
                            }
                            Ok(TakeOutcome::Stopped) => unreachable!(),
                            Err((group, _)) => return failed.lock().unwrap().push((ordinal, group)),
                        }
                        let state = store.lock();
                        assert!(state.len_bytes <= 6000 || state.groups.len() == 1);
                    }
                });
            }
        });
        let mut taken = taken.into_inner().unwrap();
        taken.sort_unstable();
        (taken, failed.into_inner().unwrap(), jobs_done.into_inner())
    }

    #[test]
    fn every_tile_gets_its_values_and_every_job_is_done_once() {
        let one = take_all(1, None);
        assert_eq!((one.0.len(), one.1.len()), (8 + 14 * 4, 0));
        for threads in [2, 5] {
            assert_eq!(take_all(threads, None), one);
        }
    }

    #[test]
    fn each_thread_that_needs_a_failed_job_reports_it() {
        for threads in [1, 4] {
            let (taken, failed, _) = take_all(threads, Some(2));
            // The group with the failed job is the first of the last array; the tiles before it are complete.
            assert_eq!(taken, (0..8).collect::<Vec<_>>());
            assert!(failed.iter().any(|(ordinal, _)| *ordinal == 9), "{failed:?}");
            assert!(failed.iter().all(|(_, group)| *group == TileGroup { array: 2, group: 0 }), "{failed:?}");
        }
    }

    #[test]
    fn an_array_waits_for_the_tiles_of_earlier_arrays() {
        let (plan, regroupings) = plan();
        let (index, jobs_done) = (plan.tile_index(), AtomicUsize::new(0));
        let store = GroupStore::new(&plan, &index, &regroupings, std::slice::from_ref(&(0..index.tile_count())), 6000);
        let mut filler =
            ElementNumbers { plan: &plan, regroupings: &regroupings, jobs_done: &jobs_done, failing: None };
        let is_free = |array| {
            let polls = AtomicUsize::new(0);
            store.wait_for_earlier(array, || polls.fetch_add(1, Ordering::Relaxed) > 0)
        };
        let groups = regroupings[0].as_ref().unwrap().groups;
        for index in 0..8 {
            assert_eq!((is_free(0), is_free(1), is_free(2)), (true, false, false));
            let taken = store.take((&plan.arrays[0], groups), Tile { array: 0, index }, &mut filler, || false);
            let Ok(TakeOutcome::Values(values)) = taken else { panic!("{taken:?}") };
            store.recycle(values);
        }
        assert_eq!((is_free(0), is_free(1), is_free(2)), (true, true, true));
        assert!(store.lock().spare.is_empty());
    }

    #[test]
    fn a_stopped_run_ends_the_wait() {
        let (plan, regroupings) = plan();
        let index = plan.tile_index();
        let whole = 0..index.tile_count();
        let store = GroupStore::new(&plan, &index, &regroupings, &[whole], 6000);
        let jobs_done = AtomicUsize::new(0);
        let mut filler =
            ElementNumbers { plan: &plan, regroupings: &regroupings, jobs_done: &jobs_done, failing: None };
        // The last group waits for all others, which nobody takes.
        let last = Tile { array: 2, index: plan.arrays[2].tile_count() - 1 };
        let polls = AtomicUsize::new(0);
        let is_stopped = || polls.fetch_add(1, Ordering::Relaxed) > 1;
        let groups = regroupings[2].as_ref().unwrap().groups;
        assert_eq!(store.take((&plan.arrays[2], groups), last, &mut filler, is_stopped), Ok(TakeOutcome::Stopped));
        assert_eq!(jobs_done.into_inner(), 0);
    }
}
