//! Reader of bits, most significant first, that checks for the end of the bytes.

/// Reader of bits.
pub(crate) struct MsbReader<'a> {
    rest: &'a [u8],
    /// Buffered bits; the low `count` bits are the next ones.
    bits: u64,
    count: u32,
}

impl<'a> MsbReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, bits: 0, count: 0 }
    }

    /// Reads the next `count` bits (at most 32) as a number; returns `None` if there are fewer.
    #[inline]
    pub(crate) fn read(&mut self, count: u32) -> Option<u32> {
        debug_assert!(count <= 32);
        if self.count < count {
            self.refill();
            if self.count < count {
                return None;
            }
        }
        self.count -= count;
        Some((self.bits >> self.count & ((1 << count) - 1)) as u32)
    }

    /// Reads the next `count` bits (at most 64) as a number; returns `None` if there are fewer.
    #[inline]
    pub(crate) fn read_wide(&mut self, count: u32) -> Option<u64> {
        if count <= 32 {
            return self.read(count).map(u64::from);
        }
        let high = u64::from(self.read(count - 32)?);
        Some(high << 32 | u64::from(self.read(32)?))
    }

    /// Returns the number of zero bits before the next one bit, which is also consumed; `None` if there is no one bit.
    #[inline]
    pub(crate) fn read_unary(&mut self) -> Option<u32> {
        let mut zeros = 0u32;
        loop {
            let ahead = self.bits & ((1u64 << self.count) - 1);
            if ahead != 0 {
                let first = 63 - ahead.leading_zeros();
                zeros = zeros.checked_add(self.count - 1 - first)?;
                self.count = first;
                return Some(zeros);
            }
            zeros = zeros.checked_add(self.count)?;
            self.count = 0;
            self.refill();
            if self.count == 0 {
                return None;
            }
        }
    }

    /// Takes whole bytes while there is room for them: at most 63 bits are buffered, so that shifts stay in range.
    #[inline]
    fn refill(&mut self) {
        while self.count <= 55 {
            let Some((&byte, rest)) = self.rest.split_first() else { return };
            self.rest = rest;
            self.bits = self.bits << 8 | u64::from(byte);
            self.count += 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_across_bytes() {
        let mut reader = MsbReader::new(&[0b1010_0000, 0b0000_0001, 0xff, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(reader.read(1), Some(1));
        assert_eq!(reader.read(0), Some(0));
        assert_eq!(reader.read(2), Some(1));
        assert_eq!(reader.read_unary(), Some(12));
        assert_eq!(reader.read_unary(), Some(0));
        assert_eq!(reader.read(7), Some(0x7f));
        assert_eq!(reader.read_wide(64), Some(0x0102_0304_0506_0708));
        assert_eq!(reader.read(1), None);
        assert_eq!(reader.read_unary(), None);
    }

    #[test]
    fn a_run_of_zeros_over_many_words() {
        let mut bytes = vec![0; 100];
        assert_eq!(MsbReader::new(&bytes).read_unary(), None);
        bytes.push(1);
        assert_eq!(MsbReader::new(&bytes).read_unary(), Some(807));
    }
}
