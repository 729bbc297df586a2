//! Shared messages: pointers to them, and the heaps that hold them.
//!
//! A shared message is in a committed datatype's header or in the file's shared message heap. Invariant: a pointer is
//! followed once; its target must not be another pointer.

use super::checksum::verified;
use super::cursor::{Cursor, Defect, Encoding, InFile};
use super::fractal_heap::FractalHeap;
use super::reader::ByteReader;
use crate::error::Result;

/// Length of an id in a shared message heap.
const HEAP_ID_LEN_BYTES: usize = 8;

/// Location of a shared message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedPointer {
    /// Message in the header at this address.
    Committed(u64),
    /// Message in the shared message heap, with this fractal heap id.
    Heap([u8; HEAP_ID_LEN_BYTES]),
}

/// Decodes the pointer that takes the place of a shared message's body.
pub(crate) fn parse(mut cursor: Cursor<'_>, encoding: &Encoding) -> Result<SharedPointer, Defect> {
    let version = cursor.u8()?;
    let location = cursor.u8()?;
    match (version, location) {
        (1, _) => {
            // 6 reserved bytes, then the former symbol table entry: a heap offset before the header address.
            cursor.skip(6 + encoding.length_len())?;
            Ok(SharedPointer::Committed(cursor.required_address(encoding, "the shared message")?))
        }
        (2, _) | (3, 2) => Ok(SharedPointer::Committed(cursor.required_address(encoding, "the shared message")?)),
        (3, 1) => {
            let mut id = [0; HEAP_ID_LEN_BYTES];
            id.copy_from_slice(cursor.take(HEAP_ID_LEN_BYTES)?);
            Ok(SharedPointer::Heap(id))
        }
        _ => Err(cursor.unsupported(format!("version {version}, location {location}"))),
    }
}

/// Heaps of a file's shared messages, each with a mask of the message kinds that it holds (bit n for kind n).
#[derive(Debug, Default)]
pub(crate) struct SharedHeaps(Vec<(u16, FractalHeap)>);

impl SharedHeaps {
    /// Reads the shared message table, given its address and number of indexes from the superblock extension.
    pub fn read(reader: &mut ByteReader<'_, '_>, table: Option<(u64, u8)>) -> Result<Self> {
        const WHAT: &str = "shared message table";
        let (path, encoding) = (reader.path(), reader.encoding());
        let Some((address, index_count)) = table else { return Ok(Self::default()) };
        let index_len = 14 + 2 * encoding.address_len();
        let len = 4 + usize::from(index_count) * index_len + 4;
        let bytes = reader.bytes(address, len as u64, WHAT)?;
        let heaps = verified(bytes, address, WHAT)
            .and_then(|body| parse_table(Cursor::new(body, address, WHAT), index_count, encoding))
            .in_file(path)?;
        let mut read = Vec::new();
        for (kinds, heap) in heaps {
            read.push((kinds, FractalHeap::read(reader, heap, HEAP_ID_LEN_BYTES)?));
        }
        Ok(Self(read))
    }

    /// Reads the body of a shared message of this kind into `out`; returns its absolute file offset.
    pub fn get(
        &mut self,
        reader: &mut ByteReader<'_, '_>,
        message: &Cursor<'_>,
        kind: u16,
        id: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        match self.0.iter_mut().find(|(kinds, _)| kinds >> kind & 1 == 1) {
            Some((_, heap)) => heap.get(reader, id, out),
            None => Err(message.malformed("shared, but the file has no heap for its kind").in_file(reader.path())),
        }
    }
}

/// Returns the mask of message kinds and the heap address of each index that has a heap.
fn parse_table(mut cursor: Cursor<'_>, index_count: u8, encoding: &Encoding) -> Result<Vec<(u16, u64)>, Defect> {
    cursor.signature(b"SMTB")?;
    let mut heaps = Vec::new();
    for _ in 0..index_count {
        cursor.version(0)?;
        // Type of the index, which only writers need.
        cursor.skip(1)?;
        let kinds = cursor.u16()?;
        // Smallest message, two cutoffs between list and B-tree, number of messages.
        cursor.skip(4 + 2 + 2 + 2)?;
        cursor.file_address(encoding)?;
        if let Some(heap) = cursor.file_address(encoding)? {
            heaps.push((kinds, heap));
        }
    }
    Ok(heaps)
}

#[cfg(test)]
mod tests {
    use super::super::damage::{WIDE, check, le};
    use super::super::kind;
    use super::*;

    #[test]
    fn pointers_of_every_version() {
        let of = |fields: &[(u64, usize)]| check(&le(fields), |cursor| parse(cursor, &WIDE));
        assert_eq!(of(&[(1, 1), (0, 1), (0, 6), (0, 8), (900, 8)]), SharedPointer::Committed(900));
        assert_eq!(of(&[(2, 1), (0, 1), (900, 8)]), SharedPointer::Committed(900));
        assert_eq!(of(&[(3, 1), (2, 1), (900, 8)]), SharedPointer::Committed(900));
        assert_eq!(of(&[(3, 1), (1, 1), (0x0102, 8)]), SharedPointer::Heap([2, 1, 0, 0, 0, 0, 0, 0]));
    }

    #[test]
    fn table() {
        let index = |kinds, heap| [(0, 1), (0, 1), (kinds, 2), (50, 4), (50, 2), (40, 2), (1, 2), (300, 8), (heap, 8)];
        let mut bytes = b"SMTB".to_vec();
        bytes.extend(le(&index(1 << kind::DATATYPE, 400)));
        bytes.extend(le(&index(1 << kind::FILL, u64::MAX)));
        let heaps = check(&bytes, |cursor| parse_table(cursor, 2, &WIDE));
        assert_eq!(heaps, [(1 << kind::DATATYPE, 400)]);
    }
}
