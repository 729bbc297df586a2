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

/// Bytes that complete `len_bytes` to whole words.
fn padding_len_bytes(len_bytes: usize) -> usize {
    len_bytes.wrapping_neg() % WORD_LEN_BYTES
}
