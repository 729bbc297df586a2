//! Attribute messages, versions 1 to 3, attribute info messages, and the order of an object's attributes.
//!
//! Invariant: an attribute's data has exactly the length that its type and extent imply.

use super::ReadLimits;
use super::btree_v2::{Records, record};
use super::cursor::{Cursor, Defect, Encoding, InFile};
use super::dataspace;
use super::fractal_heap::FractalHeap;
use super::kind;
use super::object_header::ObjectHeader;
use super::object_reader::ObjectReader;
use super::superblock::Superblock;
use crate::error::Result;
use crate::model::{Attribute, CreationOrder, InlineData};
use crate::source::{InputFile, MetadataView};

/// Flags of versions 2 and 3.
const FLAG_TYPE_SHARED: u8 = 1;
const FLAG_SPACE_SHARED: u8 = 2;

/// Parts of an attribute message.
struct Parts<'b> {
    name: &'b [u8],
    utf8: bool,
    datatype: Cursor<'b>,
    datatype_shared: bool,
    dataspace: Cursor<'b>,
    dataspace_shared: bool,
    data: Cursor<'b>,
}

fn parse<'b>(mut cursor: Cursor<'b>) -> Result<Parts<'b>, Defect> {
    let version = cursor.u8()?;
    if !(1..=3).contains(&version) {
        return Err(cursor.unsupported(format!("version {version}")));
    }
    let flags = match (version, cursor.u8()?) {
        // Reserved: any value is accepted.
        (1, _) => 0,
        (_, flags) => flags,
    };
    if flags & !(FLAG_TYPE_SHARED | FLAG_SPACE_SHARED) != 0 {
        return Err(cursor.malformed(format!("flags {flags:#04x}")));
    }
    let lens = [cursor.u16()?, cursor.u16()?, cursor.u16()?].map(usize::from);
    let charset = if version == 3 { cursor.u8()? } else { 0 };
    if charset > 1 {
        return Err(cursor.malformed(format!("character set {charset}")));
    }
    let padded = |len: usize| if version == 1 { len.next_multiple_of(8) } else { len };
    let mut parts = Vec::with_capacity(3);
    for (len, what) in lens.into_iter().zip(["attribute name", "attribute datatype", "attribute dataspace"]) {
        parts.push(cursor.part(len, what)?);
        cursor.skip(padded(len) - len)?;
    }
    let [mut name, datatype, dataspace] = <[_; 3]>::try_from(parts).map_err(|_| cursor.malformed("has no parts"))?;
    let stored_name = name.rest();
    let Some((0, name)) = stored_name.split_last() else {
        return Err(name.malformed("not terminated"));
    };
    if name.is_empty() || name.contains(&0) {
        return Err(cursor.malformed("name is empty or ends before its length"));
    }
    Ok(Parts {
        name,
        utf8: charset == 1,
        datatype,
        datatype_shared: flags & FLAG_TYPE_SHARED != 0,
        dataspace,
        dataspace_shared: flags & FLAG_SPACE_SHARED != 0,
        data: cursor,
    })
}

/// Reads the attributes of the object at `address`, however they are stored.
pub(crate) fn read(reader: &mut ObjectReader<'_, '_>, header: &ObjectHeader, address: u64) -> Result<Vec<Attribute>> {
    let (path, encoding) = (reader.path(), reader.encoding());
    let info = header.find(kind::ATTRIBUTE_INFO).map(|message| header.cursor(message, "attribute info"));
    let dense = info.map(|cursor| parse_info(cursor, encoding)).transpose().in_file(path)?.flatten();
    let mut attributes = Vec::new();
    if let Some((heap, names)) = dense {
        read_dense(reader, heap, names, header.attribute_order, &mut attributes)?;
    } else {
        let mut storage = Vec::new();
        for message in header.messages.iter().filter(|message| message.kind == kind::ATTRIBUTE) {
            let cursor = header.cursor(message, "attribute");
            let cursor = reader.message_body(cursor, message.shared, kind::ATTRIBUTE, &mut storage)?;
            attributes.push(read_one(reader, cursor, message.creation_index.map(u32::from))?);
        }
    }
    arrange(&mut attributes, header.attribute_order, address).in_file(path)?;
    Ok(attributes)
}

/// Returns the names of the attributes in the header of the object at `address`, in stored order, which is the order of
/// creation unless some were removed. [`Object::attributes`](crate::model::Object::attributes) has a different order if
/// the object does not track it. The result is empty for objects that keep their attributes elsewhere.
///
/// # Errors
/// As for [`read_object`](super::read_object).
pub fn stored_attribute_names(file: &InputFile, address: u64, limits: &ReadLimits) -> Result<Vec<Vec<u8>>> {
    let superblock = Superblock::read(file)?;
    let mut view = MetadataView::new(file, limits.cache_len_bytes);
    ObjectReader::new(&mut view, &superblock, limits).with_header(address, |reader, header| {
        let (path, mut names) = (reader.path(), Vec::new());
        for message in header.messages.iter().filter(|message| message.kind == kind::ATTRIBUTE) {
            let mut storage = Vec::new();
            let cursor = header.cursor(message, "attribute");
            let cursor = reader.message_body(cursor, message.shared, kind::ATTRIBUTE, &mut storage)?;
            names.push(parse(cursor).in_file(path)?.name.to_vec());
        }
        Ok(names)
    })
}

/// Length of an attribute's heap id, and the flag in its record that marks the shared heap.
const HEAP_ID_LEN_BYTES: usize = 8;
const RECORD_SHARED: u8 = 0x02;

fn read_dense(
    reader: &mut ObjectReader<'_, '_>,
    heap: u64,
    names: u64,
    order: CreationOrder,
    attributes: &mut Vec<Attribute>,
) -> Result<()> {
    let path = reader.path();
    let records = Records::read(&mut reader.bytes, names, record::ATTRIBUTE_BY_NAME)?;
    let mut heap = FractalHeap::read(&mut reader.bytes, heap, HEAP_ID_LEN_BYTES)?;
    let mut storage = Vec::new();
    for mut record in records.iter() {
        let parts = (|| Ok((record.take(HEAP_ID_LEN_BYTES)?, record.u8()?, record.u32()?)))();
        let (id, flags, creation_order) = parts.in_file(path)?;
        let cursor = if flags & RECORD_SHARED == 0 {
            let address = heap.get(&mut reader.bytes, id, &mut storage)?;
            Cursor::new(&storage, address, "attribute")
        } else {
            reader.shared_body(&record, kind::ATTRIBUTE, id, &mut storage)?
        };
        attributes.push(read_one(reader, cursor, order.tracked.then_some(creation_order))?);
    }
    Ok(())
}

/// Decodes the body of an attribute message; follows its datatype and extent if they are shared.
fn read_one(reader: &mut ObjectReader<'_, '_>, cursor: Cursor<'_>, creation_order: Option<u32>) -> Result<Attribute> {
    let (path, encoding) = (reader.path(), reader.encoding());
    let mut parts = parse(cursor).in_file(path)?;
    let datatype = reader.datatype(parts.datatype, parts.datatype_shared)?;
    let mut storage = Vec::new();
    let dataspace = reader.message_body(parts.dataspace, parts.dataspace_shared, kind::DATASPACE, &mut storage)?;
    let dataspace = dataspace::parse(dataspace, encoding).in_file(path)?;
    let element_len = datatype.class.len_bytes();
    let len = dataspace.element_count().and_then(|count| count.checked_mul(element_len));
    let data = match len.and_then(|len| usize::try_from(len).ok()) {
        Some(len) => parts.data.take(len).in_file(path)?.to_vec(),
        None => return Err(parts.data.malformed("value exceeds 64 bits").in_file(path)),
    };
    let data = InlineData::Stored(data);
    Ok(Attribute { name: parts.name.to_vec(), utf8: parts.utf8, creation_order, datatype, dataspace, data })
}

/// Returns the fractal heap of an object's attributes and the B-tree of their names, if an attribute info message names
/// them.
fn parse_info(mut cursor: Cursor<'_>, encoding: &Encoding) -> Result<Option<(u64, u64)>, Defect> {
    cursor.version(0)?;
    let flags = cursor.u8()?;
    if flags & 1 != 0 {
        // Highest creation order value so far.
        cursor.skip(2)?;
    }
    let heap = cursor.file_address(encoding)?;
    let names = cursor.file_address(encoding)?;
    match (heap, names) {
        (Some(heap), Some(names)) => Ok(Some((heap, names))),
        (Some(_), None) => Err(cursor.malformed("attributes without an index of names")),
        (None, _) => Ok(None),
    }
}

/// Sorts attributes into the order in which objects hold them. Fails if a name occurs twice; the error names the object
/// at `address`.
fn arrange(attributes: &mut [Attribute], order: CreationOrder, address: u64) -> Result<(), Defect> {
    attributes.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(pair) = attributes.windows(2).find(|pair| pair[0].name == pair[1].name) {
        let what = format!("object: two attributes named `{}`", pair[0].name.escape_ascii());
        return Err(Defect::Malformed { address, what });
    }
    if order.tracked {
        attributes.sort_by_key(|attribute| attribute.creation_order);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::damage::{ADDRESS, WIDE, check, le};
    use super::*;

    /// Returns the parts as owned bytes: name, datatype, dataspace, data.
    fn cut(cursor: Cursor<'_>) -> Result<[Vec<u8>; 4], Defect> {
        let Parts { name, mut datatype, mut dataspace, mut data, .. } = parse(cursor)?;
        Ok([name.to_vec(), datatype.rest().to_vec(), dataspace.rest().to_vec(), data.take(2)?.to_vec()])
    }

    #[test]
    fn version_1_pads_its_parts() {
        let mut bytes = le(&[(1, 1), (0, 1), (3, 2), (12, 2), (8, 2)]);
        bytes.extend_from_slice(b"ab\0-----tttttttttttt----ssssssssdd");
        let parts = check(&bytes, cut);
        assert_eq!(parts, [b"ab".to_vec(), vec![b't'; 12], vec![b's'; 8], b"dd".to_vec()]);
    }

    #[test]
    fn version_3_packs_them() {
        let mut bytes = le(&[(3, 1), (1, 1), (3, 2), (5, 2), (4, 2), (1, 1)]);
        bytes.extend_from_slice(b"ab\0tttttssssdd");
        assert_eq!(check(&bytes, cut), [b"ab".to_vec(), vec![b't'; 5], vec![b's'; 4], b"dd".to_vec()]);
        let parts = parse(Cursor::new(&bytes, ADDRESS, "attribute")).unwrap();
        assert!(parts.utf8 && parts.datatype_shared && !parts.dataspace_shared);
    }

    #[test]
    fn names_must_end_where_they_say() {
        for name in [b"ab!", b"a\0\0", b"\0\0\0"] {
            let mut bytes = le(&[(2, 1), (0, 1), (3, 2), (0, 2), (0, 2)]);
            bytes.extend_from_slice(name);
            assert!(parse(Cursor::new(&bytes, ADDRESS, "attribute")).is_err(), "{}", name.escape_ascii());
        }
    }

    #[test]
    fn info() {
        let dense = check(&le(&[(0, 1), (1, 1), (8, 2), (600, 8), (700, 8)]), |cursor| parse_info(cursor, &WIDE));
        assert_eq!(dense, Some((600, 700)));
        let compact =
            check(&le(&[(0, 1), (0, 1), (u64::MAX, 8), (u64::MAX, 8)]), |cursor| parse_info(cursor, &WIDE)).is_none();
        assert!(compact);
    }
}
