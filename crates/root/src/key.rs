//! Keys, which precede every object of a file.

use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;

/// Version of a key from which addresses have 64 bits.
const LONG_SEEKS: u16 = 1000;

/// Key of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    /// Length of key and payload as stored.
    pub(super) len_bytes: u64,
    /// Length of the payload when decoded.
    pub(super) object_len_bytes: usize,
    /// Length of the key; positions in objects count from its start.
    pub(super) key_len_bytes: u16,
    pub(super) cycle: u16,
    /// Address of the key in the file.
    pub(super) address: u64,
    pub(super) class: String,
    pub(super) name: String,
    pub(super) title: String,
}

impl Key {
    /// Reads a key.
    pub(super) fn read(bytes: &mut Bytes<'_>) -> Result<Self, UnlocatedError> {
        let len_bytes = bytes.be_i32()?;
        let version = bytes.be_u16()?;
        let object_len_bytes = bytes.be_i32()?;
        let _time = bytes.be_u32()?;
        let key_len_bytes = bytes.be_u16()?;
        let cycle = bytes.be_u16()?;
        let (address, _folder) = match version > LONG_SEEKS {
            true => (bytes.be_u64()?, bytes.be_u64()?),
            false => (u64::from(bytes.be_u32()?), u64::from(bytes.be_u32()?)),
        };
        let (class, name, title) = (text(bytes)?, text(bytes)?, text(bytes)?);
        let (Ok(len_bytes), Ok(object_len_bytes)) = (u64::try_from(len_bytes), usize::try_from(object_len_bytes))
        else {
            return Err(bytes.damaged("a key of a negative length: its object was deleted, or it is damaged"));
        };
        Ok(Self { len_bytes, object_len_bytes, key_len_bytes, cycle, address, class, name, title })
    }

    /// Returns the length of the payload as stored.
    pub(super) fn stored_len_bytes(&self) -> Option<u64> {
        self.len_bytes.checked_sub(u64::from(self.key_len_bytes))
    }
}

/// Reads a string, whose length is one byte, or 255 followed by four bytes.
pub(super) fn text_bytes<'b>(bytes: &mut Bytes<'b>) -> Result<&'b [u8], UnlocatedError> {
    let len_bytes = match bytes.be_u8()? {
        255 => bytes.be_u32()? as usize,
        short => usize::from(short),
    };
    bytes.take(len_bytes)
}

/// Reads a string of metadata. Bytes that are not UTF-8 are replaced.
pub(super) fn text(bytes: &mut Bytes<'_>) -> Result<String, UnlocatedError> {
    text_bytes(bytes).map(|text| String::from_utf8_lossy(text).into_owned())
}
