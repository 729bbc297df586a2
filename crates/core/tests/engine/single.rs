//! One rank: bytes, claims and memory, for any number of threads.

use crate::work::*;
use raddle_core::CoreError;
use raddle_core::cancel::CancelToken;
use raddle_core::engine::{Claim, Context, EngineError, Execution, PlacedArray, Placement};
use raddle_core::memory::MemoryBudget;
use raddle_core::plan::{ArrayPlan, Plan, Tile};
use raddle_core::ranks::communicator::SingleProcess;
use raddle_core::ranks::threads::Threads;
use raddle_core::report::progress::{Event, Stage};

#[test]
fn ordered_bytes_and_claims_do_not_depend_on_threads_or_batches() {
    let plan = mixed();
    let work = Pattern::of(&plan);
    let (bytes, arrays) = expected(&plan, &work);
    for jobs in 1..=8 {
        for batch_len in [1, 1000, 100_000] {
            let ran =
                run(&plan, &work, &Memory::default(), &options(jobs, Placement::Ordered, batch_len), BUDGET).unwrap();
            assert_eq!(ran.bytes, bytes, "{jobs} jobs, batches of {batch_len}");
            assert_eq!(ran.arrays, arrays, "{jobs} jobs, batches of {batch_len}");
            assert_eq!(ran.report.end_address, START + bytes.len() as u64);
            assert_eq!(ran.report.stored_len_bytes, bytes.len() as u64);
            assert_eq!(ran.report.tiles, plan.tile_count());
            assert_eq!(ran.report.fill_tiles, arrays.iter().map(|a| a.2).sum::<u64>());
            assert!(ran.report.verbatim_tiles > 0);
        }
    }
}

#[test]
fn unordered_tiles_have_the_same_bytes_at_other_addresses() {
    let plan = mixed();
    let work = Pattern { slow_at: Some(Tile { array: 2, index: 0 }), ..Pattern::of(&plan) };
    let (bytes, arrays) = expected(&plan, &work);
    let ran = run(&plan, &work, &Memory::default(), &options(4, Placement::Unordered, 500), BUDGET).unwrap();
    assert_eq!(ran.bytes.len(), bytes.len());
    assert_eq!(ran.arrays.len(), arrays.len());
    let at =
        |bytes: &[u8], claim: &Claim| bytes[(claim.address - START) as usize..][..claim.len_bytes as usize].to_vec();
    for (got, want) in ran.arrays.iter().zip(&arrays) {
        assert_eq!((got.0, got.1.len(), got.2), (want.0, want.1.len(), want.2));
        for (got, want) in got.1.iter().zip(&want.1) {
            assert_eq!((got.tile, got.filter_mask), (want.tile, want.filter_mask));
            assert_eq!(at(&ran.bytes, got), at(&bytes, want));
        }
    }
}

#[test]
fn a_commit_that_lags_holds_the_workers_back() {
    // 300,000 tiles of one element: more than may be in flight.
    let plan = Plan { arrays: (0..300).map(|_| array(1000, 1)).collect() };
    let work = Pattern::of(&plan);
    let encoded = std::sync::atomic::AtomicU64::new(0);
    let observer = |event: &Event| {
        if let Event::Advanced { stage: Stage::Encode, items, .. } = event {
            encoded.fetch_add(*items, std::sync::atomic::Ordering::SeqCst);
        }
    };
    let (budget, cancel) = (MemoryBudget::new(BUDGET), CancelToken::new());
    let context = Context { communicator: &SingleProcess, budget: &budget, observer: &observer, cancel: &cancel };
    let mut committed = 0;
    let mut max_ahead = 0;
    let mut commit = |_: PlacedArray<'_>| {
        if committed < 3000 {
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        committed += 1000;
        max_ahead = max_ahead.max(encoded.load(std::sync::atomic::Ordering::SeqCst) - (committed - 1000));
        Ok(())
    };
    let report = Execution::new(&plan, &work, &Memory::default())
        .commit(&mut commit)
        .run(&options(4, Placement::Ordered, 4096), &context)
        .unwrap();
    assert_eq!((committed, report.tiles), (300_000, 300_000));
    assert!(max_ahead <= 64 * 1024 + 4096, "{max_ahead} tiles ahead of the commit");
}

#[test]
fn too_little_memory_means_fewer_workers_then_a_clear_error() {
    let plan = Plan { arrays: vec![array(64, 1 << 20)] };
    let work = Pattern::of(&plan);
    let ran = |budget| run(&plan, &work, &Memory::default(), &options(8, Placement::Ordered, 1 << 20), budget);
    assert_eq!(ran(BUDGET).unwrap().report.jobs, 8);
    let few = ran(5 << 20).unwrap();
    assert_eq!(few.report.jobs, 2);
    assert_eq!(few.bytes, ran(BUDGET).unwrap().bytes);
    match ran(1 << 20).unwrap_err() {
        EngineError::Core(CoreError::Memory { needed_bytes, limit_bytes, .. }) => {
            assert_eq!(limit_bytes, 1 << 20);
            assert_eq!(ran(needed_bytes).unwrap().report.jobs, 1);
            assert!(ran(needed_bytes - 1).is_err());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_empty_plan_is_done_at_once() {
    for arrays in [vec![], vec![ArrayPlan::untiled(); 3]] {
        let plan = Plan { arrays };
        for ranks in [1, 3] {
            let work = Pattern::of(&plan);
            let sink = Memory::default();
            let results = Threads::run(ranks, |communicator| {
                run_on(communicator, &plan, &work, &sink, &options(2, Placement::Ordered, 300), BUDGET).unwrap()
            });
            assert_eq!(results[0].0.len(), plan.arrays.len());
            assert_eq!(results[0].1.end_address, START);
        }
    }
}
