//! Compressed payloads: blocks of up to 16 MiB, each with a header that contains its codec and both lengths.
//!
//! The header consists of two letters, a method byte, and stored and decoded length as 3 bytes each, little-endian
//! (ROOT's RZip.cxx). In LZ4 blocks, the stored bytes follow their xxHash (64 bits, big-endian). Invariants: a payload
//! is filled exactly; nothing is allocated before the headers of all blocks show that they fill it.

use super::xz;
use raddle_codec::{DecodeState, RawStreamCodec};
use raddle_columns::bytes::{Bytes, room};
use raddle_columns::error::UnlocatedError;

/// Length of the header: letters, method, two lengths.
const HEADER_LEN_BYTES: usize = 9;

/// Length of the checksum of an LZ4 block.
const HASH_LEN_BYTES: usize = 8;

const STRUCTURE: &str = "compressed block";

/// One compressed block.
struct CompressedBlock<'b> {
    letters: [u8; 2],
    stored: &'b [u8],
    decoded_len_bytes: usize,
    address: u64,
}

fn next_block<'b>(bytes: &mut Bytes<'b>) -> Result<CompressedBlock<'b>, UnlocatedError> {
    let letters = bytes.array::<2>()?;
    let _method = bytes.le_u8()?;
    let [a, b, c, d, e, f] = bytes.array::<6>()?;
    let stored_len_bytes = u32::from_le_bytes([a, b, c, 0]) as usize;
    let decoded_len_bytes = u32::from_le_bytes([d, e, f, 0]) as usize;
    let address = bytes.address();
    let stored = bytes.take(stored_len_bytes)?;
    Ok(CompressedBlock { letters, stored, decoded_len_bytes, address })
}

/// Decodes `stored`, which begins at `address`, to a payload of `len_bytes` that overwrites `out`, starting at `from`;
/// `out` is extended if necessary.
pub(super) fn decode(
    stored: &[u8],
    address: u64,
    len_bytes: usize,
    state: &mut DecodeState,
    out: &mut Vec<u8>,
    from: usize,
) -> Result<(), UnlocatedError> {
    let mut bytes = Bytes::new(stored, address, STRUCTURE);
    let mut sum_len_bytes = 0;
    while sum_len_bytes < len_bytes && bytes.remaining() >= HEADER_LEN_BYTES {
        let block = next_block(&mut bytes)?;
        if block.decoded_len_bytes == 0 {
            return Err(bytes.damaged("a block without data"));
        }
        sum_len_bytes += block.decoded_len_bytes;
        check_stored(&block)?;
    }
    if sum_len_bytes != len_bytes {
        return Err(bytes.damaged(format!("the blocks hold {sum_len_bytes} bytes, {len_bytes} expected")));
    }
    let mut bytes = Bytes::new(stored, address, STRUCTURE);
    let mut rest = room(out, from, len_bytes);
    while !rest.is_empty() {
        let block = next_block(&mut bytes)?;
        // The lengths of all blocks add up to the length of the payload.
        let (part, after) = rest.split_at_mut(block.decoded_len_bytes.min(rest.len()));
        rest = after;
        decode_block(&block, state, part)?;
    }
    Ok(())
}

fn bare_codec(letters: [u8; 2]) -> Option<RawStreamCodec> {
    match &letters {
        b"ZL" => Some(RawStreamCodec::Zlib),
        b"L4" => Some(RawStreamCodec::Lz4Block),
        b"ZS" => Some(RawStreamCodec::Zstd),
        _ => None,
    }
}

/// Fails if a block has an unknown codec, or too few bytes for its decoded length.
fn check_stored(block: &CompressedBlock<'_>) -> Result<(), UnlocatedError> {
    let damaged = |what: String| UnlocatedError::Damaged { address: block.address, structure: STRUCTURE, what };
    match bare_codec(block.letters) {
        Some(codec) => codec
            .check_stored(block.stored.len(), block.decoded_len_bytes)
            .map_err(|source| UnlocatedError::Codec { address: block.address, structure: STRUCTURE, source }),
        None if &block.letters == b"XZ" => {
            xz::check_stored(block.stored.len(), block.decoded_len_bytes).map_err(|fault| damaged(fault.to_string()))
        }
        None => Err(UnlocatedError::Unsupported {
            address: block.address,
            structure: STRUCTURE,
            what: format!("codec \"{}\"", block.letters.escape_ascii()),
        }),
    }
}

fn decode_block(block: &CompressedBlock<'_>, state: &mut DecodeState, out: &mut [u8]) -> Result<(), UnlocatedError> {
    let damaged = |what: String| UnlocatedError::Damaged { address: block.address, structure: STRUCTURE, what };
    let Some(codec) = bare_codec(block.letters) else {
        return xz::decode(block.stored, out).map_err(|fault| damaged(fault.to_string()));
    };
    let mut stored = block.stored;
    if codec == RawStreamCodec::Lz4Block {
        let (hash, rest) = stored
            .split_first_chunk::<HASH_LEN_BYTES>()
            .ok_or_else(|| damaged("an LZ4 block without its checksum".to_owned()))?;
        if xxhash_rust::xxh64::xxh64(rest, 0) != u64::from_be_bytes(*hash) {
            return Err(damaged("the checksum of the LZ4 block does not match".to_owned()));
        }
        stored = rest;
    }
    codec.decode(state, stored, out).map_err(|source| UnlocatedError::Codec {
        address: block.address,
        structure: STRUCTURE,
        source,
    })
}
