//! Handles of libdeflate's compressors. No other module of this crate calls libdeflate.
//!
//! Invariant: a handle has one owner and is used through `&mut`, so that two threads never use the same one.

use std::ptr::NonNull;

use libdeflate_sys as ffi;

use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;

const FILTER: KnownFilter = KnownFilter::Deflate;

/// Signature of libdeflate's compressing functions: compressor, input, output; returns the number of bytes written, or
/// 0 if there is no room.
type Compress = unsafe extern "C" fn(
    *mut ffi::libdeflate_compressor,
    *const std::ffi::c_void,
    usize,
    *mut std::ffi::c_void,
    usize,
) -> usize;

/// A compressor of one level.
pub(crate) struct Deflater {
    handle: NonNull<ffi::libdeflate_compressor>,
    level: u8,
}

// SAFETY: libdeflate's compressor is plain memory without thread affinity; it may move to another thread as long as one
// thread at a time uses it, which `&mut self` on every method that uses it ensures.
unsafe impl Send for Deflater {}

impl Deflater {
    /// Creates a compressor. `level` is 0 (stored blocks) to 12.
    pub(crate) fn new(level: u8) -> Result<Self> {
        // SAFETY: no preconditions; null means out of memory or that the level is out of range.
        let handle = unsafe { ffi::libdeflate_alloc_compressor(i32::from(level)) };
        let handle = NonNull::new(handle).ok_or(CodecError::OutOfMemory { filter: FILTER })?;
        Ok(Self { handle, level })
    }

    pub(crate) fn level(&self) -> u8 {
        self.level
    }

    /// Appends `raw` as one zlib stream of at most `limit_len_bytes`; returns false (and appends nothing) if it does
    /// not fit.
    pub(crate) fn deflate(&mut self, raw: &[u8], out: &mut Vec<u8>, limit_len_bytes: usize) -> bool {
        self.append(ffi::libdeflate_zlib_compress, raw, out, limit_len_bytes)
    }

    /// Like [`Deflater::deflate`], but appends only the blocks, without the header and checksum of a zlib stream.
    pub(crate) fn deflate_bare(&mut self, raw: &[u8], out: &mut Vec<u8>, limit_len_bytes: usize) -> bool {
        self.append(ffi::libdeflate_deflate_compress, raw, out, limit_len_bytes)
    }

    /// Returns the maximum number of bytes that [`Deflater::gzip`] appends for `raw_len_bytes`.
    pub(crate) fn gzip_bound_len_bytes(raw_len_bytes: usize) -> usize {
        // SAFETY: without a compressor (null is allowed) the function returns a bound for all levels and accesses no
        // memory.
        unsafe { ffi::libdeflate_gzip_compress_bound(std::ptr::null_mut(), raw_len_bytes) }
    }

    /// Appends `raw` as one gzip member, without name and time.
    pub(crate) fn gzip(&mut self, raw: &[u8], out: &mut Vec<u8>) {
        let fits = self.append(ffi::libdeflate_gzip_compress, raw, out, Self::gzip_bound_len_bytes(raw.len()));
        assert!(fits, "libdeflate needs more bytes than its bound says");
    }

    fn append(&mut self, compress: Compress, raw: &[u8], out: &mut Vec<u8>, limit_len_bytes: usize) -> bool {
        out.reserve(limit_len_bytes);
        let spare = &mut out.spare_capacity_mut()[..limit_len_bytes];
        // SAFETY: `compress` is one of libdeflate's compressing functions. The handle is live; `raw` and `spare` are
        // valid for the lengths passed, do not overlap (`out` is borrowed mutably), and libdeflate only writes to
        // `spare`, so that it may be uninitialised.
        let produced_len_bytes = unsafe {
            compress(self.handle.as_ptr(), raw.as_ptr().cast(), raw.len(), spare.as_mut_ptr().cast(), spare.len())
        };
        if produced_len_bytes == 0 {
            return false;
        }
        assert!(produced_len_bytes <= limit_len_bytes, "libdeflate reports more bytes than it was given room for");
        // SAFETY: the first `produced_len_bytes` of the spare capacity were written by libdeflate (it returns the
        // length of the finished stream), and they lie within the capacity by the assertion above.
        unsafe { out.set_len(out.len() + produced_len_bytes) };
        true
    }
}

impl Drop for Deflater {
    fn drop(&mut self) {
        // SAFETY: the handle came from libdeflate_alloc_compressor and is not used again.
        unsafe { ffi::libdeflate_free_compressor(self.handle.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_leaves_nothing() {
        let raw: Vec<u8> = (0..=255).collect();
        let mut out = vec![7];
        assert!(!Deflater::new(6).unwrap().deflate(&raw, &mut out, raw.len() / 2));
        assert_eq!(out, [7]);
    }
}
