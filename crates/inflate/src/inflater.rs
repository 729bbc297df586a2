//! Choice of the inflater for a stream: one of our own, or libdeflate.
//!
//! Invariant: what is decoded, and whether a stream is refused, does not depend on the choice.

use crate::error::{InflateError, Result};
use crate::interleaved::InterleavedInflater;
use crate::libdeflate::{CORRUPT, Decompressor};
use crate::runs::RepetitiveInflater;
use crate::small::SmallChunkInflater;
use crate::stream::MIN_LEN_BYTES;

/// A decompressor, reused from chunk to chunk: allocating one per chunk costs as much as inflating 512 bytes (measured:
/// 1.0-1.2 instead of 1.9 µs for chunks of 128 rows).
pub struct Inflater {
    pub(crate) libdeflate: Decompressor,
    /// Padded copy of small chunks: see [`Inflater::inflate_padded`].
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

impl Inflater {
    /// Length of outputs from which [`Inflater::inflate_pair`] may be faster than two calls of [`Inflater::inflate`].
    pub const MIN_PAIR_LEN_BYTES: usize = MIN_LEN_BYTES;

    /// Creates an inflater. Decoders of our own are created for the first stream that needs them.
    ///
    /// # Errors
    /// If memory for the decompressor cannot be allocated.
    pub fn new() -> Result<Self> {
        Ok(Self {
            libdeflate: Decompressor::new()?,
            padded_input: Vec::new(),
            padded_output: Vec::new(),
            small: None,
            runs: None,
            joint: None,
        })
    }

    /// Inflates one zlib stream from the front of `stored` into the front of `out`; returns the number of bytes
    /// written.
    ///
    /// The Adler-32 checksum is always verified. Bytes after the end of the stream are ignored, as in HDF5 itself: the
    /// returned data has been verified by the checksum, and refusing would make data unreadable that all other readers
    /// accept.
    ///
    /// # Errors
    /// If the bytes are not a complete stream, its checksum is wrong, or it inflates to more than `out`. The contents
    /// of `out` are then unspecified.
    pub fn inflate(&mut self, stored: &[u8], out: &mut [u8]) -> Result<usize> {
        if stored.len() <= SMALL_LEN_BYTES && out.len() <= SMALL_LEN_BYTES {
            let small = self.small.get_or_insert_with(SmallChunkInflater::new);
            return match small.inflate(stored, out) {
                Some(produced) => Ok(produced),
                None => self.inflate_padded(stored, out),
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
        self.libdeflate.inflate(stored, out).map(|(_, produced)| produced)
    }

    /// Inflates two streams like [`Inflater::inflate`], interleaved if that is faster.
    ///
    /// # Errors
    /// As for [`Inflater::inflate`], for each.
    pub fn inflate_pair(&mut self, stored: [&[u8]; 2], out: [&mut [u8]; 2]) -> [Result<usize>; 2] {
        let [first, second] = out;
        let are_for_two = InterleavedInflater::prefers_pairs(stored[0], first.len())
            && InterleavedInflater::prefers_pairs(stored[1], second.len());
        let mut inflated = [None; 2];
        if are_for_two && let Some(joint) = self.joint.get_or_insert_with(InterleavedInflater::new) {
            inflated = joint.inflate(stored, [&mut *first, &mut *second]);
        }
        let mut one = |at: usize, out: &mut [u8]| match inflated[at] {
            Some(produced) => Ok(produced),
            None if are_for_two => self.libdeflate.inflate(stored[at], out).map(|(_, produced)| produced),
            None => self.inflate(stored[at], out),
        };
        [one(0, first), one(1, second)]
    }

    /// Inflates a small stream with libdeflate, with padding after input and output, so that none of it is decoded byte
    /// by byte.
    pub(crate) fn inflate_padded(&mut self, stored: &[u8], out: &mut [u8]) -> Result<usize> {
        let (mut input, mut output) = (std::mem::take(&mut self.padded_input), std::mem::take(&mut self.padded_output));
        input.resize(SMALL_LEN_BYTES + INPUT_ROOM_LEN_BYTES, 0);
        output.resize(SMALL_LEN_BYTES + OUTPUT_ROOM_LEN_BYTES, 0);
        input[..stored.len()].copy_from_slice(stored);
        // The bytes that the decoder sees after a truncated stream must not depend on the previous chunk.
        input[stored.len()..stored.len() + INPUT_ROOM_LEN_BYTES].fill(0);
        let inflated = self
            .libdeflate
            .inflate(&input[..stored.len() + INPUT_ROOM_LEN_BYTES], &mut output[..out.len() + OUTPUT_ROOM_LEN_BYTES]);
        let checked = match inflated {
            // Decoded from bytes after the chunk, so the chunk itself ends too early.
            Ok((consumed, _)) if consumed > stored.len() => Err(CORRUPT),
            Ok((_, produced)) if produced > out.len() => Err(InflateError::TooLong { limit_len_bytes: out.len() }),
            Ok((_, produced)) => {
                out[..produced].copy_from_slice(&output[..produced]);
                Ok(produced)
            }
            Err(InflateError::TooLong { .. }) => Err(InflateError::TooLong { limit_len_bytes: out.len() }),
            Err(error) => Err(error),
        };
        (self.padded_input, self.padded_output) = (input, output);
        checked
    }

    /// Inflates one gzip member (RFC 1952), which must be all of `stored`, into the front of `out`; returns the number
    /// of bytes written. Its CRC-32 is verified.
    ///
    /// # Errors
    /// If the bytes are not one complete member, its checksum is wrong, or it inflates to more than `out`.
    pub fn gunzip(&mut self, stored: &[u8], out: &mut [u8]) -> Result<usize> {
        self.libdeflate.gunzip(stored, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::deflated;

    #[test]
    fn what_a_cut_stream_is_refused_for_does_not_depend_on_the_one_before() {
        let (before, stored) = (deflated(&[9; 700], 6), deflated(&[5; 300], 6));
        let mut reused = Inflater::new().unwrap();
        for len in 0..stored.len() {
            let (mut out, mut long) = ([0; 300], [0; 700]);
            // Its own end lies after the cut, followed by the end of another stream.
            let _ = reused.inflate_padded(&stored, &mut out);
            let after_itself = reused.inflate_padded(&stored[..len], &mut out);
            let _ = reused.inflate_padded(&before, &mut long);
            let after_another = reused.inflate_padded(&stored[..len], &mut out);
            let fresh = Inflater::new().unwrap().inflate_padded(&stored[..len], &mut out);
            assert!(fresh.is_err());
            assert_eq!((&after_itself, &after_another), (&fresh, &fresh), "cut at {len}");
        }
    }

    #[test]
    fn bytes_after_the_stream_are_let_pass_and_a_cut_stream_is_not() {
        let mut stored = deflated(&[5; 300], 6);
        let mut out = [0; 300];
        let mut inflater = Inflater::new().unwrap();
        for len in 0..stored.len() {
            assert!(inflater.inflate(&stored[..len], &mut out).is_err(), "cut at {len}");
        }
        stored.extend_from_slice(b"padding");
        assert_eq!(inflater.inflate(&stored, &mut out), Ok(300));
        assert_eq!(out, [5; 300]);
        let too_long = InflateError::TooLong { limit_len_bytes: 299 };
        assert_eq!(inflater.inflate(&stored, &mut out[..299]), Err(too_long));
    }
}
