//! Reversal of the bit transposition of the bitshuffle family, which stores bit k of byte b of all elements, for each b
//! and k.

/// Writes elements of `element_len_bytes` to `out` from their bit rows. The number of elements must be a multiple of 8.
///
/// # Panics
/// If the lengths differ, or do not hold a multiple of 8 elements.
pub(crate) fn undo(rows: &[u8], element_len_bytes: usize, out: &mut [u8]) {
    assert_eq!(rows.len(), out.len());
    assert_eq!(out.len() % (8 * element_len_bytes), 0);
    let row_len_bytes = out.len() / (8 * element_len_bytes);
    for (group, out) in out.chunks_exact_mut(8 * element_len_bytes).enumerate() {
        for byte in 0..element_len_bytes {
            let bits: [u8; 8] = std::array::from_fn(|bit| rows[(8 * byte + bit) * row_len_bytes + group]);
            for (element, value) in transpose_bits(bits).into_iter().enumerate() {
                out[element * element_len_bytes + byte] = value;
            }
        }
    }
}

/// Transposes an 8 x 8 bit matrix: bit i of byte j becomes bit j of byte i. Blocks of 1, 2, then 4 bits are swapped
/// across the diagonal.
fn transpose_bits(bytes: [u8; 8]) -> [u8; 8] {
    let mut bits = u64::from_le_bytes(bytes);
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)] {
        let swapped = (bits ^ bits >> shift) & mask;
        bits ^= swapped ^ swapped << shift;
    }
    bits.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_definition() {
        let elements: Vec<u8> = (0..16 * 3).map(|i| (i * 37 + 11) as u8).collect();
        let mut rows = vec![0u8; elements.len()];
        for element in 0..16 {
            for byte in 0..3 {
                for bit in 0..8 {
                    let set = elements[element * 3 + byte] >> bit & 1;
                    rows[(8 * byte + bit) * 2 + element / 8] |= set << (element % 8);
                }
            }
        }
        let mut out = vec![0; elements.len()];
        undo(&rows, 3, &mut out);
        assert_eq!(out, elements);
    }
}
