//! From the messages of an object header to a group, dataset or committed datatype.
//!
//! Not for following links ([`super::walk`]). Invariant: a dataset's messages agree with each other: chunk rank with
//! extent, sizes with the datatype, stored lengths with the extent.

use super::cursor::{Cursor, Defect, InFile};
use super::layout::{self, StoredLayout};
use super::links::{self, LinkInfo, StoredLink, StoredTarget};
use super::object_header::{Message, ObjectHeader};
use super::reader::Reader;
use super::shared::{self, SharedPointer, kind};
use super::superblock::Superblock;
use super::{ReadLimits, attributes, dataspace, fill, filters, symbol_table};
use crate::error::{Hdf5Error, Result};
use crate::model::{
    Attribute, CreationOrder, Dataset, Dataspace, Datatype, FillValue, Group, Layout, Link, LinkTarget, Object,
    ObjectIndex, ObjectKind,
};
use crate::source::MetadataView;

/// Reads the object whose header is at `address`, without the objects it leads to.
///
/// In a group, `LinkTarget::Hard(n)` then only counts the group's hard links: the first is 0, and so on. For whole
/// trees use [`read_tree`](super::read_tree).
///
/// # Errors
/// `Malformed`, `Truncated` and `Unsupported` for this object, `Limit`, and errors of reading.
pub fn read_object(
    view: &mut MetadataView<'_>,
    superblock: &Superblock,
    address: u64,
    limits: &ReadLimits,
) -> Result<Object> {
    let mut reader = Reader::new(view, superblock, limits);
    let (mut object, links) = read(&mut reader, address)?;
    if let ObjectKind::Group(group) = &mut object.kind {
        let mut hard_count: ObjectIndex = 0;
        group.links = links
            .into_iter()
            .map(|link| {
                let target = match link.target {
                    StoredTarget::Hard(_) => {
                        hard_count = hard_count.saturating_add(1);
                        LinkTarget::Hard(hard_count - 1)
                    }
                    StoredTarget::Other(target) => target,
                };
                Link { name: link.name, utf8: link.utf8, creation_order: link.creation_order, target }
            })
            .collect();
    }
    Ok(object)
}

/// Reads one object; a group comes without links in it, and with its links beside it, in their order.
pub(crate) fn read(reader: &mut Reader<'_, '_>, address: u64) -> Result<(Object, Vec<StoredLink>)> {
    reader.with_header(address, |reader, header| {
        let attributes = read_attributes(reader, header, address)?;
        let comment = match header.find(kind::COMMENT) {
            Some(message) => {
                let mut cursor = header.cursor(message, "comment");
                Some(cursor.zero_terminated().in_file(reader.path())?.to_vec())
            }
            None => None,
        };
        let (kind, links) = read_kind(reader, header, address)?;
        let attribute_order = header.attribute_order;
        Ok((Object { address, kind, attributes, attribute_order, comment }, links))
    })
}

fn read_kind(
    reader: &mut Reader<'_, '_>,
    header: &ObjectHeader,
    address: u64,
) -> Result<(ObjectKind, Vec<StoredLink>)> {
    // In libhdf5's order: a group by how it keeps links, a dataset by type and extent, else a committed datatype.
    if header.find(kind::SYMBOL_TABLE).is_some() || header.find(kind::LINK_INFO).is_some() {
        let (order, links) = read_links(reader, header, address)?;
        let group = Group { links: Vec::new(), link_order: order };
        return Ok((ObjectKind::Group(group), links));
    }
    let kind = match (header.find(kind::DATATYPE), header.find(kind::DATASPACE)) {
        (Some(datatype), Some(dataspace)) => {
            ObjectKind::Dataset(Box::new(read_dataset(reader, header, datatype, dataspace, address)?))
        }
        (Some(_), None) => {
            let class = header.own_datatype(reader)?;
            ObjectKind::CommittedDatatype(Datatype { class, committed: None })
        }
        _ => {
            let what = "object is no group, dataset or committed datatype".to_owned();
            return Err(Defect::Malformed { address, what }.in_file(reader.path()));
        }
    };
    Ok((kind, Vec::new()))
}

fn read_links(
    reader: &mut Reader<'_, '_>,
    header: &ObjectHeader,
    address: u64,
) -> Result<(CreationOrder, Vec<StoredLink>)> {
    let (path, encoding) = (reader.path(), reader.encoding());
    let (order, mut links) = if let Some(message) = header.find(kind::LINK_INFO) {
        let cursor = header.cursor(message, "link info");
        let LinkInfo { order, dense } = links::parse_info(cursor.clone(), encoding).in_file(path)?;
        if dense.is_some() {
            return Err(cursor.unsupported("dense links").in_file(path));
        }
        let compact = header.messages.iter().filter(|message| message.kind == kind::LINK);
        let links = compact.map(|message| links::parse(header.cursor(message, "link"), encoding));
        (order, links.collect::<Result<_, _>>().in_file(path)?)
    } else {
        let message = header.find(kind::SYMBOL_TABLE).map(|message| header.cursor(message, "symbol table"));
        let links = message.map(|message| symbol_table::read_links(reader, message)).transpose()?;
        (CreationOrder::default(), links.unwrap_or_default())
    };
    links::arrange(&mut links, order, address).in_file(path)?;
    Ok((order, links))
}

fn read_attributes(reader: &mut Reader<'_, '_>, header: &ObjectHeader, address: u64) -> Result<Vec<Attribute>> {
    let (path, encoding) = (reader.path(), reader.encoding());
    if let Some(message) = header.find(kind::ATTRIBUTE_INFO) {
        let cursor = header.cursor(message, "attribute info");
        if attributes::parse_info(cursor.clone(), encoding).in_file(path)?.is_some() {
            return Err(cursor.unsupported("dense attributes").in_file(path));
        }
    }
    let mut found = Vec::new();
    for message in header.messages.iter().filter(|message| message.kind == kind::ATTRIBUTE) {
        let cursor = header.cursor(message, "attribute");
        if message.shared {
            return Err(cursor.unsupported("in the shared message heap").in_file(path));
        }
        found.push(attributes::read(reader, cursor, message.creation_index.map(u32::from))?);
    }
    attributes::arrange(&mut found, header.attribute_order, address).in_file(path)?;
    Ok(found)
}

/// Decodes a datatype message, or follows it where `shared`.
pub(crate) fn read_datatype(reader: &mut Reader<'_, '_>, cursor: Cursor<'_>, shared: bool) -> Result<Datatype> {
    if !shared {
        return Ok(Datatype { class: reader.datatype(cursor)?, committed: None });
    }
    match shared::parse(cursor.clone(), reader.encoding()).in_file(reader.path())? {
        SharedPointer::Committed(address) => reader.committed_datatype(address),
        SharedPointer::Heap(_) => Err(cursor.unsupported("in the shared message heap").in_file(reader.path())),
    }
}

/// Body of a message that can only be shared through the shared message heap.
fn own_body<'h>(header: &'h ObjectHeader, message: &Message, what: &'static str) -> Result<Cursor<'h>, Defect> {
    let cursor = header.cursor(message, what);
    if message.shared { Err(cursor.unsupported("in the shared message heap")) } else { Ok(cursor) }
}

fn read_dataset(
    reader: &mut Reader<'_, '_>,
    header: &ObjectHeader,
    datatype: &Message,
    dataspace: &Message,
    address: u64,
) -> Result<Dataset> {
    let (path, encoding) = (reader.path(), reader.encoding());
    let malformed = |what: String| Defect::Malformed { address, what: format!("dataset: {what}") }.in_file(path);
    let datatype = read_datatype(reader, header.cursor(datatype, "datatype"), datatype.shared)?;
    let dataspace = own_body(header, dataspace, "dataspace").and_then(|cursor| dataspace::parse(cursor, encoding));
    let dataspace = dataspace.in_file(path)?;
    let Some(message) = header.find(kind::LAYOUT) else {
        return Err(malformed("no layout".to_owned()));
    };
    let stored = layout::parse(header.cursor(message, "layout"), encoding).in_file(path)?;
    let mut layout = check_layout(stored, &dataspace, &datatype).map_err(malformed)?;
    if let Some(message) = header.find(kind::EXTERNAL) {
        layout = layout::read_external(reader, header.cursor(message, "external file list"))?;
    }
    let filters = match header.find(kind::FILTERS) {
        Some(message) => own_body(header, message, "filter pipeline").and_then(filters::parse).in_file(path)?,
        None => Vec::new(),
    };
    let fill = read_fill(header, &layout).in_file(path)?;
    let element_len = datatype.class.len_bytes();
    if fill.value.as_ref().is_some_and(|value| value.bytes().len() as u64 != element_len) {
        return Err(malformed(format!("fill value of another size than the type's {element_len} bytes")));
    }
    Ok(Dataset { dataspace, datatype, layout, fill, filters })
}

fn read_fill(header: &ObjectHeader, layout: &Layout) -> Result<FillValue, Defect> {
    if let Some(message) = header.find(kind::FILL) {
        fill::parse(own_body(header, message, "fill value")?)
    } else if let Some(message) = header.find(kind::FILL_OLD) {
        fill::parse_old(own_body(header, message, "old fill value")?, layout)
    } else {
        Ok(fill::absent(layout))
    }
}

/// Checks a layout against extent and type, and completes the length of contiguous storage.
fn check_layout(stored: StoredLayout, dataspace: &Dataspace, datatype: &Datatype) -> Result<Layout, String> {
    let element_len = datatype.class.len_bytes();
    let values_len = dataspace.element_count().and_then(|count| count.checked_mul(element_len));
    let mut layout = stored.layout;
    match &mut layout {
        Layout::Compact(data) => {
            let len = data.bytes().len() as u64;
            if values_len.is_none_or(|needed| needed > len) {
                return Err(format!("compact storage of {len} bytes is too short for {:?}", dataspace.dims()));
            }
        }
        Layout::Contiguous { address, len_bytes } => {
            let needed = values_len.ok_or_else(|| format!("{:?} exceeds 64 bits", dataspace.dims()))?;
            if stored.len_from_extent {
                *len_bytes = needed;
            } else if address.is_some() && needed > *len_bytes {
                return Err(format!("contiguous storage of {len_bytes} bytes is too short for {needed}"));
            }
        }
        Layout::Chunked { chunk_shape, .. } => {
            if chunk_shape.len() != dataspace.dims().len() {
                return Err(format!("chunk shape {chunk_shape:?} for extent {:?}", dataspace.dims()));
            }
            if stored.element_len_bytes.is_some_and(|len| len != element_len) {
                return Err(format!("chunks of elements of another size than the type's {element_len} bytes"));
            }
        }
        _ => {}
    }
    Ok(layout)
}

/// What a failed object says of itself, without the file's name.
pub(crate) fn reason(error: &Hdf5Error) -> String {
    match error {
        Hdf5Error::Malformed { address, what, .. } => format!("damaged at byte {address}: {what}"),
        Hdf5Error::Unsupported { address, what, .. } => format!("not supported (at byte {address}): {what}"),
        Hdf5Error::Truncated { what, end, file_len_bytes, .. } => {
            format!("{what} needs bytes up to {end}, the file has {file_len_bytes}")
        }
        other => other.to_string(),
    }
}
