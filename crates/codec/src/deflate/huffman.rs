//! Canonical Huffman codes of limited length from symbol frequencies.
//!
//! Lengths come from an unlimited Huffman code, whose words beyond the limit are shortened by repairing the Kraft sum,
//! instead of the optimal package-merge. With limits of 15 bits the two differ only for frequencies spread over more
//! than three orders of magnitude, and then by the few bits of the rarest symbols.

/// Maximum length of a literal/length or distance word.
pub(crate) const MAX_LEN_BITS: usize = 15;

/// A code: for each symbol its word, with the bits reversed as deflate writes them, and its length (0 if the symbol is
/// not used).
#[derive(Clone)]
pub(crate) struct Code<const SYMBOLS: usize> {
    pub(crate) words: [u16; SYMBOLS],
    pub(crate) lengths_bits: [u8; SYMBOLS],
}

impl<const SYMBOLS: usize> Code<SYMBOLS> {
    /// Creates the code for these frequencies with words of at most `limit_bits`.
    ///
    /// A single symbol gets a word of one bit. `2^limit_bits` must be at least `SYMBOLS`.
    pub(crate) fn new(frequencies: &[u32; SYMBOLS], limit_bits: usize) -> Self {
        debug_assert!(limit_bits <= MAX_LEN_BITS && SYMBOLS <= 1 << limit_bits);
        let mut used: Vec<u16> = (0..SYMBOLS as u16).filter(|&symbol| frequencies[usize::from(symbol)] > 0).collect();
        // Ties are broken by symbol, so that the code depends only on the frequencies.
        used.sort_unstable_by_key(|&symbol| (frequencies[usize::from(symbol)], symbol));
        let weights: Vec<u64> = used.iter().map(|&symbol| u64::from(frequencies[usize::from(symbol)])).collect();

        let mut counts = limit(&depths(&weights), limit_bits);
        let mut lengths_bits = [0u8; SYMBOLS];
        // The rarest symbols, which come first, get the longest words.
        let mut length_bits = limit_bits;
        for &symbol in &used {
            while counts[length_bits] == 0 {
                length_bits -= 1;
            }
            counts[length_bits] -= 1;
            lengths_bits[usize::from(symbol)] = length_bits as u8;
        }
        Self { words: words(&lengths_bits), lengths_bits }
    }

    /// Returns the number of bits for symbols of these frequencies, without extra bits.
    pub(crate) fn cost_bits(&self, frequencies: &[u32; SYMBOLS]) -> u64 {
        frequencies.iter().zip(&self.lengths_bits).map(|(&count, &len)| u64::from(count) * u64::from(len)).sum()
    }
}

/// Returns the depth of each leaf in a Huffman tree over ascending `weights`; a single leaf is at depth 1.
///
/// The tree is built with two queues: leaves in order of weight, and inner nodes, which are created in order of weight.
fn depths(weights: &[u64]) -> Vec<usize> {
    let leaves = weights.len();
    if leaves < 2 {
        return vec![1; leaves];
    }
    let nodes = 2 * leaves - 1;
    let mut weights = weights.to_vec();
    let mut parents = vec![0; nodes];
    let (mut leaf, mut inner) = (0, leaves);
    for node in leaves..nodes {
        let mut sum = 0;
        for _ in 0..2 {
            let take_leaf = leaf < leaves && (inner == node || weights[leaf] <= weights[inner]);
            let child = if take_leaf { &mut leaf } else { &mut inner };
            sum += weights[*child];
            parents[*child] = node;
            *child += 1;
        }
        weights.push(sum);
    }
    let mut depths = vec![0; nodes];
    for node in (0..nodes - 1).rev() {
        depths[node] = depths[parents[node]] + 1;
    }
    depths.truncate(leaves);
    depths
}

/// Returns the number of words of each length in a complete code whose lengths are close to `depths` and at most
/// `limit_bits`.
///
/// In units of 2^-limit, a word of length l takes 2^(limit - l) of the Kraft sum, and the words fit if together they
/// take no more than 2^limit. Clamping depths to the limit takes too much. Lengthening one word from l to l + 1 gives
/// 2^(limit - l - 1) back. The longest words that can still grow cost the least to lengthen. Repeating that terminates,
/// because with all words at the limit the sum is the number of symbols, at most 2^limit. If too much has been given
/// back, it is used up by shortening the longest words: each step from l to l - 1 takes 2^(limit - l), which is 1 for l
/// = limit. So a complete code is always reached while two words are at the limit, and if none is, nothing was clamped
/// and the code is already complete. (Decoders refuse incomplete codes.)
fn limit(depths: &[usize], limit_bits: usize) -> [u32; MAX_LEN_BITS + 1] {
    let mut counts = [0u32; MAX_LEN_BITS + 1];
    for &depth in depths {
        counts[depth.min(limit_bits)] += 1;
    }
    if depths.len() < 2 {
        return counts;
    }
    let whole = 1u32 << limit_bits;
    let mut taken: u32 = (1..=limit_bits).map(|len| counts[len] << (limit_bits - len)).sum();
    while taken > whole {
        let len = (1..limit_bits).rev().find(|&len| counts[len] > 0).expect("not all words are at the limit");
        counts[len] -= 1;
        counts[len + 1] += 1;
        taken -= 1 << (limit_bits - len - 1);
    }
    let mut len = limit_bits;
    while taken < whole {
        // Shortening a word of this length would take more than is free: continue with the next longest.
        let gain = 1u32 << (limit_bits - len);
        if counts[len] > 0 && taken + gain <= whole {
            counts[len] -= 1;
            counts[len - 1] += 1;
            taken += gain;
        } else {
            len -= 1;
        }
    }
    counts
}

/// Computes the canonical words (RFC 1951, 3.2.2) for these lengths, with their bits reversed.
fn words<const SYMBOLS: usize>(lengths_bits: &[u8; SYMBOLS]) -> [u16; SYMBOLS] {
    let mut counts = [0u16; MAX_LEN_BITS + 1];
    for &len in lengths_bits {
        counts[usize::from(len)] += 1;
    }
    counts[0] = 0;
    let mut next = [0u16; MAX_LEN_BITS + 1];
    for len in 1..=MAX_LEN_BITS {
        next[len] = (next[len - 1] + counts[len - 1]) << 1;
    }
    lengths_bits.map(|len| {
        if len == 0 {
            return 0;
        }
        let word = next[usize::from(len)];
        next[usize::from(len)] += 1;
        word.reverse_bits() >> (16 - len)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kraft<const SYMBOLS: usize>(code: &Code<SYMBOLS>) -> u32 {
        code.lengths_bits.iter().filter(|&&len| len > 0).map(|&len| 1u32 << (MAX_LEN_BITS - usize::from(len))).sum()
    }

    #[test]
    fn the_example_of_rfc_1951() {
        let reversed = words(&[3, 3, 3, 3, 3, 2, 4, 4]);
        let plain: Vec<u16> = reversed
            .iter()
            .zip([3, 3, 3, 3, 3, 2, 4, 4])
            .map(|(word, len)| word.reverse_bits() >> (16 - len))
            .collect();
        assert_eq!(plain, [0b010, 0b011, 0b100, 0b101, 0b110, 0b00, 0b1110, 0b1111]);
    }

    #[test]
    fn fibonacci_frequencies_hit_every_limit() {
        // The deepest tree for its weight: a chain.
        let mut frequencies = [0u32; 40];
        let (mut a, mut b) = (1, 1);
        for frequency in &mut frequencies {
            *frequency = a;
            (a, b) = (b, a + b);
        }
        for limit_bits in 6..=MAX_LEN_BITS {
            let code = Code::new(&frequencies, limit_bits);
            assert_eq!(kraft(&code), 1 << MAX_LEN_BITS, "limit {limit_bits}");
            assert!(code.lengths_bits.iter().all(|&len| (1..=limit_bits).contains(&usize::from(len))));
        }
    }

    #[test]
    fn none_and_one_symbol() {
        assert_eq!(Code::new(&[0; 30], 15).lengths_bits, [0; 30]);
        let mut frequencies = [0; 30];
        frequencies[7] = 99;
        let code = Code::new(&frequencies, 15);
        assert_eq!((code.lengths_bits[7], code.words[7]), (1, 0));
        assert_eq!(code.lengths_bits.iter().map(|&len| u32::from(len)).sum::<u32>(), 1);
    }

    proptest! {
        #[test]
        fn codes_are_complete_and_rarer_is_not_shorter(
            frequencies in proptest::collection::vec(prop_oneof![Just(0u32), 1u32..10, 1u32..1 << 24], 286),
            limit_bits in 9usize..=15,
        ) {
            let frequencies: [u32; 286] = frequencies.try_into().unwrap();
            let code = Code::new(&frequencies, limit_bits);
            let used = frequencies.iter().filter(|&&frequency| frequency > 0).count();
            if used >= 2 {
                prop_assert_eq!(kraft(&code), 1 << MAX_LEN_BITS);
            }
            for (a, &len_a) in code.lengths_bits.iter().enumerate() {
                prop_assert_eq!(len_a == 0, frequencies[a] == 0);
                prop_assert!(usize::from(len_a) <= limit_bits);
                for (b, &len_b) in code.lengths_bits.iter().enumerate() {
                    if len_a > 0 && frequencies[a] < frequencies[b] {
                        prop_assert!(len_a >= len_b);
                    }
                }
            }
        }

        #[test]
        fn unlimited_codes_cost_what_huffman_costs(
            weights in proptest::collection::vec(1u32..1000, 2..60),
        ) {
            // The depth for these weights need not reach 15; compare if it does not.
            let mut frequencies = [0u32; 60];
            frequencies[..weights.len()].copy_from_slice(&weights);
            let code = Code::new(&frequencies, MAX_LEN_BITS);
            // Huffman's cost is the sum of the weights of all inner nodes: merge the two lightest until one is left.
            let mut heap: std::collections::BinaryHeap<_> =
                weights.iter().map(|&weight| std::cmp::Reverse(u64::from(weight))).collect();
            let mut cost_bits = 0;
            while heap.len() > 1 {
                let merged = heap.pop().unwrap().0 + heap.pop().unwrap().0;
                cost_bits += merged;
                heap.push(std::cmp::Reverse(merged));
            }
            if code.lengths_bits.iter().all(|&len| usize::from(len) < MAX_LEN_BITS) {
                prop_assert_eq!(code.cost_bits(&frequencies), cost_bits);
            } else {
                prop_assert!(code.cost_bits(&frequencies) >= cost_bits);
            }
        }
    }
}
