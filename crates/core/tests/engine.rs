//! The engine on synthetic work: bytes and claims must not depend on threads, errors must come out, memory must hold.

use proptest::prelude::*;
use raddle_core::CoreError;
use raddle_core::cancel::CancelToken;
use raddle_core::communicator::{Communicator, SingleProcess};
use raddle_core::engine::{
    Claim, Committed, Context, EngineError, EngineOptions, EngineReport, Placement, Round, Sink, TileForm, TileWork,
    execute,
};
use raddle_core::memory::MemoryBudget;
use raddle_core::plan::{ArrayPlan, Plan, Tile};
use raddle_core::progress::{Event, Silent, Stage};
use raddle_core::regroup::{Inbox, Outbox};
use raddle_core::threads::Threads;
use std::collections::BTreeMap;
use std::sync::Mutex;

#[derive(Debug, thiserror::Error, PartialEq, Clone)]
#[error("tile {index} of array {array}: {stage}")]
struct Refused {
    array: u32,
    index: u64,
    stage: Stage,
}

/// Fills tiles with a pattern of their number; "encodes" by keeping a prefix whose length depends on the tile.
#[derive(Debug, Default)]
struct Pattern {
    element_lens: Vec<usize>,
    refuse: Option<Refused>,
    refuse_too: Option<Refused>,
    /// Tiles prefer a rank.
    home: bool,
    panic_at: Option<Tile>,
    slow_at: Option<Tile>,
}

fn hash(tile: Tile) -> u64 {
    (u64::from(tile.array) << 32 | tile.index).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Pattern {
    fn of(plan: &Plan) -> Self {
        Self { element_lens: plan.arrays.iter().map(|a| a.tile_len_bytes() as usize).collect(), ..Self::default() }
    }

    fn meet(&self, tile: Tile, stage: Stage) -> Result<(), Refused> {
        for refused in [&self.refuse, &self.refuse_too].into_iter().flatten() {
            if (refused.array, refused.index, refused.stage) == (tile.array, tile.index, stage) {
                return Err(refused.clone());
            }
        }
        Ok(())
    }
}

impl TileWork for Pattern {
    type Error = Refused;
    type Worker = ();

    fn worker(&self) -> Result<(), Refused> {
        Ok(())
    }

    fn verbatim(&self, (): &mut (), tile: Tile, stored: &mut Vec<u8>) -> Result<Option<TileForm>, Refused> {
        self.meet(tile, Stage::Read)?;
        if hash(tile) % 7 == 3 {
            stored.extend_from_slice(&hash(tile).to_le_bytes()[..1]);
            return Ok(Some(TileForm::Stored { filter_mask: 1 }));
        }
        // What is appended and then not used must not end up in the output.
        stored.push(0xEE);
        Ok(None)
    }

    fn assemble(&self, (): &mut (), tile: Tile, raw: &mut [u8]) -> Result<(), Refused> {
        self.meet(tile, Stage::Regroup)?;
        assert_ne!(self.panic_at, Some(tile), "asked to panic");
        if self.slow_at == Some(tile) {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        for (byte, at) in raw.iter_mut().zip(0u64..) {
            *byte = (hash(tile) >> 40).wrapping_add(at) as u8;
        }
        Ok(())
    }

    fn encode(&self, (): &mut (), tile: Tile, raw: &[u8], stored: &mut Vec<u8>) -> Result<TileForm, Refused> {
        self.meet(tile, Stage::Encode)?;
        if hash(tile) % 5 == 1 {
            return Ok(TileForm::Fill);
        }
        let keep = 1 + hash(tile) as usize % raw.len();
        stored.extend_from_slice(&raw[..keep]);
        Ok(TileForm::Stored { filter_mask: 0 })
    }

    fn stored_bound_len_bytes(&self, tile: Tile) -> usize {
        self.element_lens[tile.array as usize]
    }

    fn home(&self, tile: Tile) -> Option<usize> {
        self.home.then_some(hash(tile) as usize % 3)
    }
}

/// Tiles of which every rank holds a part in memory.
#[derive(Debug)]
struct Brought {
    tile_lens: Vec<usize>,
    inbox: Mutex<Vec<Inbox>>,
}

impl Brought {
    fn new(plan: &Plan) -> Self {
        let tile_lens = plan.arrays.iter().map(|a| a.tile_len_bytes() as usize).collect();
        Self { tile_lens, inbox: Mutex::default() }
    }

    /// What rank `rank` of `ranks` holds of a tile: first element and elements.
    fn held(&self, tile: Tile, rank: usize, ranks: usize) -> (u64, Vec<u8>) {
        let len = self.tile_lens[tile.array as usize];
        let (from, to) = (len * rank / ranks, len * (rank + 1) / ranks);
        (from as u64, (from..to).map(|at| (hash(tile) >> 30) as u8 ^ at as u8).collect())
    }

    fn tile(&self, tile: Tile, ranks: usize) -> Vec<u8> {
        (0..ranks).flat_map(|rank| self.held(tile, rank, ranks).1).collect()
    }
}

impl TileWork for Brought {
    type Error = Refused;
    type Worker = ();

    fn worker(&self) -> Result<(), Refused> {
        Ok(())
    }

    fn bring(&self, round: &Round<'_>, communicator: &dyn Communicator) -> Result<(), Refused> {
        let (rank, ranks) = (communicator.rank(), communicator.size());
        let mut outbox = Outbox::new(ranks, 1);
        for (tile, owner) in round.tiles() {
            let (from, bytes) = self.held(tile, rank, ranks);
            outbox.put(owner, tile, &[from], &[bytes.len() as u64], &bytes).unwrap();
        }
        self.inbox.lock().unwrap().push(outbox.exchange(communicator).unwrap());
        Ok(())
    }

    fn brought_len_bytes(&self, tile: Tile) -> u64 {
        self.tile_lens[tile.array as usize] as u64
    }

    fn assemble(&self, (): &mut (), tile: Tile, raw: &mut [u8]) -> Result<(), Refused> {
        raw.fill(0xFF);
        for inbox in self.inbox.lock().unwrap().iter() {
            for piece in inbox.pieces(tile) {
                raw[piece.target[0] as usize..][..piece.bytes.len()].copy_from_slice(piece.bytes);
            }
        }
        Ok(())
    }

    fn encode(&self, (): &mut (), _: Tile, raw: &[u8], stored: &mut Vec<u8>) -> Result<TileForm, Refused> {
        stored.extend_from_slice(raw);
        Ok(TileForm::Stored { filter_mask: 0 })
    }

    fn stored_bound_len_bytes(&self, tile: Tile) -> usize {
        self.tile_lens[tile.array as usize]
    }
}

/// A file in memory that checks that nothing is written twice.
#[derive(Debug, Default)]
struct Memory {
    runs: Mutex<BTreeMap<u64, Vec<u8>>>,
    refuse_at: Option<u64>,
}

impl Sink for Memory {
    fn write_at(&self, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        if self.refuse_at.is_some_and(|at| address <= at && at < address + bytes.len() as u64) {
            return Err(std::io::Error::from(std::io::ErrorKind::StorageFull));
        }
        assert!(self.runs.lock().unwrap().insert(address, bytes.to_vec()).is_none());
        Ok(())
    }
}

impl Memory {
    /// All bytes; panics if runs overlap or leave a gap.
    fn bytes(&self, start: u64) -> Vec<u8> {
        let mut all = Vec::new();
        for (address, run) in self.runs.lock().unwrap().iter() {
            assert_eq!(*address, start + all.len() as u64);
            all.extend_from_slice(run);
        }
        all
    }
}

const START: u64 = 2048;

#[derive(Debug)]
struct Ran {
    bytes: Vec<u8>,
    arrays: Vec<(u32, Vec<Claim>, u64)>,
    report: EngineReport,
}

fn run(
    plan: &Plan,
    work: &Pattern,
    sink: &Memory,
    options: &EngineOptions,
    budget_len: u64,
) -> Result<Ran, EngineError<Refused>> {
    let ran = run_on(&SingleProcess, plan, work, sink, options, budget_len);
    ran.map(|(arrays, report)| Ran { bytes: sink.bytes(START), arrays, report })
}

type Arrays = Vec<(u32, Vec<Claim>, u64)>;

/// One rank's part; the budget must be whole again however it ends.
fn run_on(
    communicator: &dyn Communicator,
    plan: &Plan,
    work: &Pattern,
    sink: &Memory,
    options: &EngineOptions,
    budget_len: u64,
) -> Result<(Arrays, EngineReport), EngineError<Refused>> {
    let budget = MemoryBudget::new(budget_len);
    let cancel = CancelToken::new();
    let context = Context { communicator, budget: &budget, observer: &Silent, cancel: &cancel };
    let mut arrays = Vec::new();
    let mut commit = |done: Committed<'_>| {
        assert_eq!(communicator.rank(), 0);
        work.meet(Tile { array: done.array, index: u64::MAX }, Stage::Commit)?;
        arrays.push((done.array, done.claims.to_vec(), done.fill_tiles));
        Ok(())
    };
    let outcome = execute(plan, work, sink, &mut commit, options, &context);
    assert_eq!(budget.used_bytes(), 0);
    assert!(budget.peak_bytes() <= budget_len);
    outcome.map(|report| (arrays, report))
}

fn options(jobs: usize, placement: Placement, batch_len_bytes: u64) -> EngineOptions {
    EngineOptions { jobs, placement, start_address: START, batch_len_bytes }
}

fn array(tiles: u64, tile_elements: u64) -> ArrayPlan {
    ArrayPlan {
        shape: vec![tiles * tile_elements],
        tile_shape: vec![tile_elements],
        element_len_bytes: 1,
        segments: vec![],
    }
}

fn mixed() -> Plan {
    let mut arrays = vec![ArrayPlan::untiled()];
    for number in 0..60 {
        arrays.push(array(number * 5 % 37, 1 + number * 13 % 300));
    }
    arrays.push(ArrayPlan::untiled());
    Plan { arrays }
}

const BUDGET: u64 = 64 << 20;

/// What the engine must give, made without it.
fn expected(plan: &Plan, work: &Pattern) -> (Vec<u8>, Arrays) {
    let (mut bytes, mut arrays) = (Vec::new(), Vec::new());
    for (array, shape) in (0u32..).zip(&plan.arrays) {
        let (mut claims, mut fill) = (Vec::new(), 0);
        for index in 0..shape.tile_count() {
            let tile = Tile { array, index };
            let mut stored = Vec::new();
            let form = match work.verbatim(&mut (), tile, &mut stored).unwrap() {
                Some(form) => form,
                None => {
                    stored.clear();
                    let mut raw = vec![0; shape.tile_len_bytes() as usize];
                    work.assemble(&mut (), tile, &mut raw).unwrap();
                    work.encode(&mut (), tile, &raw, &mut stored).unwrap()
                }
            };
            match form {
                TileForm::Fill => fill += 1,
                TileForm::Stored { filter_mask } => claims.push(Claim {
                    tile,
                    address: START + bytes.len() as u64,
                    len_bytes: stored.len() as u64,
                    filter_mask,
                }),
            }
            bytes.append(&mut stored);
        }
        arrays.push((array, claims, fill));
    }
    (bytes, arrays)
}

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
fn pieces_of_other_ranks_are_brought_to_the_owners() {
    let plan = Plan { arrays: vec![array(40, 100), array(7, 3000)] };
    let work = Brought::new(&plan);
    for ranks in [2, 3] {
        let sink = Memory::default();
        let budget_len = 2 << 20;
        Threads::run(ranks, |communicator| {
            let work = Brought { inbox: Mutex::default(), ..Brought::new(&plan) };
            let budget = MemoryBudget::new(budget_len);
            let cancel = CancelToken::new();
            let context = Context { communicator, budget: &budget, observer: &Silent, cancel: &cancel };
            let options = options(2, Placement::Ordered, 1000);
            execute(&plan, &work, &sink, &mut |_| Ok(()), &options, &context).unwrap();
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
                let mut own = 0;
                for result in results {
                    match result.unwrap_err() {
                        EngineError::Tile { source, .. } | EngineError::Commit { source, .. } => {
                            // Commits come late: a tile behind the array may have failed before.
                            assert!(source == first || stage == Stage::Commit && source == later);
                            own += 1;
                        }
                        EngineError::Core(CoreError::RankFailed { message, .. }) => {
                            assert!(
                                message == first.to_string() || stage == Stage::Commit && message == later.to_string()
                            );
                        }
                        other => panic!("{other:?}"),
                    }
                }
                assert_eq!(own, 1, "{first:?} on {ranks} ranks");
            }
        }
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
    let own = results.iter().filter(|r| matches!(r, Err(EngineError::Write { .. }))).count();
    let others = results.iter().filter(|r| matches!(r, Err(EngineError::Core(CoreError::RankFailed { .. })))).count();
    assert_eq!((own, others), (1, 2));
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
        let mut commit = |done: Committed<'_>| {
            assert!(done.array < 5, "enough");
            Ok(())
        };
        execute(&plan, &work, &Memory::default(), &mut commit, &options(2, Placement::Ordered, 300), &context).is_ok()
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
                execute(&plan, &work, &sink, &mut |_| Ok(()), &options(2, Placement::Ordered, 50), &context)
            });
            for result in results {
                assert!(result.unwrap_err().is_cancelled());
            }
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
    let mut most_ahead = 0;
    let mut commit = |_: Committed<'_>| {
        if committed < 3000 {
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        committed += 1000;
        most_ahead = most_ahead.max(encoded.load(std::sync::atomic::Ordering::SeqCst) - (committed - 1000));
        Ok(())
    };
    let report =
        execute(&plan, &work, &Memory::default(), &mut commit, &options(4, Placement::Ordered, 4096), &context)
            .unwrap();
    assert_eq!((committed, report.tiles), (300_000, 300_000));
    assert!(most_ahead <= 64 * 1024 + 4096, "{most_ahead} tiles ahead of the commit");
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
fn stored_forms_beyond_their_bound_are_refused() {
    let plan = Plan { arrays: vec![array(3, 100)] };
    let work = Pattern { element_lens: vec![0], ..Pattern::default() };
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
        let own = results.iter().filter(|r| matches!(r, Err(EngineError::Tile { source, .. }) if *source == refused));
        prop_assert_eq!(own.count(), 1);
        prop_assert!(results.iter().all(Result::is_err));
    }
}
