//! The communicator: a group of ranks that act together, behind one object-safe trait.
//!
//! Implementations: [`SingleProcess`] here, [`crate::threads::Threads`] (ranks as threads of one process, for tests),
//! MPI in its own crate. All pass the suite `conformance` (feature `testing`). Collective functions must be called by
//! every rank in the same order; after a local step that can fail, ranks [`CommunicatorExt::agree`] before the next
//! collective, for a rank that leaves early hangs the others.

use crate::error::{CoreError, Result};
use crate::message::Words;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// Number of a rank in its communicator, from 0.
pub type Rank = usize;

/// A group of ranks that act together.
pub trait Communicator: Debug {
    /// Number of this rank.
    fn rank(&self) -> Rank;

    /// Number of ranks, at least 1.
    fn size(&self) -> usize;

    /// Collective. Returns when every rank has called it.
    fn barrier(&self) -> Result<()>;

    /// Collective. Gathers one message from every rank, in rank order, on every rank; lengths may differ and be zero.
    fn all_gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Collective. Sends message `i` of `send` to rank `i` and returns the messages for this rank, in rank order;
    /// lengths may differ and be zero. `send` has one message per rank, this rank's own among them.
    fn exchange_bytes(&self, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>>;
}

/// Typed collectives, written once over [`Communicator`].
pub trait CommunicatorExt: Communicator {
    /// Collective. The values of all ranks, in rank order.
    fn all_gather_u64(&self, value: u64) -> Result<Vec<u64>> {
        let gathered = self.all_gather_bytes(&value.to_le_bytes())?;
        gathered.iter().map(|bytes| Words::new("all_gather_u64", bytes).word()).collect()
    }

    /// Collective. The values of all ranks, in rank order.
    ///
    /// # Errors
    /// [`CoreError::MessageContent`], on every rank, if a value cannot be encoded or decoded.
    fn all_gather_values<T: Serialize + DeserializeOwned>(&self, operation: &'static str, value: &T) -> Result<Vec<T>> {
        // A first byte marks a value, so that the others learn of a rank that cannot encode its own.
        let message = postcard::to_extend(value, vec![1]).unwrap_or_default();
        let decode = |(rank, message): (Rank, &Vec<u8>)| {
            let decoded = message.get(1..).and_then(|encoded| postcard::from_bytes(encoded).ok());
            decoded.ok_or(CoreError::MessageContent { operation, rank })
        };
        self.all_gather_bytes(&message)?.iter().enumerate().map(decode).collect()
    }

    /// Collective. The sum of the values of the ranks before this one, wrapping beyond 64 bits.
    fn exclusive_scan_sum(&self, value: u64) -> Result<u64> {
        let all = self.all_gather_u64(value)?;
        Ok(all[..self.rank()].iter().fold(0, |sum: u64, value| sum.wrapping_add(*value)))
    }

    /// Collective. The message of rank `root`, on every rank; what the others pass is ignored.
    fn broadcast(&self, root: Rank, bytes: &[u8]) -> Result<Vec<u8>> {
        let send: &[u8] = if self.rank() == root { bytes } else { &[] };
        let mut all = self.all_gather_bytes(send)?;
        if root < all.len() {
            Ok(all.swap_remove(root))
        } else {
            Err(CoreError::NoSuchRank { operation: "broadcast", rank: root, size: self.size() })
        }
    }

    /// Collective. Every rank returns the same verdict: the local value where all ranks succeeded, else the error of
    /// the lowest rank that failed. So no rank waits for one that gave up.
    fn agree<T, E: std::fmt::Display>(&self, operation: &'static str, local: std::result::Result<T, E>) -> Result<T> {
        // The first byte tells failure, so that an error without words is still an error.
        let (message, value) = match local {
            Ok(value) => (Vec::new(), Some(value)),
            Err(error) => (format!("!{error}").into_bytes(), None),
        };
        for (rank, message) in self.all_gather_bytes(&message)?.iter().enumerate() {
            if let Some((_, words)) = message.split_first() {
                let message = String::from_utf8_lossy(words).into_owned();
                return Err(CoreError::RankFailed { operation, rank, message });
            }
        }
        value.ok_or(CoreError::RankLeft { operation })
    }
}

impl<C: Communicator + ?Sized> CommunicatorExt for C {}

/// The communicator of a process that is alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct SingleProcess;

impl Communicator for SingleProcess {
    fn rank(&self) -> Rank {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }

    fn all_gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![send.to_vec()])
    }

    fn exchange_bytes(&self, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        if send.len() == 1 {
            Ok(send)
        } else {
            Err(CoreError::MessageCount { operation: "exchange_bytes", got: send.len(), size: 1 })
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_single_process_conforms() {
        crate::conformance::all(&SingleProcess);
    }
}
