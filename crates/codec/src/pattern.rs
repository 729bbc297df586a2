//! Detection of buffers that repeat one value, with which the engine finds tiles that consist of the fill value.

/// Returns whether `raw` consists of repetitions of `pattern`, the last of which may be truncated.
///
/// An empty pattern never matches, so that with an undefined fill value every tile is stored.
pub fn is_all(raw: &[u8], pattern: &[u8]) -> bool {
    if pattern.is_empty() {
        return false;
    }
    let head_len_bytes = pattern.len().min(raw.len());
    // The first period equals the pattern, and all other bytes equal those one period before: a comparison of the
    // buffer with itself, which runs at memory speed for any pattern and stops at the first difference.
    raw[..head_len_bytes] == pattern[..head_len_bytes] && raw[head_len_bytes..] == raw[..raw.len() - head_len_bytes]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::is_all;

    #[test]
    fn edges() {
        assert!(is_all(&[], &[1, 2]));
        assert!(!is_all(&[], &[]));
        assert!(is_all(&[1], &[1, 2]));
        assert!(is_all(&[1, 2, 1, 2, 1], &[1, 2]));
        assert!(!is_all(&[1, 2, 1, 2, 2], &[1, 2]));
        assert!(!is_all(&[2, 1, 2, 1], &[1, 2]));
    }

    proptest! {
        #[test]
        fn one_changed_byte_is_seen(
            pattern in proptest::collection::vec(any::<u8>(), 1..9),
            repeats in 1usize..200,
            place in any::<prop::sample::Index>(),
        ) {
            let mut raw = pattern.repeat(repeats);
            prop_assert!(is_all(&raw, &pattern));
            let place = place.index(raw.len());
            raw[place] ^= 1;
            prop_assert!(!is_all(&raw, &pattern));
        }
    }
}
