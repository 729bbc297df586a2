//! Synthetic work whose output is known without the engine, a file in memory, and plans.

use raddle_core::cancel::CancelToken;
use raddle_core::engine::{
    Claim, Context, EngineError, EngineOptions, EngineReport, Execution, OutputRun, PlacedArray, Placement, Round,
    SharedIo, SharedSink, Sink, TileForm, TileWork,
};
use raddle_core::memory::MemoryBudget;
use raddle_core::plan::{ArrayPlan, Plan, Tile};
use raddle_core::ranks::communicator::{Communicator, SingleProcess};
use raddle_core::ranks::regroup::{Inbox, Outbox};
use raddle_core::report::progress::{Silent, Stage};
use std::collections::BTreeMap;
use std::sync::Mutex;

#[derive(Debug, thiserror::Error, PartialEq, Clone)]
#[error("tile {index} of array {array}: {stage}")]
pub struct Refused {
    pub array: u32,
    pub index: u64,
    pub stage: Stage,
}

/// Work that fills tiles with a pattern derived from their number and "encodes" them by keeping a prefix whose length
/// depends on the tile.
#[derive(Debug, Default)]
pub struct Pattern {
    pub tile_lens: Vec<usize>,
    pub refuse: Option<Refused>,
    pub refuse_too: Option<Refused>,
    /// Number of arrays per output file, if there are several files.
    pub arrays_per_file: Option<u32>,
    /// Whether tiles prefer a rank.
    pub home: bool,
    pub panic_at: Option<Tile>,
    pub slow_at: Option<Tile>,
}

pub fn hash(tile: Tile) -> u64 {
    (u64::from(tile.array) << 32 | tile.index).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Pattern {
    pub fn of(plan: &Plan) -> Self {
        Self { tile_lens: plan.arrays.iter().map(|a| a.tile_len_bytes() as usize).collect(), ..Self::default() }
    }

    pub fn meet(&self, tile: Tile, stage: Stage) -> Result<(), Refused> {
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
        // Appended bytes that turn out to be unused must not end up in the output.
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
        self.tile_lens[tile.array as usize]
    }

    fn note(&self, (): &mut (), note: &mut Vec<u8>) {
        note.extend_from_slice(b"note");
    }

    fn file(&self, array: u32) -> u32 {
        self.arrays_per_file.map_or(0, |arrays| array / arrays)
    }

    fn holders(&self, tile: Tile, each: &mut dyn FnMut(usize, u64)) {
        if self.home {
            each(hash(tile) as usize % 3, 2);
            each(hash(tile) as usize % 5, 1);
        }
    }
}

/// Tiles of which every rank holds a part in memory.
#[derive(Debug)]
pub struct ReceivedPieces {
    pub tile_lens: Vec<usize>,
    pub inbox: Mutex<Vec<Inbox>>,
}

impl ReceivedPieces {
    pub fn new(plan: &Plan) -> Self {
        let tile_lens = plan.arrays.iter().map(|a| a.tile_len_bytes() as usize).collect();
        Self { tile_lens, inbox: Mutex::default() }
    }

    /// Returns the part of a tile that rank `rank` of `ranks` holds: the number of its first element, and its elements.
    pub fn part(&self, tile: Tile, rank: usize, ranks: usize) -> (u64, Vec<u8>) {
        let len = self.tile_lens[tile.array as usize];
        let (from, to) = (len * rank / ranks, len * (rank + 1) / ranks);
        (from as u64, (from..to).map(|at| (hash(tile) >> 30) as u8 ^ at as u8).collect())
    }

    pub fn tile(&self, tile: Tile, ranks: usize) -> Vec<u8> {
        (0..ranks).flat_map(|rank| self.part(tile, rank, ranks).1).collect()
    }
}

impl TileWork for ReceivedPieces {
    type Error = Refused;
    type Worker = ();

    fn worker(&self) -> Result<(), Refused> {
        Ok(())
    }

    fn regroup(&self, round: &Round<'_>, communicator: &dyn Communicator) -> Result<(), Refused> {
        let (rank, ranks) = (communicator.rank(), communicator.size());
        let mut outbox = Outbox::new(ranks);
        for (tile, owner) in round.tiles() {
            let (from, bytes) = self.part(tile, rank, ranks);
            outbox.put(owner, tile, &[from], &[bytes.len() as u64], &bytes).unwrap();
        }
        self.inbox.lock().unwrap().push(outbox.exchange(communicator).unwrap());
        Ok(())
    }

    fn received_len_bytes(&self, tile: Tile) -> u64 {
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
pub struct Memory {
    /// Runs of bytes, by file and address.
    pub runs: Mutex<BTreeMap<(u32, u64), Vec<u8>>>,
    pub refuse_at: Option<u64>,
}

impl Sink for Memory {
    fn write_at(&self, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.write_file_at(0, address, bytes)
    }

    fn write_file_at(&self, file: u32, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        if self.refuse_at.is_some_and(|at| address <= at && at < address + bytes.len() as u64) {
            return Err(std::io::Error::from(std::io::ErrorKind::StorageFull));
        }
        assert!(self.runs.lock().unwrap().insert((file, address), bytes.to_vec()).is_none());
        Ok(())
    }
}

impl SharedSink for Memory {
    fn write_together(&self, runs: &[OutputRun<'_>]) -> std::io::Result<()> {
        runs.iter().try_for_each(|run| self.write_file_at(run.file, run.address, run.bytes))
    }

    fn describe(&self) -> SharedIo {
        SharedIo { interface: "memory".to_owned(), hints: BTreeMap::new() }
    }

    fn finish(self: Box<Self>) -> std::io::Result<()> {
        Ok(())
    }
}

impl Memory {
    /// Returns all bytes of the only file.
    pub fn bytes(&self, start: u64) -> Vec<u8> {
        assert!(self.runs.lock().unwrap().keys().all(|(file, _)| *file == 0));
        self.bytes_of(0, start)
    }

    /// Returns all bytes of a file; panics if runs overlap or leave a gap.
    pub fn bytes_of(&self, file: u32, start: u64) -> Vec<u8> {
        let mut all = Vec::new();
        for ((_, address), run) in self.runs.lock().unwrap().range((file, 0)..=(file, u64::MAX)) {
            assert_eq!(*address, start + all.len() as u64);
            all.extend_from_slice(run);
        }
        all
    }
}

pub const START: u64 = 2048;

#[derive(Debug)]
pub struct Ran {
    pub bytes: Vec<u8>,
    pub arrays: Vec<(u32, Vec<Claim>, u64)>,
    pub report: EngineReport,
}

pub fn run(
    plan: &Plan,
    work: &Pattern,
    sink: &Memory,
    options: &EngineOptions,
    budget_len: u64,
) -> Result<Ran, EngineError<Refused>> {
    let ran = run_on(&SingleProcess, plan, work, sink, options, budget_len);
    ran.map(|(arrays, report)| Ran { bytes: sink.bytes(START), arrays, report })
}

pub type Arrays = Vec<(u32, Vec<Claim>, u64)>;

/// Runs one rank; afterwards the whole budget must be free again, however the run ends.
pub fn run_on(
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
    let mut commit = |done: PlacedArray<'_>| {
        assert_eq!(communicator.rank(), 0);
        work.meet(Tile { array: done.array, index: u64::MAX }, Stage::Commit)?;
        arrays.push((done.array, done.claims.to_vec(), done.fill_tiles));
        Ok(())
    };
    let outcome = Execution::new(plan, work, sink).commit(&mut commit).run(options, &context);
    assert_eq!(budget.used_bytes(), 0);
    assert!(budget.peak_bytes() <= budget_len);
    outcome.map(|report| (arrays, report))
}

pub fn options(jobs: usize, placement: Placement, batch_len_bytes: u64) -> EngineOptions {
    EngineOptions { jobs, placement, start_address: START, arenas: None, batch_len_bytes, owners: None }
}

pub fn array(tiles: u64, tile_elements: u64) -> ArrayPlan {
    ArrayPlan {
        shape: vec![tiles * tile_elements],
        tile_shape: vec![tile_elements],
        element_len_bytes: 1,
        ..ArrayPlan::default()
    }
}

pub fn mixed() -> Plan {
    let mut arrays = vec![ArrayPlan::untiled()];
    for number in 0..60 {
        arrays.push(array(number * 5 % 37, 1 + number * 13 % 300));
    }
    arrays.push(ArrayPlan::untiled());
    Plan { arrays }
}

pub const BUDGET: u64 = 64 << 20;

/// Returns the expected output, computed without the engine.
pub fn expected(plan: &Plan, work: &Pattern) -> (Vec<u8>, Arrays) {
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
