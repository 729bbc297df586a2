//! Splits bytes into literals and runs of zeros.

/// Mark of a token that is a run; its other bits are the length. Tokens without it are literals.
pub(super) const RUN: u32 = 1 << 31;

/// Number of bytes examined per step inside a run: a cache line.
const STRIDE: usize = 64;

/// Number of tokens that data may have before its density is judged.
const HEAD_TOKENS: usize = 1024;

/// Fills `tokens` with the literals (1 to 255) and runs of zeros of `raw`, in order. Returns false if there is more
/// than one token per `sparsity_len_bytes` bytes, or if the number in the first part makes that likely.
///
/// Dense data is thus detected after its first few KiB.
pub(super) fn tokens(raw: &[u8], sparsity_len_bytes: usize, tokens: &mut Vec<u32>) -> bool {
    let limit = raw.len() / sparsity_len_bytes;
    tokens.clear();
    let mut rest = raw;
    while !rest.is_empty() {
        let mut zeros = leading_zeros(rest);
        rest = &rest[zeros..];
        while zeros > 0 {
            let part = zeros.min((RUN - 1) as usize);
            tokens.push(RUN | part as u32);
            zeros -= part;
        }
        let literals = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
        // Checked before the literals are copied, so that dense data costs no more than the limit.
        let scanned_len_bytes = raw.len() - rest.len() + literals;
        let limit_so_far = HEAD_TOKENS + 2 * (scanned_len_bytes / sparsity_len_bytes);
        if tokens.len() + literals > limit.min(limit_so_far) {
            return false;
        }
        tokens.extend(rest[..literals].iter().map(|&byte| u32::from(byte)));
        rest = &rest[literals..];
    }
    true
}

/// Returns the number of zeros at the start of `bytes`.
fn leading_zeros(bytes: &[u8]) -> usize {
    // Most runs of a map are long, and most of dense data end at once; the first word distinguishes them.
    let is_zero = |stride: &[u8; STRIDE]| stride.iter().fold(0, |or, &byte| or | byte) == 0;
    let (strides, _) = bytes.as_chunks::<STRIDE>();
    let mut at = strides.iter().take_while(|stride| is_zero(stride)).count() * STRIDE;
    let (words, _) = bytes[at..].as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        if word != 0 {
            return at + word.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + bytes[at..].iter().take_while(|&&byte| byte == 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_every_length_at_every_place() {
        for zeros in 0..200 {
            for after in [0, 1, 7, 100] {
                let mut bytes = vec![0; zeros];
                bytes.extend(vec![0x80; after]);
                assert_eq!(leading_zeros(&bytes), zeros);
            }
        }
    }

    #[test]
    fn tokens_and_their_limit() {
        let raw = [0, 0, 5, 0, 6, 7, 0, 0, 0, 0];
        let expected = [RUN | 2, 5, RUN | 1, 6, 7, RUN | 4];
        let mut found = vec![1];
        assert!(tokens(&raw, 1, &mut found));
        assert_eq!(found, expected);
        assert!(!tokens(&raw, 2, &mut found));
        // Sparse as a whole, but not at the beginning.
        let late = [vec![1; 2000], vec![0; 100_000]].concat();
        assert!(tokens(&late, 2, &mut found));
        assert!(!tokens(&late, 32, &mut found));
        assert!(tokens(&[], 1, &mut found));
        assert!(found.is_empty());
    }
}
