//! A deflate encoder for data that is nearly all zero: detector maps and images, sparse rows, padding.
//!
//! It handles only literals and runs of zeros (matches at distance 1), writes one block with its own codes, and gives
//! up early if the data is of a different kind. It therefore scans at memory speed where a general encoder searches for
//! matches: about 11 GB/s on maps with a ratio of 450, where libdeflate's level 6 reaches 0.7 GB/s.
//!
//! Invariant: the output is a zlib stream that any decoder can read; it depends only on the data and the limit.

mod block;
mod scan;

use crate::deflate::ZLIB_HEADER_FASTEST;
use crate::deflate::bits::SLACK_LEN_BYTES;
use block::BlockCodes;
use raddle_inflate::adler32;
use raddle_inflate::format::ADLER_LEN_BYTES;

/// Capacity in bytes that [`ZeroRunEncoder::encode`] needs beyond the stream's limit.
pub(crate) const SLACK: usize = SLACK_LEN_BYTES;

/// The encoder, with its reused list of tokens.
#[derive(Default)]
pub(crate) struct ZeroRunEncoder {
    tokens: Vec<u32>,
}

impl ZeroRunEncoder {
    /// Appends `raw` as one zlib stream of at most `limit_len_bytes`. Returns false (and appends nothing) if that is
    /// too little, or if the data has more than one run or literal per `sparsity_len_bytes`.
    pub(crate) fn encode(
        &mut self,
        raw: &[u8],
        sparsity_len_bytes: usize,
        out: &mut Vec<u8>,
        limit_len_bytes: usize,
    ) -> bool {
        if !scan::tokens(raw, sparsity_len_bytes, &mut self.tokens) {
            return false;
        }
        let block = BlockCodes::new(&self.tokens);
        let envelope_len_bytes = ZLIB_HEADER_FASTEST.len() + ADLER_LEN_BYTES;
        let fits = usize::try_from(block.len_bytes())
            .is_ok_and(|len| len <= limit_len_bytes.saturating_sub(envelope_len_bytes));
        if !fits {
            return false;
        }
        out.extend_from_slice(&ZLIB_HEADER_FASTEST);
        block.write(&self.tokens, out);
        out.extend_from_slice(&adler32(raw).to_be_bytes());
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(raw: &[u8]) -> Vec<u8> {
        let mut out = vec![9];
        assert!(ZeroRunEncoder::default().encode(raw, 1, &mut out, raw.len() * 2 + 1000));
        assert_eq!(out.remove(0), 9);
        out
    }

    /// Inflates with a decoder independent of the encoder and of libdeflate.
    fn inflate(stored: &[u8]) -> Vec<u8> {
        miniz_oxide::inflate::decompress_to_vec_zlib(stored).unwrap()
    }

    #[test]
    fn small_inputs_and_long_runs() {
        for raw in [vec![], vec![0], vec![1], vec![0; 2], vec![0; 3], vec![0; 4], vec![0; 5], vec![7; 300]] {
            assert_eq!(inflate(&encode(&raw)), raw);
        }
        for len in (0..600).chain([65_535, 65_536, 1 << 20]) {
            let mut raw = vec![0; len];
            raw.insert(0, 3);
            assert_eq!(inflate(&encode(&raw)), raw, "{len} zeros");
        }
    }

    #[test]
    fn gives_up_on_dense_data_and_on_little_room() {
        let raw: Vec<u8> = (0..1000u32).map(|i| (i % 255) as u8 + 1).collect();
        let mut out = vec![];
        assert!(!ZeroRunEncoder::default().encode(&raw, 2, &mut out, 10_000));
        assert!(!ZeroRunEncoder::default().encode(&raw, 1, &mut out, 100));
        assert!(out.is_empty());
        assert!(ZeroRunEncoder::default().encode(&raw, 1, &mut out, 10_000));
    }

    #[test]
    fn a_map_shrinks_as_promised() {
        // 128 rows of 80 x 100 cells with about 20 set each, as the maps of neutrino experiments have.
        let mut state = 1u64;
        let mut raw = vec![0u8; 128 * 8000];
        for _ in 0..128 * 20 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let place = (state >> 33) as usize % raw.len();
            raw[place] = (state >> 60) as u8 + 1;
        }
        let stored = encode(&raw);
        assert_eq!(inflate(&stored), raw);
        assert!(stored.len() * 100 < raw.len(), "{} bytes", stored.len());
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(
            parts in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..20), prop_oneof![0usize..10, 250usize..270, 500usize..530, 0usize..5000]),
                0..60,
            ),
        ) {
            let raw: Vec<u8> =
                parts.iter().flat_map(|(bytes, zeros)| bytes.iter().copied().chain(std::iter::repeat_n(0, *zeros))).collect();
            let stored = encode(&raw);
            prop_assert_eq!(inflate(&stored), raw.clone());
            let mut back = vec![0; raw.len()];
            prop_assert_eq!(raddle_inflate::Inflater::new().unwrap().inflate(&stored, &mut back), Ok(raw.len()));
            prop_assert_eq!(back, raw);
        }
    }
}
