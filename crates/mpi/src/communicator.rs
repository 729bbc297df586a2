//! Communicator over MPI.
//!
//! All operations are non-blocking collectives that are polled with growing pauses. MPI errors end all ranks, which is
//! MPI's default. Invariants: MPI receives only words and core's pieces, with lengths of at most 31 bits and non-empty
//! buffers; a rank that has left the others behind begins no collective.

use mpi::datatype::{Partition, PartitionMut};
use mpi::request::{Request, Scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives};
use raddle_core::error::{CoreError, Result};
use raddle_core::pause::Pauses;
use raddle_core::ranks::communicator::{Communicator, Rank};
use raddle_core::ranks::pieces::{self, MAX_PIECE_BYTES, PieceRow, PieceTransport};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Time that a rank waits for the others to return from a call that failed on it.
const PATIENCE: Duration = Duration::from_secs(3);

/// MPI ranks that act collectively.
pub struct MpiCommunicator {
    ranks: SimpleCommunicator,
    piece_limit_bytes: usize,
    /// Whether the others still wait for this rank in a call that failed on it.
    is_alone: Cell<bool>,
}

impl std::fmt::Debug for MpiCommunicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MpiCommunicator").field("rank", &self.rank()).field("size", &self.size()).finish()
    }
}

impl MpiCommunicator {
    /// Collective. Creates a communicator of the ranks of `ranks`, with separate messages.
    pub fn among(ranks: &SimpleCommunicator) -> Self {
        Self { ranks: ranks.duplicate(), piece_limit_bytes: MAX_PIECE_BYTES, is_alone: Cell::new(false) }
    }

    /// Returns the same ranks, but splits messages into pieces of a different maximum length; for tests.
    #[must_use]
    pub fn with_piece_limit(self, piece_limit_bytes: usize) -> Self {
        Self { piece_limit_bytes, ..self }
    }

    /// Collective. Waits until every rank has called it. Returns false if that takes longer than `patience`; the ranks
    /// must then not be used again.
    pub fn meet_within(&self, patience: Duration) -> bool {
        self.meet_until(Some(Instant::now() + patience))
    }

    /// Collective. Waits for all ranks after a call in which a library writes collectively. A rank on which the call
    /// failed waits for a limited time, because the others may be waiting for it in the call. Returns false if they do
    /// not arrive; all later collectives of this rank then fail.
    pub(crate) fn meet_after<T, E>(&self, call: &std::result::Result<T, E>) -> bool {
        let deadline = call.is_err().then(|| Instant::now() + PATIENCE);
        if !self.is_alone.get() && !self.meet_until(deadline) {
            self.is_alone.set(true);
        }
        !self.is_alone.get()
    }

    /// Returns an error if this rank has left the others behind.
    fn check_together(&self, operation: &'static str) -> Result<()> {
        if self.is_alone.get() { Err(CoreError::RankLeft { operation }) } else { Ok(()) }
    }

    /// Collective. Like [`MpiCommunicator::meet_within`], but with a deadline, or without a limit.
    fn meet_until(&self, deadline: Option<Instant>) -> bool {
        // A barrier has no buffers, so it can be abandoned.
        let mut pauses = Pauses::default();
        let mut request = self.ranks.immediate_barrier();
        loop {
            match request.test() {
                Ok(_) => return true,
                Err(unfinished) => request = unfinished,
            }
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                std::mem::forget(request);
                return false;
            }
            pauses.take();
        }
    }

    /// Returns the rsmpi communicator, for files of its ranks.
    pub(crate) fn raw(&self) -> &SimpleCommunicator {
        &self.ranks
    }

    /// Collective. Returns the maximum of each word across all ranks, or the local words if this rank has left the others
    /// behind.
    pub(crate) fn most<const N: usize>(&self, local: [u64; N]) -> [u64; N] {
        local.map(|word| self.gather_words(word).into_iter().max().unwrap_or(word))
    }

    /// Collective. Returns the sum of a word across all ranks, or the local word if this rank has left the others behind.
    pub(crate) fn total(&self, local: u64) -> u64 {
        self.gather_words(local).into_iter().fold(0, u64::saturating_add)
    }

    fn gather_words(&self, word: u64) -> Vec<u64> {
        if self.is_alone.get() {
            return vec![word];
        }
        let mut words = vec![0; self.size()];
        mpi::request::scope(|scope| wait(self.ranks.immediate_all_gather_into(scope, &word, &mut words[..])));
        words
    }
}

impl PieceTransport for MpiCommunicator {
    fn all_gather_words(&self, word: u64) -> Result<Vec<u64>> {
        self.check_together("gather")?;
        Ok(self.gather_words(word))
    }

    fn all_to_all_words(&self, words: &[u64]) -> Result<Vec<u64>> {
        self.check_together("exchange")?;
        let mut got = vec![0; words.len()];
        mpi::request::scope(|scope| wait(self.ranks.immediate_all_to_all_into(scope, words, &mut got[..])));
        Ok(got)
    }

    fn all_gather_pieces(&self, local: &[u8], got: &mut PieceRow) -> Result<()> {
        let mut parts = PartitionMut::new(&mut got.bytes[..], &got.counts[..], &got.starts[..]);
        mpi::request::scope(|scope| wait(self.ranks.immediate_all_gather_varcount_into(scope, local, &mut parts)));
        Ok(())
    }

    fn all_to_all_pieces(&self, row: &PieceRow, got: &mut PieceRow) -> Result<()> {
        let sent = Partition::new(&row.bytes[..], &row.counts[..], &row.starts[..]);
        let mut parts = PartitionMut::new(&mut got.bytes[..], &got.counts[..], &got.starts[..]);
        mpi::request::scope(|scope| wait(self.ranks.immediate_all_to_all_varcount_into(scope, &sent, &mut parts)));
        Ok(())
    }
}

impl Communicator for MpiCommunicator {
    fn rank(&self) -> Rank {
        self.ranks.rank() as Rank
    }

    fn size(&self) -> usize {
        self.ranks.size() as usize
    }

    fn barrier(&self) -> Result<()> {
        self.check_together("barrier")?;
        wait(self.ranks.immediate_barrier());
        Ok(())
    }

    fn all_gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>> {
        pieces::all_gather(self, self.piece_limit_bytes, send)
    }

    fn exchange_bytes(&self, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        pieces::exchange(self, self.piece_limit_bytes, &send)
    }
}

/// Polls until the request is completed.
fn wait<'a, D: ?Sized, S: Scope<'a>>(mut request: Request<'a, D, S>) {
    let mut pauses = Pauses::default();
    loop {
        match request.test() {
            Ok(_) => return,
            Err(unfinished) => request = unfinished,
        }
        pauses.take();
    }
}
