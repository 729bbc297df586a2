//! Messages that stand for others: the message kinds of object headers, and pointers to shared messages.
//!
//! A shared message is in a committed datatype's header or in the file's shared message heap. Invariant: a pointer is
//! followed once; what it leads to may not be a pointer again.

use super::cursor::{Cursor, Defect, Encoding};

/// Kinds of header messages that this reader looks at (HDF5 File Format Specification, IV.A.2).
pub(crate) mod kind {
    /// Dataspace.
    pub const DATASPACE: u16 = 0x01;
    /// Link info: the group keeps links in messages or densely.
    pub const LINK_INFO: u16 = 0x02;
    /// Datatype.
    pub const DATATYPE: u16 = 0x03;
    /// Fill value as before HDF5 1.6.
    pub const FILL_OLD: u16 = 0x04;
    /// Fill value.
    pub const FILL: u16 = 0x05;
    /// Link.
    pub const LINK: u16 = 0x06;
    /// External file list.
    pub const EXTERNAL: u16 = 0x07;
    /// Data layout.
    pub const LAYOUT: u16 = 0x08;
    /// Filter pipeline.
    pub const FILTERS: u16 = 0x0b;
    /// Attribute.
    pub const ATTRIBUTE: u16 = 0x0c;
    /// Object comment.
    pub const COMMENT: u16 = 0x0d;
    /// Shared message table, in the superblock extension.
    pub const SHARED_TABLE: u16 = 0x0f;
    /// Continuation of the object header.
    pub const CONTINUATION: u16 = 0x10;
    /// Symbol table: the group is a B-tree and a local heap.
    pub const SYMBOL_TABLE: u16 = 0x11;
    /// Driver info, in the superblock extension.
    pub const DRIVER_INFO: u16 = 0x14;
    /// Attribute info: the object keeps attributes densely, or counts them.
    pub const ATTRIBUTE_INFO: u16 = 0x15;
    /// Metadata cache image, in the superblock extension.
    pub const CACHE_IMAGE: u16 = 0x18;
    /// Kinds from here on are unknown to HDF5 2.x.
    pub const FIRST_UNKNOWN: u16 = 0x19;
}

/// Where a shared message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedPointer {
    /// In the header at this address.
    Committed(u64),
    /// In the shared message heap, under this fractal heap id.
    Heap([u8; 8]),
}

/// Decodes the body that a shared message has in place of its own.
pub(crate) fn parse(mut cursor: Cursor<'_>, encoding: &Encoding) -> Result<SharedPointer, Defect> {
    let version = cursor.u8()?;
    let location = cursor.u8()?;
    match (version, location) {
        (1, _) => {
            // 6 reserved bytes, then what was a symbol table entry: a heap offset before the header address.
            cursor.skip(6 + encoding.length_len())?;
            Ok(SharedPointer::Committed(cursor.required_address(encoding, "the shared message")?))
        }
        (2, _) | (3, 2) => Ok(SharedPointer::Committed(cursor.required_address(encoding, "the shared message")?)),
        (3, 1) => {
            let mut id = [0; 8];
            id.copy_from_slice(cursor.take(8)?);
            Ok(SharedPointer::Heap(id))
        }
        _ => Err(cursor.unsupported(format!("version {version}, location {location}"))),
    }
}
