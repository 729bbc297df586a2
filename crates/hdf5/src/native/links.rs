//! Link messages, link info messages, and the order of a group's links.
//!
//! Invariant: the links of a group have distinct, non-empty names and are in creation order if the group tracks it,
//! otherwise by name.

use super::btree_v2::{Records, record};
use super::cursor::{Cursor, Defect, Encoding, InFile};
use super::fractal_heap::FractalHeap;
use super::kind;
use super::object_header::ObjectHeader;
use super::reader::ByteReader;
use super::stored_link::{StoredLink, StoredTarget};
use super::symbol_table;
use crate::error::Result;
use crate::model::{CreationOrder, LinkTarget};

/// Length of a link's heap id.
const HEAP_ID_LEN_BYTES: usize = 7;

/// Reads the links of the group at `address`, however they are stored; returns `None` if the object is not a group.
pub(crate) fn read(
    reader: &mut ByteReader<'_, '_>,
    header: &ObjectHeader,
    address: u64,
) -> Result<Option<(CreationOrder, Vec<StoredLink>)>> {
    let (path, encoding) = (reader.path(), reader.encoding());
    let (order, mut links) = if let Some(message) = header.find(kind::LINK_INFO) {
        let info = parse_info(header.cursor(message, "link info"), encoding).in_file(path)?;
        let links = match info.dense {
            Some((heap, names)) => read_dense(reader, heap, names)?,
            None => {
                let messages = header.messages.iter().filter(|message| message.kind == kind::LINK);
                let links = messages.map(|message| parse(header.cursor(message, "link"), encoding));
                links.collect::<Result<_, _>>().in_file(path)?
            }
        };
        (info.order, links)
    } else if let Some(message) = header.find(kind::SYMBOL_TABLE) {
        let links = symbol_table::read_links(reader, header.cursor(message, "symbol table"))?;
        (CreationOrder::default(), links)
    } else {
        return Ok(None);
    };
    arrange(&mut links, order, address).in_file(path)?;
    Ok(Some((order, links)))
}

fn read_dense(reader: &mut ByteReader<'_, '_>, heap: u64, names: u64) -> Result<Vec<StoredLink>> {
    let (path, encoding) = (reader.path(), reader.encoding());
    let records = Records::read(reader, names, record::LINK_BY_NAME)?;
    let mut heap = FractalHeap::read(reader, heap, HEAP_ID_LEN_BYTES)?;
    let mut links = Vec::new();
    let mut message = Vec::new();
    for mut record in records.iter() {
        // The hash of the name comes first.
        let id = record.skip(4).and_then(|()| record.take(HEAP_ID_LEN_BYTES)).in_file(path)?;
        let address = heap.get(reader, id, &mut message)?;
        links.push(parse(Cursor::new(&message, address, "link"), encoding).in_file(path)?);
    }
    Ok(links)
}

/// Flags of a link message; the lowest two bits give the size of the name's length.
const FLAG_CREATION_ORDER: u8 = 0x04;
const FLAG_CLASS: u8 = 0x08;
const FLAG_CHARSET: u8 = 0x10;

/// Link classes: hard, soft, external; 65 to 255 are user-defined.
const CLASS_HARD: u8 = 0;
const CLASS_SOFT: u8 = 1;
const CLASS_EXTERNAL: u8 = 64;

/// Decodes the body of a link message.
fn parse(mut cursor: Cursor<'_>, encoding: &Encoding) -> Result<StoredLink, Defect> {
    cursor.version(1)?;
    let flags = cursor.u8()?;
    if flags & 0xe0 != 0 {
        return Err(cursor.malformed(format!("flags {flags:#04x}")));
    }
    let class = if flags & FLAG_CLASS != 0 { cursor.u8()? } else { CLASS_HARD };
    let creation_order = if flags & FLAG_CREATION_ORDER != 0 { Some(cursor.u64()?.cast_signed()) } else { None };
    let charset = if flags & FLAG_CHARSET != 0 { cursor.u8()? } else { 0 };
    if charset > 1 {
        return Err(cursor.malformed(format!("character set {charset}")));
    }
    let name_len = cursor.uint(1 << (flags & 3))?;
    let name = cursor.take(usize::try_from(name_len).unwrap_or(usize::MAX))?;
    // libhdf5 ends a name at its first zero.
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default().to_vec();
    let target = match class {
        CLASS_HARD => StoredTarget::Hard(cursor.file_address(encoding)?),
        CLASS_SOFT => {
            let path = counted(&mut cursor)?;
            StoredTarget::Other(LinkTarget::Soft(path.split(|&byte| byte == 0).next().unwrap_or_default().to_vec()))
        }
        CLASS_EXTERNAL => {
            let address = cursor.address();
            StoredTarget::Other(parse_external(Cursor::new(counted(&mut cursor)?, address + 2, "external link"))?)
        }
        65.. => StoredTarget::Other(LinkTarget::UserDefined { class, data: counted(&mut cursor)?.to_vec() }),
        _ => return Err(cursor.unsupported(format!("class {class}"))),
    };
    Ok(StoredLink { name, utf8: charset == 1, creation_order, target })
}

/// Reads bytes preceded by their 2-byte length.
fn counted<'b>(cursor: &mut Cursor<'b>) -> Result<&'b [u8], Defect> {
    let len = usize::from(cursor.u16()?);
    cursor.take(len)
}

fn parse_external(mut cursor: Cursor<'_>) -> Result<LinkTarget, Defect> {
    // Version in the high half, flags in the low half, all of which are zero so far.
    cursor.version(0)?;
    let file = cursor.zero_terminated()?.to_vec();
    let path = cursor.zero_terminated()?.to_vec();
    Ok(LinkTarget::External { file, path })
}

/// A link info message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LinkInfo {
    /// Whether the creation order of links is kept.
    order: CreationOrder,
    /// Fractal heap of the links and B-tree of their names, if the group is dense.
    dense: Option<(u64, u64)>,
}

/// Decodes the body of a link info message.
fn parse_info(mut cursor: Cursor<'_>, encoding: &Encoding) -> Result<LinkInfo, Defect> {
    cursor.version(0)?;
    let flags = cursor.u8()?;
    let order = CreationOrder { tracked: flags & 1 != 0, indexed: flags & 2 != 0 };
    if order.tracked {
        // Highest creation order value so far.
        cursor.skip(8)?;
    }
    let heap = cursor.file_address(encoding)?;
    let names = cursor.file_address(encoding)?;
    let dense = match (heap, names) {
        (Some(heap), Some(names)) => Some((heap, names)),
        (Some(_), None) => return Err(cursor.malformed("links without an index of names")),
        (None, _) => None,
    };
    Ok(LinkInfo { order, dense })
}

/// Sorts links into the order in which groups hold them. Fails if a name is empty or occurs twice; the error names the
/// group at `address`.
fn arrange(links: &mut [StoredLink], order: CreationOrder, address: u64) -> Result<(), Defect> {
    if !links.is_sorted_by(|a, b| a.name < b.name) {
        links.sort_by(|a, b| a.name.cmp(&b.name));
    }
    if let Some(pair) = links.windows(2).find(|pair| pair[0].name == pair[1].name) {
        let what = format!("group: two links named `{}`", pair[0].name.escape_ascii());
        return Err(Defect::Malformed { address, what });
    }
    if links.first().is_some_and(|link| link.name.is_empty()) {
        return Err(Defect::Malformed { address, what: "group: a link without a name".to_owned() });
    }
    if order.tracked {
        links.sort_by_key(|link| link.creation_order);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::damage::{ADDRESS, WIDE, check, le};
    use super::*;

    fn message(head: &[(u64, usize)], name: &[u8], tail: &[u8]) -> Vec<u8> {
        [le(head), name.to_vec(), tail.to_vec()].concat()
    }

    fn link(name: &[u8], target: StoredTarget) -> StoredLink {
        StoredLink { name: name.to_vec(), utf8: false, creation_order: None, target }
    }

    #[test]
    fn hard_link_with_all_fields() {
        let bytes =
            message(&[(1, 1), (0x1d, 1), (0, 1), (9, 8), (1, 1), (2, 2)], "\u{fc}".as_bytes(), &le(&[(800, 8)]));
        let expected = StoredLink {
            name: "\u{fc}".into(),
            utf8: true,
            creation_order: Some(9),
            target: StoredTarget::Hard(Some(800)),
        };
        assert_eq!(check(&bytes, |cursor| parse(cursor, &WIDE)), expected);
    }

    #[test]
    fn other_classes() {
        let soft = message(&[(1, 1), (8, 1), (1, 1), (1, 1)], b"s", b"\x02\0/x");
        let expected = link(b"s", StoredTarget::Other(LinkTarget::Soft(b"/x".to_vec())));
        assert_eq!(check(&soft, |cursor| parse(cursor, &WIDE)), expected);
        let external = message(&[(1, 1), (8, 1), (64, 1), (1, 1)], b"e", b"\x08\0\0f.h5\0/\0");
        let target = LinkTarget::External { file: b"f.h5".to_vec(), path: b"/".to_vec() };
        assert_eq!(check(&external, |cursor| parse(cursor, &WIDE)), link(b"e", StoredTarget::Other(target)));
        let user = message(&[(1, 1), (8, 1), (200, 1), (1, 1)], b"u", b"\x03\0abc");
        let target = LinkTarget::UserDefined { class: 200, data: b"abc".to_vec() };
        assert_eq!(check(&user, |cursor| parse(cursor, &WIDE)), link(b"u", StoredTarget::Other(target)));
        let reserved = message(&[(1, 1), (8, 1), (2, 1), (1, 1)], b"r", b"\0\0");
        assert!(matches!(parse(Cursor::new(&reserved, 0, "link"), &WIDE), Err(Defect::Unsupported { .. })));
    }

    #[test]
    fn name_longer_than_the_file() {
        let bytes = message(&[(1, 1), (3, 1), (u64::MAX, 8)], b"n", &[]);
        assert!(parse(Cursor::new(&bytes, ADDRESS, "link"), &WIDE).is_err());
    }

    #[test]
    fn info() {
        let fields = [(0, 1), (3, 1), (17, 8), (600, 8), (700, 8), (800, 8)];
        let info = parse_info(Cursor::new(&le(&fields), ADDRESS, "link info"), &WIDE);
        let order = CreationOrder { tracked: true, indexed: true };
        assert_eq!(info, Ok(LinkInfo { order, dense: Some((600, 700)) }));
        let compact = check(&le(&[(0, 1), (0, 1), (u64::MAX, 8), (u64::MAX, 8)]), |cursor| parse_info(cursor, &WIDE));
        assert_eq!(compact, LinkInfo { order: CreationOrder::default(), dense: None });
    }

    #[test]
    fn arranging_sorts_and_refuses_doubles() {
        let numbered =
            |name: &[u8], order| StoredLink { creation_order: Some(order), ..link(name, StoredTarget::Hard(None)) };
        let names = |links: &[StoredLink]| links.iter().flat_map(|link| link.name.clone()).collect::<Vec<_>>();
        let mut links = [numbered(b"b", 1), numbered(b"a", 2), numbered(b"c", 0)];
        arrange(&mut links, CreationOrder::default(), ADDRESS).unwrap();
        assert_eq!(names(&links), b"abc");
        arrange(&mut links, CreationOrder { tracked: true, indexed: false }, ADDRESS).unwrap();
        assert_eq!(names(&links), b"cba");
        let mut double = [numbered(b"b", 1), numbered(b"a", 2), numbered(b"b", 0)];
        assert!(arrange(&mut double, CreationOrder::default(), ADDRESS).is_err());
        assert!(arrange(&mut [numbered(b"", 1)], CreationOrder::default(), ADDRESS).is_err());
    }
}
