//! BloscLZ, decoding: Blosc's own LZ77 with distances of 13 bits, or 16 for far matches.

use super::{FILTER, corrupt};
use crate::back_reference::repeat;
use crate::error::{CodecError, Result};

/// The longest distance of the short form; the far form counts from here.
const NEAR: usize = 8191;

/// Writes to the front of `out`; returns the bytes written.
///
/// A control byte below 32 is followed by that many literals and one more. Any other has in its high three bits the
/// match length less 2 (7: bytes are to be added until one is not 255), in the others the high bits of the distance
/// less 1, whose low bits are the byte after; all of them set announce two further bytes of distance. The first
/// control byte is always of literals.
pub(super) fn decode(stored: &[u8], out: &mut [u8]) -> Result<usize> {
    let truncated = || CodecError::Truncated { filter: FILTER };
    let too_long = CodecError::TooLong { filter: FILTER, limit_len_bytes: out.len() };
    let mut bytes = stored.iter().map(|&byte| usize::from(byte));
    let Some(first) = bytes.next() else { return Ok(0) };
    let (mut control, mut at) = (first & 31, 0);
    loop {
        if control >= 32 {
            let mut len = (control >> 5) + 2;
            if control >> 5 == 7 {
                loop {
                    let more = bytes.next().ok_or_else(truncated)?;
                    len = len.checked_add(more).ok_or_else(|| too_long.clone())?;
                    if more != 255 {
                        break;
                    }
                }
            }
            let low = bytes.next().ok_or_else(truncated)?;
            let mut distance = ((control & 31) << 8) + low + 1;
            if distance == NEAR + 1 {
                distance = (bytes.next().ok_or_else(truncated)? << 8) + bytes.next().ok_or_else(truncated)? + NEAR + 1;
            }
            if distance > at {
                return Err(corrupt("a reference to before the data"));
            }
            repeat(out, at, distance, len).ok_or_else(|| too_long.clone())?;
            at += len;
        } else {
            for _ in 0..=control {
                let literal = bytes.next().ok_or_else(truncated)?;
                *out.get_mut(at).ok_or_else(|| too_long.clone())? = literal as u8;
                at += 1;
            }
        }
        match bytes.next() {
            Some(next) => control = next,
            None => return Ok(at),
        }
    }
}
