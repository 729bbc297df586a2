//! Decoder of one or more complete Zstandard frames, with nothing before or after them, and encoder of one frame.

use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;

/// ZSTD_error_dstSize_tooSmall, one of the error numbers that the library guarantees to be stable.
const OUTPUT_TOO_SMALL: usize = 70;

/// A decompressor, reused from chunk to chunk.
#[derive(Default)]
pub(crate) struct ZstdDecoder {
    context: Option<zstd_safe::DCtx<'static>>,
}

impl ZstdDecoder {
    /// Decodes to the front of `out`; returns the number of bytes written. Errors name `filter`.
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
                CodecError::Corrupt { filter, fault: "not complete Zstandard frames" }
            }
        })
    }
}

/// A compressor of one level, reused from frame to frame. Frames state the length of their contents, as HDF5's filter
/// requires.
pub(crate) struct ZstdEncoder {
    context: zstd_safe::CCtx<'static>,
    level: i32,
}

impl ZstdEncoder {
    /// Creates a compressor for `level`; values beyond the library's levels are clamped.
    pub(crate) fn new(level: i32) -> Result<Self> {
        let level = level.clamp(zstd_safe::min_c_level(), zstd_safe::max_c_level());
        let context = zstd_safe::CCtx::try_create().ok_or(CodecError::OutOfMemory { filter: KnownFilter::Zstd })?;
        Ok(Self { context, level })
    }

    /// Returns the compression level.
    pub(crate) fn level(&self) -> i32 {
        self.level
    }

    /// Returns the number of bytes that it currently holds.
    #[cfg(test)]
    fn held_len_bytes(&self) -> usize {
        self.context.sizeof()
    }

    /// Returns the maximum length of a frame of `data_len_bytes`.
    pub(crate) fn bound_len_bytes(data_len_bytes: usize) -> usize {
        zstd_safe::compress_bound(data_len_bytes)
    }

    /// Appends `data` as one frame; returns false, with `out` unchanged, if that takes more than `limit_len_bytes`.
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

/// Returns the maximum number of bytes that a [`ZstdEncoder`] holds for data of at most this length. The library's own
/// estimate is not part of its stable interface; this is above the memory measured with version 1.5.7.
pub(crate) fn encoder_len_bytes(level: u8, data_len_bytes: u64) -> u64 {
    let longest_mib: u64 = match level {
        ..=8 => 6,
        9 => 11,
        10 | 11 => 21,
        12 => 41,
        13..=18 => 65,
        19 => 82,
        20 => 162,
        21 => 322,
        _ => 706,
    };
    // Tables have the length of the data, rounded up to a power of two. Short data needs more of them per byte, but no
    // other large buffers.
    let len_bytes = data_len_bytes.checked_next_power_of_two().unwrap_or(u64::MAX);
    let of_long = len_bytes.saturating_mul(17).saturating_add(3 << 20);
    let of_short = len_bytes.saturating_mul(28).saturating_add(256 << 10);
    (longest_mib << 20).min(of_long).min(of_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoders_hold_no_more_than_declared() {
        let lens_bytes =
            [1, 1000, 4096, 5000, 1 << 14, (1 << 16) - 1, 1 << 16, 1 << 18, 1 << 20, (1 << 20) + 1, 3 << 20, 17 << 20];
        for len_bytes in lens_bytes {
            let (data, mut out) = (vec![7; len_bytes], Vec::new());
            for level in 1..=22 {
                let mut encoder = ZstdEncoder::new(level.into()).unwrap();
                out.clear();
                assert!(encoder.append(&data, &mut out, ZstdEncoder::bound_len_bytes(len_bytes)).unwrap());
                let (held, said) = (encoder.held_len_bytes() as u64, encoder_len_bytes(level, len_bytes as u64));
                let allowed = if len_bytes <= 1 << 16 { 1 << 20 } else { 8 << 20 };
                assert!(held <= said && said < 4 * held + allowed, "level {level}, {len_bytes} bytes: {held}, {said}");
            }
        }
    }
}
