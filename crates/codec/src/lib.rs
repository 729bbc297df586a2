//! The HDF5 filter pipeline on byte buffers: pure functions with fixed output buffers and exact lengths.
//!
//! [`Pipeline`] decodes all HDF5 filters itself and the usual registered ones. [`Encoder`] writes deflate, shuffle
//! and fletcher32, with the fastest of several deflate encoders for the data. [`RawStreamCodec`] and
//! [`RawStreamEncoder`] handle streams of other formats, which no filter pipeline describes. Files, chunk indexes and
//! threads are outside of this crate. Nothing in it panics on malicious bytes, returns short data, or writes beyond a
//! stated limit.

#[doc(hidden)]
pub mod arbitrary;
mod back_reference;
mod bare;
mod bit_transpose;
mod bitshuffle;
mod blosc;
mod bzip2;
mod choice;
mod compression;
mod deflate;
mod element_lz;
mod encoder;
mod entropy;
mod error;
mod filter;
pub mod fletcher32;
mod libdeflate;
mod lz4;
mod lzf;
mod msb_bits;
mod nbit;
mod pattern;
mod pipeline;
mod planes;
mod sampling;
mod scaleoffset;
pub mod shuffle;
mod szip;
mod zero_run;
mod zfp;
mod zstd;

pub use arbitrary::decode_arbitrary;
pub use bare::{RawStreamCodec, RawStreamEncoder};
pub use compression::{Compression, Effort, ParseCompressionError};
pub use encoder::{EncodeState, Encoder, EncoderOptions};
pub use error::{CodecError, Result};
pub use filter::{Filter, KnownFilter};
pub use lz4::{append_block as append_lz4_block, decode_bare as decode_lz4_block};
pub use pattern::is_all;
pub use pipeline::{DecodeState, MAX_FILTERS, Pipeline};
pub use raddle_inflate::processor_features;
pub use zfp::{ParseZfpModeError, Zfp, ZfpArray, ZfpMode, ZfpNumber};

/// Returns names and versions of the C libraries of this crate that report theirs.
pub fn library_versions() -> Vec<(&'static str, String)> {
    let lz4 = ::lz4::version();
    let lz4 = format!("{}.{}.{}", lz4 / 10_000, lz4 / 100 % 100, lz4 % 100);
    vec![("zstd", zstd_safe::version_string().to_owned()), ("lz4", lz4)]
}
