//! Pieces of tiles that other ranks sent, kept while the rounds that they belong to are open.
//!
//! Not for what the pieces are. Invariant: pieces of the last two rounds are kept, which are those that may be assembled.

use crate::communicator::Communicator;
use crate::error::Result;
use crate::plan::Tile;
use crate::regroup::{Inbox, Outbox};
use crate::report::{StageTimer, StageTotals};
use crate::traffic::Traffic;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Rounds that are open at once: what is older has been encoded.
const OPEN_ROUNDS: usize = 2;

/// Pieces of the rounds that are open, and what was sent for all.
#[derive(Debug, Default)]
pub struct Brought {
    /// The last round first; of each what arrived in each exchange.
    rounds: Mutex<VecDeque<Vec<Arc<Inbox>>>>,
    sent: Mutex<Sent>,
}

/// What bringing pieces to their tiles' owners took.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    /// What this rank sent.
    pub traffic: Traffic,
    /// Time, and the messages once more.
    pub totals: StageTotals,
}

impl Brought {
    /// Begins a round, and drops the pieces of the round before the last.
    pub fn begin_round(&self) {
        let mut rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        rounds.truncate(OPEN_ROUNDS - 1);
        rounds.push_front(Vec::new());
    }

    /// Collective. Sends pieces of the round that was begun last and receives those for this rank's tiles; the work on them began
    /// with `timer`. Each round may have several exchanges.
    ///
    /// # Errors
    /// As [`Outbox::exchange`].
    pub fn exchange(&self, outbox: Outbox, timer: &StageTimer, communicator: &dyn Communicator) -> Result<()> {
        let mut traffic = Traffic::default();
        traffic.count(communicator.rank(), outbox.message_lens());
        let inbox = outbox.exchange(communicator)?;
        if let Some(round) = self.rounds.lock().unwrap_or_else(PoisonError::into_inner).front_mut() {
            round.push(Arc::new(inbox));
        }
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.totals.add(&timer.totals(traffic.len_bytes, traffic.messages));
        sent.traffic.add(&traffic);
        Ok(())
    }

    /// What arrived of `tile` for the rounds that are open, by exchange.
    pub fn inboxes(&self, tile: Tile) -> Vec<Arc<Inbox>> {
        let rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        rounds.iter().flatten().filter(|inbox| inbox.has(tile)).cloned().collect()
    }

    /// What this rank has sent.
    pub fn sent(&self) -> Sent {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
