//! Inflates zlib streams of a few hundred bytes, in which the header of a block costs as much as its data.
//!
//! Longer ones are left to libdeflate, which decodes data faster.

mod buffer;
#[cfg(test)]
mod tests;

use buffer::{BUFFER_LEN_BYTES, Bits, Buffer, MASK};

use crate::code::{Code, DISTANCE_TEMPLATES, END, EXCEPTION, LITERAL, LITLEN_TEMPLATES, LONG};
use crate::codes::{BlockStart, Codes};
use crate::stream::{BitSource, MIN_STREAM_LEN_BYTES, WINDOW_BITS, is_sum_right, is_zlib};

/// Maximum length of an output: half of a buffer, so that overruns of a damaged stream stay inside.
const MAX_LEN_BYTES: usize = 4096;

/// Maximum length of words in the table; the few longer ones that are possible in 4 KiB are searched.
const MAX_TABLE_BITS: u32 = 10;

/// Maximum length of a stream. For 1024 numbers, streams of 300 bytes are inflated in 0.93 of libdeflate's time, those
/// of 650 bytes in the same time, and those of 1600 bytes in 1.1 of it, because libdeflate decodes data faster.
const MAX_STREAM_LEN_BYTES: usize = 512;

/// Inflater whose tables and buffers are reused from stream to stream. They take about 180 KiB, of which a stream
/// touches a tenth.
pub(crate) struct SmallChunkInflater {
    bits: Bits,
    out: Buffer,
    codes: Codes,
}

impl SmallChunkInflater {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self { bits: Bits::new(), out: [0; BUFFER_LEN_BYTES], codes: Codes::new() })
    }

    /// Inflates the zlib stream at the front of `stored` into the front of `out`. Returns the number of bytes written,
    /// or `None` if the stream must be left to libdeflate.
    pub(crate) fn inflate(&mut self, stored: &[u8], out: &mut [u8]) -> Option<usize> {
        let (produced, sum_at) = self.inflate_unsummed(stored, out.len())?;
        let inflated = self.out.get(..produced)?;
        if !is_sum_right(stored, sum_at, inflated) {
            return None;
        }
        out.get_mut(..produced)?.copy_from_slice(inflated);
        Some(produced)
    }

    /// Inflates into `self.out`; returns the number of bytes written there and the position of the checksum, both of
    /// which may be beyond the end.
    fn inflate_unsummed(&mut self, stored: &[u8], limit_len_bytes: usize) -> Option<(usize, usize)> {
        #[cfg(target_arch = "x86_64")]
        if crate::stream::has_avx2_and_bmi() {
            // SAFETY: the function is safe Rust; it only requires a processor with these three features, which was just
            // checked.
            return unsafe { self.inflate_avx2(stored, limit_len_bytes) };
        }
        self.inflate_anywhere(stored, limit_len_bytes)
    }

    /// Like [`Self::inflate_anywhere`], compiled to use shifts that need no fixed register, which is about a tenth
    /// faster.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,avx2")]
    fn inflate_avx2(&mut self, stored: &[u8], limit_len_bytes: usize) -> Option<(usize, usize)> {
        self.inflate_anywhere(stored, limit_len_bytes)
    }

    #[inline(always)]
    fn inflate_anywhere(&mut self, stored: &[u8], limit_len_bytes: usize) -> Option<(usize, usize)> {
        let lengths = MIN_STREAM_LEN_BYTES..=MAX_STREAM_LEN_BYTES;
        if !lengths.contains(&stored.len()) || limit_len_bytes > MAX_LEN_BYTES || !is_zlib(stored[0], stored[1]) {
            return None;
        }
        self.bits.fill(stored);
        let (mut at_bit, mut produced) = (16, 0);
        loop {
            let start = self.codes.read(&self.bits, at_bit, MAX_TABLE_BITS)?;
            let BlockStart { litlen, distance, at_bit: data_at_bit, is_last } = start;
            let mut block = BlockBody { bits: &self.bits, litlen, distance, at_bit: data_at_bit, produced };
            block.decode(&mut self.out, limit_len_bytes)?;
            (at_bit, produced) = (block.at_bit, block.produced);
            if is_last {
                return Some((produced, at_bit.div_ceil(8)));
            }
        }
    }
}

/// A block after its header.
struct BlockBody<'a> {
    bits: &'a Bits,
    litlen: &'a Code,
    distance: &'a Code,
    at_bit: usize,
    produced: usize,
}

impl BlockBody<'_> {
    /// Decodes to the end of the block; fails as soon as more than `limit_len_bytes` are decoded.
    ///
    /// The end of the input needs no check here: each iteration produces a byte, and arbitrary bits follow the input,
    /// so the caller notices that the block ends after the input.
    ///
    /// The window holds the bits from `at_bit`, of which [`WINDOW_BITS`] minus those consumed since it was filled are
    /// valid. Two literals (20 bits), a length (20) and a distance's word (15) fit. The next table entry is always
    /// looked up before the window is filled, so that neither waits for the other.
    #[inline(always)]
    fn decode(&mut self, out: &mut Buffer, limit_len_bytes: usize) -> Option<()> {
        let Self { bits, litlen, distance, mut at_bit, mut produced } = *self;
        let (mut window, mut filled_at) = (bits.high_first(at_bit), at_bit);
        let mut entry = litlen.entry(window);
        macro_rules! put_literal {
            () => {{
                out[produced & MASK] = (entry.0 >> 16) as u8;
                produced = produced.wrapping_add(1);
                at_bit = at_bit.wrapping_add(entry.total_bits() as usize);
            }};
        }
        macro_rules! literal {
            () => {{
                put_literal!();
                window <<= entry.total_bits();
                entry = litlen.entry(window);
            }};
        }
        while produced <= limit_len_bytes {
            if entry.has(LITERAL) {
                literal!();
                if entry.has(LITERAL) {
                    literal!();
                    if entry.has(LITERAL) {
                        literal!();
                        (window, filled_at) = (bits.high_first(at_bit), at_bit);
                        continue;
                    }
                }
            }
            if entry.has(EXCEPTION) {
                if entry == LONG {
                    entry = litlen.long_entry(&LITLEN_TEMPLATES, window);
                    if entry.has(LITERAL) {
                        put_literal!();
                        (window, filled_at) = (bits.high_first(at_bit), at_bit);
                        entry = litlen.entry(window);
                        continue;
                    }
                }
                if entry.has(END) {
                    self.at_bit = at_bit.wrapping_add(entry.total_bits() as usize);
                    self.produced = produced;
                    return Some(());
                }
                if entry.has(EXCEPTION) {
                    return None;
                }
            }
            let low = bits.low_first(at_bit);
            let length_bits = entry.total_bits();
            let length_len_bytes = entry.value(low);
            window <<= length_bits;
            let mut back_entry = distance.entry(window);
            if back_entry == LONG {
                back_entry = distance.long_entry(&DISTANCE_TEMPLATES, window);
            }
            let back = back_entry.value(low >> length_bits);
            let back_bits = back_entry.total_bits();
            at_bit = at_bit.wrapping_add((length_bits + back_bits) as usize);
            window <<= back_bits;
            if at_bit.wrapping_sub(filled_at) > WINDOW_BITS - MAX_TABLE_BITS as usize {
                window = bits.high_first(at_bit);
            }
            entry = litlen.entry(window);
            (window, filled_at) = (bits.high_first(at_bit), at_bit);
            if back > produced {
                return None;
            }
            buffer::copy_match(out, produced, back, length_len_bytes);
            produced = produced.wrapping_add(length_len_bytes);
        }
        None
    }
}
