//! Envelopes and frames, which wrap header, footer and page lists.
//!
//! Invariant: nothing is read beyond a frame, whatever its records contain; unknown data at the end of a frame is
//! skipped, as the specification requires.

use super::super::compression;
use super::super::file::{RootFile, decode_payload};
use super::super::key::Key;
use raddle_codec::DecodeState;
use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;
use xxhash_rust::xxh3::xxh3_64;

/// Type of the contents of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnvelopeKind {
    Header = 1,
    Footer = 2,
    PageList = 3,
}

/// Address and length of data in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Locator {
    pub address: u64,
    pub stored_len_bytes: u64,
}

/// Contents of the anchor: locators and decoded lengths of both envelopes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    pub header: (Locator, u64),
    pub footer: (Locator, u64),
}

const CHECKSUM_LEN_BYTES: usize = 8;

/// Reads the anchor after a key.
pub(super) fn read_anchor(file: &RootFile, key: &Key) -> Result<Anchor, UnlocatedError> {
    let stored = file.input().read(key.address, key.len_bytes, "anchor of an RNTuple")?;
    let mut payload = Vec::new();
    decode_payload(&stored, key.address, key, &mut DecodeState::default(), &mut payload, 0)?;
    let mut bytes = Bytes::new(&payload, 0, "anchor of an RNTuple");
    // Byte count and version of the class, as in front of every object.
    let (_count, _version) = (bytes.be_u32()?, bytes.be_u16()?);
    let start = bytes.position();
    let epoch = bytes.be_u16()?;
    if epoch != 1 {
        return Err(bytes.unsupported(format!("epoch {epoch} of the format")));
    }
    bytes.take(6)?;
    let mut numbers = [0; 7];
    for number in &mut numbers {
        *number = bytes.be_u64()?;
    }
    let checked = &payload[start..bytes.position()];
    if bytes.be_u64()? != xxh3_64(checked) {
        return Err(bytes.damaged("its checksum does not match"));
    }
    let [header, header_stored, header_len, footer, footer_stored, footer_len, _] = numbers;
    Ok(Anchor {
        header: (Locator { address: header, stored_len_bytes: header_stored }, header_len),
        footer: (Locator { address: footer, stored_len_bytes: footer_stored }, footer_len),
    })
}

/// Reads an envelope up to its checksum, which must match.
pub(super) fn read_envelope(
    file: &RootFile,
    kind: EnvelopeKind,
    (place, len_bytes): (Locator, u64),
) -> Result<Vec<u8>, UnlocatedError> {
    const STRUCTURE: &str = "envelope of an RNTuple";
    let stored = file.input().read(place.address, place.stored_len_bytes, STRUCTURE)?;
    let mut whole = Vec::new();
    if place.stored_len_bytes == len_bytes {
        whole = stored;
    } else {
        let len_bytes = usize::try_from(len_bytes).unwrap_or(usize::MAX);
        compression::decode(&stored, place.address, len_bytes, &mut DecodeState::default(), &mut whole, 0)?;
    }
    let mut bytes = Bytes::new(&whole, place.address, STRUCTURE);
    let Some(end) = whole.len().checked_sub(CHECKSUM_LEN_BYTES) else {
        return Err(bytes.damaged("it is too short"));
    };
    let front = bytes.le_u64()?;
    if front & 0xffff != kind as u64 || front >> 16 != whole.len() as u64 {
        return Err(bytes.damaged(format!("it is not a {kind:?} of {} bytes", whole.len())));
    }
    let checksum = whole[end..].iter().rev().fold(0, |sum, &byte| (sum << 8) | u64::from(byte));
    if checksum != xxh3_64(&whole[..end]) {
        return Err(bytes.damaged("its checksum does not match"));
    }
    whole.truncate(end);
    Ok(whole)
}

/// Opens an envelope of [`read_envelope`] for reading after its header.
pub(super) fn open(envelope: &[u8]) -> Result<Bytes<'_>, UnlocatedError> {
    let mut bytes = Bytes::new(envelope, 0, "envelope of an RNTuple");
    bytes.take(8)?;
    Ok(bytes)
}

/// Fails if features are required that a reader must know.
pub(super) fn check_features(bytes: &mut Bytes<'_>) -> Result<(), UnlocatedError> {
    match bytes.le_u64()? {
        0 => Ok(()),
        flags => Err(bytes.unsupported(format!("features {flags:#x}"))),
    }
}

/// Reads a record frame and returns its contents.
pub(super) fn record<'b>(bytes: &mut Bytes<'b>) -> Result<Bytes<'b>, UnlocatedError> {
    let len_bytes = bytes.le_i64()?;
    match usize::try_from(len_bytes).ok().and_then(|len| len.checked_sub(8)) {
        Some(rest) => bytes.part(rest),
        None => Err(bytes.damaged(format!("a record of length {len_bytes}"))),
    }
}

/// Reads a list frame and returns the number of items and its contents.
pub(super) fn list<'b>(bytes: &mut Bytes<'b>) -> Result<(u32, Bytes<'b>), UnlocatedError> {
    let len_bytes = bytes.le_i64()?;
    let count = bytes.le_u32()?;
    match len_bytes.checked_neg().and_then(|len| usize::try_from(len).ok()).and_then(|len| len.checked_sub(12)) {
        Some(rest) => Ok((count, bytes.part(rest)?)),
        None => Err(bytes.damaged(format!("a list of length {len_bytes}"))),
    }
}

/// Reads a string.
pub(super) fn text(bytes: &mut Bytes<'_>) -> Result<String, UnlocatedError> {
    let len_bytes = bytes.le_u32()? as usize;
    Ok(String::from_utf8_lossy(bytes.take(len_bytes)?).into_owned())
}

/// Reads a locator, which must refer to the same file.
pub(super) fn locator(bytes: &mut Bytes<'_>) -> Result<Locator, UnlocatedError> {
    match u64::try_from(bytes.le_i32()?) {
        Ok(stored_len_bytes) => Ok(Locator { address: bytes.le_u64()?, stored_len_bytes }),
        Err(_) => Err(bytes.unsupported("a locator outside this file")),
    }
}
