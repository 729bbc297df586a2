//! Bare compressed streams, as used by formats other than HDF5, whose containers state the decoded length.
//!
//! Chunks of HDF5 are decoded by [`crate::Pipeline`]. The caller extracts a stream from its container. Invariants:
//! decoding fills the output exactly or fails; [`RawStreamCodec::check_stored`] can be called before allocating the
//! output, so that a declared length costs no memory that the stored bytes could not fill.

use crate::compression::MAX_LEVEL;
use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;
use crate::libdeflate::Deflater;
use crate::lz4::{append_block, block_bound_len_bytes, decode_block};
use crate::pipeline::{DecodeState, MAX_DEFLATE_RATIO};
use crate::zstd::ZstdEncoder;

/// Compression of a bare stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RawStreamCodec {
    /// One zlib stream (RFC 1950).
    Zlib,
    /// One gzip member (RFC 1952).
    Gzip,
    /// Whole Zstandard frames (RFC 8878).
    Zstd,
    /// One LZ4 block, without a frame.
    Lz4Block,
}

impl RawStreamCodec {
    /// Returns the filter that errors name.
    pub const fn filter(self) -> KnownFilter {
        match self {
            Self::Zlib | Self::Gzip => KnownFilter::Deflate,
            Self::Zstd => KnownFilter::Zstd,
            Self::Lz4Block => KnownFilter::Lz4,
        }
    }

    /// Returns the maximum number of bytes that one stored byte can represent.
    const fn longest_ratio(self) -> usize {
        match self {
            Self::Zlib | Self::Gzip => MAX_DEFLATE_RATIO,
            // A block that repeats one byte 128 Ki times: three bytes of header and the byte (RFC 8878, 3.1.1.2).
            Self::Zstd => (128 << 10) / 4,
            // A match grows by 255 with each byte of its length, and a block can represent 18 bytes without any.
            Self::Lz4Block => 255 + 18,
        }
    }

    /// Checks that this number of stored bytes can decode to `decoded_len_bytes`, whatever they are. Call it before
    /// allocating that many bytes.
    ///
    /// # Errors
    /// If the stored bytes are too few.
    pub fn check_stored(self, stored_len_bytes: usize, decoded_len_bytes: usize) -> Result<()> {
        if stored_len_bytes.saturating_mul(self.longest_ratio()) < decoded_len_bytes {
            return Err(CodecError::Truncated { filter: self.filter() });
        }
        Ok(())
    }

    /// Decodes one stream, which must fill `out`.
    ///
    /// # Errors
    /// If the bytes are not a complete stream, or decode to a different length, or memory for a decompressor cannot be
    /// allocated. The contents of `out` are then unspecified.
    pub fn decode(self, state: &mut DecodeState, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let filter = self.filter();
        let actual_len_bytes = match self {
            Self::Zlib => state.inflater()?.inflate(stored, out)?,
            Self::Gzip => state.inflater()?.gunzip(stored, out)?,
            Self::Zstd => state.zstd().decode(filter, stored, out)?,
            Self::Lz4Block => return decode_block(filter, stored, out),
        };
        match actual_len_bytes == out.len() {
            true => Ok(()),
            false => Err(CodecError::Length { filter, expected_len_bytes: out.len(), actual_len_bytes }),
        }
    }
}

/// A compressor of bare streams, reused from stream to stream. Its output depends only on the data and the level.
pub struct RawStreamEncoder {
    kind: BareFormat,
}

enum BareFormat {
    Zlib(Deflater),
    Gzip(Deflater),
    Zstd(ZstdEncoder),
    Lz4Block,
}

impl RawStreamEncoder {
    /// Creates an encoder of Zstandard frames. `level` is as in the library (1 to 22); other values are clamped.
    ///
    /// # Errors
    /// If memory for the compressor cannot be allocated.
    pub fn zstd(level: i32) -> Result<Self> {
        Ok(Self { kind: BareFormat::Zstd(ZstdEncoder::new(level)?) })
    }

    /// Creates an encoder of gzip members. `level` is as in libdeflate: 0 (stored) to 12.
    ///
    /// # Errors
    /// If memory for the compressor cannot be allocated.
    pub fn gzip(level: u8) -> Result<Self> {
        Ok(Self { kind: BareFormat::Gzip(Deflater::new(level.min(MAX_LEVEL))?) })
    }

    /// Creates an encoder of zlib streams. `level` is as in libdeflate: 0 (stored) to 12.
    ///
    /// # Errors
    /// If memory for the compressor cannot be allocated.
    pub fn zlib(level: u8) -> Result<Self> {
        Ok(Self { kind: BareFormat::Zlib(Deflater::new(level.min(MAX_LEVEL))?) })
    }

    /// Creates an encoder of LZ4 blocks.
    pub fn lz4_block() -> Self {
        Self { kind: BareFormat::Lz4Block }
    }

    /// Returns the maximum number of bytes that [`RawStreamEncoder::encode`] appends for `data_len_bytes`, which it
    /// also reserves while it works.
    pub fn bound_len_bytes(&self, data_len_bytes: usize) -> usize {
        match self.kind {
            // A zlib stream has the same blocks and a shorter header and trailer.
            BareFormat::Zlib(_) | BareFormat::Gzip(_) => Deflater::gzip_bound_len_bytes(data_len_bytes),
            BareFormat::Zstd(_) => ZstdEncoder::bound_len_bytes(data_len_bytes),
            BareFormat::Lz4Block => block_bound_len_bytes(data_len_bytes),
        }
    }

    /// Compresses `data` and appends it to `out`.
    ///
    /// # Errors
    /// If memory for the compression library cannot be allocated.
    pub fn encode(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let bound_len_bytes = self.bound_len_bytes(data.len());
        match &mut self.kind {
            BareFormat::Zlib(deflater) => {
                let fits = deflater.deflate(data, out, bound_len_bytes);
                assert!(fits, "libdeflate needs more bytes than its bound says");
            }
            BareFormat::Gzip(deflater) => deflater.gzip(data, out),
            BareFormat::Zstd(encoder) => {
                let fits = encoder.append(data, out, bound_len_bytes)?;
                assert!(fits, "Zstandard needs more bytes than its bound says");
            }
            BareFormat::Lz4Block => append_block(data, out)?,
        }
        Ok(())
    }
}

impl std::fmt::Debug for RawStreamEncoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.kind {
            BareFormat::Zlib(_) => "zlib",
            BareFormat::Gzip(_) => "gzip",
            BareFormat::Zstd(_) => "zstd",
            BareFormat::Lz4Block => "lz4",
        };
        formatter.debug_struct("BareEncoder").field("codec", &name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode_with(mut encoder: RawStreamEncoder, data: &[u8], stored: &mut Vec<u8>) {
        let before = stored.len();
        encoder.encode(data, stored).unwrap();
        assert!(stored.len() - before <= encoder.bound_len_bytes(data.len()));
    }

    fn encode(codec: RawStreamCodec, data: &[u8]) -> Vec<u8> {
        let mut stored = b"before".to_vec();
        match codec {
            RawStreamCodec::Zlib => encode_with(RawStreamEncoder::zlib(6).unwrap(), data, &mut stored),
            RawStreamCodec::Gzip => encode_with(RawStreamEncoder::gzip(6).unwrap(), data, &mut stored),
            RawStreamCodec::Zstd => encode_with(RawStreamEncoder::zstd(3).unwrap(), data, &mut stored),
            RawStreamCodec::Lz4Block => encode_with(RawStreamEncoder::lz4_block(), data, &mut stored),
        }
        stored.split_off(6)
    }

    const ALL: [RawStreamCodec; 4] =
        [RawStreamCodec::Zlib, RawStreamCodec::Gzip, RawStreamCodec::Zstd, RawStreamCodec::Lz4Block];

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded_to_exactly_its_length(
            data in proptest::collection::vec(0u8..4, 0..5000), less in 1usize..100
        ) {
            let mut state = DecodeState::default();
            for codec in ALL {
                let stored = encode(codec, &data);
                let mut out = vec![9; data.len()];
                codec.check_stored(stored.len(), data.len()).unwrap();
                codec.decode(&mut state, &stored, &mut out).unwrap();
                prop_assert_eq!(&out, &data);
                let mut longer = vec![9; data.len() + less];
                prop_assert!(codec.decode(&mut state, &stored, &mut longer).is_err());
                if data.len() > less {
                    let mut shorter = vec![9; data.len() - less];
                    prop_assert!(codec.decode(&mut state, &stored, &mut shorter).is_err());
                }
            }
        }
    }

    #[test]
    fn the_most_compressible_data_is_within_the_ratio() {
        for codec in ALL {
            for len in [0, 1, 10, 100, 1000, 100_000, 20_000_000] {
                let data = vec![0; len];
                let stored = encode(codec, &data);
                codec.check_stored(stored.len(), len).unwrap();
                assert!(codec.check_stored(stored.len(), stored.len() * 40_000 + 1).is_err());
            }
        }
    }

    #[test]
    fn damage_is_an_error() {
        let mut state = DecodeState::default();
        for codec in ALL {
            let mut out = [0; 64];
            assert!(codec.decode(&mut state, &[], &mut out).is_err());
            assert!(codec.decode(&mut state, &[0xff; 16], &mut out).is_err());
        }
    }
}
