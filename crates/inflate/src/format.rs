//! Numbers of the deflate format (RFC 1951) and of its zlib envelope (RFC 1950), which encoders share: symbols and
//! extra bits of match lengths and distances (3.2.5), and the order of code lengths.

/// Number of symbols for literals, end of block, and lengths that may occur (286 and 287 may not).
pub const LITLEN_SYMBOLS: usize = 286;
/// Number of distance symbols that may occur.
pub const DISTANCE_SYMBOLS: usize = 30;
/// Symbol that ends a block.
pub const END_OF_BLOCK: usize = 256;
/// Length of the shortest match.
pub const MIN_MATCH: usize = 3;
/// Length of the longest match.
pub const MAX_MATCH: usize = 258;

/// Distance of the farthest match.
pub const MAX_DISTANCE: usize = 32_768;

/// Order in which the lengths of the code for lengths are stored (3.2.7): those most likely unused come last, so that
/// they can be omitted.
pub const PRECODE_ORDER: [usize; PRECODE_SYMBOLS] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// Number of symbols of the code for lengths.
pub const PRECODE_SYMBOLS: usize = 19;
/// Maximum length of a word of the code for lengths.
pub const MAX_PRECODE_BITS: usize = 7;

/// Length of the Adler-32 checksum (big-endian) that ends a zlib stream.
pub const ADLER_LEN_BYTES: usize = 4;

/// A symbol with its extra bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// Number of the symbol.
    pub symbol: u16,
    /// Number of extra bits.
    pub extra_bits: u8,
    /// Value of the extra bits.
    pub extra: u16,
}

/// Returns the symbol of a match length in `MIN_MATCH..=MAX_MATCH`.
///
/// From length 11 on there are four symbols for each power of two: with x = length - 3 and e = floor(log2 x) - 2, the
/// two bits below the leading one of x select among them, and the e lowest bits are extra bits. 258 has a separate
/// symbol.
#[inline]
pub const fn length_symbol(length: usize) -> Symbol {
    debug_assert!(MIN_MATCH <= length && length <= MAX_MATCH);
    let above_min = (length - MIN_MATCH) as u32;
    if length == MAX_MATCH {
        Symbol { symbol: 285, extra_bits: 0, extra: 0 }
    } else if above_min < 8 {
        Symbol { symbol: 257 + above_min as u16, extra_bits: 0, extra: 0 }
    } else {
        let extra_bits = above_min.ilog2() - 2;
        Symbol {
            symbol: (257 + 4 * extra_bits + (above_min >> extra_bits)) as u16,
            extra_bits: extra_bits as u8,
            extra: (above_min & ((1 << extra_bits) - 1)) as u16,
        }
    }
}

/// Symbol and extra bits of each match length, by length; entries for invalid lengths are meaningless.
pub const LENGTH_SYMBOLS: [Symbol; MAX_MATCH + 1] = {
    let mut lengths = [Symbol { symbol: 0, extra_bits: 0, extra: 0 }; MAX_MATCH + 1];
    let mut length = MIN_MATCH;
    while length <= MAX_MATCH {
        lengths[length] = length_symbol(length);
        length += 1;
    }
    lengths
};

/// Returns the symbol of a distance in `1..=MAX_DISTANCE`.
///
/// From distance 5 on there are two symbols for each power of two: with x = distance - 1 and e = floor(log2 x) - 1, the
/// bit below the leading one of x selects between them, and the e lowest bits are extra bits.
#[inline(always)]
pub const fn distance_symbol(distance: usize) -> Symbol {
    debug_assert!(1 <= distance && distance <= MAX_DISTANCE);
    let above_min = (distance - 1) as u32;
    if above_min < 4 {
        return Symbol { symbol: above_min as u16, extra_bits: 0, extra: 0 };
    }
    let extra_bits = above_min.ilog2() - 1;
    Symbol {
        symbol: (2 * extra_bits + (above_min >> extra_bits)) as u16,
        extra_bits: extra_bits as u8,
        extra: (above_min & ((1 << extra_bits) - 1)) as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_follow_the_table() {
        let symbol = |length| {
            let symbol = length_symbol(length);
            (symbol.symbol, symbol.extra_bits, symbol.extra)
        };
        assert_eq!(symbol(3), (257, 0, 0));
        assert_eq!(symbol(10), (264, 0, 0));
        assert_eq!(symbol(11), (265, 1, 0));
        assert_eq!(symbol(12), (265, 1, 1));
        assert_eq!(symbol(13), (266, 1, 0));
        assert_eq!(symbol(18), (268, 1, 1));
        assert_eq!(symbol(19), (269, 2, 0));
        assert_eq!(symbol(66), (276, 3, 7));
        assert_eq!(symbol(67), (277, 4, 0));
        assert_eq!(symbol(131), (281, 5, 0));
        assert_eq!(symbol(257), (284, 5, 30));
        assert_eq!(symbol(258), (285, 0, 0));
    }

    #[test]
    fn distances_follow_the_table() {
        let symbol = |distance| {
            let symbol = distance_symbol(distance);
            (symbol.symbol, symbol.extra_bits, symbol.extra)
        };
        assert_eq!(symbol(1), (0, 0, 0));
        assert_eq!(symbol(4), (3, 0, 0));
        assert_eq!(symbol(5), (4, 1, 0));
        assert_eq!(symbol(6), (4, 1, 1));
        assert_eq!(symbol(7), (5, 1, 0));
        assert_eq!(symbol(9), (6, 2, 0));
        assert_eq!(symbol(193), (15, 6, 0));
        assert_eq!(symbol(24_577), (29, 13, 0));
        assert_eq!(symbol(32_768), (29, 13, 8191));
    }
}
