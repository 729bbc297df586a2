//! Pieces of tiles that other ranks sent, kept while the rounds that they belong to are open.
//!
//! Not for what the pieces are. Invariant: pieces of the last two rounds are there, which are those that may be assembled.

use crate::error::Result;
use crate::traffic::Traffic;
use raddle_core::communicator::Communicator;
use raddle_core::regroup::{Inbox, Outbox};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Pieces of the rounds that are open, and what was sent for all.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    inboxes: Mutex<VecDeque<Arc<Inbox>>>,
    traffic: Mutex<Traffic>,
}

impl Brought {
    /// Collective. Sends a round's pieces and receives those for this rank's tiles.
    pub(crate) fn exchange(&self, outbox: Outbox, communicator: &dyn Communicator) -> Result<()> {
        let lens = outbox.message_lens();
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner).count(communicator.rank(), lens);
        let inbox = outbox.exchange(communicator)?;
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        // Two rounds are open at most: what is older has been encoded.
        inboxes.truncate(1);
        inboxes.push_front(Arc::new(inbox));
        Ok(())
    }

    /// What arrived for the rounds that are open.
    pub(crate) fn inboxes(&self) -> Vec<Arc<Inbox>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// What this rank sent.
    pub(crate) fn into_traffic(self) -> Traffic {
        self.traffic.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
