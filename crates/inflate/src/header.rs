//! Reads the code lengths of a block (RFC 1951, 3.2.6 and 3.2.7) directly into lists by length.
//!
//! The data after the header is decoded elsewhere. Nothing here loops over all symbols: small blocks use a few dozen of
//! 318.

use crate::code::{Code, DISTANCE_TEMPLATES, LITLEN_TEMPLATES, Lengths};
use crate::format::{MAX_PRECODE_BITS, PRECODE_ORDER, PRECODE_SYMBOLS};
use crate::stream::BitSource;

/// Creates the fixed Huffman codes, whose code words have at most 9 bits.
pub(super) fn fixed_codes() -> (Code, Code) {
    let (mut litlen, mut distance) = (Code::new(), Code::new());
    for symbol in 0..288 {
        let word_bits = match symbol {
            0..144 => 8,
            144..256 => 9,
            256..280 => 7,
            _ => 8,
        };
        litlen.lengths.append(symbol, word_bits, 1);
    }
    for symbol in 0..32 {
        distance.lengths.append(symbol, 5, 1);
    }
    let complete = litlen.build(&LITLEN_TEMPLATES, false, 9) && distance.build(&DISTANCE_TEMPLATES, false, 9);
    debug_assert!(complete);
    (litlen, distance)
}

const PRECODE_ENTRIES: usize = 1 << MAX_PRECODE_BITS;
const PRECODE_RUN_ENTRIES: usize = 8;

/// Table of precode words. Bits 0 to 2 hold the length of the word, bits 8 to 11 this length including extra bits, bits
/// 16 to 19 the number of repeats without extra bits, and bits 24 to 27 the length to repeat. Bit 28 is set if the
/// previous length is repeated.
type PrecodeTable = [u32; PRECODE_ENTRIES + PRECODE_RUN_ENTRIES];

const PREVIOUS: u32 = 1 << 28;

/// Entries without the length of the word.
const PRECODE_TEMPLATES: [u32; PRECODE_SYMBOLS] = {
    let mut templates = [0; PRECODE_SYMBOLS];
    let mut length_bits = 0;
    while length_bits < 16 {
        templates[length_bits] = 1 << 16 | (length_bits as u32) << 24;
        length_bits += 1;
    }
    templates[16] = PREVIOUS | 3 << 16 | 2 << 8;
    templates[17] = 3 << 16 | 3 << 8;
    templates[18] = 11 << 16 | 7 << 8;
    templates
};

/// Position in the header of the length of each symbol's word.
const PRECODE_PLACES: [usize; PRECODE_SYMBOLS] = {
    let mut places = [0; PRECODE_SYMBOLS];
    let mut place = 0;
    while place < PRECODE_SYMBOLS {
        places[PRECODE_ORDER[place]] = place;
        place += 1;
    }
    places
};

/// Builds both codes from the header at `at_bit`, with words up to `limit_bits` in tables; returns the bit after it.
#[inline(always)]
pub(super) fn read_codes(
    bits: &impl BitSource,
    at_bit: usize,
    litlen: &mut Code,
    distance: &mut Code,
    limit_bits: u32,
) -> Option<usize> {
    let head = bits.low_first(at_bit);
    let litlen_count = 257 + (head >> 3 & 31) as usize;
    let distance_count = 1 + (head >> 8 & 31) as usize;
    let precode_count = 4 + (head >> 13 & 15) as usize;
    let at_bit = at_bit.wrapping_add(17);
    // At most 57 bits, which is the size of a window.
    let precode_lengths = bits.low_first(at_bit) & ((1 << (3 * precode_count)) - 1);
    let mut table = [0; PRECODE_ENTRIES + PRECODE_RUN_ENTRIES];
    let table_bits = build_precode(precode_lengths, &mut table)?;

    let at_bit = at_bit.wrapping_add(3 * precode_count);
    let mut reader = LengthReader { bits, table: &table, shift: 64 - table_bits, at_bit, previous_bits: 0 };
    if reader.entry(bits.high_first(at_bit)) & PREVIOUS != 0 {
        return None;
    }
    litlen.lengths.clear();
    distance.lengths.clear();
    let symbol = reader.read(&mut litlen.lengths, 0, litlen_count);
    // A repeat may continue from one code into the other.
    let overrun = symbol.wrapping_sub(litlen_count);
    let overrun_bits = reader.previous_bits;
    litlen.lengths.shorten(overrun_bits, overrun);
    distance.lengths.append(0, overrun_bits, overrun);
    if reader.read(&mut distance.lengths, overrun, distance_count) != distance_count {
        return None;
    }
    let is_code =
        litlen.build(&LITLEN_TEMPLATES, false, limit_bits) && distance.build(&DISTANCE_TEMPLATES, true, limit_bits);
    is_code.then_some(reader.at_bit)
}

/// Fills the table of the code for lengths, from up to 19 lengths of 3 bits each. Returns the number of bits that index
/// it, or `None` if the code is not complete.
#[inline(always)]
fn build_precode(lengths: u64, table: &mut PrecodeTable) -> Option<u32> {
    // Counters and positions by length, one byte each, which is enough for 19 symbols.
    let mut counts = 0u64;
    for place in 0..PRECODE_SYMBOLS {
        let word_bits = lengths >> (3 * place) & 7;
        counts = counts.wrapping_add(1 << (8 * word_bits));
    }
    counts &= !0xff;
    let mut space = 0;
    for word_bits in 1..=MAX_PRECODE_BITS {
        space += (counts >> (8 * word_bits) & 0xff) << (MAX_PRECODE_BITS - word_bits);
    }
    if space != 1 << MAX_PRECODE_BITS {
        return None;
    }
    let table_bits = (63 - counts.leading_zeros()) >> 3;
    // The product sums the counts up to each length in the respective byte.
    let sums = counts.wrapping_mul(0x0101_0101_0101_0101);
    let used = (sums >> 56) as usize;
    // The position of a symbol is after those of all shorter words; unused symbols go after the maximum of 19.
    const UNUSED_PLACE: u64 = 32;
    let mut places = sums << 8 | UNUSED_PLACE;
    let mut sorted = [0u32; 64];
    for symbol in 0..PRECODE_SYMBOLS {
        let word_bits = lengths >> (3 * PRECODE_PLACES[symbol]) & 7;
        let place = (places >> (8 * word_bits)) as usize % 64;
        places = places.wrapping_add(1 << (8 * word_bits));
        sorted[place] = PRECODE_TEMPLATES[symbol].wrapping_add(word_bits as u32 * 0x101);
    }
    let mut at = 0usize;
    for &entry in &sorted[..used % 32] {
        let end = at.wrapping_add(1 << (table_bits.wrapping_sub(entry & 7) & 7));
        while at < end {
            let place = at % PRECODE_ENTRIES;
            table[place..place + PRECODE_RUN_ENTRIES].copy_from_slice(&[entry; PRECODE_RUN_ENTRIES]);
            at = at.wrapping_add(PRECODE_RUN_ENTRIES);
        }
        at = end;
    }
    Some(table_bits)
}

struct LengthReader<'a, B> {
    bits: &'a B,
    table: &'a PrecodeTable,
    /// 64 minus the number of bits that index the table.
    shift: u32,
    at_bit: usize,
    previous_bits: usize,
}

impl<B: BitSource> LengthReader<'_, B> {
    #[inline(always)]
    fn entry(&self, window: u64) -> u32 {
        self.table[(window >> (self.shift & 63)) as usize % PRECODE_ENTRIES]
    }

    /// Appends the lengths of the symbols from `symbol` to `count`. Returns the symbol after the last, which exceeds
    /// `count` if a repeat does.
    ///
    /// A length and the three kinds of repeats take the same path without branches, because the kind cannot be
    /// predicted.
    #[inline(always)]
    fn read(&mut self, lengths: &mut Lengths, mut symbol: usize, count: usize) -> usize {
        while symbol < count {
            let mut window = self.bits.high_first(self.at_bit);
            // Four words with their extra bits have at most 56 bits.
            for _ in 0..4 {
                let entry = self.entry(window);
                let total_bits = (entry >> 8 & 15) as usize;
                let extra = (self.bits.low_first(self.at_bit) & ((1 << total_bits) - 1)) >> (entry & 7);
                window <<= total_bits;
                self.at_bit = self.at_bit.wrapping_add(total_bits);
                let repeat = ((entry >> 16 & 15) as usize).wrapping_add(extra as usize);
                let word_bits = if entry & PREVIOUS != 0 { self.previous_bits } else { (entry >> 24) as usize & 15 };
                self.previous_bits = word_bits;
                lengths.append(symbol, word_bits, repeat);
                symbol = symbol.wrapping_add(repeat);
                if symbol >= count {
                    break;
                }
            }
        }
        symbol
    }
}
