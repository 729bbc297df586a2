//! Decoder of a single bzip2 stream.

use bzip2::{Decompress, Status};

use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;

const FILTER: KnownFilter = KnownFilter::Bzip2;

/// Decodes to the front of `out`; returns the number of bytes written. Bytes after the stream are ignored, as for
/// deflate.
pub(crate) fn decode(stored: &[u8], out: &mut [u8]) -> Result<usize> {
    const SMALL_MEMORY: bool = false;
    let mut decompress = Decompress::new(SMALL_MEMORY);
    loop {
        let (consumed, produced) = (decompress.total_in() as usize, decompress.total_out() as usize);
        let status = decompress
            .decompress(&stored[consumed..], &mut out[produced..])
            .map_err(|_| CodecError::Corrupt { filter: FILTER, fault: "not a bzip2 stream" })?;
        if status == Status::StreamEnd {
            return Ok(decompress.total_out() as usize);
        }
        // Nothing was read or written: the input or the output is at its end, but the stream is not.
        if (decompress.total_in() as usize, decompress.total_out() as usize) == (consumed, produced) {
            return Err(if produced == out.len() {
                CodecError::TooLong { filter: FILTER, limit_len_bytes: out.len() }
            } else {
                CodecError::Truncated { filter: FILTER }
            });
        }
    }
}
