//! Pieces of tiles received from other ranks, kept while their rounds are open.
//!
//! The content of the pieces does not matter here. Invariant: the pieces of the last two rounds are kept, because only
//! those may still be assembled.

use crate::error::{CoreError, Result};
use crate::plan::Tile;
use crate::ranks::communicator::Communicator;
use crate::ranks::regroup::{Inbox, Outbox};
use crate::ranks::traffic::Traffic;
use crate::report::{StageTimer, StageTotals};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of rounds open at once; older rounds have been encoded.
const OPEN_ROUNDS: usize = 2;

/// Pieces of the open rounds, and totals of everything sent.
#[derive(Debug, Default)]
pub struct ReceivedPieces {
    /// Inboxes of each round, latest round first, one per exchange.
    rounds: Mutex<VecDeque<Vec<Arc<Inbox>>>>,
    sent: Mutex<SentTraffic>,
}

/// Cost of sending pieces to the owners of their tiles.
#[derive(Debug, Clone, Default)]
pub struct SentTraffic {
    /// Messages sent by this rank.
    pub traffic: Traffic,
    /// Time spent, together with the number of messages and bytes.
    pub totals: StageTotals,
}

impl ReceivedPieces {
    /// Begins a round and drops the pieces of the round before the last.
    pub fn begin_round(&self) {
        let mut rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        rounds.truncate(OPEN_ROUNDS - 1);
        rounds.push_front(Vec::new());
    }

    /// Collective. Sends pieces of the current round and receives those for this rank's tiles. `timer` was started when
    /// the work on them began. A round may have several exchanges.
    ///
    /// # Errors
    /// As for [`Outbox::exchange`].
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

    /// Collective. Carries out a round with a single exchange, of the pieces that `pack` puts into the outbox. It takes place even
    /// if packing fails, because the other ranks wait for it.
    ///
    /// # Errors
    /// As for [`Outbox::exchange`], and those of `pack`.
    pub fn exchange_once<E: From<CoreError>>(
        &self,
        communicator: &dyn Communicator,
        pack: impl FnOnce(&mut Outbox) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (timer, mut outbox) = (StageTimer::start(), Outbox::new(communicator.size()));
        let packed = pack(&mut outbox);
        self.begin_round();
        self.exchange(outbox, &timer, communicator)?;
        packed
    }

    /// Returns the inboxes of the open rounds that hold pieces of `tile`, one per exchange.
    pub fn inboxes(&self, tile: Tile) -> Vec<Arc<Inbox>> {
        let rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        rounds.iter().flatten().filter(|inbox| inbox.has(tile)).cloned().collect()
    }

    /// Returns the statistics of the messages that this rank has sent so far.
    pub fn sent(&self) -> SentTraffic {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
