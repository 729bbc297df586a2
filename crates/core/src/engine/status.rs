//! States that ranks report to each other before collective steps, so that the failure of one rank ends the run on all.

use super::EngineError;
use crate::error::CoreError;
use crate::ranks::communicator::{Communicator, Rank};
use crate::ranks::message::number;

/// Name of the operation in errors of other ranks.
pub(super) const OPERATION: &str = "execute the plan";

/// Collective. Gathers the facts of each rank before any work begins. If one fails, all do: that rank with its own
/// error, the others with its message.
pub(super) fn agree_at_start<E: std::error::Error>(
    communicator: &dyn Communicator,
    local: Result<Vec<u8>, CoreError>,
) -> Result<Vec<Vec<u8>>, EngineError<E>> {
    let (verdict, local_error) = match local {
        Ok(payload) => (RankStatus::Healthy(payload), None),
        Err(error) => {
            (RankStatus::Failed(Failure { ordinal: 0, cancelled: false, message: error.to_string() }), Some(error))
        }
    };
    let all = communicator.all_gather_bytes(&verdict.to_bytes())?;
    if let Some(error) = local_error {
        return Err(error.into());
    }
    let mut payloads = Vec::with_capacity(all.len());
    for (rank, bytes) in all.iter().enumerate() {
        match RankStatus::from_bytes(bytes) {
            RankStatus::Healthy(payload) => payloads.push(payload),
            RankStatus::Failed(failure) => return Err(failure.as_error(rank).into()),
        }
    }
    Ok(payloads)
}

/// State that a rank reports to the others before each collective step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RankStatus {
    Healthy(Vec<u8>),
    Failed(Failure),
}

/// A failure, as seen by other ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// Number of the tile at which it happened.
    pub ordinal: u64,
    pub cancelled: bool,
    pub message: String,
}

impl Failure {
    pub(super) fn as_error(&self, rank: Rank) -> CoreError {
        if self.cancelled {
            CoreError::Cancelled
        } else {
            CoreError::RankFailed { operation: OPERATION, rank, message: self.message.clone() }
        }
    }
}

impl RankStatus {
    pub(super) fn ordinal(&self) -> Option<u64> {
        match self {
            Self::Healthy(_) => None,
            Self::Failed(failure) => Some(failure.ordinal),
        }
    }

    pub(super) fn payload(self) -> Vec<u8> {
        match self {
            Self::Healthy(payload) => payload,
            Self::Failed(_) => Vec::new(),
        }
    }

    /// Encodes the verdict. The first byte is 0 for success, 1 for failure and 2 for cancellation. For a failure, the
    /// tile and the message follow.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Healthy(payload) => [&[0], payload.as_slice()].concat(),
            Self::Failed(Failure { ordinal, cancelled, message }) => {
                [&[1 + u8::from(*cancelled)], ordinal.to_le_bytes().as_slice(), message.as_bytes()].concat()
            }
        }
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        match bytes.split_first() {
            Some((0, payload)) => Self::Healthy(payload.to_vec()),
            Some((kind, rest)) => {
                let (ordinal, message) = rest.split_at(rest.len().min(8));
                Self::Failed(Failure {
                    ordinal: number(ordinal),
                    cancelled: *kind == 2,
                    message: String::from_utf8_lossy(message).into_owned(),
                })
            }
            None => Self::Failed(Failure { ordinal: 0, cancelled: false, message: "sent nothing".to_owned() }),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn verdicts_travel() {
        for verdict in [
            RankStatus::Healthy(vec![]),
            RankStatus::Healthy(vec![1, 2]),
            RankStatus::Failed(Failure { ordinal: 1 << 40, cancelled: false, message: String::new() }),
            RankStatus::Failed(Failure { ordinal: 0, cancelled: true, message: "cancelled".to_owned() }),
        ] {
            assert_eq!(RankStatus::from_bytes(&verdict.to_bytes()), verdict);
        }
        assert!(matches!(RankStatus::from_bytes(&[]), RankStatus::Failed(_)));
    }
}
