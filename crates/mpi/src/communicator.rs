//! The communicator over MPI.
//!
//! All is done by non-blocking collectives that are polled with growing pauses: a rank that waits for others leaves its
//! core to their threads and its own, where blocking calls of MPI would spin. Errors of MPI end all ranks, as MPI's
//! default is. Invariants: a collective of MPI moves at most [`PIECE_LIMIT_BYTES`], so that its counts and displacements
//! fit 32 bits; MPI never gets the pointer of an empty buffer of Rust's, which Open MPI may take for `MPI_IN_PLACE`.

use mpi::Count;
use mpi::datatype::{Partition, PartitionMut};
use mpi::request::{Request, Scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives};
use raddle_core::CoreError;
use raddle_core::communicator::{Communicator, Rank};
use raddle_core::error::Result;
use std::time::{Duration, Instant};

/// Most bytes that one collective of MPI brings to a rank or takes from it; longer messages go in several.
const PIECE_LIMIT_BYTES: usize = 1 << 30;

/// Looks at a request without a pause: most collectives of ranks that arrive together are done by then.
const EAGER_LOOKS: u32 = 100;

/// First pause between looks, and the longest: short against a round, which takes some 100 ms to encode.
const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

/// Ranks of MPI that act together.
pub struct MpiCommunicator {
    ranks: SimpleCommunicator,
    piece_limit_bytes: usize,
}

impl std::fmt::Debug for MpiCommunicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MpiCommunicator").field("rank", &self.rank()).field("size", &self.size()).finish()
    }
}

impl MpiCommunicator {
    /// Collective. The ranks of `ranks`, whose messages meet no others.
    pub fn among(ranks: &SimpleCommunicator) -> Self {
        Self { ranks: ranks.duplicate(), piece_limit_bytes: PIECE_LIMIT_BYTES }
    }

    /// The same ranks, with messages that are cut into pieces at another length: for tests of that.
    #[must_use]
    pub fn with_piece_limit(self, piece_limit_bytes: usize) -> Self {
        Self { piece_limit_bytes, ..self }
    }

    /// Collective. Waits until every rank has called it; false if that takes longer than `patience`: then the ranks
    /// must not be used again.
    pub fn meet_within(&self, patience: Duration) -> bool {
        // A barrier has no buffers: it can be given up.
        let (deadline, mut pause) = (Instant::now() + patience, Pause::default());
        let mut request = self.ranks.immediate_barrier();
        loop {
            match request.test() {
                Ok(_) => return true,
                Err(unfinished) => request = unfinished,
            }
            if Instant::now() > deadline {
                std::mem::forget(request);
                return false;
            }
            pause.take();
        }
    }

    /// The communicator as rsmpi has it, for files of its ranks.
    pub(crate) fn raw(&self) -> &SimpleCommunicator {
        &self.ranks
    }

    /// Collective. The most that any rank says, of each word.
    pub(crate) fn most<const N: usize>(&self, own: [u64; N]) -> [u64; N] {
        own.map(|word| self.all_gather_words(word).into_iter().max().unwrap_or(word))
    }

    /// Bytes of each message that a piece has room for.
    fn step_len_bytes(&self) -> usize {
        (self.piece_limit_bytes / self.size()).max(1)
    }

    fn all_gather_words(&self, word: u64) -> Vec<u64> {
        let mut words = vec![0; self.size()];
        mpi::request::scope(|scope| wait(self.ranks.immediate_all_gather_into(scope, &word, &mut words[..])));
        words
    }

    fn all_to_all_words(&self, words: &[u64]) -> Vec<u64> {
        let mut got = vec![0; self.size()];
        mpi::request::scope(|scope| wait(self.ranks.immediate_all_to_all_into(scope, words, &mut got[..])));
        got
    }
}

/// Lengths of the pieces number `step` of messages of these lengths, and where each begins in their row.
fn pieces(lens: &[u64], step: u64, step_len_bytes: usize) -> (Vec<Count>, Vec<Count>, usize) {
    let step_len_bytes = step_len_bytes as u64;
    // Each is at most its share of a limit that fits 31 bits.
    let counts: Vec<Count> = lens
        .iter()
        .map(|len| len.saturating_sub(step.saturating_mul(step_len_bytes)).min(step_len_bytes) as Count)
        .collect();
    let starts = counts.iter().scan(0, |next, count| {
        let start = *next;
        *next += count;
        Some(start)
    });
    let starts: Vec<Count> = starts.collect();
    let total = counts.iter().map(|count| *count as usize).sum();
    (counts, starts, total)
}

/// A buffer of `len_bytes` with memory behind it, even if that is zero.
fn buffer(len_bytes: usize) -> Vec<u8> {
    vec![0; len_bytes.max(1)]
}

/// Appends to each message its piece.
fn take_pieces(messages: &mut [Vec<u8>], got: &[u8], counts: &[Count], starts: &[Count]) {
    for ((message, count), start) in messages.iter_mut().zip(counts).zip(starts) {
        message.extend_from_slice(&got[*start as usize..][..*count as usize]);
    }
}

fn steps(longest_len_bytes: u64, step_len_bytes: usize) -> u64 {
    longest_len_bytes.div_ceil(step_len_bytes as u64)
}

impl Communicator for MpiCommunicator {
    fn rank(&self) -> Rank {
        self.ranks.rank() as Rank
    }

    fn size(&self) -> usize {
        self.ranks.size() as usize
    }

    fn barrier(&self) -> Result<()> {
        wait(self.ranks.immediate_barrier());
        Ok(())
    }

    fn all_gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>> {
        let lens = self.all_gather_words(send.len() as u64);
        let step_len_bytes = self.step_len_bytes();
        let mut messages: Vec<Vec<u8>> = vec![Vec::new(); lens.len()];
        let nothing = buffer(0);
        for step in 0..steps(lens.iter().copied().max().unwrap_or(0), step_len_bytes) {
            let (counts, starts, total) = pieces(&lens, step, step_len_bytes);
            let own_start = (step as usize).saturating_mul(step_len_bytes).min(send.len());
            let own = &send[own_start..][..counts[self.rank()] as usize];
            let own = if own.is_empty() { &nothing[..0] } else { own };
            let mut got = buffer(total);
            let mut parts = PartitionMut::new(&mut got[..], &counts[..], &starts[..]);
            mpi::request::scope(|scope| {
                wait(self.ranks.immediate_all_gather_varcount_into(scope, own, &mut parts));
            });
            take_pieces(&mut messages, &got, &counts, &starts);
        }
        Ok(messages)
    }

    fn exchange_bytes(&self, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let size = self.size();
        if send.len() != size {
            return Err(CoreError::MessageCount { operation: "exchange_bytes", got: send.len(), size });
        }
        let lens: Vec<u64> = send.iter().map(|message| message.len() as u64).collect();
        let step_len_bytes = self.step_len_bytes();
        // All ranks take part in as many steps as the longest message of any of them needs.
        let longest = self.all_gather_words(lens.iter().copied().max().unwrap_or(0)).into_iter().max().unwrap_or(0);
        let got_lens = if longest == 0 { vec![0; size] } else { self.all_to_all_words(&lens) };
        let mut messages: Vec<Vec<u8>> = vec![Vec::new(); size];
        for step in 0..steps(longest, step_len_bytes) {
            let (counts, starts, total) = pieces(&lens, step, step_len_bytes);
            let mut row = buffer(total);
            for ((message, count), start) in send.iter().zip(&counts).zip(&starts) {
                let from = (step as usize).saturating_mul(step_len_bytes).min(message.len());
                row[*start as usize..][..*count as usize].copy_from_slice(&message[from..][..*count as usize]);
            }
            let sent = Partition::new(&row[..], &counts[..], &starts[..]);
            let (got_counts, got_starts, got_total) = pieces(&got_lens, step, step_len_bytes);
            let mut got = buffer(got_total);
            let mut parts = PartitionMut::new(&mut got[..], &got_counts[..], &got_starts[..]);
            mpi::request::scope(|scope| {
                wait(self.ranks.immediate_all_to_all_varcount_into(scope, &sent, &mut parts));
            });
            take_pieces(&mut messages, &got, &got_counts, &got_starts);
        }
        Ok(messages)
    }
}

/// Polls until the request is done.
fn wait<'a, D: ?Sized, S: Scope<'a>>(mut request: Request<'a, D, S>) {
    let mut pause = Pause::default();
    loop {
        match request.test() {
            Ok(_) => return,
            Err(unfinished) => request = unfinished,
        }
        pause.take();
    }
}

/// Growing pauses between looks.
#[derive(Default)]
struct Pause {
    looks: u32,
    next: Duration,
}

impl Pause {
    fn take(&mut self) {
        self.looks += 1;
        if self.looks <= EAGER_LOOKS {
            return std::thread::yield_now();
        }
        self.next = self.next.max(PAUSES.0);
        std::thread::sleep(self.next);
        self.next = (self.next * 2).min(PAUSES.1);
    }
}
