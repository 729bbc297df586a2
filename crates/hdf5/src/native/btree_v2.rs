//! Version 2 B-trees as indexes of dense links, dense attributes and huge heap objects: reads all records at once.
//!
//! Chunk indexes are walked lazily by [`crate::read`]. Invariants: nodes have correct checksums and the type and depth
//! that their parent expects; the number of records found is the one in the header.

use super::checksum::verified;
use super::cursor::{Cursor, Defect, Encoding, InFile, encoded_len};
use super::reader::ByteReader;
use crate::error::Result;

/// Length of a node apart from its records: signature, version, type, checksum.
const NODE_FRAME_LEN_BYTES: u64 = 4 + 1 + 1 + 4;

/// Maximum depth of a tree. With two records per node, the fewest of any real tree, 32 levels hold more than 2^32
/// records.
const MAX_DEPTH: u16 = 32;

/// Record types (HDF5 File Format Specification, III.A.2).
pub(crate) mod record {
    /// Huge heap objects by their number.
    pub const HUGE_BY_NUMBER: u8 = 1;
    /// Links by the hash of their name.
    pub const LINK_BY_NAME: u8 = 5;
    /// Attributes by the hash of their name.
    pub const ATTRIBUTE_BY_NAME: u8 = 8;
}

/// Layout of the nodes of one depth; depth 0 is the leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    pub max_records: u64,
    /// Maximum number of records in a subtree, and the size of the field that counts them.
    max_subtree: u64,
    subtree_count_len: usize,
    /// Length of a pointer to a child; 0 for leaves.
    pub pointer_len: usize,
}

/// Header of a tree.
#[derive(Debug, PartialEq, Eq)]
struct TreeHeader {
    kind: u8,
    node_len: u64,
    record_len: usize,
    levels: Vec<Level>,
    root: Option<u64>,
    root_records: u64,
    total_records: u64,
}

impl TreeHeader {
    fn parse(mut cursor: Cursor<'_>, encoding: &Encoding, expected_kind: u8) -> Result<Self, Defect> {
        cursor.signature(b"BTHD")?;
        cursor.version(0)?;
        let kind = cursor.u8()?;
        if kind != expected_kind {
            return Err(cursor.malformed(format!("type {kind} where {expected_kind} is expected")));
        }
        let node_len = u64::from(cursor.u32()?);
        let record_len = usize::from(cursor.u16()?);
        let depth = cursor.u16()?;
        // Percentages at which nodes split and merge.
        cursor.skip(2)?;
        let root = cursor.file_address(encoding)?;
        let root_records = u64::from(cursor.u16()?);
        let total_records = cursor.length(encoding)?;
        if depth > MAX_DEPTH {
            return Err(cursor.malformed(format!("depth {depth}")));
        }
        let levels = levels(node_len, record_len as u64, depth, encoding)
            .ok_or_else(|| cursor.malformed(format!("nodes of {node_len} bytes for records of {record_len}")))?;
        Ok(Self { kind, node_len, record_len, levels, root, root_records, total_records })
    }
}

/// Returns the layout of each depth, leaves first, or `None` if a node has no room for a record.
pub(crate) fn levels(node_len: u64, record_len: u64, depth: u16, encoding: &Encoding) -> Option<Vec<Level>> {
    let leaf_records =
        node_len.checked_sub(NODE_FRAME_LEN_BYTES)?.checked_div(record_len).filter(|&count| count > 0)?;
    let leaf = Level { max_records: leaf_records, max_subtree: leaf_records, subtree_count_len: 0, pointer_len: 0 };
    let mut levels = vec![leaf];
    for _ in 0..depth {
        let below = levels[levels.len() - 1];
        let pointer_len = encoding.address_len() + encoded_len(leaf_records) + below.subtree_count_len;
        let space = node_len.checked_sub(NODE_FRAME_LEN_BYTES + pointer_len as u64)?;
        let max_records = Some(space / (record_len + pointer_len as u64)).filter(|&count| count > 0)?;
        let max_subtree = (max_records + 1).saturating_mul(below.max_subtree).saturating_add(max_records);
        levels.push(Level { max_records, max_subtree, subtree_count_len: encoded_len(max_subtree), pointer_len });
    }
    Some(levels)
}

/// All records of a tree, in its order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Records {
    bytes: Vec<u8>,
    record_len: usize,
    address: u64,
}

impl Records {
    /// Reads the tree whose header is at `address`, which must hold records of type `kind`.
    pub fn read(reader: &mut ByteReader<'_, '_>, address: u64, kind: u8) -> Result<Self> {
        const WHAT: &str = "B-tree 2 header";
        let (path, encoding) = (reader.path(), reader.encoding());
        let len = 4 + 1 + 1 + 4 + 2 + 2 + 2 + encoding.address_len() + 2 + encoding.length_len() + 4;
        let bytes = reader.bytes(address, len as u64, WHAT)?;
        let header = verified(bytes, address, WHAT)
            .and_then(|body| TreeHeader::parse(Cursor::new(body, address, WHAT), encoding, kind))
            .in_file(path)?;
        let mut records = Self { bytes: Vec::new(), record_len: header.record_len, address };
        if let Some(root) = header.root {
            records.add_node(reader, &header, root, header.root_records, header.levels.len() - 1)?;
        }
        let found = (records.bytes.len() / header.record_len) as u64;
        if found != header.total_records {
            let what = format!("{WHAT}: {found} records found, {} stored", header.total_records);
            return Err(Defect::Malformed { address, what }.in_file(path));
        }
        Ok(records)
    }

    /// Adds the `count` records of the node at `address` and of the nodes below it.
    fn add_node(
        &mut self,
        reader: &mut ByteReader<'_, '_>,
        header: &TreeHeader,
        address: u64,
        count: u64,
        depth: usize,
    ) -> Result<()> {
        const WHAT: &str = "B-tree 2 node";
        let (path, encoding) = (reader.path(), reader.encoding());
        let level = header.levels[depth];
        if count > level.max_records {
            let what = format!("{WHAT}: {count} records in a node for {}", level.max_records);
            return Err(Defect::Malformed { address, what }.in_file(path));
        }
        // A node occupies `node_len` bytes; the bytes after the checksum are undefined. The counts fit: both were
        // checked against the node's length.
        let records_len = count * header.record_len as u64;
        let pointers_len = if depth == 0 { 0 } else { (count + 1) * level.pointer_len as u64 };
        let len = NODE_FRAME_LEN_BYTES + records_len + pointers_len;
        if len > header.node_len {
            let what = format!("{WHAT}: {len} bytes in a node of {}", header.node_len);
            return Err(Defect::Malformed { address, what }.in_file(path));
        }
        let node = reader.bytes(address, len, WHAT)?;
        let body = verified(node, address, WHAT).in_file(path)?;
        let mut cursor = Cursor::new(body, address, WHAT);
        let parsed = (|| {
            cursor.signature(if depth == 0 { b"BTLF" } else { b"BTIN" })?;
            cursor.version(0)?;
            let kind = cursor.u8()?;
            if kind != header.kind {
                return Err(cursor.malformed(format!("type {kind} in a tree of type {}", header.kind)));
            }
            let records = cursor.take(records_len as usize)?;
            let mut children = Vec::new();
            while depth > 0 && cursor.remaining() > 0 {
                let child = cursor.required_address(encoding, "a child")?;
                let child_count = cursor.uint(encoded_len(header.levels[0].max_records))?;
                cursor.skip(header.levels[depth - 1].subtree_count_len)?;
                children.push((child, child_count));
            }
            Ok((records, children))
        })();
        let (records, children) = parsed.in_file(path)?;
        self.bytes.extend_from_slice(records);
        for (child, child_count) in children {
            self.add_node(reader, header, child, child_count, depth - 1)?;
        }
        Ok(())
    }

    /// Returns an iterator over the records, with one cursor each. Errors of these cursors state the address of the
    /// tree.
    pub fn iter(&self) -> impl Iterator<Item = Cursor<'_>> {
        self.bytes.chunks_exact(self.record_len).map(|record| Cursor::new(record, self.address, "B-tree 2 record"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::damage::{WIDE, check, le};
    use super::*;

    #[test]
    fn header_of_a_link_index() {
        let mut bytes = b"BTHD".to_vec();
        bytes.extend(le(&[(0, 1), (5, 1), (512, 4), (11, 2), (2, 2), (100, 1), (40, 1), (900, 8), (3, 2), (4000, 8)]));
        let header = check(&bytes, |cursor| TreeHeader::parse(cursor, &WIDE, record::LINK_BY_NAME));
        assert_eq!((header.root, header.root_records, header.total_records), (Some(900), 3, 4000));
        // (512 - 10) / 11 records in a leaf; inner nodes have pointers of 8 + 1 bytes, above that of 8 + 1 + 2.
        let counts: Vec<_> = header.levels.iter().map(|level| (level.max_records, level.subtree_count_len)).collect();
        assert_eq!(counts, [(45, 0), (24, 2), (22, 2)]);
    }

    #[test]
    fn nodes_too_small_for_a_record_are_refused() {
        assert_eq!(levels(20, 11, 0, &WIDE), None);
        assert_eq!(levels(512, 0, 0, &WIDE), None);
        assert_eq!(levels(9, 11, 3, &WIDE), None);
        // A leaf holds a record, an inner node with its two pointers of 9 bytes does not.
        assert_eq!(levels(38, 11, 1, &WIDE), None);
        assert!(levels(39, 11, 1, &WIDE).is_some());
        // The maximum depth and width: counts saturate.
        assert!(levels(u64::from(u32::MAX), 1, MAX_DEPTH, &WIDE).is_some());
    }
}
