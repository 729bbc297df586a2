//! Writing bits, least significant first, to a buffer whose length is known beforehand.

/// Bytes that must be writable beyond the last bit written: `flush` stores whole words.
pub(crate) const SLACK_LEN_BYTES: usize = 8;

/// Bits that may be put between two calls of `flush`: 64 less the up to 7 bits that a flush leaves behind.
pub(crate) const MAX_BITS_PER_FLUSH: u32 = 57;

/// A writer of bits.
pub(crate) struct BitWriter<'a> {
    out: &'a mut [u8],
    at: usize,
    bits: u64,
    count: u32,
}

impl<'a> BitWriter<'a> {
    /// Writes to the front of `out`, which must hold all that will be put, and `SLACK_LEN_BYTES` more.
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0, bits: 0, count: 0 }
    }

    /// Adds the low `count` bits of `value`, whose other bits must be zero.
    #[inline(always)]
    pub(crate) fn put(&mut self, value: u32, count: u32) {
        debug_assert!(count <= 32 && u64::from(value) >> count == 0 && self.count + count <= 64);
        self.bits |= u64::from(value) << self.count;
        self.count += count;
    }

    /// Moves whole bytes to the buffer.
    #[inline(always)]
    pub(crate) fn flush(&mut self) {
        self.out[self.at..self.at + 8].copy_from_slice(&self.bits.to_le_bytes());
        let whole_bytes = self.count / 8;
        self.at += whole_bytes as usize;
        // A shift by 64 would overflow; 63 bits are the most that may wait here.
        self.bits >>= whole_bytes * 8;
        self.count %= 8;
    }

    /// Fills the last byte with zero bits; returns the number of bytes written.
    pub(crate) fn finish(mut self) -> usize {
        self.flush();
        self.at + usize::from(self.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_significant_bit_first() {
        let mut out = [0xaa; 3 + SLACK_LEN_BYTES];
        let mut writer = BitWriter::new(&mut out);
        writer.put(0b1, 1);
        writer.put(0b01, 2);
        writer.flush();
        writer.put(0x1fff, 13);
        writer.put(0b1, 2);
        assert_eq!(writer.finish(), 3);
        assert_eq!(out[..3], [0b1111_1011, 0xff, 0b01]);
    }
}
