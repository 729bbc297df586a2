//! Decoder of BloscLZ: Blosc's variant of LZ77, with distances of 13 bits, or 16 for far matches.

use super::{FILTER, corrupt};
use crate::back_reference::repeat;
use crate::error::{CodecError, Result};

/// Maximum distance of the short form; the far form counts from here.
const NEAR: usize = 8191;

/// Decodes to the front of `out`; returns the number of bytes written.
///
/// A control byte below 32 is followed by that many literals plus one. In any other, the high three bits hold the match
/// length minus 2 (7 means that bytes are added until one is not 255), and the other bits hold the high bits of the
/// distance minus 1, whose low bits are in the next byte. If all of these are set, two further bytes of distance
/// follow. The first control byte always announces literals.
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
                return Err(corrupt("a back reference to before the start of the data"));
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
