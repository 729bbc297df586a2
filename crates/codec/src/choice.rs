//! Choice of the encoder for a tile from the effort and the content. It is a pure function, so that files are
//! reproducible.
//!
//! Rates on one core of a 2-core virtual machine (Intel Xeon with AVX-512), MB/s of raw data, and ratios, on NOvA-like
//! columns of 1 MiB and maps of 128 rows:
//!
//! | encoder        | integer columns | float columns | maps        |
//! |----------------|-----------------|---------------|-------------|
//! | zero runs      | does not apply  | does not apply| 11,000 (460)|
//! | libdeflate 1   | 320 (8.2)       | 170 (2.80)    | 390 (440)   |
//! | libdeflate 4   | 190 (8.9)       | 75 (2.85)     | 880 (410)   |
//! | libdeflate 5   | 155 (8.8)       | 95 (2.86)     |             |
//! | libdeflate 6   | 115 (8.9)       | 75 (2.89)     | 710 (480)   |
//! | libdeflate 9   | 14 (9.3)        | 16 (2.92)     | 400 (500)   |
//! | libdeflate 12  | 4 (10.1)        | 4 (2.99)      | 12 (510)    |
//!
//! Column rates were measured on a machine busy with other work (on an idle one they are about 1.8 times higher); only
//! their ratios matter here. Whole merges of 16 files of 4,000 datasets, one level for everything, encoding in CPU
//! seconds and output relative to zlib's gzip 6: level 1 9.6 s, 1.046; 2 8.4 s, 1.024; 3 9.7 s, 1.014; 4 11.2 s, 1.008;
//! 5 11.0 s, 0.998; 6 15.2 s, 0.987. Therefore `Balanced`, which may be 2 % larger than gzip 6, takes level 3, or the
//! element encoder where samples show that it writes about as little.
//!
//! `Like`, compared to the zlib level of the same number, in sizes of whole merges (tiles of up to 1 MiB): level 3 of
//! libdeflate is smaller than zlib's 4 on NOvA-like columns (0.99), packed fields of netCDF (1.00), sparse matrices
//! (0.94), compounds (0.99) and frames of a detector (0.98), and 0.97 to 1.02 of zlib's 6. Level 2 is smaller than
//! zlib's 1 on all of them (0.91 to 0.97), which level 1 (1.11 on the sparse matrices) is not.
//!
//! Planes of shuffled numbers, and both encoders on columns, are measured by `cargo bench -p raddle-codec --bench
//! deflate`; `docs/design/004-encoders.md` has the rates.

use crate::compression::Effort;
use crate::element_lz::Stride;
use crate::planes::MIN_PLANE_LEN_BYTES;
use crate::sampling::MIN_TILE_LEN_BYTES;

/// Encoder for a tile to which the zero-run encoder does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EncoderChoice {
    ElementLz(Stride),
    /// Planes encoder for shuffled numbers, which writes planes without repeats as literals and leaves the others to
    /// libdeflate.
    Planes {
        level: u8,
        plane_len_bytes: usize,
    },
    Libdeflate {
        level: u8,
    },
    /// The element encoder if it writes samples of the tile about as short as libdeflate's level does, otherwise
    /// libdeflate.
    Sampled {
        level: u8,
        elements: Stride,
    },
}

/// Chooses the encoder for `raw`, which will be shuffled first if `is_shuffled`.
pub(crate) fn choose(effort: Effort, raw: &[u8], element_len_bytes: usize, is_shuffled: bool) -> EncoderChoice {
    if matches!(effort, Effort::Fast | Effort::Balanced | Effort::Like(3..=6)) && !is_shuffled && element_len_bytes == 8
    {
        if ascends(raw, 8) {
            return EncoderChoice::ElementLz(Stride::Ascending);
        }
        if ascends(raw, 16) {
            return EncoderChoice::ElementLz(Stride::AscendingPairs);
        }
    }
    let plane_len_bytes = if is_shuffled { raw.len() / element_len_bytes.max(1) } else { 0 };
    match effort {
        Effort::Balanced | Effort::Like(3..=6) if plane_len_bytes >= MIN_PLANE_LEN_BYTES => {
            EncoderChoice::Planes { level: 3, plane_len_bytes }
        }
        Effort::Fast if is_shuffled => EncoderChoice::ElementLz(Stride::Bytes),
        Effort::Fast => EncoderChoice::ElementLz(stride(raw, element_len_bytes)),
        Effort::Balanced | Effort::Like(1..=6) | Effort::Gzip(1..=3) => {
            let level = match effort {
                Effort::Gzip(level) => level,
                Effort::Like(1..=2) => 2,
                _ => 3,
            };
            if is_shuffled || raw.len() < MIN_TILE_LEN_BYTES {
                return EncoderChoice::Libdeflate { level };
            }
            match stride(raw, element_len_bytes) {
                Stride::Bytes => EncoderChoice::Libdeflate { level },
                elements => EncoderChoice::Sampled { level, elements },
            }
        }
        Effort::Small => EncoderChoice::Libdeflate { level: 9 },
        Effort::Gzip(level) | Effort::Like(level) => EncoderChoice::Libdeflate { level },
    }
}

/// Returns the stride of the element encoder for numbers in any order.
fn stride(raw: &[u8], element_len_bytes: usize) -> Stride {
    match element_len_bytes {
        0 => Stride::Bytes,
        len if len % 8 == 0 => Stride::Eights,
        len if len % 4 == 0 && has_small_integers(raw, 4) => Stride::SmallFours,
        len if len % 4 == 0 => Stride::Fours,
        len if len % 2 == 0 => Stride::Pairs,
        _ => Stride::Bytes,
    }
}

/// Returns the minimum number of bytes per run of zeros or literal for which the zero-run encoder is chosen; `None` if
/// it never is.
///
/// The encoder stores either in about 9 bits, so one per 32 bytes is 3.5 % of the raw length. Measured on detector
/// maps, libdeflate's level 6 is between 35 % smaller and 10 % larger: at the limit that is 1.2 % of the raw length,
/// for 15 times the time.
pub(crate) fn zero_run_sparsity_len_bytes(effort: Effort) -> Option<usize> {
    match effort {
        Effort::Fast | Effort::Balanced | Effort::Like(1..=6) => Some(32),
        Effort::Small | Effort::Gzip(_) | Effort::Like(_) => None,
    }
}

/// Returns whether the first elements of pieces `stride_len_bytes` long never descend in a sample, in steps below 2^24,
/// as row numbers and time stamps do. In such data nothing repeats at a greater distance than the previous piece.
fn ascends(raw: &[u8], stride_len_bytes: usize) -> bool {
    let first = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let mut before = None;
    samples(raw, 2 * stride_len_bytes).all(|piece| {
        let (element, next) = (first(piece), first(&piece[stride_len_bytes..]));
        let is_step = element <= next && next - element < 1 << 24;
        is_step && before.replace(element).is_none_or(|before| before <= element)
    }) && before.is_some()
}

/// Returns about 256 to 512 pieces of `raw`, evenly spread.
fn samples(raw: &[u8], len_bytes: usize) -> impl Iterator<Item = &[u8]> {
    const SAMPLES: usize = 256;
    let stride = (raw.len() / len_bytes / SAMPLES).max(1);
    raw.chunks_exact(len_bytes).step_by(stride)
}

/// Returns whether at least half of a sample of the elements are integers that would fit half of their bytes.
///
/// The upper half of such a little-endian element is all zeros or all ones. Floats near zero and big-endian integers do
/// not qualify, which costs speed but never size.
fn has_small_integers(raw: &[u8], element_len_bytes: usize) -> bool {
    if !matches!(element_len_bytes, 2 | 4 | 8) {
        return false;
    }
    let (mut sampled, mut small) = (0, 0);
    for element in samples(raw, element_len_bytes) {
        let upper = &element[element_len_bytes / 2..];
        sampled += 1;
        small += usize::from(upper.iter().all(|&byte| byte == 0) || upper.iter().all(|&byte| byte == 0xff));
    }
    sampled > 0 && 2 * small >= sampled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_columns() {
        let counts: Vec<u8> = (0..1000u32).flat_map(|i| (i % 40).to_le_bytes()).collect();
        let defaults: Vec<u8> = (0..1000i32).flat_map(|i| (-5 - i % 2).to_le_bytes()).collect();
        let floats: Vec<u8> = (0..1000u32).flat_map(|i| (i as f32).to_le_bytes()).collect();
        assert!(has_small_integers(&counts, 4));
        assert!(has_small_integers(&defaults, 4));
        assert!(!has_small_integers(&floats, 4));
        assert!(!has_small_integers(&[], 4));
        assert!(!has_small_integers(&counts, 12));
        assert_eq!(choose(Effort::Fast, &counts, 4, false), EncoderChoice::ElementLz(Stride::SmallFours));
        assert_eq!(choose(Effort::Fast, &floats, 12, false), EncoderChoice::ElementLz(Stride::Fours));
        assert_eq!(choose(Effort::Fast, &floats, 7, false), EncoderChoice::ElementLz(Stride::Bytes));
        assert_eq!(choose(Effort::Balanced, &floats, 4, true), EncoderChoice::Libdeflate { level: 3 });
        let keys: Vec<u8> = (0..8000u64).flat_map(|row| (row / 8).to_le_bytes()).collect();
        assert_eq!(choose(Effort::Balanced, &keys, 8, false), EncoderChoice::ElementLz(Stride::Ascending));
        assert_eq!(choose(Effort::Gzip(6), &keys, 8, false), EncoderChoice::Libdeflate { level: 6 });
        let counts: Vec<u8> = (0..4000u64).flat_map(|row| [row, row % 7]).flat_map(u64::to_le_bytes).collect();
        assert_eq!(choose(Effort::Fast, &counts, 8, false), EncoderChoice::ElementLz(Stride::AscendingPairs));
        let again: Vec<u8> = (0..9000u64).flat_map(|row| (row % 1000).to_le_bytes()).collect();
        assert_eq!(
            choose(Effort::Balanced, &again, 8, false),
            EncoderChoice::Sampled { level: 3, elements: Stride::Eights }
        );
        let large = floats.repeat(20);
        let sampled = |level, elements| EncoderChoice::Sampled { level, elements };
        assert_eq!(choose(Effort::Balanced, &large, 4, false), sampled(3, Stride::Fours));
        assert_eq!(choose(Effort::Like(1), &large, 4, false), sampled(2, Stride::Fours));
        assert_eq!(choose(Effort::Gzip(1), &large, 4, false), sampled(1, Stride::Fours));
        assert_eq!(choose(Effort::Gzip(4), &large, 4, false), EncoderChoice::Libdeflate { level: 4 });
        assert_eq!(choose(Effort::Balanced, &large, 1, false), EncoderChoice::Libdeflate { level: 3 });
        assert_eq!(choose(Effort::Gzip(7), &counts, 4, false), EncoderChoice::Libdeflate { level: 7 });
        assert_eq!([1, 2, 3, 6, 7, 9].map(|level| choose(Effort::Like(level), &floats, 4, false)), {
            [2, 2, 3, 3, 7, 9].map(|level| EncoderChoice::Libdeflate { level })
        });
        assert_eq!(choose(Effort::Like(6), &keys, 8, false), EncoderChoice::ElementLz(Stride::Ascending));
    }
}
