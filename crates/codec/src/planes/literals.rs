//! Writes a deflate block of literals only.

use crate::deflate::bits::{MAX_BITS_PER_FLUSH, Remainder, append};
use crate::deflate::header::DynamicHeader;
use crate::deflate::huffman::Code;
use raddle_inflate::format::{DISTANCE_SYMBOLS, END_OF_BLOCK, LITLEN_SYMBOLS};

/// Number of literals written between two flushes.
const GROUP: usize = 4;

/// Maximum length of a word, so that a group of them fits between two flushes.
const MAX_LEN_BITS: usize = 14;

const _: () = assert!(GROUP * MAX_LEN_BITS <= MAX_BITS_PER_FLUSH as usize);

/// Code of a block for a sequence of bytes.
pub(super) struct Literals {
    code: Code<LITLEN_SYMBOLS>,
    header: DynamicHeader,
    len_bits: u64,
}

impl Literals {
    /// Counts `raw` and creates its code.
    pub(super) fn new(raw: &[u8]) -> Self {
        let mut frequencies = [0; LITLEN_SYMBOLS];
        frequencies[..256].copy_from_slice(&counts(raw));
        frequencies[END_OF_BLOCK] = 1;
        let code = Code::new(&frequencies, MAX_LEN_BITS);
        // No distance is used, but old decoders refuse codes of fewer than two words.
        let mut distances = [0; DISTANCE_SYMBOLS];
        distances[..2].fill(1);
        let header = DynamicHeader::new(&code.lengths_bits, &distances);
        let len_bits = header.cost_bits() + code.cost_bits(&frequencies);
        Self { code, header, len_bits }
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
    pub(super) fn write(&self, raw: &[u8], is_last: bool, before: Remainder, out: &mut Vec<u8>) -> Remainder {
        let words: [(u32, u32); 256] =
            std::array::from_fn(|byte| (self.code.words[byte].into(), self.code.lengths_bits[byte].into()));
        let (groups, rest) = raw.as_chunks::<GROUP>();
        append(before, self.len_bits, out, |writer| {
            self.header.write(writer, is_last);
            for &[a, b, c, d] in groups {
                // Joined in pairs, so that no literal waits for all before it.
                let pair = |first: u8, second: u8| {
                    let ((first, len_bits), (second, more_bits)) =
                        (words[usize::from(first)], words[usize::from(second)]);
                    (first | second << len_bits, len_bits + more_bits)
                };
                let ((first, len_bits), (second, more_bits)) = (pair(a, b), pair(c, d));
                writer.put(first, len_bits);
                writer.put(second, more_bits);
                writer.flush();
            }
            for &byte in rest {
                let (word, len_bits) = words[usize::from(byte)];
                writer.put(word, len_bits);
            }
            writer.flush();
            writer.put(self.code.words[END_OF_BLOCK].into(), self.code.lengths_bits[END_OF_BLOCK].into());
        })
    }
}

/// Counts each byte in four alternating tables, so that equal neighbours do not wait for each other.
fn counts(raw: &[u8]) -> [u32; 256] {
    let mut tables = [[0_u32; 256]; 4];
    let (groups, rest) = raw.as_chunks::<4>();
    for group in groups {
        for (table, &byte) in tables.iter_mut().zip(group) {
            table[usize::from(byte)] += 1;
        }
    }
    for &byte in rest {
        tables[0][usize::from(byte)] += 1;
    }
    std::array::from_fn(|byte| tables.iter().map(|table| table[byte]).sum())
}
