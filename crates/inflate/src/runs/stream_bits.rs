//! Bits of a stream of any length, in both orders.

use crate::stream::BitSource;

const WORD_LEN_BYTES: usize = 8;

/// Bits of a stream in both orders, followed by zeros.
#[derive(Default)]
pub(super) struct StreamBits {
    /// The stream, followed by a word of zeros.
    stored: Vec<u8>,
    /// The stream with the bits of each byte reversed.
    reversed: Vec<u8>,
}

impl StreamBits {
    #[inline(always)]
    pub(super) fn fill(&mut self, stored: &[u8]) {
        self.stored.clear();
        self.stored.extend_from_slice(stored);
        self.stored.extend_from_slice(&[0; WORD_LEN_BYTES]);
        self.reversed.clear();
        self.reversed.extend(self.stored.iter().map(|byte| byte.reverse_bits()));
    }
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> [u8; WORD_LEN_BYTES] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default()
}

impl BitSource for StreamBits {
    #[inline(always)]
    fn low_first(&self, at_bit: usize) -> u64 {
        u64::from_le_bytes(word(&self.stored, at_bit >> 3)) >> (at_bit & 7)
    }

    #[inline(always)]
    fn high_first(&self, at_bit: usize) -> u64 {
        u64::from_be_bytes(word(&self.reversed, at_bit >> 3)) << (at_bit & 7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_in_both_orders_and_zeros_behind() {
        let stored: Vec<u8> = (0..40u32).map(|at| (at * 73 + 41) as u8).collect();
        let mut bits = StreamBits::default();
        bits.fill(&[0xff; 50]);
        bits.fill(&stored);
        for at_bit in 0..500 {
            let (low, high) = (bits.low_first(at_bit), bits.high_first(at_bit));
            for step in 0..57 {
                let at = at_bit + step;
                let expected = stored.get(at / 8).map_or(0, |byte| u64::from(byte >> (at % 8) & 1));
                assert_eq!(low >> step & 1, expected);
                assert_eq!(high >> (63 - step) & 1, expected);
            }
        }
    }
}
