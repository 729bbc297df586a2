//! Statistics of the messages between ranks: number and lengths.

use crate::ranks::message::MessageReader;
use serde::Serialize;

/// Messages sent by one rank to others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Number of messages.
    pub messages: u64,
    /// Total length of the messages.
    pub len_bytes: u64,
    /// Number of messages by the base-2 logarithm of their length, rounded down.
    pub by_log2_len: Vec<u64>,
}

impl Traffic {
    /// Counts the messages that `rank` sends in one exchange, where entry `i` of `lens` goes to rank `i`; messages to
    /// itself are not counted.
    pub fn count(&mut self, rank: usize, lens: impl Iterator<Item = usize>) {
        let to_others = lens.enumerate().filter(|(to, len)| *to != rank && *len > 0);
        to_others.for_each(|(_, len)| self.send(len as u64));
    }

    /// Counts a message of this length, which must not be 0.
    pub fn send(&mut self, len_bytes: u64) {
        let log2 = len_bytes.ilog2() as usize;
        self.by_log2_len.resize(self.by_log2_len.len().max(log2 + 1), 0);
        self.by_log2_len[log2] += 1;
        self.messages += 1;
        self.len_bytes += len_bytes;
    }

    /// Adds the counts of other messages.
    pub fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.len_bytes += other.len_bytes;
        self.by_log2_len.resize(self.by_log2_len.len().max(other.by_log2_len.len()), 0);
        self.by_log2_len.iter_mut().zip(&other.by_log2_len).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Encodes the counters for another rank, preceded by their number.
    pub fn to_words(&self) -> impl Iterator<Item = u64> + '_ {
        let head = [self.messages, self.len_bytes, self.by_log2_len.len() as u64];
        head.into_iter().chain(self.by_log2_len.iter().copied())
    }

    /// Decodes the counters of another rank.
    pub fn from_words(words: &mut MessageReader<'_>) -> crate::error::Result<Self> {
        let [messages, len_bytes, lengths] = words.words()?;
        let by_log2_len = (0..lengths).map(|_| words.word()).collect::<Result<_, _>>()?;
        Ok(Self { messages, len_bytes, by_log2_len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_to_others_are_counted() {
        let mut traffic = Traffic::default();
        traffic.count(1, [5, 99, 0, 1].into_iter());
        assert_eq!(traffic, Traffic { messages: 2, len_bytes: 6, by_log2_len: vec![1, 0, 1] });
        let words = crate::ranks::message::encode_u64s(traffic.to_words());
        assert_eq!(Traffic::from_words(&mut MessageReader::new("a test", &words)).unwrap(), traffic);
        assert!(Traffic::from_words(&mut MessageReader::new("a test", &words[..40])).is_err());
        traffic.add(&Traffic { messages: 1, len_bytes: 2, by_log2_len: vec![0, 1] });
        assert_eq!(traffic, Traffic { messages: 3, len_bytes: 8, by_log2_len: vec![1, 1, 1] });
    }
}
