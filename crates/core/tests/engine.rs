//! The engine on synthetic work: bytes and claims must not depend on threads, errors must come out, memory must hold.

use raddle_core::CoreError;
use raddle_core::cancel::CancelToken;
use raddle_core::communicator::SingleProcess;
use raddle_core::engine::{
    Claim, Committed, Context, EngineError, EngineOptions, EngineReport, Placement, Sink, TileForm, TileWork, execute,
};
use raddle_core::memory::MemoryBudget;
use raddle_core::plan::{ArrayPlan, Plan, Tile};
use raddle_core::progress::{Silent, Stage};
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
        match &self.refuse {
            Some(refused) if (refused.array, refused.index, refused.stage) == (tile.array, tile.index, stage) => {
                Err(refused.clone())
            }
            _ => Ok(()),
        }
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
    budget_peak: u64,
}

fn run(
    plan: &Plan,
    work: &Pattern,
    sink: &Memory,
    options: &EngineOptions,
    budget_len: u64,
) -> Result<Ran, EngineError<Refused>> {
    let budget = MemoryBudget::new(budget_len);
    let cancel = CancelToken::new();
    let context = Context { communicator: &SingleProcess, budget: &budget, observer: &Silent, cancel: &cancel };
    let mut arrays = Vec::new();
    let mut commit = |done: Committed<'_>| {
        work.meet(Tile { array: done.array, index: u64::MAX }, Stage::Commit)?;
        arrays.push((done.array, done.claims.to_vec(), done.fill_tiles));
        Ok(())
    };
    let report = execute(plan, work, sink, &mut commit, options, &context)?;
    assert_eq!(budget.used_bytes(), 0);
    Ok(Ran { bytes: sink.bytes(START), arrays, report, budget_peak: budget.peak_bytes() })
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
fn expected(plan: &Plan, work: &Pattern) -> (Vec<u8>, Vec<(u32, Vec<Claim>, u64)>) {
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
