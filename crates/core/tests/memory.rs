//! Compares the budget with the actual memory of the process. Alone in its test binary, so that nothing else adds to
//! the peak.

use raddle_core::cancel::CancelToken;
use raddle_core::engine::{Context, EngineOptions, Execution, Placement, Sink, TileForm, TileWork};
use raddle_core::memory::MemoryBudget;
use raddle_core::plan::{ArrayPlan, Plan, Tile};
use raddle_core::ranks::communicator::SingleProcess;
use raddle_core::report::peak_rss_bytes;
use raddle_core::report::progress::Silent;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tiles that do not compress; every hundredth takes longer, so that others accumulate behind it.
struct Incompressible {
    tile_lens: Vec<usize>,
}

impl TileWork for Incompressible {
    type Error = Infallible;
    type Worker = ();

    fn worker(&self) -> Result<(), Infallible> {
        Ok(())
    }

    fn assemble(&self, (): &mut (), tile: Tile, raw: &mut [u8]) -> Result<(), Infallible> {
        if tile.index % 100 == 3 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        raw.fill(tile.index as u8 | 1);
        Ok(())
    }

    fn encode(&self, (): &mut (), _: Tile, raw: &[u8], stored: &mut Vec<u8>) -> Result<TileForm, Infallible> {
        stored.extend_from_slice(raw);
        Ok(TileForm::Stored { filter_mask: 0 })
    }

    fn stored_bound_len_bytes(&self, tile: Tile) -> usize {
        self.tile_lens[tile.array as usize]
    }
}

struct Count(AtomicU64);

impl Sink for Count {
    fn write_at(&self, _: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn the_process_stays_within_the_budget() {
    let Some(before) = peak_rss_bytes() else { return };
    // 600 MB in tiles of 10 kB to 6 MB.
    let array = |tiles: u64, len: u64| ArrayPlan {
        shape: vec![tiles * len],
        tile_shape: vec![len],
        element_len_bytes: 1,
        ..ArrayPlan::default()
    };
    let plan =
        Plan { arrays: vec![array(30, 6_000_000), array(10_000, 10_000), array(150, 1_000_000), array(40, 4_500_000)] };
    let work = Incompressible { tile_lens: plan.arrays.iter().map(|a| a.tile_len_bytes() as usize).collect() };
    for placement in [Placement::Ordered, Placement::Unordered] {
        let limit_bytes = 64 << 20;
        let (budget, cancel) = (MemoryBudget::new(limit_bytes), CancelToken::new());
        let context = Context { communicator: &SingleProcess, budget: &budget, observer: &Silent, cancel: &cancel };
        let options = EngineOptions { jobs: 3, placement, ..EngineOptions::default() };
        let sink = Count(AtomicU64::new(0));
        let report = Execution::new(&plan, &work, &sink).commit(&mut |_| Ok(())).run(&options, &context).unwrap();
        assert_eq!(report.jobs, 3);
        assert_eq!(sink.0.load(Ordering::Relaxed), plan.raw_len_bytes());
        assert!(budget.peak_bytes() <= limit_bytes);
        let grown = peak_rss_bytes().unwrap().saturating_sub(before);
        assert!(grown <= limit_bytes + limit_bytes / 10, "{grown} bytes under a budget of {limit_bytes}");
        // The test would prove nothing if the engine held next to nothing.
        assert!(grown >= limit_bytes / 4, "only {grown} bytes");
    }
}
