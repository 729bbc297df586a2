//! Parts of a zlib stream that all inflaters read: bits in both orders, header and checksum.

use crate::format::ADLER_LEN_BYTES;
use crate::libdeflate::adler32;

/// Minimum length of outputs for which the inflater of columns is worth its tables, with two streams interleaved: below
/// 64 KiB none was inflated faster than by libdeflate.
pub(crate) const MIN_LEN_BYTES: usize = 1 << 16;

/// Length of the shortest stream: header, an empty block and the checksum.
pub(crate) const MIN_STREAM_LEN_BYTES: usize = 8;

/// Number of bits that a [`BitSource`] guarantees.
pub(crate) const WINDOW_BITS: usize = 57;

/// Bits of a stream in both orders. Huffman words are stored with their first bit first, so that, read as a number with
/// the first bit highest, they sort as the code does (its tables are filled from front to back). All other fields have
/// their first bit lowest. Arbitrary bits follow the stream.
pub(crate) trait BitSource {
    /// Returns at least [`WINDOW_BITS`] starting at `at_bit`, the first one lowest.
    fn low_first(&self, at_bit: usize) -> u64;

    /// Returns at least [`WINDOW_BITS`] starting at `at_bit`, the first one highest.
    fn high_first(&self, at_bit: usize) -> u64;
}

/// Checks a zlib header: method deflate, a window of at most 32 KiB, no preset dictionary, and the check bits (RFC
/// 1950, 2.2).
#[inline(always)]
pub(crate) fn is_zlib(method: u8, flags: u8) -> bool {
    let head = u16::from_be_bytes([method, flags]);
    head.is_multiple_of(31) && head & 0x0f20 == 0x0800 && head >> 12 <= 7
}

/// Returns the features of the processor for which the inflaters are compiled a second time, and whether this processor
/// has them. The list is empty on processors without such features.
pub fn processor_features() -> Vec<(&'static str, bool)> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        vec![("bmi1", has!("bmi1")), ("bmi2", has!("bmi2")), ("avx2", has!("avx2"))]
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

/// Returns whether the processor has the features for which the inflaters are compiled a second time: bmi1, bmi2 and
/// avx2.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2_and_bmi() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("bmi1") && has!("bmi2") && has!("avx2")
}

/// Returns whether the checksum at `sum_at` of the stream, which may be beyond its end, matches the inflated bytes.
#[inline(always)]
pub(crate) fn is_sum_right(stored: &[u8], sum_at: usize, inflated: &[u8]) -> bool {
    let sum = stored.get(sum_at..).and_then(|rest| rest.first_chunk::<ADLER_LEN_BYTES>());
    sum.is_some_and(|sum| u32::from_be_bytes(*sum) == adler32(inflated))
}
