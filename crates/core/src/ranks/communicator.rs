//! The communicator: a group of ranks that act together, as one object-safe trait.
//!
//! It is implemented by [`SingleProcess`], by [`crate::ranks::threads::Threads`] (ranks as threads of one process, for
//! tests) and for MPI in a separate crate. All implementations pass the `conformance` suite (feature `testing`). Every
//! rank must call collective functions in the same order. After a local step that can fail, ranks call
//! [`CommunicatorExt::agree`] before the next collective, because a rank that leaves early hangs the others.

use crate::digest::Digest;
use crate::error::{CoreError, Result};
pub use crate::ranks::Rank;
use crate::ranks::message::MessageReader;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

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

/// Status of a step in the first byte of a message of [`CommunicatorExt::agree`].
const SUCCEEDED: u8 = 0;
const FAILED: u8 = 1;
const CANCELLED: u8 = 2;

/// An error of a step that ranks finish together, by [`CommunicatorExt::agree`].
pub trait AgreedError: Sized {
    /// Returns the text that is sent to the other ranks.
    fn message(&self) -> String;

    /// Returns the error of a rank whose own step succeeded: another rank failed, or the exchange did.
    fn of_ranks(error: CoreError) -> Self;

    /// Returns whether the step was cancelled. If one rank was cancelled and another failed, the failure is reported.
    fn is_cancellation(&self) -> bool {
        false
    }
}

impl AgreedError for CoreError {
    fn message(&self) -> String {
        self.to_string()
    }

    fn of_ranks(error: CoreError) -> Self {
        error
    }

    fn is_cancellation(&self) -> bool {
        matches!(self, Self::Cancelled)
    }
}

impl AgreedError for std::io::Error {
    fn message(&self) -> String {
        self.to_string()
    }

    fn of_ranks(error: CoreError) -> Self {
        Self::other(error)
    }
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

    /// Collective. Returns the least of the values of all ranks.
    fn least_u64(&self, value: u64) -> Result<u64> {
        Ok(self.all_gather_u64(value)?.into_iter().min().unwrap_or(value))
    }

    /// Collective. Checks that all ranks have the same options, given as text.
    ///
    /// # Errors
    /// [`CoreError::PlansDiffer`] on every rank if a rank has other options than the first.
    fn check_same_options(&self, options: &str) -> Result<()> {
        let digests = self.all_gather_u64(Digest::of(options.as_bytes()).crc64_nvme())?;
        match digests.iter().position(|digest| *digest != digests[0]) {
            Some(rank) => Err(CoreError::PlansDiffer { rank }),
            None => Ok(()),
        }
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

    /// Collective. Returns `local` if the step succeeded on every rank, so that no rank waits for one that gave up.
    ///
    /// # Errors
    /// If the step failed on any rank. A rank that failed returns its own error. The others return, by
    /// [`AgreedError::of_ranks`], the failure of the lowest rank that failed, or [`CoreError::Cancelled`] if ranks were
    /// only cancelled.
    fn agree<T, E: AgreedError>(
        &self,
        operation: &'static str,
        local: std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        if self.size() == 1 {
            return local;
        }
        // The first byte is the status, so that an error without a message is still an error.
        let message = match &local {
            Ok(_) => vec![SUCCEEDED],
            Err(error) if error.is_cancellation() => vec![CANCELLED],
            Err(error) => [&[FAILED], error.message().as_bytes()].concat(),
        };
        let all = self.all_gather_bytes(&message);
        let value = local?;
        let all = all.map_err(E::of_ranks)?;
        for (rank, message) in all.iter().enumerate() {
            if let [FAILED, words @ ..] = message.as_slice() {
                let message = String::from_utf8_lossy(words).into_owned();
                return Err(E::of_ranks(CoreError::RankFailed { operation, rank, message }));
            }
        }
        if all.iter().any(|message| message.first() == Some(&CANCELLED)) {
            return Err(E::of_ranks(CoreError::Cancelled));
        }
        Ok(value)
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
