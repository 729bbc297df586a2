//! The shuffle filter: a transposition that stores the first bytes of all elements, then the second ones, and so on.
//!
//! Bytes after the last whole element stay at the end. The transposition is written over blocks of fixed size, so that
//! the compiler generates vector shuffles for the usual element lengths.

/// Number of elements moved together: one vector register for each byte plane.
const BLOCK_ELEMENTS: usize = 16;

/// Writes the shuffled form of `raw` to `shuffled`.
///
/// # Panics
/// If the lengths differ.
pub fn shuffle(raw: &[u8], element_len_bytes: usize, shuffled: &mut [u8]) {
    assert_eq!(raw.len(), shuffled.len());
    let elements = if element_len_bytes > 1 { raw.len() / element_len_bytes } else { 0 };
    if elements < 2 {
        return shuffled.copy_from_slice(raw);
    }
    let whole_len_bytes = elements * element_len_bytes;
    let (raw, raw_rest) = raw.split_at(whole_len_bytes);
    let (shuffled, shuffled_rest) = shuffled.split_at_mut(whole_len_bytes);
    shuffled_rest.copy_from_slice(raw_rest);
    match element_len_bytes {
        2 => shuffle_fixed::<2>(raw, shuffled),
        4 => shuffle_fixed::<4>(raw, shuffled),
        8 => shuffle_fixed::<8>(raw, shuffled),
        16 => shuffle_fixed::<16>(raw, shuffled),
        _ => {
            for (byte, plane) in shuffled.chunks_exact_mut(elements).enumerate() {
                for (element, out) in plane.iter_mut().enumerate() {
                    *out = raw[element * element_len_bytes + byte];
                }
            }
        }
    }
}

/// Writes to `raw` the original of `shuffled`.
///
/// # Panics
/// If the lengths differ.
pub fn unshuffle(shuffled: &[u8], element_len_bytes: usize, raw: &mut [u8]) {
    assert_eq!(raw.len(), shuffled.len());
    let elements = if element_len_bytes > 1 { raw.len() / element_len_bytes } else { 0 };
    if elements < 2 {
        return raw.copy_from_slice(shuffled);
    }
    let whole_len_bytes = elements * element_len_bytes;
    let (raw, raw_rest) = raw.split_at_mut(whole_len_bytes);
    let (shuffled, shuffled_rest) = shuffled.split_at(whole_len_bytes);
    raw_rest.copy_from_slice(shuffled_rest);
    match element_len_bytes {
        2 => unshuffle_fixed::<2>(shuffled, raw),
        4 => unshuffle_fixed::<4>(shuffled, raw),
        8 => unshuffle_fixed::<8>(shuffled, raw),
        16 => unshuffle_fixed::<16>(shuffled, raw),
        _ => {
            for (byte, plane) in shuffled.chunks_exact(elements).enumerate() {
                for (element, &value) in plane.iter().enumerate() {
                    raw[element * element_len_bytes + byte] = value;
                }
            }
        }
    }
}

/// Shuffles whole elements of `N` bytes.
fn shuffle_fixed<const N: usize>(raw: &[u8], shuffled: &mut [u8]) {
    let elements = raw.len() / N;
    let mut planes = shuffled.chunks_exact_mut(elements);
    let mut planes: [&mut [u8]; N] = std::array::from_fn(|_| planes.next().expect("N planes"));
    let blocks = raw.chunks_exact(N * BLOCK_ELEMENTS);
    let tail = blocks.remainder();
    let mut first = 0;
    for block in blocks {
        for (byte, plane) in planes.iter_mut().enumerate() {
            let out: &mut [u8; BLOCK_ELEMENTS] = (&mut plane[first..first + BLOCK_ELEMENTS]).try_into().expect("sized");
            for (element, out) in out.iter_mut().enumerate() {
                *out = block[element * N + byte];
            }
        }
        first += BLOCK_ELEMENTS;
    }
    for (element, bytes) in tail.chunks_exact(N).enumerate() {
        for (plane, &value) in planes.iter_mut().zip(bytes) {
            plane[first + element] = value;
        }
    }
}

/// Unshuffles whole elements of `N` bytes.
fn unshuffle_fixed<const N: usize>(shuffled: &[u8], raw: &mut [u8]) {
    let elements = raw.len() / N;
    let planes: [&[u8]; N] = std::array::from_fn(|byte| &shuffled[byte * elements..][..elements]);
    let mut blocks = raw.chunks_exact_mut(N * BLOCK_ELEMENTS);
    let mut first = 0;
    for block in &mut blocks {
        let lanes: [&[u8; BLOCK_ELEMENTS]; N] =
            std::array::from_fn(|byte| planes[byte][first..first + BLOCK_ELEMENTS].try_into().expect("sized"));
        for element in 0..BLOCK_ELEMENTS {
            for byte in 0..N {
                block[element * N + byte] = lanes[byte][element];
            }
        }
        first += BLOCK_ELEMENTS;
    }
    for (element, bytes) in blocks.into_remainder().chunks_exact_mut(N).enumerate() {
        for (out, plane) in bytes.iter_mut().zip(&planes) {
            *out = plane[first + element];
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_order() {
        let raw: Vec<u8> = (0..11).collect();
        let mut shuffled = [0; 11];
        shuffle(&raw, 3, &mut shuffled);
        assert_eq!(shuffled, [0, 3, 6, 1, 4, 7, 2, 5, 8, 9, 10]);
    }

    proptest! {
        #[test]
        fn is_the_transposition_and_comes_back(
            raw in proptest::collection::vec(any::<u8>(), 0..3000),
            element_len_bytes in prop_oneof![0usize..20, Just(32), Just(4000)],
        ) {
            let mut shuffled = vec![0; raw.len()];
            shuffle(&raw, element_len_bytes, &mut shuffled);
            if let Some(elements) = raw.len().checked_div(element_len_bytes) {
                for (index, &value) in raw[..elements * element_len_bytes].iter().enumerate() {
                    let (element, byte) = (index / element_len_bytes, index % element_len_bytes);
                    prop_assert_eq!(shuffled[byte * elements + element], value);
                }
            }
            let mut back = vec![0; raw.len()];
            unshuffle(&shuffled, element_len_bytes, &mut back);
            prop_assert_eq!(back, raw);
        }
    }
}
