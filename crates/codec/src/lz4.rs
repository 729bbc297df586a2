//! LZ4: the registered filter's frame of independent LZ4 blocks, and bare blocks, both decoding and encoding.
//!
//! The chunk begins with its decoded length (8 bytes) and the block length (4 bytes), both big-endian. Each block is
//! preceded by its stored length (4 bytes), and is uncompressed if that equals its decoded length.

use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;

const FILTER: KnownFilter = KnownFilter::Lz4;

/// Decodes to the front of `out`; returns the number of bytes written.
pub(crate) fn decode(stored: &[u8], out: &mut [u8]) -> Result<usize> {
    let truncated = || CodecError::Truncated { filter: FILTER };
    let limit_len_bytes = out.len();
    let (header, mut rest) = stored.split_first_chunk::<8>().ok_or_else(truncated)?;
    let len_bytes = usize::try_from(u64::from_be_bytes(*header)).unwrap_or(usize::MAX);
    let out = out.get_mut(..len_bytes).ok_or(CodecError::TooLong { filter: FILTER, limit_len_bytes })?;
    let block_len_bytes = take_be_u32(&mut rest).ok_or_else(truncated)?;
    if block_len_bytes == 0 && len_bytes > 0 {
        return Err(CodecError::Corrupt { filter: FILTER, fault: "blocks of length 0" });
    }
    // The last block is the remainder.
    for block in out.chunks_mut(block_len_bytes.max(1)) {
        let stored_len_bytes = take_be_u32(&mut rest).ok_or_else(truncated)?;
        let (stored, after) = rest.split_at_checked(stored_len_bytes).ok_or_else(truncated)?;
        rest = after;
        if stored.len() == block.len() {
            block.copy_from_slice(stored);
        } else {
            decode_block(FILTER, stored, block)?;
        }
    }
    Ok(len_bytes)
}

/// Decodes one bare LZ4 block, which must fill `out`.
pub(crate) fn decode_block(filter: KnownFilter, stored: &[u8], out: &mut [u8]) -> Result<()> {
    // The library uses 31-bit lengths.
    let (Ok(_), Ok(len_bytes)) = (i32::try_from(stored.len()), i32::try_from(out.len())) else {
        return Err(CodecError::Corrupt { filter, fault: "longer than an LZ4 block can be" });
    };
    match lz4::block::decompress_to_buffer(stored, Some(len_bytes), out) {
        Ok(len_bytes) if len_bytes == out.len() => Ok(()),
        Ok(actual_len_bytes) => Err(CodecError::Length { filter, expected_len_bytes: out.len(), actual_len_bytes }),
        Err(_) => Err(CodecError::Corrupt { filter, fault: "not a complete LZ4 block of this length" }),
    }
}

/// Decodes one LZ4 block without a frame, which must fill `out`.
///
/// # Errors
/// If the block is damaged or has a different length.
pub fn decode_bare(stored: &[u8], out: &mut [u8]) -> Result<()> {
    decode_block(FILTER, stored, out)
}

/// Maximum length of the data of a block.
const MAX_BLOCK_LEN_BYTES: usize = 0x7E00_0000;

/// Appends `raw` as one LZ4 block without a frame.
///
/// # Errors
/// If it is longer than a block can be.
pub fn append_block(raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if raw.len() > MAX_BLOCK_LEN_BYTES {
        return Err(CodecError::TooLong { filter: FILTER, limit_len_bytes: MAX_BLOCK_LEN_BYTES });
    }
    let start = out.len();
    out.resize(start + block_bound_len_bytes(raw.len()), 0);
    let written = lz4::block::compress_to_buffer(raw, None, false, &mut out[start..]);
    out.truncate(start + written.expect("the output has the length that any input may need"));
    Ok(())
}

/// Returns the maximum length of the block of `raw_len_bytes`, according to the format's description.
pub(crate) fn block_bound_len_bytes(raw_len_bytes: usize) -> usize {
    raw_len_bytes + raw_len_bytes / 255 + 16
}

/// Maximum length of a frame's block: the default of the registered filter.
const BLOCK_LEN_BYTES: usize = 1 << 30;

/// Returns the maximum space that [`append_frame`] needs.
pub(crate) fn frame_bound_len_bytes(raw_len_bytes: usize) -> usize {
    // A block may have LZ4's maximum length while it is being created, and there are few blocks.
    let blocks = raw_len_bytes.div_ceil(BLOCK_LEN_BYTES).max(1);
    12 + 20 * blocks + block_bound_len_bytes(raw_len_bytes)
}

/// Appends `raw` in the frame of the registered filter; returns false, with `out` unchanged, if that takes more than
/// `limit_len_bytes`.
pub(crate) fn append_frame(raw: &[u8], out: &mut Vec<u8>, limit_len_bytes: usize) -> Result<bool> {
    let start = out.len();
    // A single block of the full length if possible, as in the filter itself.
    let block_len_bytes = raw.len().clamp(1, BLOCK_LEN_BYTES);
    out.extend_from_slice(&(raw.len() as u64).to_be_bytes());
    out.extend_from_slice(&(block_len_bytes as u32).to_be_bytes());
    for block in raw.chunks(block_len_bytes) {
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        append_block(block, out)?;
        if out.len() - length_at - 4 >= block.len() {
            out.truncate(length_at + 4);
            out.extend_from_slice(block);
        }
        let stored_len_bytes = (out.len() - length_at - 4) as u32;
        out[length_at..length_at + 4].copy_from_slice(&stored_len_bytes.to_be_bytes());
    }
    let is_within = out.len() - start <= limit_len_bytes;
    if !is_within {
        out.truncate(start);
    }
    Ok(is_within)
}

/// Reads and removes a big-endian number of 4 bytes.
pub(crate) fn take_be_u32(rest: &mut &[u8]) -> Option<usize> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_be_bytes(*number) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bare_blocks_come_back(raw in proptest::collection::vec(0u8..4, 0..3000)) {
            let mut stored = vec![9; 3];
            append_block(&raw, &mut stored).unwrap();
            let mut back = vec![0; raw.len()];
            decode_bare(&stored[3..], &mut back).unwrap();
            prop_assert_eq!(&back, &raw);
            back.push(0);
            prop_assert!(decode_bare(&stored[3..], &mut back).is_err());
        }
    }
}
