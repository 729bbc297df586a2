//! Regrouping between ranks: every rank sends the pieces it holds to the owners of their tiles, one message per peer.
//!
//! Pieces that the owner reads itself are not sent. Invariant: an owner receives a tile's pieces ordered by sending
//! rank and, within a rank, in the order in which they were put, independent of timing.

use crate::error::{CoreError, Result};
use crate::plan::Tile;
use crate::plan::extent::{Coordinates, MAX_RANK, product};
use crate::ranks::communicator::{Communicator, Rank};
use crate::ranks::message::number;

/// Fixed part of the header of a piece: array, index, length and number of axes. Two numbers per axis follow.
const HEAD_LEN_BYTES: usize = size_of::<u32>() + 2 * size_of::<u64>() + 1;

/// Returns the length of a piece in a message, including its header with the first element and the number of elements
/// per axis.
pub const fn piece_len_bytes(axes: usize, elements_len_bytes: u64) -> u64 {
    (HEAD_LEN_BYTES + 2 * size_of::<u64>() * axes) as u64 + elements_len_bytes
}

/// Outgoing pieces, packed per owner.
#[derive(Debug)]
pub struct Outbox {
    messages: Vec<Vec<u8>>,
}

impl Outbox {
    /// Creates an empty outbox for `ranks` ranks.
    pub fn new(ranks: usize) -> Self {
        Self { messages: vec![Vec::new(); ranks] }
    }

    /// Returns the length of the packed pieces, for the budget.
    pub fn len_bytes(&self) -> u64 {
        self.messages.iter().map(|message| message.len() as u64).sum()
    }

    /// Returns the length of the message to each rank.
    pub fn message_lens(&self) -> impl Iterator<Item = usize> {
        self.messages.iter().map(Vec::len)
    }

    /// Packs a piece of `tile` for `owner`: `count` elements per axis, row-major, to be copied to `target` in the tile.
    /// Elements of one piece have the same length.
    ///
    /// # Errors
    /// If the rank does not exist, or `bytes` cannot be divided into `count` elements.
    pub fn put(&mut self, owner: Rank, tile: Tile, target: &[u64], count: &[u64], bytes: &[u8]) -> Result<()> {
        let size = self.messages.len();
        let Some(message) = self.messages.get_mut(owner) else {
            return Err(CoreError::NoSuchRank { operation: "regroup", rank: owner, size });
        };
        if target.len() != count.len() || count.len() > MAX_RANK {
            return Err(CoreError::RankTooLarge { rank: target.len().max(count.len()) });
        }
        let elements = product(count).and_then(|elements| usize::try_from(elements).ok()).unwrap_or(usize::MAX);
        if bytes.len().checked_rem(elements).unwrap_or(bytes.len()) != 0 {
            return Err(CoreError::MessageLength {
                operation: "regroup",
                got_bytes: bytes.len(),
                expected_bytes: bytes.len().next_multiple_of(elements.max(1)),
            });
        }
        message.extend_from_slice(&tile.array.to_le_bytes());
        message.extend_from_slice(&tile.index.to_le_bytes());
        message.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        message.push(count.len() as u8);
        for number in target.iter().chain(count) {
            message.extend_from_slice(&number.to_le_bytes());
        }
        message.extend_from_slice(bytes);
        Ok(())
    }

    /// Collective. Sends everything and receives the pieces of this rank's tiles.
    ///
    /// # Errors
    /// If the exchange fails or a message is truncated.
    pub fn exchange(self, communicator: &dyn Communicator) -> Result<Inbox> {
        Inbox::unpack(communicator.exchange_bytes(self.messages)?)
    }
}

/// A piece received from another rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedPiece<'a> {
    /// Sending rank.
    pub from: Rank,
    /// Position of the first element in the tile, per axis.
    pub target: Coordinates,
    /// Number of elements per axis.
    pub count: Coordinates,
    /// Elements of the piece, row-major.
    pub bytes: &'a [u8],
}

/// Received pieces, indexed by tile.
#[derive(Debug, Default)]
pub struct Inbox {
    messages: Vec<Vec<u8>>,
    /// Entries sorted by tile, then by sender and order of sending.
    entries: Vec<RegroupEntry>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RegroupEntry {
    tile: Tile,
    from: Rank,
    /// Offset of the piece's header in its message.
    at: usize,
    rank: usize,
    len_bytes: usize,
}

impl Inbox {
    fn unpack(messages: Vec<Vec<u8>>) -> Result<Self> {
        let mut entries = Vec::new();
        for (from, message) in messages.iter().enumerate() {
            let cut = |expected_bytes| CoreError::MessageLength {
                operation: "regroup",
                got_bytes: message.len(),
                expected_bytes,
            };
            let mut at = 0;
            while at < message.len() {
                let first = at + HEAD_LEN_BYTES;
                let head = message.get(at..first).ok_or_else(|| cut(first))?;
                let tile = Tile { array: number(&head[..4]) as u32, index: number(&head[4..12]) };
                let len_bytes = usize::try_from(number(&head[12..20])).unwrap_or(usize::MAX);
                let rank = usize::from(head[20]);
                let entry = RegroupEntry { tile, from, at: first, rank, len_bytes };
                let end = (first + 16 * rank).checked_add(len_bytes).filter(|end| *end <= message.len());
                at = end.ok_or_else(|| cut(len_bytes))?;
                entries.push(entry);
            }
        }
        entries.sort_unstable();
        Ok(Self { messages, entries })
    }

    /// Returns whether there is a piece of `tile`.
    pub fn has(&self, tile: Tile) -> bool {
        self.entries.binary_search_by_key(&tile, |entry| entry.tile).is_ok()
    }

    /// Returns the tiles that have pieces, each once, in order.
    pub fn tiles(&self) -> impl Iterator<Item = Tile> {
        self.entries.chunk_by(|one, other| one.tile == other.tile).filter_map(|entries| Some(entries.first()?.tile))
    }

    /// Returns the pieces of `tile`.
    pub fn pieces(&self, tile: Tile) -> impl Iterator<Item = ReceivedPiece<'_>> {
        let first = self.entries.partition_point(|entry| entry.tile < tile);
        self.entries[first..].iter().take_while(move |entry| entry.tile == tile).map(|entry| {
            let (numbers, bytes) = self.messages[entry.from][entry.at..].split_at(16 * entry.rank);
            let (target, count) = numbers.split_at(8 * entry.rank);
            ReceivedPiece {
                from: entry.from,
                target: target.chunks_exact(8).map(number).collect(),
                count: count.chunks_exact(8).map(number).collect(),
                bytes: &bytes[..entry.len_bytes],
            }
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ranks::communicator::SingleProcess;
    use crate::ranks::threads::Threads;

    #[test]
    fn pieces_arrive_at_their_owners_in_order() {
        for size in 1..=4 {
            Threads::run(size, |ranks| {
                let mut outbox = Outbox::new(size);
                for index in (0..6u64).rev() {
                    for part in 0..2u64 {
                        let bytes = [ranks.rank() as u8, index as u8, part as u8, 0];
                        let tile = Tile { array: 1, index };
                        outbox.put(index as usize % size, tile, &[part, index], &[1, 2], &bytes).unwrap();
                    }
                }
                outbox.put(0, Tile { array: 0, index: 9 }, &[], &[], &[1, 2]).unwrap();
                let inbox = outbox.exchange(ranks).unwrap();
                let tiles: Vec<(u32, u64)> = inbox.tiles().map(|tile| (tile.array, tile.index)).collect();
                let local = (0..6).filter(|index| *index as usize % size == ranks.rank()).map(|index| (1, index));
                let of_all = (ranks.rank() == 0).then_some((0, 9));
                assert!(of_all.into_iter().chain(local).eq(tiles));
                for index in 0..6u64 {
                    let got: Vec<_> = inbox.pieces(Tile { array: 1, index }).collect();
                    if index as usize % size != ranks.rank() {
                        assert!(got.is_empty());
                        continue;
                    }
                    assert_eq!(got.len(), 2 * size);
                    for (number, piece) in got.iter().enumerate() {
                        let part = number as u64 % 2;
                        assert_eq!(piece.from, number / 2);
                        assert_eq!(
                            (piece.target.as_slice(), piece.count.as_slice()),
                            ([part, index].as_slice(), [1, 2].as_slice())
                        );
                        assert_eq!(piece.bytes, [piece.from as u8, index as u8, part as u8, 0]);
                    }
                }
                assert_eq!(inbox.pieces(Tile { array: 0, index: 9 }).count(), if ranks.rank() == 0 { size } else { 0 });
            });
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let tile = Tile { array: 0, index: 0 };
        let mut outbox = Outbox::new(1);
        assert!(outbox.put(1, tile, &[0], &[1], &[0; 4]).is_err());
        assert!(outbox.put(0, tile, &[0], &[3], &[0; 4]).is_err());
        assert!(outbox.put(0, tile, &[0], &[0], &[0; 4]).is_err());
        assert!(outbox.put(0, tile, &[0], &[u64::MAX], &[0; 4]).is_err());
        assert!(outbox.put(0, tile, &[0, 0], &[1], &[0; 4]).is_err());
        outbox.put(0, tile, &[0], &[1], &[0; 4]).unwrap();
        assert_eq!(outbox.len_bytes(), piece_len_bytes(1, 4));
        let whole = outbox.messages[0].clone();
        assert!(outbox.exchange(&SingleProcess).is_ok());
        for cut in 1..whole.len() {
            assert!(Inbox::unpack(vec![whole[..cut].to_vec()]).is_err(), "cut at {cut}");
        }
    }
}
