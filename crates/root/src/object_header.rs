//! Headers of objects, as they are read: byte count, version and checksum, and the bits of a `TObject`.
//!
//! Invariant: the end of an object lies within the bytes that contain it.

use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;

/// Flag that marks a byte count.
pub(super) const BYTE_COUNT: u32 = 0x4000_0000;

/// Bit of a referenced object, after which the number of a process follows.
pub(super) const IS_REFERENCED: u32 = 1 << 4;

/// Header of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectHeader {
    /// End of the object, if it is recorded.
    pub(super) end: Option<usize>,
    pub(super) version: u16,
    /// Checksum, which replaces the version in classes without one.
    pub(super) checksum: Option<u32>,
}

impl ObjectHeader {
    /// Reads the header of an object.
    pub(super) fn read(bytes: &mut Bytes<'_>) -> Result<Self, UnlocatedError> {
        let mut ahead = bytes.clone();
        let first = ahead.be_u32().unwrap_or(0);
        if first & BYTE_COUNT == 0 {
            return Ok(Self { end: None, version: bytes.be_u16()?, checksum: None });
        }
        *bytes = ahead;
        let len_bytes = (first & !BYTE_COUNT) as usize;
        if len_bytes > bytes.remaining() {
            return Err(bytes.damaged(format!("an object of {len_bytes} bytes, {} are left", bytes.remaining())));
        }
        let end = bytes.position() + len_bytes;
        let version = bytes.be_u16()?;
        let has_checksum = version == 0 && len_bytes >= 6;
        let checksum = if has_checksum { Some(bytes.be_u32()?) } else { None };
        Ok(Self { end: Some(end), version, checksum })
    }

    /// Skips to the end of the object, even if parts of it were not read.
    pub(super) fn skip_rest(&self, bytes: &mut Bytes<'_>) -> Result<(), UnlocatedError> {
        let Some(end) = self.end else { return Ok(()) };
        match end.checked_sub(bytes.position()) {
            Some(left) => bytes.take(left).map(|_| ()),
            None => Err(bytes.damaged("an object is longer than its byte count")),
        }
    }
}

/// Reads a `TObject`: its id and its bits.
pub(super) fn read_tobject(bytes: &mut Bytes<'_>) -> Result<(u32, u32), UnlocatedError> {
    let header = ObjectHeader::read(bytes)?;
    let (id, bits) = (bytes.be_u32()?, bytes.be_u32()?);
    if bits & IS_REFERENCED != 0 {
        bytes.be_u16()?;
    }
    header.skip_rest(bytes)?;
    Ok((id, bits))
}
