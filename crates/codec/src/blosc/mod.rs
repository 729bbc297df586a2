//! Decoder of Blosc's first format: a header, then blocks that are split, shuffled and compressed one by one.
//!
//! Header: format version, codec version, flags, element length (a byte each); decoded length, block length, stored
//! length (4 bytes each, little-endian). Then the offset of each block, then the blocks. Each block has one or more
//! parts, each preceded by its stored length.

mod blosclz;

use crate::bit_transpose;
use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;
use crate::lz4;
use crate::shuffle::unshuffle;
use crate::zstd::ZstdDecoder;
use raddle_inflate::Inflater;

const FILTER: KnownFilter = KnownFilter::Blosc;

const HEADER_LEN_BYTES: usize = 16;
const FORMAT_VERSION: u8 = 2;

/// Flag: bytes were shuffled.
const SHUFFLE: u8 = 0x01;
/// Flag: the data follows the header unchanged.
const COPIED: u8 = 0x02;
/// Flag: bits were shuffled.
const BIT_SHUFFLE: u8 = 0x04;
/// Flag that this format does not use.
const RESERVED: u8 = 0x08;
/// Flag: blocks have one part each.
const NOT_SPLIT: u8 = 0x10;

/// Maximum number of parts: blocks of longer elements have one part.
const MAX_PARTS: usize = 16;
/// Minimum length of a part; shorter ones are not created.
const MIN_PART_LEN_BYTES: usize = 128;

/// Compressors that a chunk may name, in the order of their numbers.
#[derive(Clone, Copy)]
enum Codec {
    BloscLz,
    Lz4,
    Snappy,
    Zlib,
    Zstd,
}

/// Reused decompressors, and a buffer for the block before unshuffling.
pub(crate) struct Tools<'a> {
    pub(crate) inflater: &'a mut Inflater,
    pub(crate) zstd: &'a mut ZstdDecoder,
    pub(crate) scratch: &'a mut Vec<u8>,
}

fn corrupt(fault: &'static str) -> CodecError {
    CodecError::Corrupt { filter: FILTER, fault }
}

/// Decodes to the front of `out`; returns the number of bytes written.
pub(crate) fn decode(tools: &mut Tools<'_>, stored: &[u8], out: &mut [u8]) -> Result<usize> {
    let truncated = || CodecError::Truncated { filter: FILTER };
    let header: &[u8; HEADER_LEN_BYTES] = stored.first_chunk().ok_or_else(truncated)?;
    let &[version, _, flags, element_len_bytes, ..] = header;
    let number = |at: usize| le_u32(stored, at).ok_or_else(truncated);
    let (len_bytes, block_len_bytes, stored_len_bytes) = (number(4)?, number(8)?, number(12)?);
    if version != FORMAT_VERSION || flags & RESERVED != 0 {
        return Err(CodecError::Unsupported { filter: FILTER, feature: "this version of the format" });
    }
    let limit_len_bytes = out.len();
    let out = out.get_mut(..len_bytes).ok_or(CodecError::TooLong { filter: FILTER, limit_len_bytes })?;
    if len_bytes == 0 {
        return Ok(0);
    }
    let stored = stored.get(..stored_len_bytes).ok_or_else(truncated)?;
    if flags & COPIED != 0 {
        out.copy_from_slice(stored.get(HEADER_LEN_BYTES..HEADER_LEN_BYTES + len_bytes).ok_or_else(truncated)?);
        return Ok(len_bytes);
    }
    if block_len_bytes == 0 || block_len_bytes > limit_len_bytes || element_len_bytes == 0 {
        return Err(corrupt("a block or an element of length 0"));
    }
    let codec = match flags >> 5 {
        0 => Codec::BloscLz,
        1 => Codec::Lz4,
        2 => Codec::Snappy,
        3 => Codec::Zlib,
        4 => Codec::Zstd,
        _ => return Err(CodecError::Unsupported { filter: FILTER, feature: "this compressor" }),
    };
    let element_len_bytes = usize::from(element_len_bytes);
    for (index, block) in out.chunks_mut(block_len_bytes).enumerate() {
        let start = le_u32(stored, HEADER_LEN_BYTES + 4 * index).ok_or_else(truncated)?;
        let parts_stored = stored.get(start..).ok_or_else(truncated)?;
        let is_whole = block.len() == block_len_bytes;
        let is_split = flags & NOT_SPLIT == 0
            && is_whole
            && element_len_bytes <= MAX_PARTS
            && block.len() / element_len_bytes >= MIN_PART_LEN_BYTES;
        let part_len_bytes = if is_split { block.len() / element_len_bytes } else { block.len() };
        let is_shuffled = flags & SHUFFLE != 0 && element_len_bytes > 1;
        let is_bit_shuffled = flags & BIT_SHUFFLE != 0 && block.len() >= element_len_bytes;
        if !is_shuffled && !is_bit_shuffled {
            decode_parts(tools, codec, parts_stored, part_len_bytes, block)?;
            continue;
        }
        let mut scratch = std::mem::take(tools.scratch);
        if scratch.len() < block.len() {
            scratch.resize(block.len(), 0);
        }
        let shuffled = &mut scratch[..block.len()];
        let decoded = decode_parts(tools, codec, parts_stored, part_len_bytes, shuffled);
        if is_shuffled {
            unshuffle(shuffled, element_len_bytes, block);
        } else {
            undo_bit_shuffle(shuffled, element_len_bytes, block);
        }
        *tools.scratch = scratch;
        decoded?;
    }
    Ok(len_bytes)
}

/// Decodes the parts of one block, which must fill `out`.
fn decode_parts(
    tools: &mut Tools<'_>,
    codec: Codec,
    stored: &[u8],
    part_len_bytes: usize,
    out: &mut [u8],
) -> Result<()> {
    let mut rest = stored;
    // If the length of a split block is not a multiple of the element length, some bytes would belong to no part.
    if !out.len().is_multiple_of(part_len_bytes) {
        return Err(corrupt("a split block of partial elements"));
    }
    for part in out.chunks_exact_mut(part_len_bytes) {
        let truncated = || CodecError::Truncated { filter: FILTER };
        let (stored_len_bytes, after) = rest.split_first_chunk::<4>().ok_or_else(truncated)?;
        let (stored, after) =
            after.split_at_checked(u32::from_le_bytes(*stored_len_bytes) as usize).ok_or_else(truncated)?;
        rest = after;
        if stored.len() == part.len() {
            part.copy_from_slice(stored);
            continue;
        }
        let actual_len_bytes = match codec {
            Codec::BloscLz => blosclz::decode(stored, part)?,
            Codec::Lz4 => lz4::decode_block(FILTER, stored, part).map(|()| part.len())?,
            Codec::Snappy => {
                snap::raw::Decoder::new().decompress(stored, part).map_err(|_| corrupt("not a whole Snappy block"))?
            }
            Codec::Zlib => tools.inflater.inflate(stored, part)?,
            Codec::Zstd => tools.zstd.decode(FILTER, stored, part)?,
        };
        if actual_len_bytes != part.len() {
            return Err(CodecError::Length { filter: FILTER, expected_len_bytes: part.len(), actual_len_bytes });
        }
    }
    Ok(())
}

/// Reverses the bit shuffle of a block, which Blosc applies only if its elements form whole groups of 8.
fn undo_bit_shuffle(shuffled: &[u8], element_len_bytes: usize, out: &mut [u8]) {
    let elements = out.len() / element_len_bytes;
    let whole_len_bytes = if elements.is_multiple_of(8) { elements * element_len_bytes } else { 0 };
    bit_transpose::undo(&shuffled[..whole_len_bytes], element_len_bytes, &mut out[..whole_len_bytes]);
    out[whole_len_bytes..].copy_from_slice(&shuffled[whole_len_bytes..]);
}

/// Reads the little-endian number at an offset.
fn le_u32(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize)
}
