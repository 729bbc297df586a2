//! What ranks send each other: how many messages, how long.

use serde::Serialize;

/// Messages of one rank to others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Messages sent.
    pub messages: u64,
    /// Their bytes.
    pub len_bytes: u64,
    /// Messages by the base-2 logarithm of their length, rounded down.
    pub by_log2_len: Vec<u64>,
}

impl Traffic {
    /// Counts what `rank` sends in one exchange, a message of length i to rank i; nothing is sent to itself.
    pub(crate) fn count(&mut self, rank: usize, lens: impl Iterator<Item = usize>) {
        let to_others = lens.enumerate().filter(|(to, len)| *to != rank && *len > 0);
        for len in to_others.map(|(_, len)| len) {
            let log2 = len.ilog2() as usize;
            self.by_log2_len.resize(self.by_log2_len.len().max(log2 + 1), 0);
            self.by_log2_len[log2] += 1;
            self.messages += 1;
            self.len_bytes += len as u64;
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let words = [self.messages, self.len_bytes].into_iter().chain(self.by_log2_len.iter().copied());
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// Of a message of [`Traffic::to_bytes`]; what is missing counts as nothing.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let (messages, len_bytes) = (words.next().unwrap_or(0), words.next().unwrap_or(0));
        Self { messages, len_bytes, by_log2_len: words.collect() }
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
        assert_eq!(Traffic::from_bytes(&traffic.to_bytes()), traffic);
        assert_eq!(Traffic::from_bytes(&[]), Traffic::default());
    }
}
