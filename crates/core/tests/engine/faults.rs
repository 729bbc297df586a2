//! Errors, panics and cancellation: the first error in plan order is returned, and nothing hangs.

use crate::work::*;
use proptest::prelude::*;
use raddle_core::CoreError;
use raddle_core::cancel::CancelToken;
use raddle_core::engine::{Context, EngineError, EngineOptions, Execution, PlacedArray, Placement};
use raddle_core::memory::MemoryBudget;
use raddle_core::plan::{Plan, Tile};
use raddle_core::ranks::communicator::SingleProcess;
use raddle_core::ranks::threads::Threads;
use raddle_core::report::progress::{Event, Silent, Stage};

#[test]
fn an_error_at_any_stage_comes_out_and_nothing_hangs() {
    let plan = mixed();
    for stage in [Stage::Read, Stage::Regroup, Stage::Encode, Stage::Commit] {
        for (array, index) in [(2, 0), (17, 5), (59, 0), (60, 2)] {
            let index = if stage == Stage::Commit { u64::MAX } else { index };
            let refuse = Refused { array, index, stage };
            for jobs in [1, 2, 5] {
                for placement in [Placement::Ordered, Placement::Unordered] {
                    let work = Pattern { refuse: Some(refuse.clone()), ..Pattern::of(&plan) };
                    let outcome = run(&plan, &work, &Memory::default(), &options(jobs, placement, 700), BUDGET);
                    let verbatim = hash(Tile { array, index }) % 7 == 3 && stage != Stage::Read;
                    match outcome {
                        Ok(_) => assert!(verbatim && stage != Stage::Commit, "{refuse:?} lost"),
                        Err(EngineError::Tile { tile, stage: at, source }) => {
                            assert_eq!((tile, at, &source), (Tile { array, index }, stage, &refuse));
                        }
                        Err(EngineError::Commit { array: at, source }) => assert_eq!((at, &source), (array, &refuse)),
                        Err(other) => panic!("{refuse:?} became {other:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn an_error_on_one_rank_stops_all_with_the_first_in_plan_order() {
    let plan = mixed();
    for stage in [Stage::Read, Stage::Regroup, Stage::Encode, Stage::Commit] {
        for (array, index) in [(2, 0), (17, 5), (59, 0), (60, 2)] {
            let index = if stage == Stage::Commit { u64::MAX } else { index };
            let first = Refused { array, index, stage };
            if hash(Tile { array, index }) % 7 == 3 && stage != Stage::Read {
                continue;
            }
            // A later tile fails too, perhaps on another rank.
            let later = Refused { array: 60, index: 30, stage: Stage::Read };
            for ranks in [2, 3] {
                let work =
                    Pattern { refuse: Some(first.clone()), refuse_too: Some(later.clone()), ..Pattern::of(&plan) };
                let sink = Memory::default();
                let results = Threads::run(ranks, |communicator| {
                    run_on(communicator, &plan, &work, &sink, &options(2, Placement::Ordered, 700), BUDGET).map(|_| ())
                });
                let mut local_errors = 0;
                for result in results {
                    match result.unwrap_err() {
                        EngineError::Tile { source, .. } | EngineError::Commit { source, .. } => {
                            // Commits come late: a tile after the array may have failed before.
                            assert!(source == first || stage == Stage::Commit && source == later);
                            local_errors += 1;
                        }
                        EngineError::Core(CoreError::RankFailed { message, .. }) => {
                            assert!(
                                message == first.to_string() || stage == Stage::Commit && message == later.to_string()
                            );
                        }
                        other => panic!("{other:?}"),
                    }
                }
                assert_eq!(local_errors, 1, "{first:?} on {ranks} ranks");
            }
        }
    }
}

#[test]
fn a_refused_write_comes_out() {
    let plan = mixed();
    let work = Pattern::of(&plan);
    let refuse_at = Some(START + 1000);
    for placement in [Placement::Ordered, Placement::Unordered] {
        let sink = Memory { refuse_at, ..Memory::default() };
        match run(&plan, &work, &sink, &options(3, placement, 300), BUDGET).unwrap_err() {
            EngineError::Write { address, len_bytes, source } => {
                assert!(address <= START + 1000 && START + 1000 < address + len_bytes);
                assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
            }
            other => panic!("{other:?}"),
        }
    }
    let sink = Memory { refuse_at, ..Memory::default() };
    let results = Threads::run(3, |communicator| {
        run_on(communicator, &plan, &work, &sink, &options(2, Placement::Ordered, 300), BUDGET).map(|_| ())
    });
    let local_errors = results.iter().filter(|r| matches!(r, Err(EngineError::Write { .. }))).count();
    let others = results.iter().filter(|r| matches!(r, Err(EngineError::Core(CoreError::RankFailed { .. })))).count();
    assert_eq!((local_errors, others), (1, 2));
}

#[test]
fn a_panic_in_the_work_is_an_error() {
    let plan = mixed();
    let panic_at = (0..37).map(|index| Tile { array: 17, index }).find(|tile| hash(*tile) % 7 != 3);
    let work = Pattern { panic_at, ..Pattern::of(&plan) };
    match run(&plan, &work, &Memory::default(), &options(3, Placement::Ordered, 300), BUDGET).unwrap_err() {
        EngineError::Panicked { message } => assert!(message.contains("asked to panic"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_panic_of_the_caller_stops_the_workers() {
    let plan = mixed();
    let work = Pattern::of(&plan);
    let caught = std::panic::catch_unwind(|| {
        let (budget, cancel) = (MemoryBudget::new(BUDGET), CancelToken::new());
        let context = Context { communicator: &SingleProcess, budget: &budget, observer: &Silent, cancel: &cancel };
        let mut commit = |done: PlacedArray<'_>| {
            assert!(done.array < 5, "enough");
            Ok(())
        };
        Execution::new(&plan, &work, &Memory::default())
            .commit(&mut commit)
            .run(&options(2, Placement::Ordered, 300), &context)
            .is_ok()
    });
    assert!(caught.is_err());
}

#[test]
fn cancelling_stops_at_any_moment() {
    let plan = mixed();
    for stop_after in [0, 1, 5, 20] {
        for ranks in [1, 3] {
            let work = Pattern::of(&plan);
            let sink = Memory::default();
            let results = Threads::run(ranks, |communicator| {
                let (budget, cancel) = (MemoryBudget::new(BUDGET), CancelToken::new());
                let batches = std::sync::atomic::AtomicU64::new(0);
                // Only the last rank is cancelled; all must stop.
                let last = communicator.rank() + 1 == ranks;
                let observer = |event: &Event| {
                    let encoded = matches!(event, Event::Advanced { stage: Stage::Encode, .. });
                    if last && encoded && batches.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= stop_after {
                        cancel.cancel();
                    }
                };
                let context = Context { communicator, budget: &budget, observer: &observer, cancel: &cancel };
                Execution::new(&plan, &work, &sink)
                    .commit(&mut |_| Ok(()))
                    .run(&options(2, Placement::Ordered, 50), &context)
            });
            for result in results {
                assert!(result.unwrap_err().is_cancelled());
            }
        }
    }
}

#[test]
fn stored_forms_beyond_their_bound_are_refused() {
    let plan = Plan { arrays: vec![array(3, 100)] };
    let work = Pattern { tile_lens: vec![0], ..Pattern::default() };
    let error = run(&plan, &work, &Memory::default(), &options(1, Placement::Ordered, 300), BUDGET).unwrap_err();
    assert!(matches!(error, EngineError::Bound { bound_bytes: 0, .. }), "{error:?}");
}

#[test]
fn addresses_that_overflow_are_refused() {
    let plan = mixed();
    let work = Pattern::of(&plan);
    for placement in [Placement::Ordered, Placement::Unordered] {
        let options = EngineOptions { start_address: u64::MAX - 100, ..options(2, placement, 300) };
        let results =
            Threads::run(1, |one| run_on(one, &plan, &work, &Memory::default(), &options, BUDGET).map(|_| ()));
        assert!(matches!(results[0], Err(EngineError::AddressOverflow)), "{results:?}");
    }
    let options = EngineOptions { start_address: u64::MAX - 100, ..options(2, Placement::Ordered, 300) };
    let sink = Memory::default();
    let results = Threads::run(2, |ranks| run_on(ranks, &plan, &work, &sink, &options, BUDGET).map(|_| ()));
    assert!(matches!(results[0], Err(EngineError::AddressOverflow)), "{results:?}");
    assert!(matches!(results[1], Err(EngineError::Core(CoreError::RankFailed { rank: 0, .. }))), "{results:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn an_error_anywhere_never_hangs(
        tiles in 1u64..60,
        at in any::<prop::sample::Index>(),
        stage in prop::sample::select(vec![Stage::Read, Stage::Regroup, Stage::Encode]),
        jobs in 1usize..5,
        ranks in 1usize..4,
    ) {
        let plan = Plan { arrays: vec![array(tiles, 70), array(tiles, 30)] };
        let ordinal = at.index(2 * tiles as usize) as u64;
        let tile = plan.tile(ordinal).unwrap();
        prop_assume!(stage == Stage::Read || hash(tile) % 7 != 3);
        let refused = Refused { array: tile.array, index: tile.index, stage };
        let work = Pattern { refuse: Some(refused.clone()), ..Pattern::of(&plan) };
        let sink = Memory::default();
        let results = Threads::run(ranks, |communicator| {
            run_on(communicator, &plan, &work, &sink, &options(jobs, Placement::Ordered, 100), BUDGET).map(|_| ())
        });
        let local_errors = results.iter().filter(|r| matches!(r, Err(EngineError::Tile { source, .. }) if *source == refused));
        prop_assert_eq!(local_errors.count(), 1);
        prop_assert!(results.iter().all(Result::is_err));
    }
}
