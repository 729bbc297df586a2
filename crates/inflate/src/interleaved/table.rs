//! Decoding table, indexed by the next bits of a stream. An entry holds what one look-up decodes: up to two literals,
//! or the length and distance of a match.
//!
//! Long words, long matches and the end of a block are marked [`SPECIAL`] and decoded with the codes.

use crate::code::{Code, DISTANCE_TEMPLATES, LITLEN_TEMPLATES};
use crate::format::{DISTANCE_SYMBOLS, END_OF_BLOCK, LITLEN_SYMBOLS};

/// Number of bits that index the table. With 12, the tables of two codes would leave too little of a core's first-level
/// cache for the sources of matches: measured 2 to 10 % slower except for streams of literals.
const INDEX_BITS: usize = 11;
const ENTRIES: usize = 1 << INDEX_BITS;

/// Length of the longest match that is copied in one step.
pub(super) const STEP_LEN_BYTES: usize = 16;

/// Maximum number of bits of a step: the indexed ones, and a distance's extra bits.
pub(super) const STEP_BITS: usize = INDEX_BITS + 13;

/// Entry of the table. Bits 0 to 5 hold the number of bits consumed, bits 8 to 15 the number of bytes produced. For
/// literals, the upper half holds the bytes. For a match, bits 16 to 20 hold the distance's symbol, and the bits above
/// hold the length of the words, at which the distance's extra bits begin. If only the length's word of a match was
/// looked up, bits 8 to 16 hold the length without extra bits, and there is no distance.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct LengthDistanceEntry(pub(super) u32);

const LITERALS: u32 = 1 << 6;
/// Flag: neither literals nor a completely known match of up to [`STEP_LEN_BYTES`] whose distance is at least its
/// length.
const SPECIAL: u32 = 1 << 7;
/// Entry for neither literals nor a match, or for a word that is too long for the table.
const UNKNOWN: LengthDistanceEntry = LengthDistanceEntry(SPECIAL);

const LENGTH_SHIFT: u32 = 8;
const PAYLOAD_SHIFT: u32 = 16;
const WORDS_SHIFT: u32 = 21;

/// Distances without extra bits, indexed by symbol.
const DISTANCES: [u16; 32] = {
    let mut distances = [0; 32];
    let mut symbol = 0;
    while symbol < DISTANCE_SYMBOLS {
        distances[symbol] = (DISTANCE_TEMPLATES[symbol].0 >> 16) as u16;
        symbol += 1;
    }
    distances
};

impl LengthDistanceEntry {
    #[inline(always)]
    pub(super) fn is_special(self) -> bool {
        self.0 & SPECIAL != 0
    }

    #[inline(always)]
    pub(super) fn is_literals(self) -> bool {
        self.0 & LITERALS != 0
    }

    /// Returns the number of bits in the lowest 6 bits; the bits above are meaningless.
    #[inline(always)]
    pub(super) fn total_bits(self) -> u32 {
        self.0
    }

    #[inline(always)]
    pub(super) fn len_bytes(self) -> usize {
        (self.0 >> LENGTH_SHIFT & 0xff) as usize
    }

    /// Returns the literals; a single literal is followed by a zero.
    #[inline(always)]
    pub(super) fn literals(self) -> [u8; 2] {
        ((self.0 >> PAYLOAD_SHIFT) as u16).to_le_bytes()
    }

    /// Returns the distance of a match; for literals, an arbitrary value. `bits` begins with the match.
    #[inline(always)]
    pub(super) fn distance(self, bits: u64) -> usize {
        let below = bits & (1u64 << (self.0 & 63)).wrapping_sub(1);
        let extra = below.wrapping_shr(self.0 >> WORDS_SHIFT);
        usize::from(DISTANCES[(self.0 >> PAYLOAD_SHIFT & 31) as usize]).wrapping_add(extra as usize)
    }
}

/// Number of bits that index the table of distances, which are used without a length.
const DISTANCE_INDEX_BITS: usize = 10;
const DISTANCE_ENTRIES: usize = 1 << DISTANCE_INDEX_BITS;

/// A match that cannot be a step.
pub(super) struct LongMatch {
    pub(super) total_bits: u32,
    pub(super) len_bytes: usize,
    pub(super) distance: usize,
}

/// Maximum number of bits of a [`LongMatch`]: both words, with 5 and 13 extra bits.
pub(super) const LONG_MATCH_BITS: usize = INDEX_BITS + 5 + DISTANCE_INDEX_BITS + 13;

/// Entries by the next bits of the stream, the first one lowest, followed by room for [`JointTable::look_up`].
pub(super) struct JointTable {
    entries: [LengthDistanceEntry; ENTRIES + STEP_LEN_BYTES / size_of::<LengthDistanceEntry>()],
    /// Entries for distance codes alone, indexed by the next bits. They are used after a length whose distance did not
    /// fit into the same look-up.
    distances: [LengthDistanceEntry; DISTANCE_ENTRIES],
    /// Number of entries that are literals, before they are paired.
    literal_entries: usize,
}

impl JointTable {
    pub(super) fn new() -> Self {
        Self { entries: [UNKNOWN; _], distances: [UNKNOWN; _], literal_entries: 0 }
    }

    /// Returns the entry of the next bits, and a pointer to its literals, from which [`STEP_LEN_BYTES`] can be read.
    #[inline(always)]
    pub(super) fn look_up(&self, bits: u64) -> (LengthDistanceEntry, *const u8) {
        let index = bits as usize % ENTRIES;
        let bytes = self.entries.as_ptr().cast::<u8>();
        (self.entries[index], bytes.wrapping_add(index * size_of::<LengthDistanceEntry>() + PAYLOAD_SHIFT as usize / 8))
    }

    /// Decodes a special entry and the distance after it; returns `None` if it is not a match or has longer words.
    #[inline(always)]
    pub(super) fn long_match(&self, length: LengthDistanceEntry, bits: u64) -> Option<LongMatch> {
        let behind = bits.wrapping_shr(length.0);
        let distance = self.distances[behind as usize % DISTANCE_ENTRIES];
        if length == UNKNOWN || distance == UNKNOWN {
            return None;
        }
        let extra = (bits & (1u64 << (length.0 & 63)).wrapping_sub(1)).wrapping_shr(length.0 >> WORDS_SHIFT);
        Some(LongMatch {
            total_bits: (length.0 & 63) + (distance.0 & 63),
            len_bytes: (length.0 >> LENGTH_SHIFT & 0x1ff) as usize + extra as usize,
            distance: distance.distance(behind),
        })
    }

    /// Returns the share of literals among the block's words according to its codes.
    pub(super) fn literal_share(&self) -> f64 {
        self.literal_entries as f64 / ENTRIES as f64
    }

    /// Returns whether nearly all words are literals.
    pub(super) fn is_literal(&self) -> bool {
        self.literal_entries >= ENTRIES / 8 * 7
    }

    /// Fills the table for a block's codes.
    pub(super) fn build(&mut self, litlen: &Code, distance: &Code) {
        self.entries.fill(UNKNOWN);
        self.distances.fill(UNKNOWN);
        let mut literals = [Word::default(); END_OF_BLOCK];
        let mut literal_count = 0;
        let mut distances = [Word::default(); DISTANCES.len()];
        let mut distance_count = 0;
        for (symbol, bits, len_bits) in distance.words(INDEX_BITS) {
            if usize::from(symbol) < DISTANCE_SYMBOLS {
                distances[distance_count] = Word { symbol: u32::from(symbol), bits: usize::from(bits), len_bits };
                distance_count += 1;
            }
        }
        self.fill_distances(&distances[..distance_count]);
        for (symbol, bits, len_bits) in litlen.words(INDEX_BITS) {
            let (symbol, bits) = (usize::from(symbol), usize::from(bits));
            if symbol < END_OF_BLOCK {
                let word = Word { symbol: symbol as u32, bits, len_bits };
                literals[literal_count] = word;
                literal_count += 1;
                fill(
                    &mut self.entries,
                    bits,
                    len_bits,
                    LITERALS | len_bits as u32 | 1 << LENGTH_SHIFT | word.symbol << PAYLOAD_SHIFT,
                );
            } else if symbol > END_OF_BLOCK && symbol < LITLEN_SYMBOLS {
                let template = LITLEN_TEMPLATES[symbol];
                let extra_bits = template.total_bits() as usize;
                let alone = SPECIAL
                    | (len_bits + extra_bits) as u32
                    | (template.0 >> 16) << LENGTH_SHIFT
                    | (len_bits as u32) << WORDS_SHIFT;
                fill(&mut self.entries, bits, len_bits, alone);
                for extra in 0..1usize << extra_bits {
                    let length = Word {
                        symbol: (template.0 >> 16) + extra as u32,
                        bits: bits | extra << len_bits,
                        len_bits: len_bits + extra_bits,
                    };
                    if length.symbol as usize <= STEP_LEN_BYTES {
                        self.fill_matches(length, &distances[..distance_count]);
                    }
                }
            }
        }
        self.literal_entries = literals[..literal_count].iter().map(|literal| ENTRIES >> literal.len_bits).sum();
        self.fill_pairs(&literals[..literal_count]);
    }

    /// Adds the matches of a length, which `symbol` holds directly, with all distances that fit the same look-up.
    fn fill_matches(&mut self, length: Word, distances: &[Word]) {
        for distance in distances {
            let words_bits = length.len_bits + distance.len_bits;
            if words_bits > INDEX_BITS {
                break;
            }
            if u32::from(DISTANCES[distance.symbol as usize]) < length.symbol {
                continue;
            }
            let total_bits = words_bits as u32 + DISTANCE_TEMPLATES[distance.symbol as usize].total_bits();
            let entry = total_bits
                | length.symbol << LENGTH_SHIFT
                | distance.symbol << PAYLOAD_SHIFT
                | (words_bits as u32) << WORDS_SHIFT;
            fill(&mut self.entries, length.bits | distance.bits << length.len_bits, words_bits, entry);
        }
    }

    fn fill_distances(&mut self, distances: &[Word]) {
        for distance in distances.iter().filter(|distance| distance.len_bits <= DISTANCE_INDEX_BITS) {
            let total_bits = distance.len_bits as u32 + DISTANCE_TEMPLATES[distance.symbol as usize].total_bits();
            let entry = total_bits | distance.symbol << PAYLOAD_SHIFT | (distance.len_bits as u32) << WORDS_SHIFT;
            fill(&mut self.distances, distance.bits, distance.len_bits, entry);
        }
    }

    /// Adds pairs of literals that fit one look-up; `literals` ascend in length.
    fn fill_pairs(&mut self, literals: &[Word]) {
        let Some(shortest) = literals.first() else { return };
        for first in literals {
            if first.len_bits + shortest.len_bits > INDEX_BITS {
                break;
            }
            for second in literals {
                let len_bits = first.len_bits + second.len_bits;
                if len_bits > INDEX_BITS {
                    break;
                }
                let bytes = first.symbol | second.symbol << 8;
                let entry = LITERALS | len_bits as u32 | 2 << LENGTH_SHIFT | bytes << PAYLOAD_SHIFT;
                fill(&mut self.entries, first.bits | second.bits << first.len_bits, len_bits, entry);
            }
        }
    }
}

/// Fills all indices that begin with these bits.
#[inline(always)]
fn fill(entries: &mut [LengthDistanceEntry], bits: usize, len_bits: usize, entry: u32) {
    for entry_at in entries.iter_mut().skip(bits).step_by(1 << len_bits) {
        *entry_at = LengthDistanceEntry(entry);
    }
}

/// A word of a code, with its first bit lowest.
#[derive(Clone, Copy, Default)]
struct Word {
    symbol: u32,
    bits: usize,
    len_bits: usize,
}
