//! Pieces of tiles that other ranks sent, kept while the rounds that they belong to are open.
//!
//! Not for what the pieces are. Invariant: pieces of the last two rounds are there, which are those that may be assembled.

use crate::error::Result;
use crate::traffic::Traffic;
use raddle_core::communicator::Communicator;
use raddle_core::regroup::{Inbox, Outbox};
use raddle_core::report::{StageTimer, StageTotals};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Pieces of the rounds that are open, and what was sent for all.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    inboxes: Mutex<VecDeque<Arc<Inbox>>>,
    sent: Mutex<Sent>,
}

/// What bringing pieces to their tiles' owners took.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// What this rank sent.
    pub(crate) traffic: Traffic,
    /// Time, and the messages once more.
    pub(crate) totals: StageTotals,
}

impl Brought {
    /// Collective. Sends a round's pieces and receives those for this rank's tiles; the work on them began with `timer`.
    pub(crate) fn exchange(&self, outbox: Outbox, timer: &StageTimer, communicator: &dyn Communicator) -> Result<()> {
        let mut traffic = Traffic::default();
        traffic.count(communicator.rank(), outbox.message_lens());
        let inbox = outbox.exchange(communicator)?;
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        // Two rounds are open at most: what is older has been encoded.
        inboxes.truncate(1);
        inboxes.push_front(Arc::new(inbox));
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.totals.add(&timer.totals(traffic.len_bytes, traffic.messages));
        sent.traffic.add(&traffic);
        Ok(())
    }

    /// What arrived for the rounds that are open.
    pub(crate) fn inboxes(&self) -> Vec<Arc<Inbox>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// What this rank sent.
    pub(crate) fn into_sent(self) -> Sent {
        self.sent.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
