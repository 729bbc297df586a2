//! Measures the overhead of the engine: synthetic work that copies tiles and stores a tenth of them, compared with the
//! same loop without the engine.
//!
//! It reports processor time of the whole process, not wall time, because that is nearly the same on a busy machine.
//!
//! `cargo run --release -p raddle-core --example engine_overhead`

use raddle_core::cancel::CancelToken;
use raddle_core::digest;
use raddle_core::engine::{Context, EngineOptions, Execution, Sink, TileForm, TileWork};
use raddle_core::memory::MemoryBudget;
use raddle_core::plan::{ArrayPlan, Plan, Tile};
use raddle_core::ranks::communicator::SingleProcess;
use raddle_core::report::progress::Silent;
use raddle_core::report::{process_cpu_ns, thread_cpu_ns};
use std::convert::Infallible;
use std::time::Instant;

/// Copies every tile from one source buffer and stores its first tenth.
struct Copy {
    source: Vec<u8>,
}

impl Copy {
    fn stored_len(raw_len: usize) -> usize {
        raw_len.div_ceil(10)
    }
}

impl TileWork for Copy {
    type Error = Infallible;
    type Worker = ();

    fn worker(&self) -> Result<(), Infallible> {
        Ok(())
    }

    fn assemble(&self, (): &mut (), _: Tile, raw: &mut [u8]) -> Result<(), Infallible> {
        raw.copy_from_slice(&self.source[..raw.len()]);
        Ok(())
    }

    fn encode(&self, (): &mut (), _: Tile, raw: &[u8], stored: &mut Vec<u8>) -> Result<TileForm, Infallible> {
        stored.extend_from_slice(&raw[..Self::stored_len(raw.len())]);
        Ok(TileForm::Stored { filter_mask: 0 })
    }

    fn stored_bound_len_bytes(&self, _: Tile) -> usize {
        self.source.len() / 10 + 1
    }
}

/// A sink that discards everything.
struct Nowhere;

impl Sink for Nowhere {
    fn write_at(&self, _: u64, bytes: &[u8]) -> std::io::Result<()> {
        std::hint::black_box(bytes);
        Ok(())
    }
}

fn bare_ns(tiles: u64, work: &Copy) -> f64 {
    let (mut raw, mut stored) = (vec![0; work.source.len()], Vec::with_capacity(work.source.len()));
    let started_ns = process_cpu_ns();
    for index in 0..tiles {
        let tile = Tile { array: 0, index };
        let Ok(()) = work.assemble(&mut (), tile, &mut raw);
        stored.clear();
        let Ok(form) = work.encode(&mut (), tile, &raw, &mut stored);
        std::hint::black_box((form, &stored));
    }
    (process_cpu_ns() - started_ns) as f64
}

fn engine_ns(plan: &Plan, work: &Copy, jobs: usize) -> f64 {
    let (budget, cancel) = (MemoryBudget::new(512 << 20), CancelToken::new());
    let context = Context { communicator: &SingleProcess, budget: &budget, observer: &Silent, cancel: &cancel };
    let options = EngineOptions { jobs, ..EngineOptions::default() };
    let started_ns = process_cpu_ns();
    let report = Execution::new(plan, work, &Nowhere).commit(&mut |_| Ok(())).run(&options, &context);
    assert_eq!(report.map(|report| report.tiles).ok(), Some(plan.tile_count()));
    (process_cpu_ns() - started_ns) as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    println!(
        "{:>8} {:>9} {:>9} {:>5} {:>12} {:>12} {:>12}",
        "arrays", "tiles", "tile", "jobs", "bare/tile", "engine/tile", "overhead"
    );
    for (arrays, tiles_each, tile_len) in
        [(1, 1_000_000, 64), (100_000, 1, 64), (16_000, 10, 4096), (100, 40, 1 << 20), (100, 4, 8 << 20)]
    {
        let array = ArrayPlan {
            shape: vec![tiles_each * tile_len],
            tile_shape: vec![tile_len],
            element_len_bytes: 1,
            ..ArrayPlan::default()
        };
        let plan = Plan { arrays: vec![array; arrays] };
        let work = Copy { source: (0..tile_len).map(|at| at as u8).collect() };
        let tiles = plan.tile_count();
        for jobs in [1, 2] {
            // Interleaved, so that other load on the machine affects both.
            let (mut bare, mut engine) = (Vec::new(), Vec::new());
            for _ in 0..7 {
                bare.push(bare_ns(tiles, &work) / tiles as f64);
                engine.push(engine_ns(&plan, &work, jobs) / tiles as f64);
            }
            let (bare, engine) = (median(bare), median(engine));
            let overhead = engine - bare;
            println!(
                "{arrays:>8} {tiles:>9} {tile_len:>9} {jobs:>5} {bare:>9.0} ns {engine:>9.0} ns {overhead:>9.0} ns"
            );
        }
    }
    let started = Instant::now();
    for _ in 0..1_000_000 {
        std::hint::black_box(Instant::now());
    }
    println!("reading the clock: {:.0} ns", started.elapsed().as_nanos() as f64 / 1e6);
    let started = Instant::now();
    for _ in 0..100_000 {
        std::hint::black_box(thread_cpu_ns());
    }
    println!("reading the thread's clock: {:.0} ns", started.elapsed().as_nanos() as f64 / 1e5);
    for len in [64, 1024, 65_536, 16 << 20] {
        let bytes: Vec<u8> = (0..len).map(|at| (at * 7) as u8).collect();
        let rounds = (256usize << 20) / (len.max(1024) * 2);
        let started_ns = thread_cpu_ns();
        for _ in 0..rounds {
            std::hint::black_box(digest::fragment(std::hint::black_box(&bytes)));
        }
        let ns = (thread_cpu_ns() - started_ns) as f64 / rounds as f64;
        println!("digest of {len} bytes: {ns:.0} ns, {:.1} GB/s", len as f64 / ns);
    }
    let started_ns = thread_cpu_ns();
    let mut crc = 1;
    for at in 0..1_000_000u64 {
        crc = digest::shift(crc, at << 10 | 1);
    }
    println!("shift: {:.0} ns ({crc:x})", (thread_cpu_ns() - started_ns) as f64 / 1e6);
}
