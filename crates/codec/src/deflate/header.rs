//! The header of a dynamic block: the lengths of both codes, themselves run-length and Huffman coded (RFC 1951, 3.2.7).

use super::bits::BitWriter;
use super::huffman::Code;
use raddle_inflate::format::{DISTANCE_SYMBOLS, LITLEN_SYMBOLS, MAX_PRECODE_BITS, PRECODE_ORDER, PRECODE_SYMBOLS};

/// Symbol that repeats the previous length 3 to 6 times.
const REPEAT: u16 = 16;
/// Symbol for 3 to 10 zeros.
const ZEROS_SHORT: u16 = 17;
/// Symbol for 11 to 138 zeros.
const ZEROS_LONG: u16 = 18;
/// Minimum number of literal/length symbols that a header can declare.
const MIN_LITLEN: usize = 257;

/// A header that is ready to be written.
pub(crate) struct DynamicHeader {
    litlen_count: usize,
    distance_count: usize,
    precode_count: usize,
    precode: Code<PRECODE_SYMBOLS>,
    /// Precode symbol, number of extra bits, extra bits.
    items: Vec<(u16, u8, u8)>,
    cost_bits: u64,
}

impl DynamicHeader {
    /// Creates the header that describes these two codes.
    pub(crate) fn new(litlen: &[u8; LITLEN_SYMBOLS], distance: &[u8; DISTANCE_SYMBOLS]) -> Self {
        let used =
            |lengths: &[u8], least: usize| lengths.iter().rposition(|&len| len > 0).map_or(0, |at| at + 1).max(least);
        let (litlen_count, distance_count) = (used(litlen, MIN_LITLEN), used(distance, 1));
        let items = run_lengths(litlen[..litlen_count].iter().chain(&distance[..distance_count]).copied());

        let mut frequencies = [0u32; PRECODE_SYMBOLS];
        for item in &items {
            frequencies[usize::from(item.0)] += 1;
        }
        // A code with a single word is incomplete, which decoders refuse here.
        if frequencies.iter().filter(|&&frequency| frequency > 0).count() < 2 {
            frequencies[0] += 1;
            frequencies[1] += 1;
        }
        let precode = Code::new(&frequencies, MAX_PRECODE_BITS);
        let last_used = PRECODE_ORDER.iter().rposition(|&symbol| precode.lengths_bits[symbol] > 0);
        let precode_count = last_used.map_or(0, |at| at + 1).max(4);
        let items_bits: u64 =
            items.iter().map(|item| u64::from(precode.lengths_bits[usize::from(item.0)]) + u64::from(item.1)).sum();
        let cost_bits = 3 + 5 + 5 + 4 + 3 * precode_count as u64 + items_bits;
        Self { litlen_count, distance_count, precode_count, precode, items, cost_bits }
    }

    /// Returns the length of the header in bits, including the three bits that begin any block.
    pub(crate) fn cost_bits(&self) -> u64 {
        self.cost_bits
    }

    /// Writes the header.
    pub(crate) fn write(&self, writer: &mut BitWriter<'_>, last_block: bool) {
        writer.put(u32::from(last_block), 1);
        writer.put(2, 2);
        writer.put((self.litlen_count - MIN_LITLEN) as u32, 5);
        writer.put((self.distance_count - 1) as u32, 5);
        writer.put((self.precode_count - 4) as u32, 4);
        writer.flush();
        for &symbol in &PRECODE_ORDER[..self.precode_count] {
            writer.put(u32::from(self.precode.lengths_bits[symbol]), 3);
            writer.flush();
        }
        for &(symbol, extra_bits, extra) in &self.items {
            let symbol = usize::from(symbol);
            writer.put(u32::from(self.precode.words[symbol]), u32::from(self.precode.lengths_bits[symbol]));
            writer.put(u32::from(extra), u32::from(extra_bits));
            writer.flush();
        }
    }
}

/// Encodes lengths as precode symbols.
fn run_lengths(lengths: impl Iterator<Item = u8>) -> Vec<(u16, u8, u8)> {
    let mut items = Vec::new();
    let mut lengths = lengths.peekable();
    while let Some(length) = lengths.next() {
        let mut run = 1usize;
        while lengths.next_if_eq(&length).is_some() {
            run += 1;
        }
        if length > 0 {
            items.push((u16::from(length), 0, 0));
            run -= 1;
        }
        while run > 0 {
            let taken = match (length, run) {
                (0, 11..) => {
                    let taken = run.min(138);
                    items.push((ZEROS_LONG, 7, (taken - 11) as u8));
                    taken
                }
                (0, 3..) => {
                    items.push((ZEROS_SHORT, 3, (run - 3) as u8));
                    run
                }
                (1.., 3..) => {
                    let taken = run.min(6);
                    items.push((REPEAT, 2, (taken - 3) as u8));
                    taken
                }
                _ => {
                    items.push((u16::from(length), 0, 0));
                    1
                }
            };
            run -= taken;
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reverses `run_lengths`.
    fn expand(items: &[(u16, u8, u8)]) -> Vec<u8> {
        let mut lengths = Vec::new();
        for &(symbol, _, extra) in items {
            let (value, count) = match symbol {
                REPEAT => (*lengths.last().unwrap(), usize::from(extra) + 3),
                ZEROS_SHORT => (0, usize::from(extra) + 3),
                ZEROS_LONG => (0, usize::from(extra) + 11),
                literal => (literal as u8, 1),
            };
            lengths.extend(std::iter::repeat_n(value, count));
        }
        lengths
    }

    #[test]
    fn runs_of_every_length_come_back() {
        for length in [0, 1, 8, 15] {
            for run in 1..400 {
                let mut lengths = vec![7];
                lengths.extend(std::iter::repeat_n(length, run));
                lengths.push(3);
                let items = run_lengths(lengths.iter().copied());
                assert_eq!(expand(&items), lengths);
                assert!(items.iter().all(|&(_, bits, extra)| extra < 1 << bits || bits == 0 && extra == 0));
            }
        }
    }
}
