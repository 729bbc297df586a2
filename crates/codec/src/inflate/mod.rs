//! Our own inflaters, for the kinds of chunks that libdeflate is not the fastest at.
//!
//! Not judges of streams: what is not plainly right, and some of what is rare, is left to libdeflate, which says what is wrong
//! with it. So they know only "inflated" and "not by me". Invariant: what is returned as inflated,
//! libdeflate inflates to the same bytes.

mod code;
mod codes;
#[cfg(all(test, target_arch = "x86_64"))]
mod guarded;
mod header;
#[cfg(target_arch = "x86_64")]
mod joint;
#[cfg(not(target_arch = "x86_64"))]
#[path = "joint_elsewhere.rs"]
mod joint;
mod repeat;
mod runs;
#[cfg(test)]
mod samples;
mod small;

pub(crate) use joint::JointInflater;
pub(crate) use runs::RunInflater;
pub(crate) use small::SmallInflater;

use crate::deflate::ADLER_LEN_BYTES;
use crate::libdeflate::adler32;

/// The shortest outputs for which the inflater of columns is worth its tables, with two streams in turn: of less than 64 KiB
/// none was inflated faster than by libdeflate.
pub(crate) const LEAST_LEN_BYTES: usize = 1 << 16;

/// Header, an empty block and the sum.
const MIN_STREAM_LEN_BYTES: usize = 8;

/// Bits that a [`BitSource`] promises.
const WINDOW_BITS: usize = 57;

/// A stream's bits in both orders: Huffman words come with their first bit first, so that read as a number with the
/// first bit highest they sort as the code does (its tables are filled from front to back); all other fields have their
/// first bit lowest. Behind the stream come some bits.
trait BitSource {
    /// At least [`WINDOW_BITS`] from `at_bit` on, the first the lowest.
    fn low_first(&self, at_bit: usize) -> u64;

    /// At least [`WINDOW_BITS`] from `at_bit` on, the first the highest.
    fn high_first(&self, at_bit: usize) -> u64;
}

/// Method deflate, a window of at most 32 KiB, no preset dictionary, and the check bits (RFC 1950, 2.2).
#[inline(always)]
fn is_zlib(method: u8, flags: u8) -> bool {
    let head = u16::from_be_bytes([method, flags]);
    head.is_multiple_of(31) && head & 0x0f20 == 0x0800 && head >> 12 <= 7
}

/// Whether the processor has what the inflaters are compiled for a second time: bmi1, bmi2 and avx2.
#[cfg(target_arch = "x86_64")]
fn has_avx2_and_bmi() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("bmi1") && has!("bmi2") && has!("avx2")
}

/// Whether the sum at `sum_at` of the stream, which may be too great, is that of what was inflated.
#[inline(always)]
fn is_sum_right(stored: &[u8], sum_at: usize, inflated: &[u8]) -> bool {
    let sum = stored.get(sum_at..).and_then(|rest| rest.first_chunk::<ADLER_LEN_BYTES>());
    sum.is_some_and(|sum| u32::from_be_bytes(*sum) == adler32(inflated))
}
