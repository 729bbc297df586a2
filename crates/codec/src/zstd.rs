//! Zstandard, decoding: one or more whole frames, nothing before or after them.

use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;

/// A decompressor, reused from chunk to chunk.
#[derive(Default)]
pub(crate) struct ZstdDecoder {
    context: Option<zstd_safe::DCtx<'static>>,
}

impl ZstdDecoder {
    /// Writes to the front of `out`; returns the bytes written. `filter` is the one that errors name.
    pub(crate) fn decode(&mut self, filter: KnownFilter, stored: &[u8], out: &mut [u8]) -> Result<usize> {
        /// ZSTD_error_dstSize_tooSmall, one of the error numbers that the library promises to keep.
        const OUTPUT_TOO_SMALL: usize = 70;
        let context = match &mut self.context {
            Some(context) => context,
            none => none.insert(zstd_safe::DCtx::try_create().ok_or(CodecError::OutOfMemory { filter })?),
        };
        let limit_len_bytes = out.len();
        context.decompress(out, stored).map_err(|code| {
            // The library returns errors as negative numbers.
            if code.wrapping_neg() == OUTPUT_TOO_SMALL {
                CodecError::TooLong { filter, limit_len_bytes }
            } else {
                CodecError::Corrupt { filter, fault: "not whole Zstandard frames" }
            }
        })
    }
}
