//! Models of the memory budget, of ranks as threads and of the ordered queue: loom runs each in every interleaving of
//! its threads, up to a number of preemptions, and reports a lost wake-up as a deadlock.
//!
//! The engine's window has separate models. loom's waits never time out, so nothing here may depend on polling.

use crate::error::CoreError;
use crate::memory::MemoryBudget;
use crate::parallel::ordered::OrderedQueue;
use crate::plan::{ArrayPlan, Plan, Tile};
use crate::ranks::threads::Threads;
use crate::regrouping::Regrouping;
use crate::regrouping::groups::TileGroups;
use crate::regrouping::phases::{PhaseWork, Phases};
use crate::regrouping::slots::Slots;
use crate::regrouping::store::{FillGroup, GroupStore, TakeOutcome, TileGroup};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use loom::thread::spawn;

#[test]
fn permits_never_exceed_the_limit_and_everybody_is_served() {
    loom::model(|| {
        let (budget, acquired_bytes) = (MemoryBudget::new(3), Arc::new(AtomicU64::new(0)));
        let take = |len_bytes| {
            let (budget, acquired_bytes) = (budget.clone(), Arc::clone(&acquired_bytes));
            move || {
                let permit = budget.acquire(len_bytes, "a model").unwrap();
                assert!(acquired_bytes.fetch_add(len_bytes, Ordering::SeqCst) + len_bytes <= 3);
                acquired_bytes.fetch_sub(len_bytes, Ordering::SeqCst);
                drop(permit);
            }
        };
        let others = [1, 2].map(|len_bytes| spawn(take(len_bytes)));
        take(3)();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!((budget.used_bytes(), budget.available_bytes()), (0, 3));
    });
}

#[test]
fn a_permit_that_shrinks_wakes_who_waits() {
    loom::model(|| {
        let budget = MemoryBudget::new(3);
        let mut first = budget.acquire(3, "a model").unwrap();
        let waiting = budget.clone();
        let second = spawn(move || waiting.acquire(2, "a model").unwrap());
        first.shrink_to(1);
        let second = second.join().unwrap();
        assert_eq!((first.len_bytes(), second.len_bytes(), budget.used_bytes()), (1, 2, 3));
        assert!(budget.try_acquire(1, "a model").is_err());
    });
}

#[test]
fn who_is_served_wakes_the_next() {
    loom::model(|| {
        let budget = MemoryBudget::new(2);
        let all = budget.acquire(2, "a model").unwrap();
        let waiting = [1, 1].map(|len_bytes| {
            let budget = budget.clone();
            spawn(move || budget.acquire(len_bytes, "a model").unwrap())
        });
        drop(all);
        // Neither releases anything until both hold their permits.
        let permits = waiting.map(|waiting| waiting.join().unwrap());
        assert_eq!((budget.used_bytes(), budget.peak_bytes()), (2, 2));
        drop(permits);
        assert_eq!(budget.used_bytes(), 0);
    });
}

#[test]
fn ranks_receive_from_each_other_in_every_collective() {
    loom::model(|| {
        let ranks = Threads::ranks(2).into_iter().map(|rank| {
            spawn(move || {
                rank.live(|ranks| {
                    let local_rank = ranks.rank() as u8;
                    for round in 0..2 {
                        let gathered = ranks.all_gather_bytes(&[round, local_rank]).unwrap();
                        assert_eq!(gathered, [[round, 0], [round, 1]]);
                    }
                });
            })
        });
        ranks.collect::<Vec<_>>().into_iter().for_each(|rank| rank.join().unwrap());
    });
}

#[test]
fn a_rank_that_leaves_hangs_nobody() {
    loom::model(|| {
        let mut ranks = Threads::ranks(2);
        let (stays, leaves) = (ranks.remove(0), ranks.remove(0));
        let leaver = spawn(move || leaves.live(|_| ()));
        let gathered = stays.live(|ranks| ranks.barrier());
        assert!(matches!(gathered, Err(CoreError::RankLeft { .. })));
        leaver.join().unwrap();
    });
}

#[test]
fn results_are_consumed_in_order_and_everybody_ends() {
    loom::model(|| {
        let queue = Arc::new(OrderedQueue::new(3, 1));
        let workers = [0, 1].map(|_| {
            let queue = Arc::clone(&queue);
            spawn(move || {
                while let Some(place) = queue.next() {
                    queue.put(place, place * 2);
                }
            })
        });
        for place in 0..3 {
            assert_eq!(queue.take(place), Some(place * 2));
        }
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert!(queue.next().is_none());
    });
}

#[test]
fn a_stopped_queue_wakes_everybody() {
    loom::model(|| {
        let queue = Arc::new(OrderedQueue::<usize>::new(2, 1));
        let worker = {
            let queue = Arc::clone(&queue);
            // The second call waits for the first result to be consumed.
            spawn(move || queue.next().is_some() && queue.next().is_some())
        };
        queue.stop();
        assert!(!worker.join().unwrap());
        assert!(queue.take(0).is_none());
    });
}

/// Work that fills tiles of one byte with a number, and fails at the group `failing`.
struct OneByte {
    failing: Option<u64>,
}

impl FillGroup for OneByte {
    type Error = u64;

    fn jobs(&mut self, _: TileGroup) -> usize {
        1
    }

    fn fill(&mut self, group: TileGroup, _: usize, slots: &Slots) -> Result<(), u64> {
        if self.failing == Some(group.group) {
            return Err(group.group);
        }
        slots.lock(0).fill(group.group as u8 + 1);
        Ok(())
    }
}

/// Returns a plan of two groups of one tile each; the memory holds one of them.
fn two_groups() -> (ArrayPlan, TileGroups, Arc<GroupStore>) {
    let groups = TileGroups { axis: 0, tiles: 1 };
    let array = ArrayPlan { shape: vec![2], tile_shape: vec![1], element_len_bytes: 1, ..ArrayPlan::default() };
    let plan = Plan { arrays: vec![array.clone()] };
    let (chunk_shape, decodes, decodes_by_tile) = (vec![2], 2.0, 2.0);
    let regrouping = Regrouping { groups, slabs: None, chunk_shape, part_len_bytes: 1 << 20, decodes, decodes_by_tile };
    let store = GroupStore::new(&plan, &plan.tile_index(), &[Some(regrouping)], std::slice::from_ref(&(0..2)), 1);
    (array, groups, Arc::new(store))
}

#[test]
fn groups_are_filled_one_after_the_other() {
    loom::model(|| {
        let (array, groups, store) = two_groups();
        let (other, plan) = (Arc::clone(&store), array.clone());
        let take = move |store: &GroupStore, plan: &ArrayPlan, index| {
            let tile = Tile { array: 0, index };
            store.take((plan, groups), tile, &mut OneByte { failing: None }, || false)
        };
        let second = spawn(move || take(&other, &plan, 1));
        assert_eq!(take(&store, &array, 0), Ok(TakeOutcome::Values(vec![1])));
        assert_eq!(second.join().unwrap(), Ok(TakeOutcome::Values(vec![2])));
    });
}

#[test]
fn a_failed_group_fails_everybody_who_needs_it() {
    loom::model(|| {
        let groups = TileGroups { axis: 0, tiles: 2 };
        let array = ArrayPlan { shape: vec![2], tile_shape: vec![1], element_len_bytes: 1, ..ArrayPlan::default() };
        let plan = Plan { arrays: vec![array.clone()] };
        let (chunk_shape, decodes, decodes_by_tile) = (vec![2], 1.0, 2.0);
        let regrouping =
            Regrouping { groups, slabs: None, chunk_shape, part_len_bytes: 1 << 20, decodes, decodes_by_tile };
        let store =
            Arc::new(GroupStore::new(&plan, &plan.tile_index(), &[Some(regrouping)], std::slice::from_ref(&(0..2)), 2));
        let (other, plan) = (Arc::clone(&store), array.clone());
        let take = move |store: &GroupStore, plan: &ArrayPlan, index| {
            let tile = Tile { array: 0, index };
            store.take((plan, groups), tile, &mut OneByte { failing: Some(0) }, || false)
        };
        let second = spawn(move || take(&other, &plan, 1));
        assert_eq!(take(&store, &array, 0), Err(0));
        assert_eq!(second.join().unwrap(), Err(0));
    });
}

#[test]
fn an_array_waits_until_the_tiles_before_it_are_taken() {
    loom::model(|| {
        let (array, groups, store) = two_groups();
        let (other, taken) = (Arc::clone(&store), Arc::new(AtomicU64::new(0)));
        let (seen, plan) = (Arc::clone(&taken), array.clone());
        let waiting = spawn(move || {
            assert!(other.wait_for_earlier(1, || false));
            assert_eq!(seen.load(Ordering::SeqCst), 2);
        });
        for index in 0..2 {
            taken.fetch_add(1, Ordering::SeqCst);
            let tile = Tile { array: 0, index };
            store.take((&plan, groups), tile, &mut OneByte { failing: None }, || false).unwrap();
        }
        waiting.join().unwrap();
    });
}

/// Two phases, of two jobs and of one.
struct TwoPhases {
    done: Arc<AtomicU64>,
    failing: Option<(usize, usize)>,
}

impl PhaseWork for TwoPhases {
    type Error = (usize, usize);

    fn begin(&mut self, phase: usize) -> Result<Option<usize>, Self::Error> {
        assert_eq!(self.done.load(Ordering::SeqCst), [0, 2, 3][phase]);
        Ok([Some(2), Some(1), None][phase])
    }

    fn carry_out(&mut self, phase: usize, job: usize) -> Result<(), Self::Error> {
        if self.failing == Some((phase, job)) {
            return Err((phase, job));
        }
        self.done.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn phases_follow_each_other_and_end_for_everybody() {
    loom::model(|| {
        let (phases, done) = (Arc::new(Phases::new()), Arc::new(AtomicU64::new(0)));
        let (others, counted) = (Arc::clone(&phases), Arc::clone(&done));
        let other = spawn(move || others.help(&mut TwoPhases { done: counted, failing: None }, || false));
        assert_eq!(phases.help(&mut TwoPhases { done: Arc::clone(&done), failing: None }, || false), Ok(true));
        assert_eq!(other.join().unwrap(), Ok(true));
        assert_eq!(done.load(Ordering::SeqCst), 3);
    });
}

#[test]
fn a_failed_phase_fails_everybody() {
    loom::model(|| {
        let (phases, done) = (Arc::new(Phases::new()), Arc::new(AtomicU64::new(0)));
        let (others, counted) = (Arc::clone(&phases), Arc::clone(&done));
        let failing = Some((0, 1));
        let other = spawn(move || others.help(&mut TwoPhases { done: counted, failing }, || false));
        assert_eq!(phases.help(&mut TwoPhases { done, failing }, || false), Err((0, 1)));
        assert_eq!(other.join().unwrap(), Err((0, 1)));
    });
}
