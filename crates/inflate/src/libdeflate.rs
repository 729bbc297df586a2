//! Handle of libdeflate's decompressor, and its checksum. No other module of this crate calls libdeflate.
//!
//! Invariant: a handle has one owner and is used through `&mut`, so that two threads never use the same one.

use crate::error::{InflateError, Result};
use libdeflate_sys as ffi;
use std::ptr::NonNull;

/// Error of a stream that libdeflate refuses.
pub(crate) const CORRUPT: InflateError =
    InflateError::Corrupt { fault: "not a complete zlib stream, or its checksum is wrong" };

/// A decompressor, reused from stream to stream.
pub(crate) struct Decompressor {
    handle: NonNull<ffi::libdeflate_decompressor>,
}

// SAFETY: libdeflate's decompressor is plain memory without thread affinity; it may move to another thread as long as
// one thread at a time uses it, which `&mut self` on every method ensures.
unsafe impl Send for Decompressor {}

impl Decompressor {
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: no preconditions; null means out of memory.
        let handle = unsafe { ffi::libdeflate_alloc_decompressor() };
        let handle = NonNull::new(handle).ok_or(InflateError::OutOfMemory)?;
        Ok(Self { handle })
    }

    /// Inflates one zlib stream from the front of `stored` into the front of `out`; returns the numbers of bytes
    /// consumed and produced. Its Adler-32 checksum is verified.
    pub(crate) fn inflate(&mut self, stored: &[u8], out: &mut [u8]) -> Result<(usize, usize)> {
        let (mut consumed, mut produced) = (0usize, 0usize);
        // SAFETY: the handle is live (created in `new`, freed only in `drop`); both pointers are valid for the lengths
        // passed with them, and libdeflate neither reads nor writes outside of them. It keeps none of the pointers.
        let result = unsafe {
            ffi::libdeflate_zlib_decompress_ex(
                self.handle.as_ptr(),
                stored.as_ptr().cast(),
                stored.len(),
                out.as_mut_ptr().cast(),
                out.len(),
                &mut consumed,
                &mut produced,
            )
        };
        match result {
            ffi::libdeflate_result_LIBDEFLATE_SUCCESS => Ok((consumed, produced)),
            ffi::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => {
                Err(InflateError::TooLong { limit_len_bytes: out.len() })
            }
            _ => Err(CORRUPT),
        }
    }

    /// Inflates one gzip member (RFC 1952), which must be all of `stored`, into the front of `out`; returns the number
    /// of bytes written. Its CRC-32 is verified.
    pub(crate) fn gunzip(&mut self, stored: &[u8], out: &mut [u8]) -> Result<usize> {
        let (mut consumed, mut produced) = (0usize, 0usize);
        // SAFETY: as in `inflate`.
        let result = unsafe {
            ffi::libdeflate_gzip_decompress_ex(
                self.handle.as_ptr(),
                stored.as_ptr().cast(),
                stored.len(),
                out.as_mut_ptr().cast(),
                out.len(),
                &mut consumed,
                &mut produced,
            )
        };
        match result {
            ffi::libdeflate_result_LIBDEFLATE_SUCCESS if consumed == stored.len() => Ok(produced),
            ffi::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => {
                Err(InflateError::TooLong { limit_len_bytes: out.len() })
            }
            _ => Err(InflateError::Corrupt { fault: "not a single complete gzip member, or its checksum is wrong" }),
        }
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: the handle came from libdeflate_alloc_decompressor and is not used again.
        unsafe { ffi::libdeflate_free_decompressor(self.handle.as_ptr()) }
    }
}

/// Computes the Adler-32 checksum that ends a zlib stream (RFC 1950).
pub fn adler32(bytes: &[u8]) -> u32 {
    const INITIAL: u32 = 1;
    // A null buffer would request the initial value, but a Rust slice's pointer is never null. SAFETY: the pointer is
    // valid for `bytes.len()` bytes and only read.
    unsafe { ffi::libdeflate_adler32(INITIAL, bytes.as_ptr().cast(), bytes.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adler_of_nothing_and_of_the_standard_example() {
        assert_eq!(adler32(b""), 1);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
    }
}
