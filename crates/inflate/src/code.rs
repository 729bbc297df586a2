//! A Huffman code for decoding: its symbols by length, collected while the lengths are read, and a table of the short
//! ones.
//!
//! Lengths are read from a stream by `header`. Invariant: after `build` has returned true, every window of bits leads
//! to an entry.

use std::array;

use crate::format::{END_OF_BLOCK, MAX_DISTANCE, MAX_MATCH, MIN_MATCH, distance_symbol, length_symbol};

/// Maximum length of words in the table. A table of 2^12 entries is filled only if there are words of 12 bits and they
/// are to be looked up.
const MAX_TABLE_BITS: u32 = 12;
const TABLE_ENTRIES: usize = 1 << MAX_TABLE_BITS;
/// Number of spare entries: entries are written several at a time.
const TABLE_ROOM_ENTRIES: usize = 8;

/// Maximum length of a word in any code for data.
pub(super) const MAX_WORD_BITS: usize = 15;

/// Decoded meaning of a word. The lowest 6 bits hold its length including extra bits, bits 8 to 11 its length alone,
/// and bits 16 and up the literal, or the match length or distance without extra bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeEntry(pub(super) u32);

/// Flag: the upper half is a literal.
pub(super) const LITERAL: CodeEntry = CodeEntry(1 << 31);
/// Flag: neither a literal nor a match length. (Entries of distances have no flags; distances may extend into these
/// bits.)
pub(super) const EXCEPTION: CodeEntry = CodeEntry(1 << 30);
/// End of the block.
pub(super) const END: CodeEntry = CodeEntry(EXCEPTION.0 | 1 << 16);
/// A word longer than the table: see [`Code::long_entry`]. It differs from all entries of distances, the smallest of
/// which in this range is 16385, 0x4001 in the upper half.
pub(super) const LONG: CodeEntry = CodeEntry(EXCEPTION.0 | 2 << 16);
/// A symbol that must not occur.
const NONE: CodeEntry = CodeEntry(EXCEPTION.0 | 4 << 16);
/// Distance for symbols that must not occur: farther than a small output extends, and different from all other
/// distances.
const TOO_FAR: CodeEntry = CodeEntry(0x7fff << 16);

/// Entries by symbol, before the length of the word is added. Their number is a power of two, so that indices need no
/// check.
pub(super) type Templates = [CodeEntry; TEMPLATES];
const TEMPLATES: usize = 512;

pub(super) static LITLEN_TEMPLATES: Templates = {
    let mut templates = [NONE; TEMPLATES];
    let mut literal = 0;
    while literal < 256 {
        templates[literal] = CodeEntry(LITERAL.0 | (literal as u32) << 16);
        literal += 1;
    }
    templates[END_OF_BLOCK] = END;
    // Downwards: the shortest length of a symbol, the one without extra bits set, is written last and stays.
    let mut length = MAX_MATCH;
    while length >= MIN_MATCH {
        let symbol = length_symbol(length);
        templates[symbol.symbol as usize] = CodeEntry((length as u32) << 16 | symbol.extra_bits as u32);
        length -= 1;
    }
    templates
};

pub(super) static DISTANCE_TEMPLATES: Templates = {
    let mut templates = [TOO_FAR; TEMPLATES];
    // Distances with no extra bit set: those up to 4, and 2^e + 1 and 3 · 2^(e-1) + 1.
    let mut power = 1;
    while power < MAX_DISTANCE {
        let mut distance = power + 1;
        while distance <= MAX_DISTANCE && distance <= 2 * power {
            let symbol = distance_symbol(distance);
            templates[symbol.symbol as usize] = CodeEntry((distance as u32) << 16 | symbol.extra_bits as u32);
            distance += if power < 2 { 1 } else { power / 2 };
        }
        power *= 2;
    }
    templates[0] = CodeEntry(1 << 16);
    templates
};

impl CodeEntry {
    #[inline(always)]
    pub(super) fn has(self, flags: CodeEntry) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Returns whether this is the entry of a distance symbol that must not occur.
    #[inline(always)]
    pub(super) fn is_too_far(self) -> bool {
        self.0 >> 16 == TOO_FAR.0 >> 16
    }

    /// Returns the number of bits of the word and its extra bits.
    #[inline(always)]
    pub(super) fn total_bits(self) -> u32 {
        self.0 & 63
    }

    /// Returns the match length or distance; `low` begins with the word.
    #[inline(always)]
    pub(super) fn value(self, low: u64) -> usize {
        let extra = (low & ((1 << self.total_bits()) - 1)) >> (self.0 >> 8 & 15);
        ((self.0 >> 16) as usize).wrapping_add(extra as usize)
    }

    #[inline(always)]
    fn with_word(self, word_bits: u32) -> Self {
        Self(self.0.wrapping_add(word_bits.wrapping_mul(0x101)))
    }
}

/// Logarithm of the length of each list, which has room for all symbols of a code.
const LIST_ENTRIES_LOG2: usize = 9;
const LIST_ENTRIES: usize = 1 << LIST_ENTRIES_LOG2;
const LISTS_ENTRIES: usize = (MAX_WORD_BITS + 1) * LIST_ENTRIES;
/// Number of symbols that are appended at a time; a repeat has at most 6.
const RUN_ENTRIES: usize = 8;

/// Symbols by the length of their word, ascending. Length 0 also has a list, with arbitrary contents.
pub(super) struct Lengths {
    lists: [u16; LISTS_ENTRIES + RUN_ENTRIES],
    counts: [u16; MAX_WORD_BITS + 1],
}

impl Lengths {
    pub(super) fn clear(&mut self) {
        self.counts = [0; MAX_WORD_BITS + 1];
    }

    /// Appends `repeat` symbols starting at `first`.
    #[inline(always)]
    pub(super) fn append(&mut self, first: usize, word_bits: usize, repeat: usize) {
        let count = &mut self.counts[word_bits & MAX_WORD_BITS];
        let at = (word_bits << LIST_ENTRIES_LOG2).wrapping_add(usize::from(*count)) & (LISTS_ENTRIES - 1);
        let run: [u16; RUN_ENTRIES] = array::from_fn(|step| (first as u16).wrapping_add(step as u16));
        self.lists[at..at + RUN_ENTRIES].copy_from_slice(&run);
        *count = count.wrapping_add(repeat as u16);
    }

    /// Removes the last `symbols` symbols with words of `word_bits` bits.
    pub(super) fn shorten(&mut self, word_bits: usize, symbols: usize) {
        let count = &mut self.counts[word_bits & MAX_WORD_BITS];
        *count = count.wrapping_sub(symbols as u16);
    }
}

pub(super) struct Code {
    table: [CodeEntry; TABLE_ENTRIES + TABLE_ROOM_ENTRIES],
    /// 64 minus the number of bits that index the table.
    shift: u32,
    pub(super) lengths: Lengths,
}

impl Code {
    pub(super) fn new() -> Self {
        Self {
            table: [NONE; TABLE_ENTRIES + TABLE_ROOM_ENTRIES],
            shift: 63,
            lengths: Lengths { lists: [0; LISTS_ENTRIES + RUN_ENTRIES], counts: [0; MAX_WORD_BITS + 1] },
        }
    }

    /// Builds the table of words up to `limit_bits` from the lengths; longer words are searched by length. Returns
    /// false if the lengths are not those of a complete code.
    ///
    /// With `may_be_single`, a code of one word of one bit, or of none, is accepted. Either bit then represents that
    /// symbol, or symbol 0, as in libdeflate.
    #[inline(always)]
    pub(super) fn build(&mut self, templates: &Templates, may_be_single: bool, limit_bits: u32) -> bool {
        let Self { table, shift, lengths: Lengths { lists, counts } } = self;
        let (mut space, mut used) = (0u32, 0u32);
        for (word_bits, &count) in counts.iter().enumerate().skip(1) {
            space = space.wrapping_add(u32::from(count) << (MAX_WORD_BITS - word_bits));
            used |= u32::from(count != 0) << word_bits;
        }
        if space != 1 << MAX_WORD_BITS {
            let is_single = used == 1 << 1 && counts[1] == 1;
            let symbol = if is_single { lists[LIST_ENTRIES] } else { 0 };
            *shift = 63;
            table[..2].fill(templates[usize::from(symbol) % TEMPLATES].with_word(1));
            return may_be_single && (is_single || used == 0);
        }
        let max_bits = 31 - used.leading_zeros();
        let table_bits = max_bits.min(limit_bits).min(MAX_TABLE_BITS);
        *shift = 64 - table_bits;
        let mut at = 0usize;
        used &= (2 << table_bits) - 1;
        while used != 0 {
            let word_bits = used.trailing_zeros();
            used &= used.wrapping_sub(1);
            let start = (word_bits as usize) << LIST_ENTRIES_LOG2 & (LISTS_ENTRIES - 1);
            let count = usize::from(counts[word_bits as usize & MAX_WORD_BITS]) % LIST_ENTRIES;
            let span = 1usize << (table_bits.wrapping_sub(word_bits) & 15);
            // Too many entries are written for each word; the following words overwrite them.
            for &symbol in &lists[start..start + count] {
                let entry = templates[usize::from(symbol) % TEMPLATES].with_word(word_bits);
                let end = at.wrapping_add(span);
                if span <= 4 {
                    let place = at % TABLE_ENTRIES;
                    table[place..place + 4].copy_from_slice(&[entry; 4]);
                } else {
                    while at < end {
                        let place = at % TABLE_ENTRIES;
                        table[place..place + 8].copy_from_slice(&[entry; 8]);
                        at = at.wrapping_add(8);
                    }
                }
                at = end;
            }
        }
        let end = 1usize << table_bits;
        if at < end {
            table[at..end].fill(LONG);
        }
        true
    }

    /// Returns the words of up to `limit_bits`, ascending in length: symbol, bits in stream order with the first one
    /// lowest, and their number. A code of a single word gives both values of its bit. A code without words gives none.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn words(&self, limit_bits: usize) -> impl Iterator<Item = (u16, u16, usize)> {
        let Lengths { lists, counts } = &self.lengths;
        let longer: u16 = counts[2..].iter().sum();
        let is_complete = longer > 0 || counts[1] == 2;
        let single = (!is_complete && counts[1] == 1).then_some(lists[LIST_ENTRIES]);
        let mut next = 0u16;
        let words = (1..=limit_bits.min(MAX_WORD_BITS)).filter(move |_| is_complete).flat_map(move |word_bits| {
            let first = next << 1;
            next = first + counts[word_bits];
            let symbols = &lists[word_bits * LIST_ENTRIES..][..usize::from(counts[word_bits])];
            let words = (first..).map(move |word| word.reverse_bits() >> (16 - word_bits));
            symbols.iter().zip(words).map(move |(&symbol, word)| (symbol, word, word_bits))
        });
        words.chain(single.into_iter().flat_map(|symbol| [(symbol, 0, 1), (symbol, 1, 1)]))
    }

    /// Returns the entry of the word that `window` begins with, or [`LONG`].
    #[inline(always)]
    pub(super) fn entry(&self, window: u64) -> CodeEntry {
        self.table[(window >> (self.shift & 63)) as usize % TABLE_ENTRIES]
    }

    /// Returns the entry of the word, of any length, that `window` begins with.
    #[inline(always)]
    pub(super) fn word(&self, templates: &Templates, window: u64) -> CodeEntry {
        match self.entry(window) {
            LONG => self.long_entry(templates, window),
            entry => entry,
        }
    }

    /// Returns the entry of a word of any length: the words of each length are consecutive numbers, above all shorter
    /// words.
    #[cold]
    #[inline(never)]
    pub(super) fn long_entry(&self, templates: &Templates, window: u64) -> CodeEntry {
        let word = (window >> (64 - MAX_WORD_BITS)) as u32;
        let mut first = 0;
        for word_bits in 1..=MAX_WORD_BITS {
            let unused_bits = MAX_WORD_BITS - word_bits;
            let end = first + (u32::from(self.lengths.counts[word_bits]) << unused_bits);
            if word < end {
                let index = (word - first) as usize >> unused_bits;
                let symbol = self.lengths.lists[word_bits * LIST_ENTRIES + index];
                return templates[usize::from(symbol) % TEMPLATES].with_word(word_bits as u32);
            }
            first = end;
        }
        NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distance_is_its_template_and_extra_bits() {
        for distance in 1..=MAX_DISTANCE {
            let symbol = distance_symbol(distance);
            let entry = DISTANCE_TEMPLATES[usize::from(symbol.symbol)].with_word(7);
            assert_eq!(entry.total_bits(), 7 + u32::from(symbol.extra_bits));
            assert_eq!(entry.value(u64::from(symbol.extra) << 7 | 0x55), distance);
            assert!(entry != LONG && !entry.is_too_far());
        }
        assert!([30, 31].iter().all(|&symbol: &usize| DISTANCE_TEMPLATES[symbol].with_word(15).is_too_far()));
    }

    #[test]
    fn every_length_is_its_template_and_extra_bits() {
        for length in MIN_MATCH..=MAX_MATCH {
            let symbol = length_symbol(length);
            let entry = LITLEN_TEMPLATES[usize::from(symbol.symbol)].with_word(9);
            assert!(!entry.has(LITERAL) && !entry.has(EXCEPTION));
            assert_eq!(entry.total_bits(), 9 + u32::from(symbol.extra_bits));
            assert_eq!(entry.value(u64::from(symbol.extra) << 9 | 0x155), length);
        }
        assert!(LITLEN_TEMPLATES[286] == NONE && LITLEN_TEMPLATES[287] == NONE);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn words_are_those_of_the_table() {
        let lengths: [&[usize]; 5] = [&[1], &[1, 1], &[1, 2, 2], &[2, 2, 2, 2], &[]];
        let expected: [&[(u16, u16, usize)]; 5] = [
            &[(0, 0, 1), (0, 1, 1)],
            &[(0, 0, 1), (1, 1, 1)],
            &[(0, 0, 1), (1, 0b01, 2), (2, 0b11, 2)],
            &[(0, 0b00, 2), (1, 0b10, 2), (2, 0b01, 2), (3, 0b11, 2)],
            &[],
        ];
        for (lengths, expected) in lengths.into_iter().zip(expected) {
            let mut code = Code::new();
            for (symbol, &word_bits) in lengths.iter().enumerate() {
                code.lengths.append(symbol, word_bits, 1);
            }
            assert!(code.build(&DISTANCE_TEMPLATES, true, MAX_TABLE_BITS));
            assert_eq!(code.words(11).collect::<Vec<_>>(), expected);
            for (symbol, bits, word_bits) in code.words(11) {
                let entry = code.entry(u64::from(bits).reverse_bits());
                assert!(entry == DISTANCE_TEMPLATES[usize::from(symbol)].with_word(word_bits as u32));
            }
        }
    }

    #[test]
    fn words_longer_than_the_table_are_found() {
        const MAX_BITS: u32 = 10;
        let mut code = Code::new();
        for (symbol, word_bits) in (1..=15).chain([15]).enumerate() {
            code.lengths.append(symbol, word_bits, 1);
        }
        assert!(code.build(&LITLEN_TEMPLATES, false, MAX_BITS));
        for symbol in 0..16u32 {
            // As many ones as the symbol's number, then a zero (except for the last symbol).
            let window = !(u64::MAX >> symbol);
            let mut entry = code.entry(window);
            assert_eq!(entry == LONG, symbol >= MAX_BITS);
            if entry == LONG {
                entry = code.long_entry(&LITLEN_TEMPLATES, window);
            }
            assert!(entry == LITLEN_TEMPLATES[symbol as usize].with_word((symbol + 1).min(15)));
        }
    }
}
