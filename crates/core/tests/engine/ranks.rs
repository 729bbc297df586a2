//! Several ranks produce the same bytes and claims as one.

use crate::work::*;
use proptest::prelude::*;
use raddle_core::CoreError;
use raddle_core::cancel::CancelToken;
use raddle_core::engine::{Context, DryRun, EngineError, EngineOptions, Execution, Placement, TileWork, dry_run};
use raddle_core::memory::MemoryBudget;
use raddle_core::plan::{Plan, Tile};
use raddle_core::ranks::threads::Threads;
use raddle_core::report::progress::{Silent, Stage};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;

#[test]
fn ranks_give_the_bytes_and_claims_of_one() {
    let plan = mixed();
    let work = Pattern { home: true, ..Pattern::of(&plan) };
    let (bytes, arrays) = expected(&plan, &work);
    for ranks in 1..=4 {
        for jobs in [1, 3] {
            // The smallest budget leaves room for one or two batches per round.
            for (batch_len, budget) in [(1, BUDGET), (5000, BUDGET), (5000, 1 << 20), (100_000, 4 << 20)] {
                let sink = Memory::default();
                let results = Threads::run(ranks, |communicator| {
                    let options = options(jobs, Placement::Ordered, batch_len);
                    run_on(communicator, &plan, &work, &sink, &options, budget).unwrap()
                });
                let case = format!("{ranks} ranks, {jobs} jobs, batches of {batch_len}, budget {budget}");
                assert_eq!(sink.bytes(START), bytes, "{case}");
                // Each rank has placed exactly the tiles that the dry run assigns to it.
                let options = options(jobs, Placement::Ordered, batch_len);
                let DryRun { schedule, .. } = dry_run(&plan, &work, ranks, &options, budget).unwrap();
                let index = plan.tile_index();
                let stored: HashMap<Tile, u64> =
                    arrays.iter().flat_map(|array| &array.1).map(|claim| (claim.tile, claim.len_bytes)).collect();
                for rank in 0..ranks {
                    let owned = schedule.owned_by(rank, 0..schedule.batches.len());
                    let tiles = owned.flat_map(|at| index.tiles_in(&schedule.batches[at]).collect::<Vec<_>>());
                    let assigned: u64 = tiles.filter_map(|tile| stored.get(&tile)).sum();
                    let placed =
                        results[0].1.stages.iter().filter(|s| (s.rank, s.stage) == (rank as u32, Stage::Place));
                    assert_eq!(placed.map(|stage| stage.bytes).sum::<u64>(), assigned, "{case}, rank {rank}");
                }
                for (rank, (committed, report)) in results.iter().enumerate() {
                    assert_eq!(*committed, if rank == 0 { arrays.clone() } else { vec![] }, "{case}");
                    assert_eq!(report.end_address, START + bytes.len() as u64);
                    assert_eq!(report.fill_tiles, arrays.iter().map(|a| a.2).sum::<u64>(), "{case}");
                    let placed = report.stages.iter().filter(|s| s.stage == Stage::Place).map(|s| s.bytes);
                    assert_eq!(placed.sum::<u64>(), bytes.len() as u64, "{case}");
                }
            }
        }
    }
}

#[test]
fn pieces_of_other_ranks_are_sent_to_the_owners() {
    let plan = Plan { arrays: vec![array(40, 100), array(7, 3000)] };
    let work = ReceivedPieces::new(&plan);
    for ranks in [2, 3] {
        let sink = Memory::default();
        let budget_len = 2 << 20;
        Threads::run(ranks, |communicator| {
            let work = ReceivedPieces { inbox: Mutex::default(), ..ReceivedPieces::new(&plan) };
            let budget = MemoryBudget::new(budget_len);
            let cancel = CancelToken::new();
            let context = Context { communicator, budget: &budget, observer: &Silent, cancel: &cancel };
            let options = options(2, Placement::Ordered, 1000);
            Execution::new(&plan, &work, &sink).commit(&mut |_| Ok(())).run(&options, &context).unwrap();
        });
        let mut want = Vec::new();
        for (array, shape) in (0u32..).zip(&plan.arrays) {
            for index in 0..shape.tile_count() {
                want.extend(work.tile(Tile { array, index }, ranks));
            }
        }
        assert_eq!(sink.bytes(START), want);
    }
}

#[test]
fn ranks_with_different_plans_or_too_little_memory_refuse() {
    let plan = mixed();
    let work = Pattern::of(&plan);
    let sink = Memory::default();
    let results = Threads::run(3, |communicator| {
        let start_address = START + communicator.rank() as u64 / 2;
        let options = EngineOptions { start_address, ..options(1, Placement::Ordered, 700) };
        run_on(communicator, &plan, &work, &sink, &options, BUDGET).map(|_| ())
    });
    assert!(results.iter().all(|r| matches!(r, Err(EngineError::Core(CoreError::PlansDiffer { rank: 2 })))));
    let results = Threads::run(3, |communicator| {
        let budget = if communicator.rank() == 1 { 1000 } else { BUDGET };
        run_on(communicator, &plan, &work, &sink, &options(1, Placement::Ordered, 700), budget).map(|_| ())
    });
    for (rank, result) in results.iter().enumerate() {
        match result {
            Err(EngineError::Core(CoreError::Memory { .. })) => assert_eq!(rank, 1),
            Err(EngineError::Core(CoreError::RankFailed { rank: 1, .. })) => assert_ne!(rank, 1),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn few_owners_give_the_same_bytes() {
    let plan = mixed();
    let work = Pattern::of(&plan);
    let (want, _) = expected(&plan, &work);
    for owners in 1..=4 {
        let sink = Memory::default();
        let options = EngineOptions { owners: NonZeroUsize::new(owners), ..options(1, Placement::Ordered, 700) };
        Threads::run(4, |communicator| {
            run_on(communicator, &plan, &work, &sink, &options, BUDGET).map(|_| ()).unwrap();
        });
        assert_eq!(sink.bytes(START), want);
    }
}

#[test]
fn several_files_have_their_own_addresses() {
    let plan = mixed();
    let work = Pattern { arrays_per_file: Some(9), ..Pattern::of(&plan) };
    for ranks in 1..=3 {
        for placement in [Placement::Ordered, Placement::Unordered] {
            let sink = Memory::default();
            let results = Threads::run(ranks, |communicator| {
                run_on(communicator, &plan, &work, &sink, &options(2, placement, 5000), BUDGET).unwrap()
            });
            let (arrays, report) = &results[0];
            let mut stored_len_bytes = 0;
            for file in 0..=work.file(plan.arrays.len() as u32 - 1) {
                let bytes = sink.bytes_of(file, START);
                stored_len_bytes += bytes.len() as u64;
                // Written alone, the arrays of the file must be identical.
                let (mut alone, mut alone_arrays) = expected(&plan, &work);
                alone_arrays.retain(|(array, ..)| work.file(*array) == file);
                let first = alone_arrays.iter().flat_map(|a| &a.1).next().map_or(START, |claim| claim.address);
                alone.drain(..(first - START) as usize);
                for (array, claims, fill) in &alone_arrays {
                    let got = &arrays[*array as usize];
                    assert_eq!((got.0, got.1.len(), got.2), (*array, claims.len(), *fill));
                    for (got, want) in got.1.iter().zip(claims) {
                        assert_eq!(got.tile, want.tile);
                        assert!(placement == Placement::Unordered || got.address == want.address - first + START);
                        let stored = &bytes[(got.address - START) as usize..][..got.len_bytes as usize];
                        assert_eq!(stored, &alone[(want.address - first) as usize..][..want.len_bytes as usize]);
                    }
                }
            }
            assert_eq!(report.stored_len_bytes, stored_len_bytes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_plan_gives_the_same_bytes_on_any_threads_and_ranks(
        shapes in prop::collection::vec((0u64..20, 1u64..400), 0..12),
        jobs in 1usize..8,
        ranks in 1usize..5,
        batch_len in 1u64..3000,
        budget in prop::sample::select(vec![2u64 << 20, 16 << 20]),
        home in any::<bool>(),
    ) {
        let plan = Plan { arrays: shapes.iter().map(|(tiles, len)| array(*tiles, *len)).collect() };
        let work = Pattern { home, ..Pattern::of(&plan) };
        let (bytes, arrays) = expected(&plan, &work);
        let sink = Memory::default();
        let results = Threads::run(ranks, |communicator| {
            run_on(communicator, &plan, &work, &sink, &options(jobs, Placement::Ordered, batch_len), budget).unwrap()
        });
        prop_assert_eq!(sink.bytes(START), bytes);
        prop_assert_eq!(&results[0].0, &arrays);
    }
}
