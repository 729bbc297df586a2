//! Superblock, versions 0 to 3: start and end of the file, encoding of addresses, location of the root group.
//!
//! Invariants: an accepted file is complete on disk, is not being written, and has its metadata in the regular place
//! (no cache image, no family or multi driver).

use super::ReadLimits;
use super::checksum::verified;
use super::cursor::{Cursor, Defect, Encoding, InFile};
use super::kind;
use super::object_header::ObjectHeader;
use super::reader::ByteReader;
use crate::error::{Hdf5Error, Result};
use crate::other_format::OtherFormat;
use crate::source::{InputFile, MetadataView};

/// First bytes of a superblock. An HDF5 file begins with one, possibly after a user block.
pub const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Maximum length of a superblock: version 1 with 8-byte addresses (28 bytes, four addresses and a symbol table entry
/// of 40 bytes).
const MAX_LEN_BYTES: u64 = 28 + 4 * 8 + 40;

/// File consistency flags of version 3.
const FLAG_OPEN_FOR_WRITING: u8 = 0x01;
const FLAG_OPEN_FOR_SWMR: u8 = 0x04;

/// Superblock of one file, with absolute addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// Version, 0 to 3.
    pub version: u8,
    /// Encoding of addresses and lengths, and the location of address 0: the superblock's own offset, which is the
    /// length of the user block.
    pub encoding: Encoding,
    /// End of the file's data.
    pub end: u64,
    /// Address of the root group's object header.
    pub root: u64,
    /// Table of shared messages, if the file has one.
    pub(crate) shared_table: Option<(u64, u8)>,
}

/// Contents of the superblock itself.
struct StoredSuperblock {
    superblock: Superblock,
    extension: Option<u64>,
    driver_info: Option<u64>,
    open_for_writing: bool,
}

impl Superblock {
    /// Finds and reads the superblock of `file`.
    ///
    /// # Errors
    /// `NotHdf5`; `Truncated` if the file is shorter than the superblock states; `InUse` if it is marked as being
    /// written; `Unsupported` and `Malformed`.
    pub fn read(file: &InputFile) -> Result<Self> {
        let start = find(file)?;
        let len = MAX_LEN_BYTES.min(file.len_bytes() - start);
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(start, &mut bytes, "superblock")?;
        let StoredSuperblock { mut superblock, extension, driver_info, open_for_writing } =
            parse(Cursor::new(&bytes, start, "superblock")).in_file(file.path())?;
        file.check_range(0, superblock.end, "the file according to its superblock")?;
        if open_for_writing {
            return Err(Hdf5Error::InUse { path: file.path().to_path_buf() });
        }
        if let Some(address) = driver_info {
            let what = "written by the family or multi driver: a part of a file".to_owned();
            return Err(Defect::Unsupported { address, what }.in_file(file.path()));
        }
        if let Some(address) = extension {
            superblock.shared_table = read_extension(file, &superblock, address)?;
        }
        Ok(superblock)
    }
}

/// Returns the offset of the signature, which is 0, 512 or 512 multiplied by a power of two.
fn find(file: &InputFile) -> Result<u64> {
    let mut start = 0_u64;
    let mut found = [0; SIGNATURE.len()];
    while start.saturating_add(SIGNATURE.len() as u64) <= file.len_bytes() {
        file.read_exact_at(start, &mut found, "signature")?;
        if found == *SIGNATURE {
            return Ok(start);
        }
        start = if start == 0 { 512 } else { start.saturating_mul(2) };
    }
    let mut begin = vec![0; file.len_bytes().min(OtherFormat::SIGNATURE_LEN_BYTES as u64) as usize];
    file.read_exact_at(0, &mut begin, "signature")?;
    Err(Hdf5Error::NotHdf5 { path: file.path().to_path_buf(), format: OtherFormat::of(&begin) })
}

fn parse(mut cursor: Cursor<'_>) -> Result<StoredSuperblock, Defect> {
    let whole = cursor.clone();
    cursor.skip(SIGNATURE.len())?;
    match cursor.u8()? {
        version @ (0 | 1) => parse_old(cursor, version),
        version @ (2 | 3) => parse_new(cursor, whole, version),
        version => Err(cursor.unsupported(format!("version {version}"))),
    }
}

fn parse_encoding(cursor: &mut Cursor<'_>, base: u64) -> Result<Encoding, Defect> {
    let (address_len_bytes, length_len_bytes) = (cursor.u8()?, cursor.u8()?);
    // Two bytes are valid too, but libhdf5 itself cannot store the sizes of its own structures in them.
    if ![address_len_bytes, length_len_bytes].iter().all(|len| matches!(len, 4 | 8)) {
        return Err(cursor
            .unsupported(format!("addresses of {address_len_bytes} bytes and lengths of {length_len_bytes} bytes")));
    }
    Ok(Encoding { base, address_len_bytes, length_len_bytes })
}

/// Returns the end of the data as an absolute offset. The stored end is absolute too, but relative to the position of
/// the superblock when it was written: a user block inserted later (`h5jam`) shifts it.
fn parse_end(cursor: &mut Cursor<'_>, encoding: &Encoding, stored_base: u64) -> Result<u64, Defect> {
    let unshifted = Encoding { base: 0, ..*encoding };
    let end = cursor.required_address(&unshifted, "the end of the file")?;
    end.checked_sub(stored_base)
        .and_then(|len| len.checked_add(encoding.base))
        .ok_or_else(|| cursor.malformed(format!("end {end} before base address {stored_base}")))
}

fn parse_old(mut cursor: Cursor<'_>, version: u8) -> Result<StoredSuperblock, Defect> {
    let start = cursor.address() - SIGNATURE.len() as u64 - 1;
    // Versions of free space, root symbol table and shared header messages: all 0, with a reserved byte in between.
    let versions = [cursor.u8()?, cursor.u8()?, cursor.u8()?, cursor.u8()?];
    if versions != [0, 0, versions[2], 0] {
        return Err(cursor.unsupported(format!("versions {versions:?} of its parts")));
    }
    let encoding = parse_encoding(&mut cursor, start)?;
    // A reserved byte, two B-tree ranks, the consistency flags (not used before version 3), in version 1 another rank.
    cursor.skip(1 + 4 + 4 + if version == 1 { 4 } else { 0 })?;
    let stored_base = cursor.uint(encoding.address_len())?;
    // Free space, never stored.
    cursor.skip(encoding.address_len())?;
    let end = parse_end(&mut cursor, &encoding, stored_base)?;
    let driver_info = cursor.file_address(&encoding)?;
    // The root group's symbol table entry: name offset, then header address.
    cursor.skip(encoding.length_len())?;
    let root = cursor.required_address(&encoding, "the root group")?;
    let superblock = Superblock { version, encoding, end, root, shared_table: None };
    Ok(StoredSuperblock { superblock, extension: None, driver_info, open_for_writing: false })
}

fn parse_new(mut cursor: Cursor<'_>, mut whole: Cursor<'_>, version: u8) -> Result<StoredSuperblock, Defect> {
    let start = whole.address();
    let encoding = parse_encoding(&mut cursor, start)?;
    let flags = cursor.u8()?;
    let stored_base = cursor.uint(encoding.address_len())?;
    let extension = cursor.file_address(&encoding)?;
    let end = parse_end(&mut cursor, &encoding, stored_base)?;
    let root = cursor.required_address(&encoding, "the root group")?;
    cursor.skip(4)?;
    verified(whole.take(cursor.position())?, start, "superblock")?;
    let open_for_writing = version >= 3 && flags & (FLAG_OPEN_FOR_WRITING | FLAG_OPEN_FOR_SWMR) != 0;
    let superblock = Superblock { version, encoding, end, root, shared_table: None };
    Ok(StoredSuperblock { superblock, extension, driver_info: None, open_for_writing })
}

/// Reads the superblock extension; returns address and number of indexes of the shared message table.
fn read_extension(file: &InputFile, superblock: &Superblock, address: u64) -> Result<Option<(u64, u8)>> {
    let limits = ReadLimits::default();
    let mut view = MetadataView::new(file, 0);
    let mut reader = ByteReader::new(&mut view, &superblock.encoding, &limits);
    let mut header = ObjectHeader::default();
    header.read(&mut reader, address)?;
    let mut shared_table = None;
    for message in &header.messages {
        let mut cursor = header.cursor(message, "superblock extension message");
        let found = match message.kind {
            kind::DRIVER_INFO => Err(cursor.unsupported("written by the family or multi driver")),
            kind::CACHE_IMAGE => parse_cache_image(cursor, reader.encoding()).map(|()| None),
            kind::SHARED_TABLE => (|| {
                cursor.version(0)?;
                Ok(Some((cursor.required_address(reader.encoding(), "the table")?, cursor.u8()?)))
            })(),
            _ => Ok(None),
        };
        shared_table = shared_table.or(found.in_file(reader.path())?);
    }
    Ok(shared_table)
}

/// Refuses a cache image, which holds newer metadata than the regular places that this reader uses.
fn parse_cache_image(mut cursor: Cursor<'_>, encoding: &Encoding) -> Result<(), Defect> {
    cursor.version(0)?;
    match cursor.file_address(encoding)? {
        Some(_) => Err(cursor.unsupported("the file holds a metadata cache image")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::checksum::lookup3;
    use super::super::damage::{ADDRESS, check, le};
    use super::*;

    fn version_0() -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend(le(&[(0, 5), (8, 1), (8, 1), (0, 1), (4, 2), (16, 2), (0, 4)]));
        bytes.extend(le(&[(0, 8), (u64::MAX, 8), (2048, 8), (u64::MAX, 8), (0, 8), (96, 8)]));
        bytes
    }

    fn version_3(flags: u64) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend(le(&[(3, 1), (8, 1), (8, 1), (flags, 1), (0, 8), (u64::MAX, 8), (2048, 8), (48, 8)]));
        let sum = lookup3(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// Returns the essential values of a superblock: base, end, root.
    fn places(cursor: Cursor<'_>) -> Result<(u64, u64, u64), Defect> {
        let superblock = parse(cursor)?.superblock;
        Ok((superblock.encoding.base, superblock.end, superblock.root))
    }

    #[test]
    fn old_and_new_count_from_where_they_are_found() {
        let expected = (ADDRESS, ADDRESS + 2048, ADDRESS + 96);
        assert_eq!(check(&version_0(), places), expected);
        assert_eq!(check(&version_3(0), places), (ADDRESS, ADDRESS + 2048, ADDRESS + 48));
    }

    #[test]
    fn every_flip_of_a_new_one_is_noticed() {
        let valid = version_3(0);
        for bit in 8 * SIGNATURE.len()..8 * valid.len() {
            let mut damaged = valid.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(places(Cursor::new(&damaged, ADDRESS, "superblock")).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn consistency_flags_count_in_version_3() {
        let open = |flags| parse(Cursor::new(&version_3(flags), 0, "superblock")).map(|stored| stored.open_for_writing);
        assert_eq!([open(0), open(1), open(4), open(5)], [Ok(false), Ok(true), Ok(true), Ok(true)]);
    }
}
