//! Compression of payloads into the blocks that [`super::compression`] decodes.
//!
//! Invariant: a payload that compression would not shorten is stored uncompressed, because readers detect compression
//! by the length alone.

use raddle_codec::{CodecError, RawStreamEncoder};
use serde::{Deserialize, Serialize};

/// Maximum length of a block before compression: its header has 24 bits for the length.
const MAX_BLOCK_LEN_BYTES: usize = (1 << 24) - 1;

/// Compression of the payloads of a ROOT file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RootCodec {
    /// No compression.
    None,
    /// zlib, with a level from 1 to 9.
    Zlib(u8),
    /// LZ4 blocks.
    Lz4,
    /// Zstandard, with a level from 1 to 22.
    Zstd(i32),
}

impl RootCodec {
    /// Returns ROOT's number for algorithm and level: 100 times the algorithm plus a level from 1 to 9.
    pub(super) fn settings(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Zlib(level) => 100 + u32::from(level.clamp(1, 9)),
            Self::Lz4 => 401,
            // ROOT's level is half of Zstandard's.
            Self::Zstd(level) => 500 + level.div_euclid(2).clamp(1, 9) as u32,
        }
    }
}

/// Compressor of payloads with one codec.
#[derive(Debug)]
pub(super) struct Compressor {
    front: [u8; 3],
    encoder: Option<RawStreamEncoder>,
}

impl Compressor {
    /// Creates a compressor.
    pub(super) fn new(codec: RootCodec) -> Result<Self, CodecError> {
        let (front, encoder) = match codec {
            RootCodec::None => ([0; 3], None),
            RootCodec::Zlib(level) => (*b"ZL\x08", Some(RawStreamEncoder::zlib(level)?)),
            RootCodec::Lz4 => (*b"L4\x01", Some(RawStreamEncoder::lz4_block())),
            RootCodec::Zstd(level) => (*b"ZS\x01", Some(RawStreamEncoder::zstd(level)?)),
        };
        Ok(Self { front, encoder })
    }

    /// Appends `payload` to `out`, compressed if that is shorter.
    pub(super) fn append(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
        let start = out.len();
        let Some(encoder) = &mut self.encoder else {
            out.extend_from_slice(payload);
            return Ok(());
        };
        for block in payload.chunks(MAX_BLOCK_LEN_BYTES) {
            let block_start = out.len();
            out.extend_from_slice(&self.front);
            // The two lengths of 24 bits are filled in once the stored length is known.
            out.extend_from_slice(&[0; 6]);
            let stored_start = out.len();
            if self.front.starts_with(b"L4") {
                out.extend_from_slice(&[0; 8]);
                encoder.encode(block, out)?;
                let hash = xxhash_rust::xxh64::xxh64(&out[stored_start + 8..], 0);
                out[stored_start..stored_start + 8].copy_from_slice(&hash.to_be_bytes());
            } else {
                encoder.encode(block, out)?;
            }
            let stored_len_bytes = out.len() - stored_start;
            if out.len() - start >= payload.len() || stored_len_bytes > MAX_BLOCK_LEN_BYTES {
                out.truncate(start);
                out.extend_from_slice(payload);
                return Ok(());
            }
            let lengths = [stored_len_bytes as u32, block.len() as u32].map(u32::to_le_bytes);
            for (number, [a, b, c, _]) in lengths.into_iter().enumerate() {
                let at = block_start + self.front.len() + 3 * number;
                out[at..at + 3].copy_from_slice(&[a, b, c]);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compression::decode;
    use proptest::prelude::*;
    use raddle_codec::DecodeState;

    const CODECS: [RootCodec; 4] = [RootCodec::None, RootCodec::Zlib(1), RootCodec::Lz4, RootCodec::Zstd(5)];

    fn check(codec: RootCodec, payload: &[u8]) {
        let mut stored = b"before".to_vec();
        Compressor::new(codec).unwrap().append(payload, &mut stored).unwrap();
        let stored = stored.split_off(6);
        assert!(stored.len() <= payload.len());
        let mut decoded = Vec::new();
        match stored.len() == payload.len() {
            true => decoded = stored,
            false => decode(&stored, 0, payload.len(), &mut DecodeState::default(), &mut decoded, 0).unwrap(),
        }
        assert_eq!(decoded, payload);
    }

    proptest! {
        #[test]
        fn what_is_compressed_is_read_again(payload in proptest::collection::vec(0_u8..3, 0..3000), noise: [u8; 32]) {
            for codec in CODECS {
                check(codec, &payload);
                check(codec, &noise);
            }
        }
    }

    #[test]
    fn payloads_longer_than_a_block_are_several() {
        let payload: Vec<u8> = (0..MAX_BLOCK_LEN_BYTES + 70_000).map(|number| (number / 999) as u8).collect();
        for codec in CODECS {
            check(codec, &payload);
        }
    }

    #[test]
    fn settings_are_those_of_root() {
        let settings = [RootCodec::None, RootCodec::Zlib(6), RootCodec::Lz4, RootCodec::Zstd(10), RootCodec::Zstd(1)];
        assert_eq!(settings.map(RootCodec::settings), [0, 106, 401, 505, 501]);
    }
}
