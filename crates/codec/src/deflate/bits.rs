//! Writer of bits, least significant first, to a buffer of known length.

/// Number of bytes that must be writable after the last bit: `flush` stores whole words.
pub(crate) const SLACK_LEN_BYTES: usize = 8;

/// Maximum number of bits that may be put between two calls of `flush`: 64 minus the up to 7 bits that a flush leaves.
pub(crate) const MAX_BITS_PER_FLUSH: u32 = 57;

/// Bits that do not fill a byte yet, between the end of one block and the start of the next.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Remainder {
    bits: u64,
    /// Number of bits, at most 7.
    count: u32,
}

/// Writer of bits.
pub(crate) struct BitWriter<'a> {
    out: &'a mut [u8],
    at: usize,
    bits: u64,
    count: u32,
}

impl<'a> BitWriter<'a> {
    /// Creates a writer to the front of `out` that begins with the bits of `remainder`. `out` must have room for all
    /// bits and `SLACK_LEN_BYTES` more.
    pub(crate) fn new(out: &'a mut [u8], remainder: Remainder) -> Self {
        Self { out, at: 0, bits: remainder.bits, count: remainder.count }
    }

    /// Adds the low `count` bits of `value`, whose other bits must be zero.
    #[inline(always)]
    pub(crate) fn put(&mut self, value: u32, count: u32) {
        debug_assert!(count <= 32 && u64::from(value) >> count == 0 && self.count + count <= 64);
        // Wrapping, because checks of shifts and sums would cost more than the work itself; the condition above rules
        // overflow out.
        self.bits |= u64::from(value).wrapping_shl(self.count);
        self.count = self.count.wrapping_add(count);
    }

    /// Moves whole bytes to the buffer.
    #[inline(always)]
    pub(crate) fn flush(&mut self) {
        let word: &mut [u8; 8] = self.out[self.at..].first_chunk_mut().expect("slack was left");
        *word = self.bits.to_le_bytes();
        self.at = self.at.wrapping_add(self.count as usize / 8);
        // At most 63 bits are pending here, so the shift is by at most 56.
        self.bits = self.bits.wrapping_shr(self.count & !7);
        self.count &= 7;
    }

    /// Returns the number of whole bytes written, and the bits after them.
    pub(crate) fn finish(mut self) -> (usize, Remainder) {
        self.flush();
        (self.at, Remainder { bits: self.bits, count: self.count })
    }
}

/// Appends the remainder, then the `len_bits` that `write` puts; returns the new remainder.
#[inline(always)]
pub(crate) fn append(
    before: Remainder,
    len_bits: u64,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut BitWriter<'_>),
) -> Remainder {
    let start = out.len();
    let all_bits = u64::from(before.count) + len_bits;
    out.resize(start + all_bits.div_ceil(8) as usize + SLACK_LEN_BYTES, 0);
    let mut writer = BitWriter::new(&mut out[start..], before);
    write(&mut writer);
    let (whole_bytes, remainder) = writer.finish();
    debug_assert_eq!(8 * whole_bytes as u64 + u64::from(remainder.count), all_bits);
    out.truncate(start + whole_bytes);
    remainder
}

impl Remainder {
    /// Returns the number of bits.
    pub(crate) fn count(self) -> u32 {
        self.count
    }

    /// Appends the bits, if any, as a byte padded with zeros.
    pub(crate) fn append(self, out: &mut Vec<u8>) {
        if self.count > 0 {
            out.push(self.bits as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_significant_bit_first() {
        let mut out = vec![0xaa; 2 + SLACK_LEN_BYTES];
        let mut writer = BitWriter::new(&mut out, Remainder { bits: 1, count: 1 });
        writer.put(0b01, 2);
        writer.flush();
        writer.put(0x1fff, 13);
        writer.put(0b1, 2);
        let (len, remainder) = writer.finish();
        assert_eq!((len, remainder.count()), (2, 2));
        out.truncate(len);
        remainder.append(&mut out);
        assert_eq!(out[..3], [0b1111_1011, 0xff, 0b01]);
    }
}
