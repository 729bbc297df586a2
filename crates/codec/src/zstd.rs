//! Zstandard: decoding one or more whole frames, nothing before or after them; writing one.

use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;

/// ZSTD_error_dstSize_tooSmall, one of the error numbers that the library promises to keep.
const OUTPUT_TOO_SMALL: usize = 70;

/// A decompressor, reused from chunk to chunk.
#[derive(Default)]
pub(crate) struct ZstdDecoder {
    context: Option<zstd_safe::DCtx<'static>>,
}

impl ZstdDecoder {
    /// Writes to the front of `out`; returns the bytes written. `filter` is the one that errors name.
    pub(crate) fn decode(&mut self, filter: KnownFilter, stored: &[u8], out: &mut [u8]) -> Result<usize> {
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

/// A compressor of one level, reused from frame to frame. Frames state the length of what is in them, as HDF5's filter wants.
pub(crate) struct ZstdEncoder {
    context: zstd_safe::CCtx<'static>,
    level: i32,
}

impl ZstdEncoder {
    /// One for `level`; what lies beyond the library's levels is the nearest.
    pub(crate) fn new(level: i32) -> Result<Self> {
        let level = level.clamp(zstd_safe::min_c_level(), zstd_safe::max_c_level());
        let context = zstd_safe::CCtx::try_create().ok_or(CodecError::OutOfMemory { filter: KnownFilter::Zstd })?;
        Ok(Self { context, level })
    }

    /// The level.
    pub(crate) fn level(&self) -> i32 {
        self.level
    }

    /// Most bytes of a frame of `data_len_bytes`.
    pub(crate) fn bound_len_bytes(data_len_bytes: usize) -> usize {
        zstd_safe::compress_bound(data_len_bytes)
    }

    /// Appends `data` as one frame; false, with `out` as it was, if that takes more than `limit_len_bytes`.
    pub(crate) fn append(&mut self, data: &[u8], out: &mut Vec<u8>, limit_len_bytes: usize) -> Result<bool> {
        let start = out.len();
        out.resize(start + limit_len_bytes, 0);
        let written = self.context.compress(&mut out[start..], data, self.level);
        out.truncate(start + written.as_ref().map_or(0, |len_bytes| *len_bytes));
        match written {
            Ok(_) => Ok(true),
            // The library returns errors as negative numbers.
            Err(code) if code.wrapping_neg() == OUTPUT_TOO_SMALL => Ok(false),
            Err(_) => Err(CodecError::OutOfMemory { filter: KnownFilter::Zstd }),
        }
    }
}
