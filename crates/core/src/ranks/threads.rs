//! Ranks as threads of one process: the test double of [`Communicator`], also used for measured runs without MPI.
//!
//! Not for production: every message takes one lock. Invariant: if a rank returns or panics while others wait in a
//! collective, they fail with [`CoreError::RankLeft`]; nobody waits forever.

use crate::error::{CoreError, Result};
use crate::ranks::communicator::{Communicator, Rank};
use crate::sync::{Arc, Condvar, Mutex};
use std::sync::PoisonError;

/// Communicator of one rank among threads.
#[derive(Debug, Clone)]
pub struct Threads {
    rank: Rank,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    size: usize,
    meeting: Mutex<Rendezvous>,
    changed: Condvar,
}

/// One message per pair of ranks: row `i` is sent by rank `i`.
type Mailboxes = Vec<Vec<Vec<u8>>>;

#[derive(Debug, Default)]
struct Rendezvous {
    /// Number of ranks that have put their messages on the board.
    arrived: usize,
    /// Number of collectives completed.
    round: u64,
    board: Mailboxes,
    /// Board of the last completed collective.
    finished: Arc<Mailboxes>,
    /// Whether a rank returned or panicked.
    left: bool,
}

impl Threads {
    /// Runs `body` on `size` ranks concurrently and returns their results, in rank order. If a rank panics, the panic
    /// is resumed after all ranks have ended.
    pub fn run<T: Send>(size: usize, body: impl Fn(&dyn Communicator) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let ranks: Vec<_> = Self::ranks(size)
                .into_iter()
                .map(|rank| {
                    let body = &body;
                    scope.spawn(move || rank.live(body))
                })
                .collect();
            ranks.into_iter().map(|rank| rank.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        })
    }

    /// Creates the ranks of a new communicator.
    pub(crate) fn ranks(size: usize) -> Vec<Self> {
        let board = vec![Vec::new(); size];
        let shared = Arc::new(Shared {
            size,
            meeting: Mutex::new(Rendezvous { board, ..Rendezvous::default() }),
            changed: Condvar::new(),
        });
        (0..size).map(|rank| Self { rank, shared: Arc::clone(&shared) }).collect()
    }

    /// Runs `body` on this rank, which leaves the group afterwards.
    pub(crate) fn live<T>(self, body: impl FnOnce(&dyn Communicator) -> T) -> T {
        let _leaving = ExitNotice(Arc::clone(&self.shared));
        body(&self)
    }

    /// Puts `row` on the board, waits for all ranks and returns the whole board.
    fn meet(&self, operation: &'static str, row: Vec<Vec<u8>>) -> Result<Arc<Mailboxes>> {
        let shared = &*self.shared;
        let mut meeting = shared.meeting.lock().unwrap_or_else(PoisonError::into_inner);
        if meeting.left {
            return Err(CoreError::RankLeft { operation });
        }
        let round = meeting.round;
        meeting.board[self.rank] = row;
        meeting.arrived += 1;
        if meeting.arrived == shared.size {
            let board = std::mem::replace(&mut meeting.board, vec![Vec::new(); shared.size]);
            meeting.finished = Arc::new(board);
            meeting.arrived = 0;
            meeting.round += 1;
            shared.changed.notify_all();
        }
        // `finished` cannot be replaced before this rank has seen it: the next collective also needs this rank.
        while meeting.round == round {
            if meeting.left {
                return Err(CoreError::RankLeft { operation });
            }
            meeting = shared.changed.wait(meeting).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(Arc::clone(&meeting.finished))
    }
}

/// Guard that notifies the other ranks when a rank ends, even by panic.
struct ExitNotice(Arc<Shared>);

impl Drop for ExitNotice {
    fn drop(&mut self) {
        self.0.meeting.lock().unwrap_or_else(PoisonError::into_inner).left = true;
        self.0.changed.notify_all();
    }
}

impl Communicator for Threads {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size
    }

    fn barrier(&self) -> Result<()> {
        self.meet("barrier", Vec::new()).map(|_| ())
    }

    fn all_gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>> {
        let board = self.meet("all_gather_bytes", vec![send.to_vec()])?;
        Ok(board.iter().map(|row| row.first().cloned().unwrap_or_default()).collect())
    }

    fn exchange_bytes(&self, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let size = self.shared.size;
        if send.len() != size {
            return Err(CoreError::MessageCount { operation: "exchange_bytes", got: send.len(), size });
        }
        let board = self.meet("exchange_bytes", send)?;
        Ok(board.iter().map(|row| row.get(self.rank).cloned().unwrap_or_default()).collect())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ranks::communicator::CommunicatorExt;

    #[test]
    fn ranks_conform() {
        for size in [1, 2, 3, 4, 7, 16] {
            Threads::run(size, crate::ranks::conformance::all);
        }
    }

    #[test]
    fn a_rank_that_leaves_early_hangs_nobody() {
        let seen = Threads::run(3, |ranks| if ranks.rank() == 1 { None } else { Some(ranks.barrier().is_err()) });
        assert_eq!(seen, [Some(true), None, Some(true)]);
    }

    #[test]
    fn a_panic_is_passed_on() {
        let caught = std::panic::catch_unwind(|| {
            Threads::run(2, |ranks| {
                assert_eq!(ranks.rank(), 0, "rank 1 gives up");
                ranks.all_gather_u64(1).is_err()
            })
        });
        assert!(caught.is_err());
    }
}
