//! Decoder of the bitshuffle filter, which transposes bits in blocks of elements and compresses each block with LZ4 or
//! Zstandard, or leaves it uncompressed.
//!
//! Parameters: two for the version, element length, elements per block (0 means a default), and the compression of
//! blocks. Compressed chunks begin with their decoded length (8 bytes) and the block length in bytes (4 bytes),
//! big-endian.

use crate::bit_transpose;
use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;
use crate::lz4;
use crate::zstd::ZstdDecoder;

const FILTER: KnownFilter = KnownFilter::Bitshuffle;

/// Number of elements that are transposed together; the remainder at the end of a chunk is stored unchanged.
const GROUP: usize = 8;

/// The filter with its parsed parameters.
#[derive(Debug, Clone)]
pub(crate) struct Bitshuffle {
    element_len_bytes: usize,
    block_elements: usize,
    compression: Compression,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    None,
    Lz4,
    Zstd,
}

impl Bitshuffle {
    /// Parses the filter's parameters.
    pub(crate) fn new(parameters: &[u32]) -> Result<Self> {
        let wrong = |fault| CodecError::Parameters { filter: FILTER, fault };
        let parameter = |index: usize| parameters.get(index).map_or(0, |&value| value as usize);
        let element_len_bytes = parameter(2);
        if element_len_bytes == 0 {
            return Err(wrong("the element length is missing"));
        }
        let block_elements = match parameter(3) {
            0 => default_block_elements(element_len_bytes),
            elements => elements,
        };
        if block_elements % GROUP != 0 {
            return Err(wrong("the block length is not a multiple of 8"));
        }
        let compression = match parameter(4) {
            0 => Compression::None,
            2 => Compression::Lz4,
            3 => Compression::Zstd,
            _ => return Err(CodecError::Unsupported { filter: FILTER, feature: "this compression of blocks" }),
        };
        Ok(Self { element_len_bytes, block_elements, compression })
    }

    /// Decodes to the front of `out`; returns the number of bytes written. `scratch` is reused.
    pub(crate) fn decode(
        &self,
        zstd: &mut ZstdDecoder,
        scratch: &mut Vec<u8>,
        stored: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let truncated = || CodecError::Truncated { filter: FILTER };
        let mut rest = stored;
        let (mut len_bytes, mut block_len_bytes) =
            (stored.len(), self.block_elements.saturating_mul(self.element_len_bytes));
        if self.compression != Compression::None {
            let (header, after) = rest.split_first_chunk::<8>().ok_or_else(truncated)?;
            rest = after;
            len_bytes = usize::try_from(u64::from_be_bytes(*header)).unwrap_or(usize::MAX);
            block_len_bytes = lz4::take_be_u32(&mut rest).ok_or_else(truncated)?;
        }
        let group_len_bytes = GROUP * self.element_len_bytes;
        if block_len_bytes == 0 || block_len_bytes % group_len_bytes != 0 || len_bytes % self.element_len_bytes != 0 {
            return Err(CodecError::Corrupt {
                filter: FILTER,
                fault: "lengths that are not multiples of the element length",
            });
        }
        let limit_len_bytes = out.len();
        let out = out.get_mut(..len_bytes).ok_or(CodecError::TooLong { filter: FILTER, limit_len_bytes })?;
        let (grouped, left_over) = out.split_at_mut(len_bytes - len_bytes % group_len_bytes);
        for block in grouped.chunks_mut(block_len_bytes) {
            let stored_len_bytes = match self.compression {
                Compression::None => block.len(),
                _ => lz4::take_be_u32(&mut rest).ok_or_else(truncated)?,
            };
            let (stored, after) = rest.split_at_checked(stored_len_bytes).ok_or_else(truncated)?;
            rest = after;
            if self.compression == Compression::None {
                bit_transpose::undo(stored, self.element_len_bytes, block);
                continue;
            }
            if scratch.len() < block.len() {
                scratch.resize(block.len(), 0);
            }
            let rows = &mut scratch[..block.len()];
            if self.compression == Compression::Lz4 {
                lz4::decode_block(FILTER, stored, rows)?;
            } else {
                let actual_len_bytes = zstd.decode(FILTER, stored, rows)?;
                if actual_len_bytes != rows.len() {
                    return Err(CodecError::Length {
                        filter: FILTER,
                        expected_len_bytes: rows.len(),
                        actual_len_bytes,
                    });
                }
            }
            bit_transpose::undo(rows, self.element_len_bytes, block);
        }
        left_over.copy_from_slice(rest.get(..left_over.len()).ok_or_else(truncated)?);
        Ok(len_bytes)
    }
}

/// Returns the block that the reference implementation uses by default: 8 KiB in whole groups, at least 128 elements.
fn default_block_elements(element_len_bytes: usize) -> usize {
    const TARGET_LEN_BYTES: usize = 8192;
    const MIN: usize = 128;
    (TARGET_LEN_BYTES / element_len_bytes / GROUP * GROUP).max(MIN)
}
