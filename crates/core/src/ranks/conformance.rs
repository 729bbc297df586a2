//! Conformance suite for implementations of [`Communicator`], run by the tests of each implementation.
//!
//! Every rank calls [`all`], which panics if the implementation is wrong.

use crate::error::CoreError;
use crate::ranks::communicator::{AgreedError, Communicator, CommunicatorExt};

/// Collective. Runs the whole suite.
pub fn all(ranks: &dyn Communicator) {
    assert!(ranks.rank() < ranks.size());
    gathers_messages_of_any_length(ranks);
    exchanges_messages_of_any_length(ranks);
    typed_collectives(ranks);
    agrees_on_errors(ranks);
    collectives_do_not_mix(ranks);
    ranks.barrier().expect("barrier");
}

fn gathers_messages_of_any_length(ranks: &dyn Communicator) {
    // Rank 0 sends nothing: an empty message must arrive as an empty message.
    let growing = vec![ranks.rank() as u8; ranks.rank() * 3];
    let all = ranks.all_gather_bytes(&growing).expect("all_gather_bytes");
    assert_eq!(all.len(), ranks.size());
    for (rank, message) in all.iter().enumerate() {
        assert_eq!(*message, vec![rank as u8; rank * 3]);
    }
    let none = ranks.all_gather_bytes(&[]).expect("all_gather_bytes of nothing");
    assert_eq!(none, vec![Vec::<u8>::new(); ranks.size()]);
    // Larger than the eager limit of MPI implementations, so that sends in the wrong order would hang.
    let large = vec![ranks.rank() as u8; 300_000];
    let all = ranks.all_gather_bytes(&large).expect("all_gather_bytes of much");
    assert!(all.iter().enumerate().all(|(rank, message)| *message == vec![rank as u8; 300_000]));
}

fn exchanges_messages_of_any_length(ranks: &dyn Communicator) {
    let (rank, size) = (ranks.rank(), ranks.size());
    let message = |from: usize, to: usize, scale: usize| vec![(from * size + to) as u8; (from + 2 * to) * scale];
    for scale in [0, 1, 50_000] {
        let send = (0..size).map(|to| message(rank, to, scale)).collect();
        let got = ranks.exchange_bytes(send).expect("exchange_bytes");
        let want: Vec<_> = (0..size).map(|from| message(from, rank, scale)).collect();
        assert_eq!(got, want);
    }
    // Only one pair communicates.
    let mut send = vec![Vec::new(); size];
    if rank == 0 {
        send[size - 1] = b"to the last".to_vec();
    }
    let got = ranks.exchange_bytes(send).expect("exchange_bytes of one message");
    for (from, message) in got.iter().enumerate() {
        let expected: &[u8] = if from == 0 && rank == size - 1 { b"to the last" } else { b"" };
        assert_eq!(message, expected);
    }
    // A wrong number of messages is refused on every rank, before anything is sent.
    let wrong = ranks.exchange_bytes(vec![Vec::new(); size + 1]);
    assert!(matches!(wrong, Err(CoreError::MessageCount { .. })), "{wrong:?}");
}

fn typed_collectives(ranks: &dyn Communicator) {
    let (rank, size) = (ranks.rank(), ranks.size() as u64);
    assert_eq!(ranks.all_gather_u64(rank as u64 * 7).expect("gather"), (0..size).map(|r| r * 7).collect::<Vec<_>>());
    let values = ranks.all_gather_values("gather", &(rank, vec![format!("rank {rank}"); rank])).expect("gather");
    assert_eq!(values, (0..ranks.size()).map(|r| (r, vec![format!("rank {r}"); r])).collect::<Vec<_>>());
    let before = (0..rank as u64).map(|r| r + 1).sum::<u64>();
    assert_eq!(ranks.exclusive_scan_sum(rank as u64 + 1).expect("scan"), before);
    for root in 0..ranks.size() {
        let words = format!("from {rank}");
        assert_eq!(ranks.broadcast(root, words.as_bytes()).expect("broadcast"), format!("from {root}").into_bytes());
    }
    assert!(ranks.broadcast(ranks.size(), b"").is_err());
}

/// An error of a step, as the conformance suite needs it.
#[derive(Debug, PartialEq, Eq)]
enum StepError {
    Own(&'static str),
    Cancelled,
    OfRanks(String),
}

impl AgreedError for StepError {
    fn message(&self) -> String {
        match self {
            Self::Own(message) => (*message).to_owned(),
            other => format!("{other:?}"),
        }
    }

    fn of_ranks(error: CoreError) -> Self {
        match error {
            CoreError::Cancelled => Self::Cancelled,
            other => Self::OfRanks(other.to_string()),
        }
    }

    fn is_cancellation(&self) -> bool {
        matches!(self, Self::Cancelled)
    }
}

fn agrees_on_errors(ranks: &dyn Communicator) {
    use StepError::{Cancelled, OfRanks, Own};
    let (rank, size) = (ranks.rank(), ranks.size());
    let last = size - 1;
    assert_eq!(ranks.agree::<_, StepError>("open", Ok(rank)), Ok(rank));
    // A rank that failed keeps its own error; the others get its message.
    let local = if rank == last { Err(Own("no such file: a.h5")) } else { Ok(()) };
    let failed = || OfRanks(format!("open: rank {last} failed: no such file: a.h5"));
    assert_eq!(ranks.agree("open", local), Err(if rank == last { Own("no such file: a.h5") } else { failed() }));
    // An error without a message is still an error; of several, the lowest rank's is reported.
    let local = if rank == 1 { Ok(()) } else { Err(Own("")) };
    let expected = if rank == 1 { OfRanks("open: rank 0 failed: ".to_owned()) } else { Own("") };
    assert_eq!(ranks.agree("open", local), Err(expected));
    // A cancellation reaches all ranks, unless another rank failed.
    let local = if rank == 0 { Err(Cancelled) } else { Ok(()) };
    assert_eq!(ranks.agree("open", local), Err(Cancelled));
    if size > 2 {
        let local = match rank {
            0 => Err(Cancelled),
            1 => Err(Own("disk full")),
            _ => Ok(()),
        };
        let expected = match rank {
            0 => Cancelled,
            1 => Own("disk full"),
            _ => OfRanks("open: rank 1 failed: disk full".to_owned()),
        };
        assert_eq!(ranks.agree("open", local), Err(expected));
    }
    // The communicator still works after an agreed error.
    assert_eq!(ranks.agree::<_, StepError>("open", Ok(())), Ok(()));
}

fn collectives_do_not_mix(ranks: &dyn Communicator) {
    for step in 0..50u64 {
        let value = step * 1000 + ranks.rank() as u64;
        let want: Vec<_> = (0..ranks.size() as u64).map(|rank| step * 1000 + rank).collect();
        assert_eq!(ranks.all_gather_u64(value).expect("gather"), want);
        if step % 7 == 0 {
            ranks.barrier().expect("barrier");
        }
    }
}
