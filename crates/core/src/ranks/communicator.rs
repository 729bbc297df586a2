//! The communicator: a group of ranks that act together, as one object-safe trait.
//!
//! It is implemented by [`SingleProcess`], by [`crate::ranks::threads::Threads`] (ranks as threads of one process, for tests)
//! and for MPI in a separate crate. All implementations pass the `conformance` suite (feature `testing`). Every rank
//! must call collective functions in the same order. After a local step that can fail, ranks call
//! [`CommunicatorExt::agree`] before the next collective, because a rank that leaves early hangs the others.

use crate::error::{CoreError, Result};
use crate::ranks::message::MessageReader;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// Number of a rank in its communicator, from 0.
pub type Rank = usize;

/// A group of ranks that act together.
pub trait Communicator: Debug {
    /// Returns the number of this rank.
    fn rank(&self) -> Rank;

    /// Returns the number of ranks, at least 1.
    fn size(&self) -> usize;

    /// Collective. Returns once every rank has called it.
    fn barrier(&self) -> Result<()>;

    /// Collective. Gathers one message from every rank on every rank, in rank order; lengths may differ and be zero.
    fn all_gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Collective. Sends message `i` of `send` to rank `i` and returns the messages for this rank, in rank order;
    /// lengths may differ and be zero. `send` holds one message per rank, including this one.
    fn exchange_bytes(&self, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>>;
}

/// Typed collectives, written once over [`Communicator`].
pub trait CommunicatorExt: Communicator {
    /// Collective. Returns the values of all ranks, in rank order.
    fn all_gather_u64(&self, value: u64) -> Result<Vec<u64>> {
        let gathered = self.all_gather_bytes(&value.to_le_bytes())?;
        gathered.iter().map(|bytes| MessageReader::new("all_gather_u64", bytes).word()).collect()
    }

    /// Collective. Returns the values of all ranks, in rank order.
    ///
    /// # Errors
    /// [`CoreError::MessageContent`] on every rank if a value cannot be encoded or decoded.
    fn all_gather_values<T: Serialize + DeserializeOwned>(&self, operation: &'static str, value: &T) -> Result<Vec<T>> {
        // The leading byte marks a valid message, so that an encoding error on one rank is detected on all.
        let message = postcard::to_extend(value, vec![1]).unwrap_or_default();
        let decode = |(rank, message): (Rank, &Vec<u8>)| {
            let decoded = message.get(1..).and_then(|encoded| postcard::from_bytes(encoded).ok());
            decoded.ok_or(CoreError::MessageContent { operation, rank })
        };
        self.all_gather_bytes(&message)?.iter().enumerate().map(decode).collect()
    }

    /// Collective. Returns the sum of the values of all lower ranks, wrapping at 64 bits.
    fn exclusive_scan_sum(&self, value: u64) -> Result<u64> {
        let all = self.all_gather_u64(value)?;
        Ok(all[..self.rank()].iter().fold(0, |sum: u64, value| sum.wrapping_add(*value)))
    }

    /// Collective. Returns the message of rank `root` on every rank; `bytes` is ignored on the others.
    fn broadcast(&self, root: Rank, bytes: &[u8]) -> Result<Vec<u8>> {
        let send: &[u8] = if self.rank() == root { bytes } else { &[] };
        let mut all = self.all_gather_bytes(send)?;
        if root < all.len() {
            Ok(all.swap_remove(root))
        } else {
            Err(CoreError::NoSuchRank { operation: "broadcast", rank: root, size: self.size() })
        }
    }

    /// Collective. Returns the same outcome on every rank: the local value if all ranks succeeded, otherwise the error
    /// of the lowest failing rank. This way no rank waits for one that gave up.
    fn agree<T, E: std::fmt::Display>(&self, operation: &'static str, local: std::result::Result<T, E>) -> Result<T> {
        // The first byte marks failure, so that an error with an empty message is still an error.
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

/// Communicator of a process that runs alone.
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
        crate::ranks::conformance::all(&SingleProcess);
    }
}
