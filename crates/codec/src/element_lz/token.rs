//! Tokens of a block, which all take the same steps to count and to write.
//!
//! A token is two symbols with extra bits: two literals, one literal and nothing, or a match (length, distance).
//! Because literals come in pairs and nothing depends on the kind of token, the loops over tokens have no branches to
//! mispredict. On columns of mixed numbers this takes half the time of a loop that distinguishes literals and matches.

use raddle_inflate::format::{DISTANCE_SYMBOLS, MAX_MATCH, MIN_MATCH, Symbol, distance_symbol};

/// Bits 0 to 8: a literal, or `FIRST_LENGTH` plus the match length minus `MIN_MATCH`. Bits 9 to 17: a distance symbol,
/// or `SECOND_LITERAL` plus a literal, or `NOTHING`. Bits 18 to 30: extra bits of the distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token(u32);

/// Number of possible values of each symbol of a token.
pub(super) const PART_VALUES: usize = 512;
/// Smallest value of the first symbol that is a match length; smaller ones are literals.
pub(super) const FIRST_LENGTH: usize = 256;
/// Smallest value of the second symbol that is a literal; smaller ones are distances.
pub(super) const SECOND_LITERAL: usize = 32;
/// Value of the second symbol if the token has only one.
const NOTHING: u32 = 31;

const SECOND_SHIFT: u32 = 9;
const EXTRA_SHIFT: u32 = 18;
const PART_MASK: u32 = PART_VALUES as u32 - 1;

const _: () = assert!(FIRST_LENGTH + MAX_MATCH - MIN_MATCH < PART_VALUES);
const _: () = assert!(DISTANCE_SYMBOLS <= NOTHING as usize && SECOND_LITERAL > NOTHING as usize);

impl Token {
    #[inline(always)]
    fn literals(first: u8, second: u8) -> Self {
        Self(u32::from(first) | (SECOND_LITERAL as u32 + u32::from(second)) << SECOND_SHIFT)
    }

    /// Returns the token without its second literal.
    #[inline(always)]
    fn single(self) -> Self {
        Self(self.0 & PART_MASK | NOTHING << SECOND_SHIFT)
    }

    #[inline(always)]
    pub(super) fn first(self) -> usize {
        (self.0 & PART_MASK) as usize
    }

    #[inline(always)]
    pub(super) fn second(self) -> usize {
        (self.0 >> SECOND_SHIFT & PART_MASK) as usize
    }

    #[inline(always)]
    pub(super) fn extra(self) -> u32 {
        self.0 >> EXTRA_SHIFT
    }
}

/// Tokens of one block, in a buffer that is written beyond its end in whole groups.
#[derive(Default)]
pub(super) struct Tokens {
    buffer: Vec<Token>,
    len: usize,
}

/// Number of literals converted to tokens at once.
const GROUP: usize = 8;

impl Tokens {
    /// Removes all tokens and reserves memory for the tokens of `raw_len_bytes` bytes.
    pub(super) fn reset(&mut self, raw_len_bytes: usize) {
        // A token represents at least one byte.
        let needed = raw_len_bytes + GROUP;
        if self.buffer.len() < needed {
            self.buffer.resize(needed, Token(0));
        }
        self.len = 0;
    }

    pub(super) fn as_slice(&self) -> &[Token] {
        &self.buffer[..self.len]
    }

    /// Appends `raw[start..end]` as literals.
    #[inline(always)]
    pub(super) fn push_literals(&mut self, raw: &[u8], start: usize, end: usize) {
        let mut at = start;
        while at < end {
            let group = match raw[at..].first_chunk::<GROUP>() {
                Some(group) => *group,
                // Near the end of the data; missing bytes are not counted below.
                None => std::array::from_fn(|index| raw.get(at + index).copied().unwrap_or(0)),
            };
            let out: &mut [Token; GROUP / 2] = self.buffer[self.len..].first_chunk_mut().expect("room was made");
            for (out, pair) in out.iter_mut().zip(group.as_chunks::<2>().0) {
                *out = Token::literals(pair[0], pair[1]);
            }
            self.len += (end - at).div_ceil(2).min(GROUP / 2);
            at += GROUP;
        }
        if (end - start) % 2 == 1 {
            let last = &mut self.buffer[self.len - 1];
            *last = last.single();
        }
    }

    /// Appends a repeat of length 3 or more.
    #[inline(always)]
    pub(super) fn push_match(&mut self, mut len: usize, distance: usize) {
        let Symbol { symbol, extra, .. } = distance_symbol(distance);
        let distance = u32::from(symbol) << SECOND_SHIFT | u32::from(extra) << EXTRA_SHIFT;
        let mut push = |len: usize| {
            self.buffer[self.len] = Token((FIRST_LENGTH + len - MIN_MATCH) as u32 | distance);
            self.len += 1;
        };
        while len > MAX_MATCH {
            // The rest must be long enough for a match.
            let part = if len < MAX_MATCH + MIN_MATCH { len - MIN_MATCH } else { MAX_MATCH };
            push(part);
            len -= part;
        }
        push(len);
    }
}
