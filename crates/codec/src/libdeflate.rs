//! Owned handles of libdeflate's compressors and decompressor: the only calls to it in this crate.
//!
//! Invariant: a handle has one owner and is used through `&mut`, so that two threads never use the same one.

use std::ptr::NonNull;

use libdeflate_sys as ffi;

use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;
use crate::inflate::{InterleavedInflater, RepetitiveInflater, SmallChunkInflater};

const FILTER: KnownFilter = KnownFilter::Deflate;

const CORRUPT: CodecError =
    CodecError::Corrupt { filter: FILTER, fault: "not a complete zlib stream, or its checksum is wrong" };

/// A decompressor, reused from chunk to chunk: allocating one per chunk costs as much as inflating 512 bytes (measured:
/// 1.0-1.2 instead of 1.9 µs for chunks of 128 rows).
pub(crate) struct DeflateDecoder {
    handle: NonNull<ffi::libdeflate_decompressor>,
    /// Padded copy of small chunks: see [`DeflateDecoder::inflate_small`].
    padded_input: Vec<u8>,
    padded_output: Vec<u8>,
    /// Inflater for small chunks, created for the first one.
    small: Option<Box<SmallChunkInflater>>,
    /// Inflater for runs, created for the first long chunk that is mostly repetitions.
    runs: Option<Box<RepetitiveInflater>>,
    /// Inflater for columns, created for the first long chunk of numbers; `Some(None)` if the processor lacks the
    /// required instructions.
    joint: Option<Option<Box<InterleavedInflater>>>,
}

/// Maximum length of chunks, stored and inflated, that are inflated with padding.
const SMALL_LEN_BYTES: usize = 4096;

/// Length of the padding of the input. libdeflate decodes fast only while at least 299 bytes of output and about 30 of
/// input are left, and byte by byte after that. For a chunk of 128 rows of 4 bytes that is more than half.
const INPUT_ROOM_LEN_BYTES: usize = 64;
const OUTPUT_ROOM_LEN_BYTES: usize = 320;

// SAFETY: libdeflate's decompressor is plain memory without thread affinity; it may move to another thread as long as
// one thread at a time uses it, which `&mut self` on every method ensures.
unsafe impl Send for DeflateDecoder {}

impl DeflateDecoder {
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: no preconditions; null means out of memory.
        let handle = unsafe { ffi::libdeflate_alloc_decompressor() };
        let handle = NonNull::new(handle).ok_or(CodecError::OutOfMemory { filter: FILTER })?;
        Ok(Self { handle, padded_input: Vec::new(), padded_output: Vec::new(), small: None, runs: None, joint: None })
    }

    /// Inflates one zlib stream from the front of `stored` into the front of `out`; returns the number of bytes
    /// written.
    ///
    /// The Adler-32 checksum is always verified. Bytes after the end of the stream are ignored, as in HDF5 itself: the
    /// returned data has been verified by the checksum, and refusing would make data unreadable that all other readers
    /// accept.
    pub(crate) fn inflate(&mut self, stored: &[u8], out: &mut [u8]) -> Result<usize> {
        if stored.len() <= SMALL_LEN_BYTES && out.len() <= SMALL_LEN_BYTES {
            let small = self.small.get_or_insert_with(SmallChunkInflater::new);
            return match small.inflate(stored, out) {
                Some(produced) => Ok(produced),
                None => self.inflate_small(stored, out),
            };
        }
        if RepetitiveInflater::is_for(stored, out.len()) {
            let runs = self.runs.get_or_insert_with(RepetitiveInflater::new);
            if let Some(produced) = runs.inflate(stored, out) {
                return Ok(produced);
            }
        } else if InterleavedInflater::is_for(stored, out.len())
            && let Some(joint) = self.joint.get_or_insert_with(InterleavedInflater::new)
            && let [Some(produced)] = joint.inflate([stored], [out])
        {
            return Ok(produced);
        }
        self.inflate_exact(stored, out).map(|(_, produced)| produced)
    }

    /// Inflates two streams like [`DeflateDecoder::inflate`], interleaved if that is faster.
    pub(crate) fn inflate_pair(&mut self, stored: [&[u8]; 2], out: [&mut [u8]; 2]) -> [Result<usize>; 2] {
        let [first, second] = out;
        let are_for_two = InterleavedInflater::prefers_pairs(stored[0], first.len())
            && InterleavedInflater::prefers_pairs(stored[1], second.len());
        let mut inflated = [None; 2];
        if are_for_two && let Some(joint) = self.joint.get_or_insert_with(InterleavedInflater::new) {
            inflated = joint.inflate(stored, [&mut *first, &mut *second]);
        }
        let mut one = |at: usize, out: &mut [u8]| match inflated[at] {
            Some(produced) => Ok(produced),
            None if are_for_two => self.inflate_exact(stored[at], out).map(|(_, produced)| produced),
            None => self.inflate(stored[at], out),
        };
        [one(0, first), one(1, second)]
    }

    /// Inflates a small stream with libdeflate, with padding after input and output, so that none of it is decoded byte
    /// by byte.
    pub(crate) fn inflate_small(&mut self, stored: &[u8], out: &mut [u8]) -> Result<usize> {
        let (mut input, mut output) = (std::mem::take(&mut self.padded_input), std::mem::take(&mut self.padded_output));
        input.resize(SMALL_LEN_BYTES + INPUT_ROOM_LEN_BYTES, 0);
        output.resize(SMALL_LEN_BYTES + OUTPUT_ROOM_LEN_BYTES, 0);
        input[..stored.len()].copy_from_slice(stored);
        // The bytes that the decoder sees after a truncated stream must not depend on the previous chunk.
        input[stored.len()..stored.len() + INPUT_ROOM_LEN_BYTES].fill(0);
        let inflated = self.inflate_exact(
            &input[..stored.len() + INPUT_ROOM_LEN_BYTES],
            &mut output[..out.len() + OUTPUT_ROOM_LEN_BYTES],
        );
        let checked = match inflated {
            // Decoded from bytes after the chunk, so the chunk itself ends too early.
            Ok((consumed, _)) if consumed > stored.len() => Err(CORRUPT),
            Ok((_, produced)) if produced > out.len() => {
                Err(CodecError::TooLong { filter: FILTER, limit_len_bytes: out.len() })
            }
            Ok((_, produced)) => {
                out[..produced].copy_from_slice(&output[..produced]);
                Ok(produced)
            }
            Err(CodecError::TooLong { .. }) => Err(CodecError::TooLong { filter: FILTER, limit_len_bytes: out.len() }),
            Err(error) => Err(error),
        };
        (self.padded_input, self.padded_output) = (input, output);
        checked
    }

    /// Inflates one gzip member (RFC 1952), which must be all of `stored`, into the front of `out`; returns the number
    /// of bytes written. Its CRC-32 is verified.
    pub(crate) fn gunzip(&mut self, stored: &[u8], out: &mut [u8]) -> Result<usize> {
        let (mut consumed, mut produced) = (0usize, 0usize);
        // SAFETY: as in `inflate_exact`.
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
                Err(CodecError::TooLong { filter: FILTER, limit_len_bytes: out.len() })
            }
            _ => Err(CodecError::Corrupt {
                filter: FILTER,
                fault: "not a single complete gzip member, or its checksum is wrong",
            }),
        }
    }

    /// Inflates one zlib stream; returns the numbers of bytes consumed and produced.
    pub(crate) fn inflate_exact(&mut self, stored: &[u8], out: &mut [u8]) -> Result<(usize, usize)> {
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
                Err(CodecError::TooLong { filter: FILTER, limit_len_bytes: out.len() })
            }
            _ => Err(CORRUPT),
        }
    }
}

impl Drop for DeflateDecoder {
    fn drop(&mut self) {
        // SAFETY: the handle came from libdeflate_alloc_decompressor and is not used again.
        unsafe { ffi::libdeflate_free_decompressor(self.handle.as_ptr()) }
    }
}

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

// SAFETY: as for `DeflateDecoder`.
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

/// Computes the Adler-32 checksum that ends a zlib stream (RFC 1950).
pub(crate) fn adler32(bytes: &[u8]) -> u32 {
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

    #[test]
    fn what_does_not_fit_leaves_nothing() {
        let raw: Vec<u8> = (0..=255).collect();
        let mut out = vec![7];
        assert!(!Deflater::new(6).unwrap().deflate(&raw, &mut out, raw.len() / 2));
        assert_eq!(out, [7]);
    }

    #[test]
    fn what_a_cut_stream_is_refused_for_does_not_depend_on_the_one_before() {
        let deflated = |raw: &[u8]| {
            let mut stored = Vec::new();
            assert!(Deflater::new(6).unwrap().deflate(raw, &mut stored, raw.len()));
            stored
        };
        let (before, stored) = (deflated(&[9; 700]), deflated(&[5; 300]));
        let mut reused = DeflateDecoder::new().unwrap();
        for len in 0..stored.len() {
            let (mut out, mut long) = ([0; 300], [0; 700]);
            // Its own end lies after the cut, followed by the end of another stream.
            let _ = reused.inflate_small(&stored, &mut out);
            let after_itself = reused.inflate_small(&stored[..len], &mut out);
            let _ = reused.inflate_small(&before, &mut long);
            let after_another = reused.inflate_small(&stored[..len], &mut out);
            let fresh = DeflateDecoder::new().unwrap().inflate_small(&stored[..len], &mut out);
            assert!(fresh.is_err());
            assert_eq!((&after_itself, &after_another), (&fresh, &fresh), "cut at {len}");
        }
    }

    #[test]
    fn bytes_after_the_stream_are_let_pass_and_a_cut_stream_is_not() {
        let mut stored = Vec::new();
        assert!(Deflater::new(6).unwrap().deflate(&[5; 300], &mut stored, 300));
        let mut out = [0; 300];
        let mut inflater = DeflateDecoder::new().unwrap();
        for len in 0..stored.len() {
            assert!(inflater.inflate(&stored[..len], &mut out).is_err(), "cut at {len}");
        }
        stored.extend_from_slice(b"padding");
        assert_eq!(inflater.inflate(&stored, &mut out), Ok(300));
        assert_eq!(out, [5; 300]);
        let too_long = CodecError::TooLong { filter: FILTER, limit_len_bytes: 299 };
        assert_eq!(inflater.inflate(&stored, &mut out[..299]), Err(too_long));
    }
}
