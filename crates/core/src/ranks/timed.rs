//! Communicator wrapper that measures the time spent in collectives.
//!
//! Messages are not inspected. Invariant: every collective is forwarded to the wrapped communicator.

use crate::error::Result;
use crate::ranks::communicator::{Communicator, Rank};
use crate::report::elapsed_ns;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Ranks, with the time that this rank has spent in collectives.
#[derive(Debug)]
pub struct TimedCommunicator<'a> {
    ranks: &'a dyn Communicator,
    spent_ns: AtomicU64,
}

impl<'a> TimedCommunicator<'a> {
    /// Wraps `ranks` and starts counting.
    pub fn new(ranks: &'a dyn Communicator) -> Self {
        Self { ranks, spent_ns: AtomicU64::new(0) }
    }

    /// Returns the seconds spent in collectives, including waiting for other ranks.
    pub fn elapsed_s(&self) -> f64 {
        self.spent_ns.load(Ordering::Relaxed) as f64 * 1e-9
    }

    fn timed<T>(&self, collective: impl FnOnce() -> Result<T>) -> Result<T> {
        let started = Instant::now();
        let outcome = collective();
        self.spent_ns.fetch_add(elapsed_ns(started), Ordering::Relaxed);
        outcome
    }
}

impl Communicator for TimedCommunicator<'_> {
    fn rank(&self) -> Rank {
        self.ranks.rank()
    }

    fn size(&self) -> usize {
        self.ranks.size()
    }

    fn barrier(&self) -> Result<()> {
        self.timed(|| self.ranks.barrier())
    }

    fn all_gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.timed(|| self.ranks.all_gather_bytes(send))
    }

    fn exchange_bytes(&self, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        self.timed(|| self.ranks.exchange_bytes(send))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ranks::threads::Threads;
    use std::time::Duration;

    #[test]
    fn it_conforms_and_counts_waiting() {
        let elapsed_s = Threads::run(3, |ranks| {
            let timed = TimedCommunicator::new(ranks);
            crate::ranks::conformance::all(&timed);
            let before_s = timed.elapsed_s();
            if timed.rank() == 1 {
                std::thread::sleep(Duration::from_millis(50));
            }
            timed.barrier().unwrap();
            timed.elapsed_s() - before_s
        });
        assert!(elapsed_s[0] > 0.02 && elapsed_s[2] > 0.02, "{elapsed_s:?}");
    }
}
