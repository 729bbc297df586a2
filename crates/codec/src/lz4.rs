//! LZ4: the registered filter's frame of independent LZ4 blocks, and bare blocks, both ways.
//!
//! The chunk begins with its decoded length (8 bytes) and the block length (4 bytes), both big-endian; each block has
//! its stored length (4 bytes) before it and is as it was if that is its decoded length.

use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;

const FILTER: KnownFilter = KnownFilter::Lz4;

/// Writes to the front of `out`; returns the bytes written.
pub(crate) fn decode(stored: &[u8], out: &mut [u8]) -> Result<usize> {
    let truncated = || CodecError::Truncated { filter: FILTER };
    let limit_len_bytes = out.len();
    let (header, mut rest) = stored.split_first_chunk::<8>().ok_or_else(truncated)?;
    let len_bytes = usize::try_from(u64::from_be_bytes(*header)).unwrap_or(usize::MAX);
    let out = out.get_mut(..len_bytes).ok_or(CodecError::TooLong { filter: FILTER, limit_len_bytes })?;
    let block_len_bytes = take_be_u32(&mut rest).ok_or_else(truncated)?;
    if block_len_bytes == 0 && len_bytes > 0 {
        return Err(CodecError::Corrupt { filter: FILTER, fault: "blocks without length" });
    }
    // The last block is what is left.
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
    match lz4_flex::block::decompress_into(stored, out) {
        Ok(len_bytes) if len_bytes == out.len() => Ok(()),
        Ok(actual_len_bytes) => Err(CodecError::Length { filter, expected_len_bytes: out.len(), actual_len_bytes }),
        Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) => {
            Err(CodecError::TooLong { filter, limit_len_bytes: out.len() })
        }
        Err(_) => Err(CodecError::Corrupt { filter, fault: "not a whole LZ4 block" }),
    }
}

/// Decodes one LZ4 block without any frame, which must fill `out`.
///
/// # Errors
/// If the block is damaged or of another length.
pub fn decode_bare(stored: &[u8], out: &mut [u8]) -> Result<()> {
    decode_block(FILTER, stored, out)
}

/// Appends `raw` as one LZ4 block without any frame.
pub fn append_block(raw: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
    let written = lz4_flex::block::compress_into(raw, &mut out[start..]);
    out.truncate(start + written.expect("the output has the length that any input may need"));
}

/// Longest block of a frame: the default of the registered filter.
const BLOCK_LEN_BYTES: usize = 1 << 30;

/// Most bytes that [`append_frame`] needs room for.
pub(crate) fn frame_bound_len_bytes(raw_len_bytes: usize) -> usize {
    // A block is at most as long as LZ4 makes it while it is being made, and there are few.
    let blocks = raw_len_bytes.div_ceil(BLOCK_LEN_BYTES).max(1);
    12 + 4 * blocks + lz4_flex::block::get_maximum_output_size(raw_len_bytes) + 32 * (blocks - 1)
}

/// Appends `raw` in the frame of the registered filter; false, with `out` as it was, if that takes more than
/// `limit_len_bytes`.
pub(crate) fn append_frame(raw: &[u8], out: &mut Vec<u8>, limit_len_bytes: usize) -> bool {
    let start = out.len();
    // As long as all of it, where one is enough: the filter itself does the same.
    let block_len_bytes = raw.len().clamp(1, BLOCK_LEN_BYTES);
    out.extend_from_slice(&(raw.len() as u64).to_be_bytes());
    out.extend_from_slice(&(block_len_bytes as u32).to_be_bytes());
    for block in raw.chunks(block_len_bytes) {
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        append_block(block, out);
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
    is_within
}

/// A big-endian number of 4 bytes, which are taken off.
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
            append_block(&raw, &mut stored);
            let mut back = vec![0; raw.len()];
            decode_bare(&stored[3..], &mut back).unwrap();
            prop_assert_eq!(&back, &raw);
            back.push(0);
            prop_assert!(decode_bare(&stored[3..], &mut back).is_err());
        }
    }
}
