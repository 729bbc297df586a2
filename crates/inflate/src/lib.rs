//! Inflates zlib streams of scientific data, faster than libdeflate where that is possible.
//!
//! [`Inflater`] decodes one stream after another, or two interleaved, into buffers of the caller. By the lengths of a
//! stream and the codes of its blocks, it chooses among three decoders of this crate and libdeflate:
//!
//! | decoder       | streams                                                                       | design |
//! |---------------|-------------------------------------------------------------------------------|--------|
//! | `small`       | up to 512 bytes, in which the header of a block costs as much as its data     | 009    |
//! | `runs`        | long, and mostly repetitions: ids and other columns whose rows repeat         | 017    |
//! | `interleaved` | columns of numbers: short matches and literals in unpredictable order         | 029    |
//! | libdeflate    | all others, and everything that the other decoders do not take                |        |
//!
//! Our own decoders never report errors: on anything malformed, and on some rare input, they return `None`, and
//! libdeflate decodes the stream or reports the error. Invariant: if they return a result, libdeflate inflates the
//! stream to the same bytes. Neither damaged nor malicious bytes cause a panic, or an access beyond a buffer.
//!
//! ```
//! use raddle_inflate::{InflateError, Inflater};
//!
//! let stored = [0x78, 0x9c, 0x4b, 0x4c, 0x4a, 0x06, 0x00, 0x02, 0x4d, 0x01, 0x27];
//! let mut inflater = Inflater::new()?;
//! let mut out = [0; 3];
//! assert_eq!(inflater.inflate(&stored, &mut out), Ok(3));
//! assert_eq!(&out, b"abc");
//! assert_eq!(inflater.inflate(&stored, &mut out[..2]), Err(InflateError::TooLong { limit_len_bytes: 2 }));
//! # Ok::<(), InflateError>(())
//! ```

#[doc(hidden)]
pub mod all_ways;
mod code;
mod codes;
mod error;
pub mod format;
#[cfg(all(test, target_arch = "x86_64"))]
mod guarded;
mod header;
mod inflater;
#[cfg(target_arch = "x86_64")]
mod interleaved;
#[cfg(not(target_arch = "x86_64"))]
#[path = "interleaved_stub.rs"]
mod interleaved;
mod libdeflate;
mod repeat;
mod runs;
#[cfg(test)]
mod samples;
mod small;
mod stream;

pub use error::{InflateError, Result};
pub use inflater::Inflater;
pub use libdeflate::adler32;
pub use stream::processor_features;
