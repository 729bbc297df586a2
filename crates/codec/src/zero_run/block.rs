//! Writes tokens as one dynamic deflate block.

use super::scan::RUN;
use crate::deflate::bits::{BitWriter, MAX_BITS_PER_FLUSH, Remainder, append};
use crate::deflate::header::DynamicHeader;
use crate::deflate::huffman::{Code, MAX_LEN_BITS};
use raddle_inflate::format::{DISTANCE_SYMBOLS, END_OF_BLOCK, LENGTH_SYMBOLS, LITLEN_SYMBOLS, MAX_MATCH, MIN_MATCH};

/// Symbol of the longest match.
const FULL: usize = LENGTH_SYMBOLS[MAX_MATCH].symbol as usize;

/// Length of the word for distance 1, symbol 0, which as the only distance gets a word of one bit, 0.
const DISTANCE_BITS: u32 = 1;

// A match's word, extra bits and distance fit between two flushes, as do three literals.
const _: () = assert!(MAX_LEN_BITS as u32 + 5 + DISTANCE_BITS <= MAX_BITS_PER_FLUSH);
const _: () = assert!(3 * MAX_LEN_BITS as u32 <= MAX_BITS_PER_FLUSH);

/// A run of zeros in terms of deflate: literals (at least one, from which a match can begin), then matches.
struct ZeroRun {
    literals: u32,
    full_matches: u32,
    /// Length of the last match of a long run, which follows matches of maximum length.
    last_match: Option<usize>,
}

impl ZeroRun {
    #[inline]
    fn new(length: u32) -> Self {
        let matched = length as usize - 1;
        let (full_matches, rest) = ((matched / MAX_MATCH) as u32, matched % MAX_MATCH);
        // A rest too short for a match is written as literals.
        if rest < MIN_MATCH {
            Self { literals: 1 + rest as u32, full_matches, last_match: None }
        } else {
            Self { literals: 1, full_matches, last_match: Some(rest) }
        }
    }
}

/// Codes and length of the block for a sequence of tokens.
pub(super) struct BlockCodes {
    litlen: Code<LITLEN_SYMBOLS>,
    header: DynamicHeader,
    len_bits: u64,
}

impl BlockCodes {
    pub(super) fn new(tokens: &[u32]) -> Self {
        let mut frequencies = [0u32; LITLEN_SYMBOLS];
        let (mut extra_bits, mut matches) = (0u64, 0u64);
        frequencies[END_OF_BLOCK] = 1;
        for &token in tokens {
            if token & RUN == 0 {
                frequencies[token as usize] += 1;
                continue;
            }
            let run = ZeroRun::new(token & !RUN);
            frequencies[0] += run.literals;
            frequencies[FULL] += run.full_matches;
            matches += u64::from(run.full_matches);
            if let Some(length) = run.last_match {
                let symbol = &LENGTH_SYMBOLS[length];
                frequencies[usize::from(symbol.symbol)] += 1;
                extra_bits += u64::from(symbol.extra_bits);
                matches += 1;
            }
        }
        let litlen = Code::new(&frequencies, MAX_LEN_BITS);
        let mut distances = [0u8; DISTANCE_SYMBOLS];
        distances[0] = DISTANCE_BITS as u8;
        let header = DynamicHeader::new(&litlen.lengths_bits, &distances);
        let len_bits =
            header.cost_bits() + litlen.cost_bits(&frequencies) + extra_bits + matches * u64::from(DISTANCE_BITS);
        Self { litlen, header, len_bits }
    }

    /// Returns the number of bytes that `write` appends.
    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bits.div_ceil(8)
    }

    /// Appends the block, which is the last one of its stream.
    pub(super) fn write(&self, tokens: &[u32], out: &mut Vec<u8>) {
        let remainder = append(Remainder::default(), self.len_bits, out, |writer| self.put_all(tokens, writer));
        remainder.append(out);
    }

    fn put_all(&self, tokens: &[u32], writer: &mut BitWriter<'_>) {
        self.header.write(writer, true);
        for &token in tokens {
            if token & RUN == 0 {
                self.put(writer, token as usize);
                writer.flush();
                continue;
            }
            let run = ZeroRun::new(token & !RUN);
            for _ in 0..run.literals {
                self.put(writer, 0);
            }
            writer.flush();
            for _ in 0..run.full_matches {
                self.put(writer, FULL);
                writer.put(0, DISTANCE_BITS);
                writer.flush();
            }
            if let Some(length) = run.last_match {
                let symbol = &LENGTH_SYMBOLS[length];
                self.put(writer, usize::from(symbol.symbol));
                writer.put(u32::from(symbol.extra), u32::from(symbol.extra_bits));
                writer.put(0, DISTANCE_BITS);
                writer.flush();
            }
        }
        self.put(writer, END_OF_BLOCK);
    }

    #[inline(always)]
    fn put(&self, writer: &mut BitWriter<'_>, symbol: usize) {
        writer.put(u32::from(self.litlen.words[symbol]), u32::from(self.litlen.lengths_bits[symbol]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_described_whole() {
        for length in 1..2000u32 {
            let run = ZeroRun::new(length);
            let matched = run.full_matches as usize * MAX_MATCH + run.last_match.unwrap_or(0);
            assert_eq!(matched + run.literals as usize, length as usize);
            assert!((1..=3).contains(&run.literals));
            assert!(run.last_match.is_none_or(|length| (MIN_MATCH..MAX_MATCH).contains(&length)));
        }
    }
}
