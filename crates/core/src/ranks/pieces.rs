//! Messages of any length over collectives that move words and pieces with 31-bit lengths, as provided by MPI and by
//! callers that bring their own ranks.
//!
//! How ranks wait is defined in `pause`. Invariants: a collective moves at most the limit to or from a rank, so counts
//! and offsets fit; every buffer passed on has memory behind it, even if it is empty, because an empty buffer's pointer
//! may have a special meaning (Open MPI may take Rust's for `MPI_IN_PLACE`).

use crate::error::{CoreError, Result};
use crate::ranks::communicator::Communicator;

/// Maximum number of bytes that one collective moves to or from a rank; longer messages are split.
pub const MAX_PIECE_BYTES: usize = 1 << 30;

/// Length or offset of a piece.
pub type Count = i32;

/// One piece per rank.
#[derive(Debug)]
pub struct PieceRow {
    /// All pieces, back to back.
    pub bytes: Vec<u8>,
    /// Length of each piece.
    pub counts: Vec<Count>,
    /// Offset of each piece.
    pub starts: Vec<Count>,
}

/// Collectives required of a transport.
pub trait PieceTransport: Communicator {
    /// Collective. Gathers one word per rank, in rank order.
    fn all_gather_words(&self, word: u64) -> Result<Vec<u64>>;

    /// Collective. Sends word `i` of `words` to rank `i` and returns the words for this rank, in rank order.
    fn all_to_all_words(&self, words: &[u64]) -> Result<Vec<u64>>;

    /// Collective. Gathers the pieces of all ranks in `got`; `local` is this rank's piece.
    fn all_gather_pieces(&self, local: &[u8], got: &mut PieceRow) -> Result<()>;

    /// Collective. Sends piece `i` of `row` to rank `i`; `got` has space for the pieces for this rank.
    fn all_to_all_pieces(&self, row: &PieceRow, got: &mut PieceRow) -> Result<()>;
}

/// Collective. Implements [`Communicator::all_gather_bytes`].
pub fn all_gather(ranks: &dyn PieceTransport, limit_bytes: usize, send: &[u8]) -> Result<Vec<Vec<u8>>> {
    let lens = ranks.all_gather_words(send.len() as u64)?;
    let step_len_bytes = step_len_bytes(ranks, limit_bytes);
    let mut messages: Vec<Vec<u8>> = vec![Vec::new(); lens.len()];
    let nothing = buffer(0);
    for step in 0..steps(&lens, step_len_bytes) {
        let mut got = row(&lens, step, step_len_bytes);
        let local_start = (step as usize).saturating_mul(step_len_bytes).min(send.len());
        let local = &send[local_start..][..got.counts[ranks.rank()] as usize];
        ranks.all_gather_pieces(if local.is_empty() { &nothing[..0] } else { local }, &mut got)?;
        take_pieces(&mut messages, &got);
    }
    Ok(messages)
}

/// Collective. Implements [`Communicator::exchange_bytes`].
pub fn exchange(ranks: &dyn PieceTransport, limit_bytes: usize, send: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let size = ranks.size();
    if send.len() != size {
        return Err(CoreError::MessageCount { operation: "exchange_bytes", got: send.len(), size });
    }
    let lens: Vec<u64> = send.iter().map(|message| message.len() as u64).collect();
    let step_len_bytes = step_len_bytes(ranks, limit_bytes);
    // All ranks take part in as many steps as the longest message of any rank needs.
    let longest = ranks.all_gather_words(lens.iter().copied().max().unwrap_or(0))?;
    let steps = steps(&longest, step_len_bytes);
    let got_lens = if steps == 0 { vec![0; size] } else { ranks.all_to_all_words(&lens)? };
    let mut messages: Vec<Vec<u8>> = vec![Vec::new(); size];
    for step in 0..steps {
        let mut sent = row(&lens, step, step_len_bytes);
        for ((message, count), start) in send.iter().zip(&sent.counts).zip(&sent.starts) {
            let from = (step as usize).saturating_mul(step_len_bytes).min(message.len());
            sent.bytes[*start as usize..][..*count as usize].copy_from_slice(&message[from..][..*count as usize]);
        }
        let mut got = row(&got_lens, step, step_len_bytes);
        ranks.all_to_all_pieces(&sent, &mut got)?;
        take_pieces(&mut messages, &got);
    }
    Ok(messages)
}

/// Returns the number of bytes of each message that fit into a piece.
fn step_len_bytes(ranks: &dyn PieceTransport, limit_bytes: usize) -> usize {
    (limit_bytes / ranks.size()).max(1)
}

/// Returns the number of steps needed for messages of these lengths.
fn steps(lens: &[u64], step_len_bytes: usize) -> u64 {
    lens.iter().copied().max().unwrap_or(0).div_ceil(step_len_bytes as u64)
}

/// Allocates a row for piece number `step` of messages of these lengths.
fn row(lens: &[u64], step: u64, step_len_bytes: usize) -> PieceRow {
    let step_len_bytes = step_len_bytes as u64;
    // Each is at most its share of a limit that fits 31 bits.
    let counts: Vec<Count> = lens
        .iter()
        .map(|len| len.saturating_sub(step.saturating_mul(step_len_bytes)).min(step_len_bytes) as Count)
        .collect();
    let starts = counts.iter().scan(0, |next, count| {
        let start = *next;
        *next += count;
        Some(start)
    });
    let starts: Vec<Count> = starts.collect();
    let total = counts.iter().map(|count| *count as usize).sum();
    PieceRow { bytes: buffer(total), counts, starts }
}

/// Allocates a buffer of `len_bytes` with memory behind it, even if the length is zero.
fn buffer(len_bytes: usize) -> Vec<u8> {
    vec![0; len_bytes.max(1)]
}

/// Appends the received piece of each message.
fn take_pieces(messages: &mut [Vec<u8>], got: &PieceRow) {
    for ((message, count), start) in messages.iter_mut().zip(&got.counts).zip(&got.starts) {
        message.extend_from_slice(&got.bytes[*start as usize..][..*count as usize]);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ranks::conformance;
    use crate::ranks::threads::Threads;

    /// Ranks as threads that exchange messages in pieces of limited length.
    #[derive(Debug)]
    struct PieceRanks<'a> {
        ranks: &'a dyn Communicator,
        limit_bytes: usize,
    }

    fn place(all: &[Vec<u8>], got: &mut PieceRow) {
        for (rank, piece) in all.iter().enumerate() {
            assert_eq!(piece.len(), got.counts[rank] as usize);
            got.bytes[got.starts[rank] as usize..][..piece.len()].copy_from_slice(piece);
        }
    }

    fn word(bytes: &[u8]) -> u64 {
        u64::from_le_bytes(bytes.try_into().unwrap())
    }

    impl PieceTransport for PieceRanks<'_> {
        fn all_gather_words(&self, local: u64) -> Result<Vec<u64>> {
            Ok(self.ranks.all_gather_bytes(&local.to_le_bytes())?.iter().map(|bytes| word(bytes)).collect())
        }

        fn all_to_all_words(&self, words: &[u64]) -> Result<Vec<u64>> {
            let send = words.iter().map(|word| word.to_le_bytes().to_vec()).collect();
            Ok(self.ranks.exchange_bytes(send)?.iter().map(|bytes| word(bytes)).collect())
        }

        fn all_gather_pieces(&self, local: &[u8], got: &mut PieceRow) -> Result<()> {
            let limit = self.limit_bytes.max(self.size());
            assert!(got.counts.iter().map(|count| *count as usize).sum::<usize>() <= limit && !got.bytes.is_empty());
            place(&self.ranks.all_gather_bytes(local)?, got);
            Ok(())
        }

        fn all_to_all_pieces(&self, row: &PieceRow, got: &mut PieceRow) -> Result<()> {
            let limit = self.limit_bytes.max(self.size());
            assert!(row.counts.iter().map(|count| *count as usize).sum::<usize>() <= limit && !row.bytes.is_empty());
            let piece = |(start, count): (&Count, &Count)| row.bytes[*start as usize..][..*count as usize].to_vec();
            place(&self.ranks.exchange_bytes(row.starts.iter().zip(&row.counts).map(piece).collect())?, got);
            Ok(())
        }
    }

    impl Communicator for PieceRanks<'_> {
        fn rank(&self) -> usize {
            self.ranks.rank()
        }

        fn size(&self) -> usize {
            self.ranks.size()
        }

        fn barrier(&self) -> Result<()> {
            self.ranks.barrier()
        }

        fn all_gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>> {
            all_gather(self, self.limit_bytes, send)
        }

        fn exchange_bytes(&self, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
            exchange(self, self.limit_bytes, &send)
        }
    }

    #[test]
    fn messages_in_pieces_conform() {
        for limit_bytes in [20_000, 65_537, MAX_PIECE_BYTES] {
            for size in [1, 2, 3, 5] {
                Threads::run(size, |ranks| conformance::all(&PieceRanks { ranks, limit_bytes }));
            }
        }
    }

    #[test]
    fn pieces_of_a_byte_make_whole_messages() {
        for limit_bytes in [0, 1, 3, 7] {
            Threads::run(3, |threads| {
                let ranks = PieceRanks { ranks: threads, limit_bytes };
                let message = |from: usize, to: usize| vec![(from * 3 + to) as u8; from * 4 + to * 9];
                let all = ranks.all_gather_bytes(&message(ranks.rank(), 0)).unwrap();
                assert!(all.iter().enumerate().all(|(from, got)| *got == message(from, 0)));
                let got = ranks.exchange_bytes((0..3).map(|to| message(ranks.rank(), to)).collect()).unwrap();
                assert!(got.iter().enumerate().all(|(from, got)| *got == message(from, ranks.rank())));
            });
        }
    }
}
