//! Blocks as stored: the record of a block in its file, and its bytes raw, as a zlib stream or as an LZ4 block.
//!
//! Not for the order of samples. Invariant: a block is decoded to exactly its length or refused, and no memory is taken
//! for more than its stored bytes can decode to.

use crate::grid::Layout;
use raddle_codec::{CodecError, DecodeState, Effort, EncodeState, Encoder, EncoderOptions, Pipeline};

/// Length of the header of a file, and of the record of each block after it: ten words of 32 bits.
pub const RECORD_LEN_BYTES: u64 = 40;

const ROW_MAJOR: u32 = 0x10;
const COMPRESSION_MASK: u32 = 0xf;

/// Most bytes that a stored byte can decode to: deflate's 258 bytes for 2 bits, rounded up. LZ4 gives 255.
const MAX_RATIO: u64 = 1040;

/// How the bytes of a block are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not.
    None,
    /// A zlib stream.
    Zip,
    /// An LZ4 block without frame.
    Lz4,
}

impl Compression {
    fn flag(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Zip => 3,
            Self::Lz4 => 7,
        }
    }

    /// The compression of this name in a header; an empty name is none.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "" | "raw" => Some(Self::None),
            "zip" => Some(Self::Zip),
            "lz4" => Some(Self::Lz4),
            _ => None,
        }
    }
}

/// Why a block is missing or damaged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlockFault {
    /// The file is not there.
    #[error("the file does not exist")]
    NoFile,
    /// The file is too short to tell of the block.
    #[error("the file ends before the record of the block")]
    NoRecord,
    /// The record says that there is nothing.
    #[error("is not stored")]
    NotStored,
    /// The bytes lie outside the file.
    #[error("lies at {offset} with {len_bytes} bytes, outside the file of {file_len_bytes} bytes or in its header")]
    Outside {
        /// As recorded.
        offset: u64,
        /// As recorded.
        len_bytes: u32,
        /// Length of the file.
        file_len_bytes: u64,
    },
    /// A compression that is not read.
    #[error("compression {number} ({name}) is not supported")]
    Unsupported {
        /// Number in the flags.
        number: u32,
        /// What it is.
        name: &'static str,
    },
    /// Fewer bytes than the block could be made of.
    #[error("{stored_len_bytes} stored bytes cannot be a block of {block_len_bytes} bytes")]
    Length {
        /// As stored.
        stored_len_bytes: u32,
        /// Length of a block.
        block_len_bytes: u64,
    },
    /// The bytes do not decode.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// Where a block lies in its file, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// First byte.
    pub offset: u64,
    /// Bytes stored.
    pub len_bytes: u32,
    /// Compression.
    pub compression: Compression,
    /// Order of the samples.
    pub layout: Layout,
}

impl Record {
    /// The record's bytes: big-endian words.
    pub fn to_bytes(self) -> [u8; RECORD_LEN_BYTES as usize] {
        let layout = if self.layout == Layout::RowMajor { ROW_MAJOR } else { 0 };
        let words = [self.offset as u32, (self.offset >> 32) as u32, self.len_bytes, self.compression.flag() | layout];
        let mut bytes = [0; RECORD_LEN_BYTES as usize];
        for (place, word) in bytes[8..24].chunks_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Reads a record of a file of `file_len_bytes`, of which the first `tables_len_bytes` are records.
    ///
    /// # Errors
    /// If nothing is stored, or it lies elsewhere, or cannot be a block of `block_len_bytes`.
    pub fn from_bytes(
        bytes: &[u8; RECORD_LEN_BYTES as usize],
        file_len_bytes: u64,
        tables_len_bytes: u64,
        block_len_bytes: u64,
    ) -> Result<Self, BlockFault> {
        let (words, _) = bytes.as_chunks::<4>();
        let word = |index: usize| u32::from_be_bytes(words[index]);
        let offset = u64::from(word(3)) << 32 | u64::from(word(2));
        let (len_bytes, flags) = (word(4), word(5));
        if offset == 0 || len_bytes == 0 {
            return Err(BlockFault::NotStored);
        }
        let end = offset.checked_add(len_bytes.into());
        if offset < tables_len_bytes || end.is_none_or(|end| end > file_len_bytes) {
            return Err(BlockFault::Outside { offset, len_bytes, file_len_bytes });
        }
        let compression = match flags & COMPRESSION_MASK {
            0 => Compression::None,
            3 => Compression::Zip,
            7 => Compression::Lz4,
            number => {
                let name = match number {
                    4 => "jpg",
                    6 => "png",
                    8 => "zfp",
                    _ => "unknown",
                };
                return Err(BlockFault::Unsupported { number, name });
            }
        };
        let can_be = match compression {
            Compression::None => u64::from(len_bytes) == block_len_bytes,
            _ => block_len_bytes <= u64::from(len_bytes) * MAX_RATIO,
        };
        if !can_be {
            return Err(BlockFault::Length { stored_len_bytes: len_bytes, block_len_bytes });
        }
        let layout = if flags & ROW_MAJOR == 0 { Layout::Hz } else { Layout::RowMajor };
        Ok(Self { offset, len_bytes, compression, layout })
    }
}

/// Compresses blocks; one per thread.
#[derive(Debug)]
pub struct BlockEncoder {
    deflate: Encoder,
    state: EncodeState,
}

impl BlockEncoder {
    /// An encoder that puts `effort` into zlib streams.
    pub fn new(effort: Effort) -> Self {
        Self { deflate: deflate(effort), state: EncodeState::default() }
    }

    /// Appends the stored form of `raw`; returns how it is stored, which is raw where compression does not shorten it.
    ///
    /// # Errors
    /// No memory for a compressor.
    pub fn append(
        &mut self,
        compression: Compression,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Compression, CodecError> {
        let start = out.len();
        match compression {
            Compression::None => out.extend_from_slice(raw),
            Compression::Zip => {
                let mask = self.deflate.encode(&mut self.state, raw, out)?;
                return Ok(if mask == 0 { Compression::Zip } else { Compression::None });
            }
            Compression::Lz4 => {
                raddle_codec::append_lz4_block(raw, out);
                if out.len() - start >= raw.len() {
                    out.truncate(start);
                    out.extend_from_slice(raw);
                    return Ok(Compression::None);
                }
            }
        }
        Ok(compression)
    }
}

fn deflate(effort: Effort) -> Encoder {
    Encoder::new(&EncoderOptions { effort: Some(effort), shuffle: false, fletcher32: false, element_len_bytes: 1 })
}

/// Decompresses blocks; one per thread.
pub struct BlockDecoder {
    inflate: Pipeline,
    state: DecodeState,
}

impl std::fmt::Debug for BlockDecoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("BlockDecoder").finish_non_exhaustive()
    }
}

impl BlockDecoder {
    /// A decoder.
    ///
    /// # Errors
    /// If the pipeline of one deflate filter is refused, which it is not.
    pub fn new() -> Result<Self, CodecError> {
        let inflate = Pipeline::new(&deflate(Effort::Fast).filters(), 1)?;
        Ok(Self { inflate, state: DecodeState::default() })
    }

    /// Fills `raw`, a whole block.
    ///
    /// # Errors
    /// If the stored bytes are not a block of that length.
    pub fn decode(&mut self, compression: Compression, stored: &[u8], raw: &mut [u8]) -> Result<(), CodecError> {
        match compression {
            Compression::None => self.inflate.decode(&mut self.state, stored, 1, raw),
            Compression::Zip => self.inflate.decode(&mut self.state, stored, 0, raw),
            Compression::Lz4 => raddle_codec::decode_lz4_block(stored, raw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_hold_64_bits_of_offset() {
        let record =
            Record { offset: 0x1_2345_6789, len_bytes: 2048, compression: Compression::None, layout: Layout::RowMajor };
        let bytes = record.to_bytes();
        assert_eq!(bytes[8..24], [0x23, 0x45, 0x67, 0x89, 0, 0, 0, 1, 0, 0, 8, 0, 0, 0, 0, 0x10]);
        assert_eq!(Record::from_bytes(&bytes, 1 << 40, 80, 2048).unwrap(), record);
    }

    #[test]
    fn hostile_records_are_refused() {
        let bytes =
            |offset, len_bytes, compression| Record { offset, len_bytes, compression, layout: Layout::Hz }.to_bytes();
        let read = |bytes: [u8; 40]| Record::from_bytes(&bytes, 10_000, 1320, 2048);
        assert!(matches!(read([0; 40]), Err(BlockFault::NotStored)));
        assert!(matches!(read(bytes(u64::MAX, 2048, Compression::None)), Err(BlockFault::Outside { .. })));
        assert!(matches!(read(bytes(9000, 2048, Compression::None)), Err(BlockFault::Outside { .. })));
        assert!(matches!(read(bytes(1000, 2048, Compression::None)), Err(BlockFault::Outside { .. })));
        assert!(matches!(read(bytes(2000, 2047, Compression::None)), Err(BlockFault::Length { .. })));
        assert!(matches!(read(bytes(2000, 1, Compression::Zip)), Err(BlockFault::Length { .. })));
        let mut zfp = bytes(2000, 2048, Compression::None);
        zfp[23] = 8;
        assert!(matches!(read(zfp), Err(BlockFault::Unsupported { number: 8, name: "zfp" })));
    }

    proptest! {
        #[test]
        fn blocks_come_back(raw in proptest::collection::vec(0u8..9, 1..5000)) {
            let mut encoder = BlockEncoder::new(Effort::Balanced);
            let mut decoder = BlockDecoder::new().unwrap();
            for compression in [Compression::None, Compression::Zip, Compression::Lz4] {
                let mut stored = Vec::new();
                let how = encoder.append(compression, &raw, &mut stored).unwrap();
                let mut back = vec![0xee; raw.len()];
                decoder.decode(how, &stored, &mut back).unwrap();
                prop_assert_eq!(&back, &raw);
                prop_assert!(stored.len() <= raw.len());
                back.push(0);
                prop_assert!(decoder.decode(how, &stored, &mut back).is_err());
            }
        }
    }
}
