//! A communicator that measures how long its collectives take.

use raddle_core::communicator::{Communicator, Rank};
use raddle_core::error::Result;
use std::cell::Cell;
use std::time::Instant;

/// Another communicator, measured.
#[derive(Debug)]
pub(super) struct Counted<'r> {
    inner: &'r dyn Communicator,
    seconds: Cell<f64>,
}

impl<'r> Counted<'r> {
    pub(super) fn new(inner: &'r dyn Communicator) -> Self {
        Self { inner, seconds: Cell::new(0.0) }
    }

    /// Elapsed seconds in collectives so far: messages, and waiting for other processes.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds.get()
    }

    fn time<T>(&self, collective: impl FnOnce() -> Result<T>) -> Result<T> {
        let started = Instant::now();
        let done = collective();
        self.seconds.set(self.seconds.get() + started.elapsed().as_secs_f64());
        done
    }
}

impl Communicator for Counted<'_> {
    fn rank(&self) -> Rank {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn barrier(&self) -> Result<()> {
        self.time(|| self.inner.barrier())
    }

    fn all_gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.time(|| self.inner.all_gather_bytes(send))
    }

    fn exchange_bytes(&self, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        self.time(|| self.inner.exchange_bytes(send))
    }
}
