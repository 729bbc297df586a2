//! Our own inflaters, for the two kinds of chunks that libdeflate is not the fastest at.
//!
//! Not judges of streams: what is not plainly right (and stored blocks, anything rare) is left to libdeflate, which says
//! what is wrong with it. So they know only "inflated" and "not by me". Invariant: what is returned as inflated,
//! libdeflate inflates to the same bytes.

mod code;
mod header;
mod runs;
#[cfg(test)]
mod samples;
mod small;

pub(crate) use runs::RunInflater;
pub(crate) use small::SmallInflater;

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
