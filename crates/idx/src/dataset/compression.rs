//! Stored blocks: the record of a block in its file, and its bytes, which are raw, a zlib stream, an LZ4 block or a zfp
//! stream.
//!
//! The order of samples is handled elsewhere. Invariant: a block is decoded to exactly its length or refused, and no
//! more memory is allocated than its stored bytes can decode to.

use crate::dataset::grid::Layout;
use crate::dataset::header::Header;
use crate::dataset::sample::SampleType;
use crate::dataset::zfp;
use raddle_codec::{CodecError, DecodeState, Effort, EncodeState, Encoder, ParseZfpModeError, Pipeline, Zfp, ZfpMode};
use std::str::FromStr;

/// Length of a file's header, and of the record of each block after it: ten 32-bit words.
pub const RECORD_LEN_BYTES: u64 = 40;

const ROW_MAJOR: u32 = 0x10;
const COMPRESSION_MASK: u32 = 0xf;

/// Coding of a block's bytes, as stated in its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Uncompressed.
    Raw,
    /// A zlib stream.
    Zip,
    /// An LZ4 block without frame.
    Lz4,
    /// A zfp stream without header.
    Zfp,
}

impl Coding {
    pub(crate) fn flag(self) -> u32 {
        match self {
            Self::Raw => 0,
            Self::Zip => 3,
            Self::Lz4 => 7,
            Self::Zfp => 8,
        }
    }

    /// Returns whether `stored_len_bytes` can decode to `block_len_bytes` with any content.
    fn can_be(self, stored_len_bytes: u32, block_len_bytes: u64) -> bool {
        let most = match self {
            Self::Raw => return u64::from(stored_len_bytes) == block_len_bytes,
            // Deflate makes at most 258 bytes of 2 bits, rounded up; LZ4 at most 255 bytes of one.
            Self::Zip | Self::Lz4 => 1040,
            // 64 values of 8 bytes per bit.
            Self::Zfp => 4096,
        };
        block_len_bytes <= u64::from(stored_len_bytes) * most
    }
}

/// Compression of the blocks of a field. A block that would not shrink is stored raw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Compression {
    /// No compression.
    None,
    /// zlib streams.
    Zip,
    /// LZ4 blocks.
    Lz4,
    /// zfp streams, for blocks where zfp keeps the accuracy that the mode promises.
    Zfp(ZfpMode),
}

impl Compression {
    /// Returns the compression with this name in a header; an empty name means none.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "" | "raw" => Some(Self::None),
            "zip" => Some(Self::Zip),
            "lz4" => Some(Self::Lz4),
            name => zfp::mode_of_name(name).map(Self::Zfp),
        }
    }

    /// Returns how a block is stored if compression shortens it.
    pub fn coding(self) -> Coding {
        match self {
            Self::None => Coding::Raw,
            Self::Zip => Coding::Zip,
            Self::Lz4 => Coding::Lz4,
            Self::Zfp(_) => Coding::Zfp,
        }
    }

    /// Returns whether samples of this type on `rank` axes can be compressed this way.
    pub fn takes(self, sample: SampleType, rank: usize) -> bool {
        match self {
            Self::None | Self::Zip | Self::Lz4 => true,
            Self::Zfp(mode) => zfp::takes(mode, sample, rank),
        }
    }

    /// Returns the name used in headers; empty for none.
    pub fn name(self) -> String {
        match self {
            Self::None => String::new(),
            Self::Zip => "zip".to_owned(),
            Self::Lz4 => "lz4".to_owned(),
            Self::Zfp(mode) => zfp::name_of(mode),
        }
    }
}

/// Error for a string that does not name a compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not zip, lz4, none, zfp, zfp:precision=N with N from 1 to 64, or zfp:accuracy=X with X above 0")]
pub struct ParseCompressionError;

impl FromStr for Compression {
    type Err = ParseCompressionError;

    /// Parses a command-line name: `zip`, `lz4`, `none`, `zfp` (reversible), `zfp:precision=16` or
    /// `zfp:accuracy=0.001`.
    fn from_str(text: &str) -> Result<Self, ParseCompressionError> {
        match text {
            "zip" => Ok(Self::Zip),
            "lz4" => Ok(Self::Lz4),
            "none" => Ok(Self::None),
            "zfp" => Ok(Self::Zfp(ZfpMode::Reversible)),
            _ => {
                let mode = text.strip_prefix("zfp:").ok_or(ParseCompressionError)?;
                mode.parse().map(Self::Zfp).map_err(|ParseZfpModeError| ParseCompressionError)
            }
        }
    }
}

/// Reason why a block is missing or damaged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlockFault {
    /// The file does not exist.
    #[error("the file does not exist")]
    NoFile,
    /// The file is too short to contain the block's record.
    #[error("the file ends before the record of the block")]
    NoRecord,
    /// The record states that nothing is stored.
    #[error("is not stored")]
    NotStored,
    /// The bytes lie outside the file.
    #[error("lies at {offset} with {len_bytes} bytes, outside the file of {file_len_bytes} bytes or in its header")]
    Outside {
        /// Recorded offset.
        offset: u64,
        /// Recorded length.
        len_bytes: u32,
        /// Length of the file.
        file_len_bytes: u64,
    },
    /// A compression that raddle does not support.
    #[error("compression {number} ({name}) is not supported")]
    Unsupported {
        /// Number of the compression in the flags.
        number: u32,
        /// Name of the compression.
        name: &'static str,
    },
    /// The record states zfp, but the header does not name a valid mode.
    #[error("is a zfp stream, but the compression of its field, {name:?}, is not a zfp mode for samples of this type")]
    ZfpMode {
        /// Compression named in the header.
        name: String,
    },
    /// Fewer bytes than a block can be compressed to.
    #[error("{stored_len_bytes} stored bytes cannot be a block of {block_len_bytes} bytes")]
    Length {
        /// Stored length.
        stored_len_bytes: u32,
        /// Length of a block.
        block_len_bytes: u64,
    },
    /// The bytes cannot be decoded.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// Place and form of a stored block, according to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Number of stored bytes.
    pub len_bytes: u32,
    /// Coding of the stored bytes.
    pub coding: Coding,
    /// Order of the samples.
    pub layout: Layout,
}

impl Record {
    /// Serialises the record as big-endian words.
    pub fn to_bytes(self) -> [u8; RECORD_LEN_BYTES as usize] {
        let layout = if self.layout == Layout::RowMajor { ROW_MAJOR } else { 0 };
        let words = [self.offset as u32, (self.offset >> 32) as u32, self.len_bytes, self.coding.flag() | layout];
        let mut bytes = [0; RECORD_LEN_BYTES as usize];
        for (place, word) in bytes[8..24].chunks_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Parses the record of a block in a file of `file_len_bytes`, whose first `tables_len_bytes` are records.
    ///
    /// # Errors
    /// If nothing is stored, the block lies outside the file, or it cannot be a block of `block_len_bytes`.
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
        let coding = match flags & COMPRESSION_MASK {
            0 => Coding::Raw,
            3 => Coding::Zip,
            7 => Coding::Lz4,
            8 => Coding::Zfp,
            number => {
                let name = match number {
                    4 => "jpg",
                    6 => "png",
                    _ => "unknown",
                };
                return Err(BlockFault::Unsupported { number, name });
            }
        };
        if !coding.can_be(len_bytes, block_len_bytes) {
            return Err(BlockFault::Length { stored_len_bytes: len_bytes, block_len_bytes });
        }
        let layout = if flags & ROW_MAJOR == 0 { Layout::Hz } else { Layout::RowMajor };
        Ok(Self { offset, len_bytes, coding, layout })
    }
}

/// A block of a dataset.
#[derive(Debug, Clone, Copy)]
pub struct DatasetBlock<'h> {
    /// Header of the dataset.
    pub header: &'h Header,
    /// Index of the block's field.
    pub field: usize,
    /// Number of the block.
    pub number: u64,
}

impl DatasetBlock<'_> {
    fn compression_name(&self) -> &str {
        self.header.fields[self.field].attribute("default_compression").unwrap_or("")
    }
}

/// Block compressor; one per thread.
#[derive(Debug)]
pub struct BlockEncoder {
    deflate: Encoder,
    state: EncodeState,
    zfp: Zfp,
}

impl BlockEncoder {
    /// Creates an encoder that uses `effort` for zlib streams.
    pub fn new(effort: Effort) -> Self {
        Self { deflate: deflate(effort), state: EncodeState::default(), zfp: Zfp::default() }
    }

    /// Returns the memory needed to encode blocks of this length, in addition to the blocks and their stored bytes.
    pub fn len_bytes(compression: Compression, block_len_bytes: usize) -> u64 {
        match compression {
            Compression::None => 0,
            // The tables of a compressor.
            Compression::Zip | Compression::Lz4 => 1 << 20,
            Compression::Zfp(_) => 3 * block_len_bytes as u64,
        }
    }

    /// Appends the stored form of `raw` and returns how it is stored: raw if compression does not shorten it or does
    /// not keep the accuracy that its mode promises.
    ///
    /// # Errors
    /// If there is no memory for a compressor.
    pub fn append(
        &mut self,
        compression: Compression,
        block: DatasetBlock<'_>,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Coding, CodecError> {
        let start = out.len();
        match compression {
            Compression::None => {}
            Compression::Zip => {
                let mask = self.deflate.encode(&mut self.state, raw, out)?;
                return Ok(if mask == 0 { Coding::Zip } else { Coding::Raw });
            }
            Compression::Lz4 => {
                raddle_codec::append_lz4_block(raw, out)?;
                if out.len() - start < raw.len() {
                    return Ok(Coding::Lz4);
                }
                out.truncate(start);
            }
            Compression::Zfp(mode) => {
                if let Some(array) = zfp::array_of(block.header, block.field, block.number)
                    && self.zfp.append(&array, mode, raw, out)?
                {
                    return Ok(Coding::Zfp);
                }
            }
        }
        out.extend_from_slice(raw);
        Ok(Coding::Raw)
    }
}

fn deflate(effort: Effort) -> Encoder {
    Encoder::plain(effort, 1)
}

/// Block decompressor; one per thread.
pub struct BlockDecoder {
    inflate: Pipeline,
    state: DecodeState,
    zfp: Zfp,
}

impl std::fmt::Debug for BlockDecoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("BlockDecoder").finish_non_exhaustive()
    }
}

impl BlockDecoder {
    /// Creates a decoder.
    ///
    /// # Errors
    /// If a pipeline of one deflate filter is refused, which does not happen.
    pub fn new() -> Result<Self, CodecError> {
        let inflate = Pipeline::new(&deflate(Effort::Fast).filters(), 1)?;
        Ok(Self { inflate, state: DecodeState::default(), zfp: Zfp::default() })
    }

    /// Decodes a stored block into `raw`, which has the length of the whole block.
    ///
    /// # Errors
    /// If the stored bytes do not decode to a block of that length.
    pub fn decode(
        &mut self,
        coding: Coding,
        block: DatasetBlock<'_>,
        stored: &[u8],
        raw: &mut [u8],
    ) -> Result<(), BlockFault> {
        match coding {
            Coding::Raw => self.inflate.decode(&mut self.state, stored, 1, raw)?,
            Coding::Zip => self.inflate.decode(&mut self.state, stored, 0, raw)?,
            Coding::Lz4 => raddle_codec::decode_lz4_block(stored, raw)?,
            Coding::Zfp => {
                let (name, array) = (block.compression_name(), zfp::array_of(block.header, block.field, block.number));
                let (Some(Compression::Zfp(mode)), Some(array)) = (Compression::from_name(name), array) else {
                    return Err(BlockFault::ZfpMode { name: name.to_owned() });
                };
                self.zfp.decode(&array, mode, stored, raw)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::header::Field;
    use proptest::prelude::*;

    #[test]
    fn records_hold_64_bits_of_offset() {
        let record = Record { offset: 0x1_2345_6789, len_bytes: 2048, coding: Coding::Raw, layout: Layout::RowMajor };
        let bytes = record.to_bytes();
        assert_eq!(bytes[8..24], [0x23, 0x45, 0x67, 0x89, 0, 0, 0, 1, 0, 0, 8, 0, 0, 0, 0, 0x10]);
        assert_eq!(Record::from_bytes(&bytes, 1 << 40, 80, 2048).unwrap(), record);
    }

    #[test]
    fn hostile_records_are_refused() {
        let bytes = |offset, len_bytes, coding| Record { offset, len_bytes, coding, layout: Layout::Hz }.to_bytes();
        let read = |bytes: [u8; 40]| Record::from_bytes(&bytes, 10_000, 1320, 2048);
        assert!(matches!(read([0; 40]), Err(BlockFault::NotStored)));
        assert!(matches!(read(bytes(u64::MAX, 2048, Coding::Raw)), Err(BlockFault::Outside { .. })));
        assert!(matches!(read(bytes(9000, 2048, Coding::Raw)), Err(BlockFault::Outside { .. })));
        assert!(matches!(read(bytes(1000, 2048, Coding::Raw)), Err(BlockFault::Outside { .. })));
        assert!(matches!(read(bytes(2000, 2047, Coding::Raw)), Err(BlockFault::Length { .. })));
        assert!(matches!(read(bytes(2000, 1, Coding::Zip)), Err(BlockFault::Length { .. })));
        let mut png = bytes(2000, 2048, Coding::Raw);
        png[23] = 6;
        assert!(matches!(read(png), Err(BlockFault::Unsupported { number: 6, name: "png" })));
    }

    #[test]
    fn compressions_have_two_spellings() {
        for (text, name) in [
            ("none", ""),
            ("zip", "zip"),
            ("zfp", "zfp-reversible-reversible"),
            ("zfp:precision=16", "zfp-precision=16-precision=16"),
            // OpenVisus would take the minus sign of the exponent for the end of the mode.
            ("zfp:accuracy=1e-3", "zfp-accuracy=0.001-accuracy=0.001"),
        ] {
            let compression: Compression = text.parse().unwrap();
            assert_eq!(compression.name(), name);
            assert_eq!(Compression::from_name(name), Some(compression));
        }
        assert_eq!(Compression::from_name("zfp"), Some(Compression::Zfp(ZfpMode::Reversible)));
        let other = Compression::from_name("zfp-precision=9-precision=8");
        assert_eq!(other, Some(Compression::Zfp(ZfpMode::Precision(9))));
        for name in ["zfp-reversible", "zfp-64-64", "zfp-reversible-64-1", "zfpx", "png"] {
            assert_eq!(Compression::from_name(name), None, "{name}");
        }
        for text in ["", "raw", "zfp:", "zfp:rate=8", "zfp-reversible-reversible", "gzip"] {
            assert_eq!(text.parse::<Compression>(), Err(ParseCompressionError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn blocks_come_back(raw in proptest::collection::vec(0u8..9, 4096), log2_len in 5..10u32) {
            let field = |name: &str| Field::new("a", "float64".parse().unwrap()).with("default_compression", name);
            let mut header = Header::new("d", &[16, 16, 2], vec![field("")]).unwrap();
            header.bits_per_block = log2_len;
            let raw = &raw[..8 << log2_len];
            let mut encoder = BlockEncoder::new(Effort::Balanced);
            let mut decoder = BlockDecoder::new().unwrap();
            for text in ["none", "zip", "lz4", "zfp", "zfp:accuracy=1"] {
                let compression: Compression = text.parse().unwrap();
                header.fields = vec![field(&compression.name())];
                let block = DatasetBlock { header: &header, field: 0, number: 0 };
                let mut stored = Vec::new();
                let how = encoder.append(compression, block, raw, &mut stored).unwrap();
                let mut back = vec![0xee; raw.len()];
                decoder.decode(how, block, &stored, &mut back).unwrap();
                if how != Coding::Zfp || text == "zfp" {
                    prop_assert_eq!(&back, &raw);
                }
                prop_assert!(stored.len() <= raw.len());
                back.push(0);
                prop_assert!(decoder.decode(how, block, &stored, &mut back).is_err());
            }
        }
    }
}
