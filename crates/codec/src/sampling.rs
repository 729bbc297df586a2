//! Choice between the element encoder and libdeflate, by encoding samples of a tile with both.
//!
//! On many columns the element encoder writes as little as libdeflate's level 3 in less than half of the time. On
//! others it misses repeats. A few samples usually show which kind a tile is.

use crate::element_lz::{ElementLzEncoder, Stride};
use crate::libdeflate::Deflater;

/// Minimum length of a tile that is sampled. Below it, the fixed costs of both encoders exceed the gain.
pub(crate) const MIN_TILE_LEN_BYTES: usize = 64 << 10;

/// Fraction of a tile that is sampled: one byte in this many.
const SAMPLED_DIVISOR: usize = 32;

/// Minimum number of bytes that are sampled. Columns with hundreds of different values hardly repeat in fewer.
const MIN_SAMPLED_LEN_BYTES: usize = 4 << 10;

/// Maximum number of bytes that are sampled: 1.6 % of a tile of 1 MiB.
const MAX_SAMPLED_LEN_BYTES: usize = 16 << 10;

/// Number of samples, evenly spread over the tile. They are encoded as one buffer, because each run of an encoder has
/// fixed costs.
const SAMPLES: usize = 8;

/// Alignment of samples, so that each begins with an element.
const ALIGNMENT_LEN_BYTES: usize = 8;

/// Percent of the level's length that the element encoder may need on the samples. On the whole tile it needs less,
/// because repeats reach farther than in the samples.
const MAX_PERCENT: u64 = 102;

/// Encoder of samples, whose memory is reused from tile to tile.
#[derive(Default)]
pub(crate) struct Sampler {
    samples: Vec<u8>,
    deflated: Vec<u8>,
}

impl Sampler {
    /// Returns whether the element encoder writes samples of `raw` about as short as `deflater`.
    pub(crate) fn prefers_element_lz(
        &mut self,
        raw: &[u8],
        elements: Stride,
        element_lz: &mut ElementLzEncoder,
        deflater: &mut Deflater,
    ) -> bool {
        let sample_len_bytes =
            (raw.len() / SAMPLED_DIVISOR).clamp(MIN_SAMPLED_LEN_BYTES, MAX_SAMPLED_LEN_BYTES) / SAMPLES;
        let sample_len_bytes = sample_len_bytes / ALIGNMENT_LEN_BYTES * ALIGNMENT_LEN_BYTES;
        self.samples.clear();
        for nth in 0..SAMPLES {
            // In the middle of each of `SAMPLES` equal parts.
            let middle = (raw.len() - sample_len_bytes) / (2 * SAMPLES) * (2 * nth + 1);
            let start = middle / ALIGNMENT_LEN_BYTES * ALIGNMENT_LEN_BYTES;
            self.samples.extend_from_slice(&raw[start..start + sample_len_bytes]);
        }
        self.deflated.clear();
        if !deflater.deflate(&self.samples, &mut self.deflated, self.samples.len()) {
            // The samples do not shrink, so the faster encoder will do.
            return true;
        }
        let limit_bits = self.deflated.len() as u64 * 8 * MAX_PERCENT / 100;
        element_lz.len_bits(&self.samples, elements) <= limit_bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise() -> impl Iterator<Item = u32> {
        let mut state = 5u64;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 33) as u32
        })
    }

    /// Returns numbers drawn from `values` different ones.
    fn column(values: u32, len_bytes: usize) -> Vec<u8> {
        noise().flat_map(|noise| ((noise % values) as f32 / 7.0).to_le_bytes()).take(len_bytes).collect()
    }

    /// Returns words whose lengths differ.
    fn text(len_bytes: usize) -> Vec<u8> {
        let words: Vec<String> = noise().take(200).map(|noise| format!("{:x} ", noise >> (noise % 24))).collect();
        noise().flat_map(|noise| words[noise as usize % words.len()].bytes()).take(len_bytes).collect()
    }

    fn prefers_element_lz(raw: &[u8]) -> bool {
        let mut deflater = Deflater::new(3).unwrap();
        Sampler::default().prefers_element_lz(raw, Stride::Fours, &mut ElementLzEncoder::default(), &mut deflater)
    }

    #[test]
    fn columns_are_distinguished_from_text() {
        for (values, len_bytes) in [(60, MIN_TILE_LEN_BYTES), (60, 100_000), (300, 1 << 20)] {
            assert!(prefers_element_lz(&column(values, len_bytes)), "{len_bytes} bytes");
            assert!(!prefers_element_lz(&text(len_bytes)), "{len_bytes} bytes");
        }
    }

    #[test]
    fn all_parts_of_a_tile_are_sampled() {
        let half = 1 << 19;
        assert!(!prefers_element_lz(&[column(60, half), text(half)].concat()));
        assert!(!prefers_element_lz(&[text(half), column(60, half)].concat()));
    }

    #[test]
    fn noise_goes_to_the_faster_encoder() {
        let raw: Vec<u8> = noise().map(|noise| (noise >> 8) as u8).take(1 << 17).collect();
        assert!(prefers_element_lz(&raw));
    }
}
