//! Packed data streams: the reference framework's own format (hep-cce2/root_serialization, PDSOutputer.cc).
//!
//! A file is a header and one record for each event, each compressed by itself; there is no index. All numbers are
//! little-endian words of 32 bits; the blobs inside are big-endian, as ROOT serialises.
//!
//! Blobs are padded with zeros to whole words and their true length is not stored, so what is read from a stream is padded.

mod header;
mod merge;
mod reader;
mod record;
mod sink;

pub(crate) use header::is_pds;
pub use merge::merge;
pub use reader::PdsSource;
pub use sink::{PdsOptions, PdsSink, PdsSummary};

use raddle_codec::BareCodec;
use serde::{Deserialize, Serialize};

/// Length of a word.
const WORD_LEN_BYTES: usize = 4;

/// How records are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PdsCodec {
    /// Not at all.
    None,
    /// One LZ4 block for each event.
    Lz4,
    /// One Zstandard frame for each event, of this level. A header does not state the level: 0 when read.
    Zstd(i32),
}

impl PdsCodec {
    /// What decodes it; `None` where there is nothing to decode.
    pub(crate) fn bare(self) -> Option<BareCodec> {
        match self {
            Self::None => None,
            Self::Lz4 => Some(BareCodec::Lz4Block),
            Self::Zstd(_) => Some(BareCodec::Zstd),
        }
    }

    /// The codec that the framework's formats call by this name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        match name {
            "None" | "" => Some(Self::None),
            "LZ4" => Some(Self::Lz4),
            // Its level stands elsewhere or nowhere.
            "ZSTD" => Some(Self::Zstd(0)),
            _ => None,
        }
    }
}

/// Bytes that complete `len_bytes` to whole words.
fn padding_len_bytes(len_bytes: usize) -> usize {
    len_bytes.wrapping_neg() % WORD_LEN_BYTES
}
