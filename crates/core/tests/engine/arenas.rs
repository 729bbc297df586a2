//! Tiles placed in arenas: the same addresses for any number of threads and ranks, and no stripe shared by two ranks.

use crate::work::*;
use proptest::prelude::*;
use raddle_core::engine::{EngineOptions, Placement};
use raddle_core::output::arenas::Arenas;
use raddle_core::plan::Plan;
use raddle_core::ranks::threads::Threads;
use std::collections::{BTreeMap, BTreeSet};

/// Runs of each rank, and the claims and end address of the first rank.
struct Placed {
    ranks: Vec<BTreeMap<u64, Vec<u8>>>,
    arrays: Arrays,
    end_address: u64,
    unused_len_bytes: u64,
}

fn place(plan: &Plan, work: &Pattern, ranks: usize, options: &EngineOptions, budget: u64) -> Placed {
    let results = Threads::run(ranks, |communicator| {
        let sink = Memory::default();
        let (arrays, report) = run_on(communicator, plan, work, &sink, options, budget).unwrap();
        let runs = sink.runs.into_inner().unwrap().into_iter().map(|((_, address), run)| (address, run)).collect();
        (runs, arrays, report)
    });
    let (_, arrays, report) = results[0].clone();
    Placed {
        ranks: results.into_iter().map(|result| result.0).collect(),
        arrays,
        end_address: report.end_address,
        unused_len_bytes: report.unused_len_bytes,
    }
}

impl Placed {
    /// Returns the file, with zeros where nothing was written.
    fn file(&self) -> Vec<u8> {
        let mut file = vec![0; self.end_address as usize];
        for (address, run) in self.ranks.iter().flatten() {
            file[*address as usize..][..run.len()].copy_from_slice(run);
        }
        file
    }

    /// Returns the stripes that each rank writes to.
    fn stripes(&self, stripe_len_bytes: u64) -> Vec<BTreeSet<u64>> {
        let of_run = |(address, run): (&u64, &Vec<u8>)| {
            address / stripe_len_bytes..=(address + run.len() as u64 - 1) / stripe_len_bytes
        };
        self.ranks.iter().map(|runs| runs.iter().flat_map(of_run).collect()).collect()
    }
}

/// Compares the placed values with the expected tiles, whatever their addresses.
fn check_values(placed: &Placed, plan: &Plan, work: &Pattern) {
    let (file, (bytes, arrays)) = (placed.file(), expected(plan, work));
    assert_eq!(placed.arrays.len(), arrays.len());
    for (got, want) in placed.arrays.iter().zip(&arrays) {
        assert_eq!((got.0, got.1.len(), got.2), (want.0, want.1.len(), want.2));
        for (got, want) in got.1.iter().zip(&want.1) {
            assert_eq!((got.tile, got.len_bytes, got.filter_mask), (want.tile, want.len_bytes, want.filter_mask));
            let stored = &file[got.address as usize..][..got.len_bytes as usize];
            assert_eq!(stored, &bytes[(want.address - START) as usize..][..want.len_bytes as usize]);
        }
    }
    let span = if bytes.is_empty() { 0 } else { placed.end_address - START };
    assert_eq!(placed.unused_len_bytes, span - bytes.len() as u64);
}

#[test]
fn places_do_not_depend_on_ranks_threads_or_memory_and_ranks_share_no_stripe() {
    let plan = mixed();
    let work = Pattern { home: true, ..Pattern::of(&plan) };
    let arenas = Arenas { stripe_len_bytes: 512, arena_len_bytes: 2048, lanes: 4 };
    let options = |jobs| EngineOptions { arenas: Some(arenas), ..options(jobs, Placement::Ordered, 700) };
    let alone = place(&plan, &work, 1, &options(1), BUDGET);
    check_values(&alone, &plan, &work);
    for (ranks, jobs, budget) in [(1, 3, BUDGET), (2, 1, BUDGET), (3, 2, 1 << 20), (4, 3, BUDGET), (6, 1, BUDGET)] {
        let case = format!("{ranks} ranks, {jobs} jobs, budget {budget}");
        let placed = place(&plan, &work, ranks, &options(jobs), budget);
        assert_eq!((placed.file(), &placed.arrays), (alone.file(), &alone.arrays), "{case}");
        let stripes = placed.stripes(arenas.stripe_len_bytes);
        assert!(stripes.iter().all(|local| !local.is_empty()), "{case}: a rank writes nothing");
        let all: BTreeSet<_> = stripes.iter().flatten().collect();
        let shared = stripes.iter().map(BTreeSet::len).sum::<usize>() - all.len();
        // Six ranks are more than there are lanes.
        assert_eq!(shared == 0, ranks <= 4, "{case}: {shared} shared");
    }
    // Without arenas ranks do share stripes: the assertion above can fail.
    let dense = place(&plan, &work, 3, &crate::work::options(1, Placement::Ordered, 700), BUDGET);
    let stripes = dense.stripes(arenas.stripe_len_bytes);
    let all: BTreeSet<_> = stripes.iter().flatten().collect();
    assert!(stripes.iter().map(BTreeSet::len).sum::<usize>() > all.len());
}

#[test]
fn tiles_that_are_placed_at_once_lie_in_arenas_too() {
    let plan = mixed();
    let work = Pattern::of(&plan);
    let arenas = Some(Arenas { stripe_len_bytes: 100, arena_len_bytes: 1000, lanes: 8 });
    let options = EngineOptions { arenas, ..options(3, Placement::Unordered, 700) };
    check_values(&place(&plan, &work, 1, &options, BUDGET), &plan, &work);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_plan_is_placed_alike_by_any_ranks(
        shapes in prop::collection::vec((0u64..20, 1u64..400), 0..12),
        jobs in 1usize..5,
        ranks in 1usize..5,
        batch_len in 1u64..3000,
        stripe_len_bytes in 1u64..600,
        stripes in 1u64..4,
        lanes in 1u32..6,
    ) {
        let plan = Plan { arrays: shapes.iter().map(|(tiles, len)| array(*tiles, *len)).collect() };
        let work = Pattern::of(&plan);
        let arenas = Some(Arenas { stripe_len_bytes, arena_len_bytes: stripe_len_bytes * stripes, lanes });
        let options = |jobs| EngineOptions { arenas, ..options(jobs, Placement::Ordered, batch_len) };
        let alone = place(&plan, &work, 1, &options(1), BUDGET);
        check_values(&alone, &plan, &work);
        let placed = place(&plan, &work, ranks, &options(jobs), BUDGET);
        prop_assert_eq!((placed.file(), &placed.arrays), (alone.file(), &alone.arrays));
    }
}
