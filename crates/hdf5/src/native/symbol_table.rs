//! Old groups: a version 1 B-tree of symbol table nodes, with names in a local heap.
//!
//! Invariants: a node's level is one below its parent's, so trees are finite; links are returned in the order of their
//! names.

use super::cursor::{Cursor, Defect, Encoding, InFile};
use super::reader::ByteReader;
use super::stored_link::{StoredLink, StoredTarget};
use crate::error::Result;
use crate::model::LinkTarget;

/// B-tree node type of groups (1 is chunks).
const NODE_TYPE_GROUP: u8 = 0;

/// Cached data of a symbol table entry: nothing, the B-tree and heap of a group, or the heap offset of a soft link.
const CACHED_SOFT_LINK: u32 = 2;

/// First guess for a name's length; four in five names need one access.
const NAME_WINDOW_BYTES: u64 = 64;

/// A heap of zero-terminated strings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalHeap {
    data: u64,
    len_bytes: u64,
}

impl LocalHeap {
    /// Reads the heap's header.
    pub fn read(reader: &mut ByteReader<'_, '_>, address: u64) -> Result<Self> {
        let (path, encoding) = (reader.path(), reader.encoding());
        let len = 8 + 2 * encoding.length_len() + encoding.address_len();
        let bytes = reader.bytes(address, len as u64, "local heap")?;
        Self::parse(Cursor::new(bytes, address, "local heap"), encoding).in_file(path)
    }

    fn parse(mut cursor: Cursor<'_>, encoding: &Encoding) -> Result<Self, Defect> {
        cursor.signature(b"HEAP")?;
        cursor.version(0)?;
        cursor.skip(3)?;
        let len_bytes = cursor.length(encoding)?;
        // Head of the free list.
        cursor.length(encoding)?;
        let data = cursor.required_address(encoding, "the heap's data")?;
        Ok(Self { data, len_bytes })
    }

    /// Returns the string at `offset`, without its terminating zero.
    pub fn string(&self, reader: &mut ByteReader<'_, '_>, offset: u64) -> Result<Vec<u8>> {
        let path = reader.path();
        let malformed = |what: &str| {
            let address = self.data.saturating_add(offset);
            Defect::Malformed { address, what: format!("local heap: {what}") }.in_file(path)
        };
        let available = self.len_bytes.checked_sub(offset).ok_or_else(|| malformed("a name lies outside"))?;
        let address = self.data.checked_add(offset).ok_or_else(|| malformed("a name lies outside"))?;
        let mut window = NAME_WINDOW_BYTES;
        loop {
            let len = window.min(available).min(reader.file_len_bytes().saturating_sub(address).max(1));
            let bytes = reader.bytes(address, len, "name in a local heap")?;
            match memchr::memchr(0, bytes) {
                Some(end) => return Ok(bytes[..end].to_vec()),
                None if len < window => return Err(malformed("a name is not terminated")),
                None => window = window.saturating_mul(4),
            }
        }
    }
}

/// Reads the links of the group whose symbol table message is `message`.
pub(crate) fn read_links(reader: &mut ByteReader<'_, '_>, mut message: Cursor<'_>) -> Result<Vec<StoredLink>> {
    let (path, encoding) = (reader.path(), reader.encoding());
    let tree = message.required_address(encoding, "the group's B-tree").in_file(path)?;
    let heap = message.required_address(encoding, "the group's names").in_file(path)?;
    let heap = LocalHeap::read(reader, heap)?;
    let mut links = Vec::new();
    let mut leaves = Vec::new();
    read_node(reader, tree, None, &mut leaves)?;
    let mut node = Vec::new();
    for leaf in leaves {
        read_leaf(reader, leaf, &heap, &mut node, &mut links)?;
    }
    Ok(links)
}

/// Collects the symbol table nodes under the B-tree node at `address`, which must have `level` if it is given.
fn read_node(reader: &mut ByteReader<'_, '_>, address: u64, level: Option<u8>, leaves: &mut Vec<u64>) -> Result<()> {
    let (path, encoding) = (reader.path(), reader.encoding());
    let head_len = 8 + 2 * encoding.address_len();
    let head = reader.bytes(address, head_len as u64, "group B-tree node")?;
    let (found, entries) = parse_node_head(Cursor::new(head, address, "group B-tree node"), level).in_file(path)?;
    // Keys (heap offsets) surround the children: key, child, key, child, ..., key.
    let entry_len = encoding.length_len() + encoding.address_len();
    let body_address = address.saturating_add(head_len as u64);
    let body = reader.bytes(body_address, (entries * entry_len) as u64, "group B-tree node")?;
    let mut body = Cursor::new(body, body_address, "group B-tree node");
    let first = leaves.len();
    for _ in 0..entries {
        body.skip(encoding.length_len()).in_file(path)?;
        leaves.push(body.required_address(encoding, "a child").in_file(path)?);
    }
    if found > 0 {
        // Levels decrease by one per step, so recursion is at most 255 calls deep.
        for child in leaves.split_off(first) {
            read_node(reader, child, Some(found - 1), leaves)?;
        }
    }
    Ok(())
}

/// Returns the level and the number of children.
fn parse_node_head(mut cursor: Cursor<'_>, level: Option<u8>) -> Result<(u8, usize), Defect> {
    cursor.signature(b"TREE")?;
    let node_type = cursor.u8()?;
    if node_type != NODE_TYPE_GROUP {
        return Err(cursor.malformed(format!("type {node_type}")));
    }
    let found = cursor.u8()?;
    if level.is_some_and(|level| level != found) {
        return Err(cursor.malformed(format!("level {found} below level {}", level.unwrap_or(0) + 1)));
    }
    Ok((found, usize::from(cursor.u16()?)))
}

fn read_leaf(
    reader: &mut ByteReader<'_, '_>,
    address: u64,
    heap: &LocalHeap,
    node: &mut Vec<u8>,
    links: &mut Vec<StoredLink>,
) -> Result<()> {
    const WHAT: &str = "symbol table node";
    let (path, encoding) = (reader.path(), reader.encoding());
    let head = reader.bytes(address, 8, WHAT)?;
    let entries = parse_leaf_head(Cursor::new(head, address, WHAT)).in_file(path)?;
    let entry_len = encoding.length_len() + encoding.address_len() + 24;
    reader.bytes_into(address.saturating_add(8), (entries * entry_len) as u64, WHAT, node)?;
    let mut cursor = Cursor::new(node, address.saturating_add(8), WHAT);
    for _ in 0..entries {
        let entry = cursor.part(entry_len, "symbol table entry").in_file(path)?;
        let (name_offset, target) = parse_entry(entry, encoding).in_file(path)?;
        let name = heap.string(reader, name_offset)?;
        let target = match target {
            EntryTarget::Header(address) => StoredTarget::Hard(address),
            EntryTarget::Soft(offset) => StoredTarget::Other(LinkTarget::Soft(heap.string(reader, offset)?)),
        };
        links.push(StoredLink { name, utf8: false, creation_order: None, target });
    }
    Ok(())
}

fn parse_leaf_head(mut cursor: Cursor<'_>) -> Result<usize, Defect> {
    cursor.signature(b"SNOD")?;
    cursor.version(1)?;
    cursor.skip(1)?;
    Ok(usize::from(cursor.u16()?))
}

#[derive(Debug, PartialEq)]
enum EntryTarget {
    Header(Option<u64>),
    Soft(u64),
}

/// Returns the name offset in the heap, and the target.
fn parse_entry(mut cursor: Cursor<'_>, encoding: &Encoding) -> Result<(u64, EntryTarget), Defect> {
    let name_offset = cursor.length(encoding)?;
    let header = cursor.file_address(encoding)?;
    let cached = cursor.u32()?;
    cursor.skip(4)?;
    let target = match cached {
        0 | 1 => EntryTarget::Header(header),
        CACHED_SOFT_LINK => EntryTarget::Soft(cursor.u32()?.into()),
        _ => return Err(cursor.malformed(format!("cache type {cached}"))),
    };
    Ok((name_offset, target))
}

#[cfg(test)]
mod tests {
    use super::super::damage::{ADDRESS, WIDE, check, le};
    use super::*;

    #[test]
    fn heap_header() {
        let mut bytes = b"HEAP".to_vec();
        bytes.extend(le(&[(0, 4), (88, 8), (u64::MAX, 8), (700, 8)]));
        let heap = check(&bytes, |cursor| LocalHeap::parse(cursor, &WIDE));
        assert_eq!((heap.data, heap.len_bytes), (700, 88));
    }

    #[test]
    fn node_heads() {
        let mut bytes = b"TREE".to_vec();
        bytes.extend(le(&[(0, 1), (2, 1), (7, 2)]));
        assert_eq!(check(&bytes, |cursor| parse_node_head(cursor, Some(2))), (2, 7));
        assert!(parse_node_head(Cursor::new(&bytes, ADDRESS, "node"), Some(1)).is_err());
        assert_eq!(check(b"SNOD\x01\0\x05\0", parse_leaf_head), 5);
    }

    #[test]
    fn entries() {
        let of = |fields: &[(u64, usize)]| check(&le(fields), |cursor| parse_entry(cursor, &WIDE));
        let hard = [(16, 8), (800, 8), (0, 4), (0, 4)];
        assert_eq!(of(&hard), (16, EntryTarget::Header(Some(800))));
        let soft = [(24, 8), (u64::MAX, 8), (2, 4), (0, 4), (40, 4)];
        assert_eq!(of(&soft), (24, EntryTarget::Soft(40)));
    }
}
