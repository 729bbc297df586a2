//! Inflates zlib streams that are mostly repetitions: ids and other columns whose rows repeat.
//!
//! Other streams are left to libdeflate, which decodes literals faster. The gain is in matches: those that repeat 2, 4
//! or 8 bytes are written in blocks of 32, whereas libdeflate writes only as many bytes at a time as are repeated.

mod stream_bits;
#[cfg(test)]
mod tests;

use stream_bits::StreamBits;

use std::ops::RangeInclusive;

use crate::code::{Code, DISTANCE_TEMPLATES, END, EXCEPTION, LITERAL, LITLEN_TEMPLATES};
use crate::codes::{BlockStart, Codes};
use crate::repeat::{ROOM_LEN_BYTES, repeat, repeat_with_room};
use crate::stream::{BitSource, MIN_STREAM_LEN_BYTES, is_sum_right, is_zlib};

/// Minimum ratio of the output's length to the stream's.
const MIN_RATIO: usize = 12;

/// Maximum length of a stream: it is copied twice, which no memory budget accounts for.
const MAX_STREAM_LEN_BYTES: usize = 1 << 20;

/// Maximum length of words in the tables; longer ones are searched by length. In a long stream hardly any are longer.
const MAX_TABLE_BITS: u32 = 12;

/// Range of distances that repeat an element, or a row of a few elements.
const ELEMENT_LEN_BYTES: RangeInclusive<usize> = 2..=32;

/// Maximum excess of other matches over those that repeat an element. Libdeflate copies single bytes (zeros) and
/// distant matches in whole words, and decodes the rest faster.
const MAX_EXCESS_OTHERS: isize = 32;

/// Inflater whose tables and buffer of bits are reused from stream to stream.
pub(crate) struct RepetitiveInflater {
    bits: StreamBits,
    codes: Codes,
}

impl RepetitiveInflater {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self { bits: StreamBits::default(), codes: Codes::new() })
    }

    /// Returns whether a stream that is to fill `limit_len_bytes` is of the kind that is inflated faster here.
    pub(crate) fn is_for(stored: &[u8], limit_len_bytes: usize) -> bool {
        stored.len() <= MAX_STREAM_LEN_BYTES && stored.len() <= limit_len_bytes / MIN_RATIO
    }

    /// Inflates the zlib stream at the front of `stored` into the front of `out`. Returns the number of bytes written,
    /// or `None` if the stream must be left to libdeflate; the contents of `out` are then unspecified.
    pub(crate) fn inflate(&mut self, stored: &[u8], out: &mut [u8]) -> Option<usize> {
        let (produced, sum_at) = self.inflate_unsummed(stored, out)?;
        is_sum_right(stored, sum_at, out.get(..produced)?).then_some(produced)
    }

    /// Returns the number of bytes written and the position of the checksum, which may be beyond the end.
    fn inflate_unsummed(&mut self, stored: &[u8], out: &mut [u8]) -> Option<(usize, usize)> {
        #[cfg(target_arch = "x86_64")]
        if crate::stream::has_avx2_and_bmi() {
            // SAFETY: the function is safe Rust; it only requires a processor with these three features, which was just
            // checked.
            return unsafe { self.inflate_avx2(stored, out) };
        }
        self.inflate_anywhere(stored, out)
    }

    /// Like [`Self::inflate_anywhere`], compiled to copy each block with one register.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,avx2")]
    fn inflate_avx2(&mut self, stored: &[u8], out: &mut [u8]) -> Option<(usize, usize)> {
        self.inflate_anywhere(stored, out)
    }

    #[inline(always)]
    fn inflate_anywhere(&mut self, stored: &[u8], out: &mut [u8]) -> Option<(usize, usize)> {
        if stored.len() < MIN_STREAM_LEN_BYTES || !is_zlib(stored[0], stored[1]) {
            return None;
        }
        self.bits.fill(stored);
        let (mut at_bit, mut produced, mut excess_others) = (16, 0, 0);
        loop {
            let start = self.codes.read(&self.bits, at_bit, MAX_TABLE_BITS)?;
            let BlockStart { litlen, distance, at_bit: data_at_bit, is_last } = start;
            // An empty block may be followed by another: only the end of the stream ends the sequence.
            if data_at_bit > 8 * stored.len() {
                return None;
            }
            let mut block =
                BlockBody { bits: &self.bits, litlen, distance, at_bit: data_at_bit, produced, excess_others };
            block.decode(out)?;
            (at_bit, produced, excess_others) = (block.at_bit, block.produced, block.excess_others);
            if is_last {
                return Some((produced, at_bit.div_ceil(8)));
            }
        }
    }
}

/// A block after its header.
struct BlockBody<'a> {
    bits: &'a StreamBits,
    litlen: &'a Code,
    distance: &'a Code,
    at_bit: usize,
    produced: usize,
    /// Number of matches that do not repeat an element, minus the number of those that do.
    excess_others: isize,
}

impl BlockBody<'_> {
    /// Decodes to the end of the block; fails if it does not fit `out`.
    ///
    /// The end of the input needs no check here: each iteration produces a byte, and the bits after the input are
    /// zeros, so the caller notices that the block ends after the input.
    #[inline(always)]
    fn decode(&mut self, out: &mut [u8]) -> Option<()> {
        let Self { bits, litlen, distance, mut at_bit, mut produced, mut excess_others } = *self;
        let roomy_until = out.len().saturating_sub(ROOM_LEN_BYTES);
        let mut window = bits.high_first(at_bit);
        let mut entry = litlen.word(&LITLEN_TEMPLATES, window);
        loop {
            // The words of two literals and a length (15 + 15 + 20 bits) have 50 of the 57 bits.
            for _ in 0..2 {
                if entry.has(LITERAL) {
                    *out.get_mut(produced)? = (entry.0 >> 16) as u8;
                    produced += 1;
                    at_bit += entry.total_bits() as usize;
                    window <<= entry.total_bits();
                    entry = litlen.word(&LITLEN_TEMPLATES, window);
                }
            }
            if entry.has(LITERAL) {
                window = bits.high_first(at_bit);
                continue;
            }
            if entry.has(EXCEPTION) {
                self.at_bit = at_bit + entry.total_bits() as usize;
                self.produced = produced;
                self.excess_others = excess_others;
                return entry.has(END).then_some(());
            }
            let low = bits.low_first(at_bit);
            let length_bits = entry.total_bits();
            let length_len_bytes = entry.value(low);
            at_bit += length_bits as usize;
            let back_entry = distance.word(&DISTANCE_TEMPLATES, bits.high_first(at_bit));
            let back = back_entry.value(bits.low_first(at_bit));
            excess_others += if ELEMENT_LEN_BYTES.contains(&back) { -1 } else { 1 };
            if back_entry.is_too_far() || excess_others > MAX_EXCESS_OTHERS {
                return None;
            }
            at_bit += back_entry.total_bits() as usize;
            window = bits.high_first(at_bit);
            entry = litlen.word(&LITLEN_TEMPLATES, window);
            if produced <= roomy_until && out.len() >= ROOM_LEN_BYTES {
                repeat_with_room(out, produced, back, length_len_bytes)?;
            } else {
                repeat(out, produced, back, length_len_bytes)?;
            }
            produced += length_len_bytes;
        }
    }
}
