//! Writes tokens as one dynamic deflate block.

use super::token::{FIRST_LENGTH, PART_VALUES, SECOND_LITERAL, Token};
use crate::deflate::bits::{MAX_BITS_PER_FLUSH, Remainder, append};
use crate::deflate::header::DynamicHeader;
use crate::deflate::huffman::{Code, MAX_LEN_BITS};
use raddle_inflate::format::{
    DISTANCE_SYMBOLS, END_OF_BLOCK, LENGTH_SYMBOLS, LITLEN_SYMBOLS, MAX_DISTANCE, MAX_MATCH, MIN_MATCH, Symbol,
    distance_symbol,
};

// A match is the longest token: two words, with 5 and 13 extra bits.
const _: () = assert!(2 * MAX_LEN_BITS as u32 + 5 + 13 <= MAX_BITS_PER_FLUSH);

/// Codes of a block for a sequence of tokens.
pub(super) struct BlockCodes {
    litlen: Code<LITLEN_SYMBOLS>,
    distance: Code<DISTANCE_SYMBOLS>,
    header: DynamicHeader,
    len_bits: u64,
}

/// Output of one part of a token: bits, their number, and the number of the token's extra bits that follow.
#[derive(Clone, Copy, Default)]
struct TokenPart {
    bits: u32,
    count: u16,
    extra_count: u16,
}

impl BlockCodes {
    pub(super) fn new(tokens: &[Token]) -> Self {
        // Two alternating tables, so that equal neighbours do not wait for each other.
        let mut first = [[0u32; PART_VALUES]; 2];
        let mut second = [[0u32; PART_VALUES]; 2];
        let (pairs, odd) = tokens.as_chunks::<2>();
        for pair in pairs {
            for (index, token) in pair.iter().enumerate() {
                first[index][token.first()] += 1;
                second[index][token.second()] += 1;
            }
        }
        for token in odd {
            first[0][token.first()] += 1;
            second[0][token.second()] += 1;
        }
        let first = |value: usize| first[0][value] + first[1][value];
        let second = |value: usize| second[0][value] + second[1][value];

        let mut litlen = [0u32; LITLEN_SYMBOLS];
        for (byte, frequency) in litlen[..256].iter_mut().enumerate() {
            *frequency = first(byte) + second(SECOND_LITERAL + byte);
        }
        litlen[END_OF_BLOCK] = 1;
        let mut extra_bits = 0;
        for (nth, &Symbol { symbol, extra_bits: bits, .. }) in LENGTH_SYMBOLS[MIN_MATCH..=MAX_MATCH].iter().enumerate()
        {
            let count = first(FIRST_LENGTH + nth);
            litlen[usize::from(symbol)] += count;
            extra_bits += u64::from(bits) * u64::from(count);
        }
        let distance: [u32; DISTANCE_SYMBOLS] = std::array::from_fn(second);
        for (symbol, &count) in distance.iter().enumerate() {
            extra_bits += u64::from(DISTANCE_EXTRA_BITS[symbol]) * u64::from(count);
        }

        let (litlen_code, distance_code) = (Code::new(&litlen, MAX_LEN_BITS), Code::new(&distance, MAX_LEN_BITS));
        let header = DynamicHeader::new(&litlen_code.lengths_bits, &distance_code.lengths_bits);
        let len_bits =
            header.cost_bits() + litlen_code.cost_bits(&litlen) + distance_code.cost_bits(&distance) + extra_bits;
        Self { litlen: litlen_code, distance: distance_code, header, len_bits }
    }

    /// Returns the number of bits that `write` writes.
    pub(super) fn len_bits(&self) -> u64 {
        self.len_bits
    }

    /// Returns the number of bits without the header.
    pub(super) fn body_len_bits(&self) -> u64 {
        self.len_bits - self.header.cost_bits()
    }

    /// Appends the remainder of the previous block, then this block; returns the remainder of this block.
    pub(super) fn write(&self, tokens: &[Token], is_last: bool, before: Remainder, out: &mut Vec<u8>) -> Remainder {
        let (first, second) = self.parts();
        append(before, self.len_bits, out, |writer| {
            self.header.write(writer, is_last);
            for token in tokens {
                let (first, second) = (first[token.first()], second[token.second()]);
                writer.put(first.bits, u32::from(first.count));
                writer.put(second.bits, u32::from(second.count));
                writer.put(token.extra(), u32::from(second.extra_count));
                writer.flush();
            }
            writer.put(u32::from(self.litlen.words[END_OF_BLOCK]), u32::from(self.litlen.lengths_bits[END_OF_BLOCK]));
        })
    }

    /// Returns the output for each value of the first and of the second part of a token.
    fn parts(&self) -> ([TokenPart; PART_VALUES], [TokenPart; PART_VALUES]) {
        let litlen = |symbol: usize| TokenPart {
            bits: u32::from(self.litlen.words[symbol]),
            count: u16::from(self.litlen.lengths_bits[symbol]),
            extra_count: 0,
        };
        let (mut first, mut second) = ([TokenPart::default(); PART_VALUES], [TokenPart::default(); PART_VALUES]);
        for byte in 0..256 {
            first[byte] = litlen(byte);
            second[SECOND_LITERAL + byte] = litlen(byte);
        }
        for len in MIN_MATCH..=MAX_MATCH {
            let Symbol { symbol, extra_bits, extra } = LENGTH_SYMBOLS[len];
            let mut part = litlen(usize::from(symbol));
            part.bits |= u32::from(extra) << part.count;
            part.count += u16::from(extra_bits);
            first[FIRST_LENGTH + len - MIN_MATCH] = part;
        }
        for (symbol, &extra_bits) in DISTANCE_EXTRA_BITS.iter().enumerate() {
            second[symbol] = TokenPart {
                bits: u32::from(self.distance.words[symbol]),
                count: u16::from(self.distance.lengths_bits[symbol]),
                extra_count: u16::from(extra_bits),
            };
        }
        (first, second)
    }
}

/// Number of extra bits of each distance symbol.
const DISTANCE_EXTRA_BITS: [u8; DISTANCE_SYMBOLS] = {
    let mut extra_bits = [0; DISTANCE_SYMBOLS];
    let mut distance = 1;
    while distance <= MAX_DISTANCE {
        let symbol = distance_symbol(distance);
        extra_bits[symbol.symbol as usize] = symbol.extra_bits;
        distance += 1 << symbol.extra_bits;
    }
    extra_bits
};
