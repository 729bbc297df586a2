//! Decoder of LZF as framed by h5py: the bare stream, which ends with the chunk.
//!
//! A control byte below 32 is followed by that many literals plus one. Any other holds a length in its high three bits
//! (7 means that a byte is added) and, with the following byte, a distance.

use crate::back_reference::repeat;
use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;

const FILTER: KnownFilter = KnownFilter::Lzf;

/// Decodes to the front of `out`; returns the number of bytes written.
pub(crate) fn decode(stored: &[u8], out: &mut [u8]) -> Result<usize> {
    let too_long = CodecError::TooLong { filter: FILTER, limit_len_bytes: out.len() };
    let (mut rest, mut at) = (stored, 0);
    while let Some(control) = take(&mut rest, 1) {
        let control = usize::from(control[0]);
        if control < 32 {
            let literals = take(&mut rest, control + 1).ok_or(CodecError::Truncated { filter: FILTER })?;
            let out = out.get_mut(at..at + literals.len()).ok_or_else(|| too_long.clone())?;
            out.copy_from_slice(literals);
            at += literals.len();
            continue;
        }
        let mut next =
            || take(&mut rest, 1).map(|byte| usize::from(byte[0])).ok_or(CodecError::Truncated { filter: FILTER });
        let mut len = (control >> 5) + 2;
        if control >> 5 == 7 {
            len += next()?;
        }
        let distance = ((control & 31) << 8) + next()? + 1;
        if distance > at {
            return Err(CodecError::Corrupt {
                filter: FILTER,
                fault: "a back reference to before the start of the data",
            });
        }
        repeat(out, at, distance, len).ok_or_else(|| too_long.clone())?;
        at += len;
    }
    Ok(at)
}

/// Removes and returns the first `len` bytes.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_both_kinds_of_references() {
        let stored = [1, b'a', b'b', 0x20, 1, 0xe0, 3, 0, 0, b'!'];
        let mut out = [0; 30];
        let len = decode(&stored, &mut out).unwrap();
        assert_eq!(&out[..len], b"ababaaaaaaaaaaaaa!");
        assert!(matches!(decode(&stored, &mut out[..17]), Err(CodecError::TooLong { .. })));
        assert!(matches!(decode(&[0, 1, 0x20, 1], &mut out), Err(CodecError::Corrupt { .. })));
        assert!(matches!(decode(&stored[..4], &mut out), Err(CodecError::Truncated { .. })));
        assert_eq!(decode(&[], &mut out), Ok(0));
    }
}
