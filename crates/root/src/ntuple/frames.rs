//! Writing of envelopes and frames, the inverse of [`super::envelope`].

use super::envelope::{EnvelopeKind, Locator};
use xxhash_rust::xxh3::xxh3_64;

/// Wraps `content` in an envelope: kind and length in front, checksum at the end.
pub(super) fn envelope(kind: EnvelopeKind, content: &[u8]) -> Vec<u8> {
    const AROUND_LEN_BYTES: usize = 16;
    let len_bytes = (content.len() + AROUND_LEN_BYTES) as u64;
    let mut bytes = (len_bytes << 16 | kind as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(content);
    let checksum = xxh3_64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Returns the checksum with which an envelope ends.
pub(super) fn checksum(envelope: &[u8]) -> u64 {
    envelope.last_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Appends a record frame.
pub(super) fn push_record(bytes: &mut Vec<u8>, content: &[u8]) {
    bytes.extend_from_slice(&(content.len() as i64 + 8).to_le_bytes());
    bytes.extend_from_slice(content);
}

/// Appends a list frame.
pub(super) fn push_list(bytes: &mut Vec<u8>, count: u32, content: &[u8]) {
    bytes.extend_from_slice(&(-(content.len() as i64 + 12)).to_le_bytes());
    bytes.extend_from_slice(&count.to_le_bytes());
    bytes.extend_from_slice(content);
}

/// Appends a string.
pub(super) fn push_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// Appends a locator of data shorter than 2 GiB.
pub(super) fn push_locator(bytes: &mut Vec<u8>, place: Locator) {
    bytes.extend_from_slice(&(place.stored_len_bytes as u32).to_le_bytes());
    bytes.extend_from_slice(&place.address.to_le_bytes());
}
