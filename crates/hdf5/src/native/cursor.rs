//! Bounded little-endian reader of one structure in memory whose file offset is known.
//!
//! Bytes are read from a file by `super::reader`. Invariant: no method reads beyond the slice, and every defect names
//! the absolute file offset at which it was found.

use crate::error::Hdf5Error;
use crate::model::FileTree;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Encoding of addresses and lengths in a file, and the location of its address 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoding {
    /// Absolute file offset of the superblock, to which all stored addresses are relative.
    pub base: u64,
    /// Size of a stored address: 4 or 8 bytes.
    pub address_len_bytes: u8,
    /// Size of a stored length: 4 or 8 bytes.
    pub length_len_bytes: u8,
}

impl Encoding {
    /// Returns the encoding of the file that `tree` describes.
    pub fn of(tree: &FileTree) -> Self {
        Self {
            base: tree.userblock_len_bytes,
            address_len_bytes: tree.address_len_bytes,
            length_len_bytes: tree.length_len_bytes,
        }
    }

    /// Returns the size of a stored address.
    pub fn address_len(&self) -> usize {
        usize::from(self.address_len_bytes)
    }

    /// Returns the size of a stored length.
    pub fn length_len(&self) -> usize {
        usize::from(self.length_len_bytes)
    }
}

/// Problem in the bytes of a structure, before the file's name is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Defect {
    /// The bytes violate the format.
    #[error("damaged at byte {address}: {what}")]
    Malformed {
        /// Absolute file offset (for a separate message: offset in the message).
        address: u64,
        /// Description of the violation.
        what: String,
    },
    /// The bytes appear valid, but this reader does not support them.
    #[error("not supported (at byte {address}): {what}")]
    Unsupported {
        /// Absolute file offset (for a separate message: offset in the message).
        address: u64,
        /// Description of the unsupported feature.
        what: String,
    },
}

impl Defect {
    /// Converts to the corresponding error of this crate about the file at `path`.
    pub fn in_file(self, path: &Path) -> Hdf5Error {
        let path = path.to_path_buf();
        match self {
            Self::Malformed { address, what } => Hdf5Error::Malformed { path, address, what },
            Self::Unsupported { address, what } => Hdf5Error::Unsupported { path, address, what },
        }
    }
}

/// Associates defects with the file in which they were found.
pub(crate) trait InFile<T> {
    /// Maps a [`Defect`] to the error that names `path`.
    fn in_file(self, path: &Path) -> Result<T, Hdf5Error>;
}

impl<T> InFile<T> for Result<T, Defect> {
    #[inline]
    fn in_file(self, path: &Path) -> Result<T, Hdf5Error> {
        self.map_err(|defect| defect.in_file(path))
    }
}

/// Reading position in the bytes of one structure.
#[derive(Debug, Clone)]
pub struct Cursor<'b> {
    bytes: &'b [u8],
    position: usize,
    address: u64,
    what: &'static str,
}

impl<'b> Cursor<'b> {
    /// Creates a cursor at the start of `bytes`, which lie at absolute file offset `address`; `what` names the
    /// structure.
    #[inline]
    pub fn new(bytes: &'b [u8], address: u64, what: &'static str) -> Self {
        Self { bytes, position: 0, address, what }
    }

    /// Returns the absolute file offset of the next byte.
    #[inline]
    pub fn address(&self) -> u64 {
        self.address.saturating_add(self.position as u64)
    }

    /// Returns the number of bytes read so far.
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the number of bytes left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Creates a defect for a format violation at the next byte.
    #[cold]
    pub fn malformed(&self, what: impl AsRef<str>) -> Defect {
        Defect::Malformed { address: self.address(), what: format!("{}: {}", self.what, what.as_ref()) }
    }

    /// Creates a defect for an unsupported feature at the next byte.
    #[cold]
    pub fn unsupported(&self, what: impl AsRef<str>) -> Defect {
        Defect::Unsupported { address: self.address(), what: format!("{}: {}", self.what, what.as_ref()) }
    }

    /// Returns the next `len_bytes` bytes.
    // Inlined with its callers below, and its failure kept out of line: otherwise half of the time of reading a small
    // header is spent here.
    #[inline]
    pub fn take(&mut self, len_bytes: usize) -> Result<&'b [u8], Defect> {
        match self.bytes[self.position..].split_at_checked(len_bytes) {
            Some((taken, _)) => {
                self.position += len_bytes;
                Ok(taken)
            }
            None => Err(self.ends_early(len_bytes)),
        }
    }

    #[cold]
    fn ends_early(&self, len_bytes: usize) -> Defect {
        self.malformed(format!("ends too early: {len_bytes} bytes expected, {} left", self.remaining()))
    }

    /// Returns a separate cursor over the next `len_bytes` bytes, named `what`.
    #[inline]
    pub fn part(&mut self, len_bytes: usize, what: &'static str) -> Result<Cursor<'b>, Defect> {
        let address = self.address();
        Ok(Cursor::new(self.take(len_bytes)?, address, what))
    }

    /// Returns all remaining bytes.
    pub fn rest(&mut self) -> &'b [u8] {
        let rest = &self.bytes[self.position..];
        self.position = self.bytes.len();
        rest
    }

    /// Skips `len_bytes` bytes.
    #[inline]
    pub fn skip(&mut self, len_bytes: usize) -> Result<(), Defect> {
        self.take(len_bytes).map(|_| ())
    }

    #[inline]
    fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], Defect> {
        match self.bytes[self.position..].first_chunk() {
            Some(array) => {
                self.position += LEN;
                Ok(*array)
            }
            None => Err(self.ends_early(LEN)),
        }
    }

    /// Reads an unsigned number of one byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Defect> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// Reads an unsigned number of two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Defect> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Reads an unsigned number of four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Defect> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Reads an unsigned number of eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Defect> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads an unsigned number of `len_bytes` bytes; numbers wider than 64 bits are a defect.
    #[inline]
    pub fn uint(&mut self, len_bytes: usize) -> Result<u64, Defect> {
        match len_bytes {
            8 => return self.u64(),
            4 => return Ok(self.u32()?.into()),
            _ => {}
        }
        let bytes = self.take(len_bytes)?;
        if bytes.iter().skip(8).any(|&byte| byte != 0) {
            return Err(self.malformed("a number exceeds 64 bits"));
        }
        Ok(bytes.iter().take(8).rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// Reads a stored length.
    #[inline]
    pub fn length(&mut self, encoding: &Encoding) -> Result<u64, Defect> {
        self.uint(encoding.length_len())
    }

    /// Reads a stored length in which all bits set mean "none" (unlimited, undefined): `u64::MAX` for any size of
    /// lengths.
    #[inline]
    pub fn length_or_max(&mut self, encoding: &Encoding) -> Result<u64, Defect> {
        let value = self.length(encoding)?;
        Ok(if value == all_ones(encoding.length_len()) { u64::MAX } else { value })
    }

    /// Reads a stored address as an absolute file offset; returns `None` for the undefined address.
    #[inline]
    pub fn file_address(&mut self, encoding: &Encoding) -> Result<Option<u64>, Defect> {
        let stored = self.uint(encoding.address_len())?;
        if stored == all_ones(encoding.address_len()) {
            return Ok(None);
        }
        match stored.checked_add(encoding.base) {
            Some(address) => Ok(Some(address)),
            None => Err(self.malformed(format!("address {stored} overflows"))),
        }
    }

    /// Reads a stored address that must be defined.
    pub fn required_address(&mut self, encoding: &Encoding, of: &str) -> Result<u64, Defect> {
        match self.file_address(encoding)? {
            Some(address) => Ok(address),
            None => Err(self.malformed(format!("address of {of} is undefined"))),
        }
    }

    /// Reads bytes up to a terminating zero, which is skipped.
    pub fn zero_terminated(&mut self) -> Result<&'b [u8], Defect> {
        let rest = &self.bytes[self.position..];
        match rest.iter().position(|&byte| byte == 0) {
            Some(len) => {
                self.position += len + 1;
                Ok(&rest[..len])
            }
            None => Err(self.malformed("a string is not terminated")),
        }
    }

    /// Checks that the next bytes are `signature`.
    #[inline]
    pub fn signature(&mut self, signature: &[u8; 4]) -> Result<(), Defect> {
        match self.array::<4>()? {
            found if found == *signature => Ok(()),
            found => {
                self.position -= found.len();
                let (signature, found) = (signature.escape_ascii(), found.escape_ascii());
                Err(self.malformed(format!("signature {signature} expected, {found} found")))
            }
        }
    }

    /// Checks that the next byte is the version `known`.
    #[inline]
    pub fn version(&mut self, known: u8) -> Result<(), Defect> {
        let at = self.clone();
        match self.u8()? {
            version if version == known => Ok(()),
            version => Err(at.unsupported(format!("version {version}"))),
        }
    }
}

/// Returns the value of `len_bytes` bytes of ones (at most 8), which stands for undefined addresses and unlimited
/// lengths.
fn all_ones(len_bytes: usize) -> u64 {
    if len_bytes >= 8 { u64::MAX } else { (1 << (8 * len_bytes)) - 1 }
}

/// Returns the number of bytes needed for `value`, at least one, as the format sizes its variable-width fields.
pub(crate) fn encoded_len(value: u64) -> usize {
    (u64::BITS - value.leading_zeros()).div_ceil(8).max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Encoding = Encoding { base: 512, address_len_bytes: 8, length_len_bytes: 8 };
    const NARROW: Encoding = Encoding { base: 0, address_len_bytes: 2, length_len_bytes: 4 };

    #[test]
    fn reads_numbers_of_any_width() {
        let mut cursor = Cursor::new(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 0xff, 0xff], 100, "test");
        assert_eq!(cursor.u8(), Ok(1));
        assert_eq!(cursor.uint(3), Ok(0x04_03_02));
        assert_eq!(cursor.uint(5), Ok(0x09_08_07_06_05));
        assert_eq!(cursor.address(), 109);
        assert_eq!(cursor.file_address(&NARROW), Ok(None));
        assert_eq!(cursor.remaining(), 0);
    }

    #[test]
    fn adds_the_base_and_refuses_overflow() {
        let bytes = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert!(matches!(
            Cursor::new(&bytes, 7, "test").file_address(&WIDE),
            Err(Defect::Malformed { address: 15, .. })
        ));
        assert_eq!(Cursor::new(&[8, 0, 0, 0, 0, 0, 0, 0], 7, "test").file_address(&WIDE), Ok(Some(520)));
    }

    #[test]
    fn running_out_names_the_place() {
        let mut cursor = Cursor::new(&[1, 2, 3], 40, "thing");
        cursor.skip(2).unwrap();
        let defect = cursor.u32().unwrap_err();
        assert_eq!(defect.to_string(), "damaged at byte 42: thing: ends too early: 4 bytes expected, 1 left");
    }

    #[test]
    fn numbers_beyond_64_bits_are_refused() {
        assert!(Cursor::new(&[0, 0, 0, 0, 0, 0, 0, 0, 1], 0, "test").uint(9).is_err());
        assert_eq!(Cursor::new(&[1, 0, 0, 0, 0, 0, 0, 0, 0], 0, "test").uint(9), Ok(1));
    }

    #[test]
    fn strings_end_at_their_zero() {
        let mut cursor = Cursor::new(b"ab\0c", 0, "test");
        assert_eq!(cursor.zero_terminated(), Ok(&b"ab"[..]));
        assert!(cursor.zero_terminated().is_err());
    }

    #[test]
    fn widths_of_variable_fields() {
        for (value, len) in [(0, 1), (1, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 3), (u64::MAX, 8)] {
            assert_eq!(encoded_len(value), len, "{value}");
        }
    }
}
