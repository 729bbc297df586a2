//! XZ streams of one LZMA2 filter (the .xz file format 1.2, tukaani.org), decoded into a buffer of known length.
//!
//! The container is parsed here because a stream may request a dictionary of 4 GiB, although none needs more than the
//! length of its output. Invariants: the output's length bounds the memory; the output is filled exactly, and its
//! checksum is verified if it is of a known type (CRC-32, CRC-64).

use crc_fast::{CrcAlgorithm, checksum};
use lzma_rust2::Lzma2Reader;
use std::io::Read;

/// Reason why a stream cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum XzFault {
    #[error("XZ data ends too early")]
    Truncated,
    #[error("not an XZ stream")]
    Magic,
    #[error("the XZ header is damaged")]
    Header,
    #[error("an XZ filter other than LZMA2 is not supported")]
    Filter,
    #[error("XZ data is damaged, or decodes to a different length")]
    Data,
    #[error("the XZ checksum does not match")]
    Checksum,
}

const MAGIC: &[u8; 6] = b"\xfd7zXZ\0";

/// Number of the LZMA2 filter.
const LZMA2: u8 = 0x21;

/// Maximum number of decoded bytes per stored byte. A range coder of 11-bit probabilities that move by 1/32 needs at
/// least 0.0221 bits per decision, and a repeated match of 273 bytes takes at least 14 decisions, so the ratio is at
/// most 7045.
const MAX_RATIO: usize = 7168;

/// Fails if `stored_len_bytes` bytes cannot decode to `decoded_len_bytes` bytes.
pub(super) fn check_stored(stored_len_bytes: usize, decoded_len_bytes: usize) -> Result<(), XzFault> {
    match stored_len_bytes.saturating_mul(MAX_RATIO) < decoded_len_bytes {
        true => Err(XzFault::Truncated),
        false => Ok(()),
    }
}

/// Decodes a stream of one block, which must fill `out`.
pub(super) fn decode(stored: &[u8], out: &mut [u8]) -> Result<(), XzFault> {
    let (header, rest) = stored.split_first_chunk::<12>().ok_or(XzFault::Truncated)?;
    if !header.starts_with(MAGIC) {
        return Err(XzFault::Magic);
    }
    let (flags, crc) = (&header[6..8], &header[8..12]);
    if flags[0] != 0 || crc32(flags) != crc {
        return Err(XzFault::Header);
    }
    let check = flags[1] & 0xf;
    let block_header_len_bytes = match rest.first() {
        Some(0) | None => return Err(XzFault::Truncated),
        Some(&size) => (usize::from(size) + 1) * 4,
    };
    let (block_header, rest) = rest.split_at_checked(block_header_len_bytes).ok_or(XzFault::Truncated)?;
    let (fields, crc) = block_header.split_at(block_header_len_bytes - 4);
    if crc32(fields) != crc {
        return Err(XzFault::Header);
    }
    check_filter(fields)?;
    let dictionary_len_bytes = u32::try_from(out.len()).unwrap_or(u32::MAX).max(4096);
    let mut reader = Lzma2Reader::new(rest, dictionary_len_bytes, None);
    reader.read_exact(out).map_err(|_| XzFault::Data)?;
    // Only the end mark must be left to read.
    if !matches!(reader.read(&mut [0]), Ok(0)) {
        return Err(XzFault::Data);
    }
    let rest = reader.into_inner();
    let padding = (stored.len() - rest.len()).wrapping_neg() % 4;
    let stored_check = rest.get(padding..).ok_or(XzFault::Truncated)?;
    let is_right = match check {
        1 => stored_check.get(..4).map(|stored| stored == crc32(out)),
        4 => stored_check.get(..8).map(|stored| stored == checksum(CrcAlgorithm::Crc64Xz, out).to_le_bytes()),
        _ => Some(true),
    };
    match is_right {
        Some(true) => Ok(()),
        Some(false) => Err(XzFault::Checksum),
        None => Err(XzFault::Truncated),
    }
}

/// Fails unless a block's only filter is LZMA2. `fields` begin with the header's size and end before its checksum.
fn check_filter(fields: &[u8]) -> Result<(), XzFault> {
    let flags = *fields.get(1).ok_or(XzFault::Header)?;
    if flags & 0x3f != 0 {
        return Err(XzFault::Filter);
    }
    let mut at = 2;
    // Stored and decoded length, if present: numbers with 7 bits per byte.
    for bit in [0x40, 0x80] {
        if flags & bit != 0 {
            let rest = fields.get(at..).ok_or(XzFault::Header)?;
            at += 1 + rest.iter().position(|byte| byte & 0x80 == 0).ok_or(XzFault::Header)?;
        }
    }
    match fields.get(at..at + 2) {
        Some([LZMA2, 1]) => Ok(()),
        Some(_) => Err(XzFault::Filter),
        None => Err(XzFault::Header),
    }
}

fn crc32(bytes: &[u8]) -> [u8; 4] {
    (checksum(CrcAlgorithm::Crc32IsoHdlc, bytes) as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `"raddle " * 4`, compressed by xz 5.4 (CRC-32).
    const STREAM: &str = include_str!("xz_stream.hex");

    fn stream() -> Vec<u8> {
        let digits = STREAM.trim().as_bytes();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn a_stream_of_another_encoder_is_decoded() {
        let mut out = [0; 28];
        decode(&stream(), &mut out).unwrap();
        assert_eq!(&out, b"raddle raddle raddle raddle ");
        assert_eq!(decode(&stream(), &mut [0; 27]), Err(XzFault::Data));
        assert_eq!(decode(&stream(), &mut [0; 29]), Err(XzFault::Data));
    }

    #[test]
    fn damage_is_found() {
        let whole = stream();
        let mut unseen = 0;
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let mut out = [0; 28];
            if decode(&changed, &mut out).is_ok() {
                assert_eq!(&out, b"raddle raddle raddle raddle ");
                unseen += 1;
            }
        }
        // Index and footer, which are not needed, and padding.
        assert!(unseen < 26 * 8, "{unseen}");
        for len in 0..whole.len() - 24 {
            assert!(decode(&whole[..len], &mut [0; 28]).is_err());
        }
    }
}
