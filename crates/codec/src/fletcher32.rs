//! HDF5's Fletcher-32 checksum: four bytes, little-endian, at the end of the filtered chunk.
//!
//! The sum runs over big-endian 16-bit words; an odd last byte counts as the high half of a word. On little-endian
//! machines, HDF5 before 1.6.3 wrote the sum with the bytes of each half swapped, so reading accepts both orders.

use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;

/// Length of the stored checksum.
pub const CHECKSUM_LEN_BYTES: usize = 4;

/// Number of columns summed in parallel: two SSE registers of 32-bit sums.
const LANES: usize = 8;
const LANES_LEN_BYTES: usize = LANES * 2;

/// Rows of lanes per block. A lane's second sum is at most 65535 · n(n+1)/2, which stays below 2^32 up to n = 361.
const ROWS_PER_BLOCK: usize = 352;

/// Computes the checksum of `bytes`.
pub fn fletcher32(bytes: &[u8]) -> u32 {
    // Both sums are kept as exact remainders modulo 65535. The reference implementation folds carries instead, which
    // maps a non-zero multiple of 65535 to 65535 and only a sum without any non-zero word to 0; `any_set` distinguishes
    // the two.
    const MODULUS: u64 = 65535;
    let (mut sum1, mut sum2, mut any_set) = (0u64, 0u64, false);
    let mut add_words = |words: u64, first: u64, second: u64| {
        any_set |= first != 0;
        sum2 = (sum2 + sum1 * words + second) % MODULUS;
        sum1 = (sum1 + first) % MODULUS;
    };

    let mut blocks = bytes.chunks(ROWS_PER_BLOCK * LANES_LEN_BYTES);
    for block in &mut blocks {
        let rows = block.chunks_exact(LANES_LEN_BYTES);
        let (row_count, rest) = (rows.len() as u64, rows.remainder());
        let (mut plain, mut weighted) = ([0u32; LANES], [0u32; LANES]);
        for row in rows {
            for lane in 0..LANES {
                plain[lane] += u32::from(u16::from_be_bytes([row[2 * lane], row[2 * lane + 1]]));
                weighted[lane] += plain[lane];
            }
        }
        // The word in row k, lane l counts N - (LANES k + l) times in the second sum, with N = LANES n words in all.
        // `weighted` contains it n - k times, so LANES times that exceeds it by l.
        let (mut first, mut second) = (0u64, 0u64);
        for lane in 0..LANES {
            first += u64::from(plain[lane]);
            second += LANES as u64 * u64::from(weighted[lane]) - lane as u64 * u64::from(plain[lane]);
        }
        add_words(row_count * LANES as u64, first, second);
        for word in rest.chunks(2) {
            let word = u64::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
            add_words(1, word, word);
        }
    }
    let represent = |sum: u64| if sum == 0 && any_set { MODULUS as u32 } else { sum as u32 };
    represent(sum2) << 16 | represent(sum1)
}

/// Appends the checksum of `out[start..]` to `out`.
pub(crate) fn append(out: &mut Vec<u8>, start: usize) {
    let sum = fletcher32(&out[start..]);
    out.extend_from_slice(&sum.to_le_bytes());
}

/// Verifies the checksum at the end of `stored` and returns the bytes before it.
pub(crate) fn verify(stored: &[u8]) -> Result<&[u8]> {
    const FILTER: KnownFilter = KnownFilter::Fletcher32;
    let Some((data, &sum)) = stored.split_last_chunk::<CHECKSUM_LEN_BYTES>() else {
        return Err(CodecError::Truncated { filter: FILTER });
    };
    let computed = fletcher32(data);
    let [a, b, c, d] = computed.to_le_bytes();
    if sum == [a, b, c, d] || sum == [b, a, d, c] {
        Ok(data)
    } else {
        Err(CodecError::Checksum { filter: FILTER, stored: u32::from_le_bytes(sum), computed })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes the sum by definition, one word at a time with carries folded back.
    fn by_definition(bytes: &[u8]) -> u32 {
        let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
        let (mut sum1, mut sum2) = (0u32, 0u32);
        for word in bytes.chunks(2) {
            sum1 = fold(sum1 + u32::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)])));
            sum2 = fold(sum2 + sum1);
        }
        fold(sum2) << 16 | fold(sum1)
    }

    #[test]
    fn extremes() {
        for len in [0, 1, 2, 3, 15, 16, 17, 5631, 5632, 5633, 100_000] {
            for byte in [0, 1, 0x80, 0xff] {
                let bytes = vec![byte; len];
                assert_eq!(fletcher32(&bytes), by_definition(&bytes), "{len} bytes of {byte}");
            }
        }
    }

    #[test]
    fn both_byte_orders_pass_and_others_do_not() {
        let mut stored = b"the quick brown fox".to_vec();
        append(&mut stored, 0);
        let end = stored.len();
        assert_eq!(verify(&stored), Ok(&b"the quick brown fox"[..]));
        stored.swap(end - 4, end - 3);
        assert!(verify(&stored).is_err());
        stored.swap(end - 2, end - 1);
        assert!(verify(&stored).is_ok());
        assert_eq!(verify(b"abc"), Err(CodecError::Truncated { filter: KnownFilter::Fletcher32 }));
    }

    proptest! {
        #[test]
        fn equals_the_definition(bytes in proptest::collection::vec(any::<u8>(), 0..20_000)) {
            prop_assert_eq!(fletcher32(&bytes), by_definition(&bytes));
        }
    }
}
