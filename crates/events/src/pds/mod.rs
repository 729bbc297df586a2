//! Packed data streams, the reference framework's own format (hep-cce2/root_serialization, PDSOutputer.cc).
//!
//! A file consists of a header and one separately compressed record per event, without an index. All numbers are
//! little-endian words of 32 bits; the blobs inside are big-endian, as ROOT serialises them.
//!
//! Blobs are padded with zeros to whole words and their true length is not stored, so blobs that are read from a stream
//! are padded.

mod header;
mod merge;
mod reader;
mod record;
mod sink;

pub(crate) use header::is_pds;
pub use merge::merge;
pub use reader::PdsSource;
pub use sink::{PdsOptions, PdsSink, PdsSummary};

use raddle_codec::RawStreamCodec;
use serde::{Deserialize, Serialize};

/// Length of a word.
pub(crate) const WORD_LEN_BYTES: usize = 4;

/// Compression of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PdsCodec {
    /// No compression.
    None,
    /// One LZ4 block per event.
    Lz4,
    /// One Zstandard frame per event, with this level. Headers do not record the level: it is 0 when read.
    Zstd(i32),
}

impl PdsCodec {
    /// Returns the codec for decoding; `None` if there is nothing to decode.
    pub(crate) fn bare(self) -> Option<RawStreamCodec> {
        match self {
            Self::None => None,
            Self::Lz4 => Some(RawStreamCodec::Lz4Block),
            Self::Zstd(_) => Some(RawStreamCodec::Zstd),
        }
    }

    /// Returns the codec with this name in the framework's formats.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        match name {
            "None" | "" => Some(Self::None),
            "LZ4" => Some(Self::Lz4),
            // The level is recorded elsewhere or not at all.
            "ZSTD" => Some(Self::Zstd(0)),
            _ => None,
        }
    }
}

/// Returns the number of bytes that pad `len_bytes` to whole words.
fn padding_len_bytes(len_bytes: usize) -> usize {
    len_bytes.wrapping_neg() % WORD_LEN_BYTES
}
