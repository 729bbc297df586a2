//! Conversion of an object header's messages to a group, dataset or committed datatype.
//!
//! Links are followed by [`super::walk`]. Invariant: a dataset's messages agree with each other: chunk rank with
//! extent, sizes with the datatype, stored lengths with the extent.

use super::cursor::{Defect, InFile};
use super::kind;
use super::layout::{self, StoredLayout};
use super::links;
use super::object_header::{Message, ObjectHeader};
use super::object_reader::ObjectReader;
use super::stored_link::{StoredLink, StoredTarget};
use super::superblock::Superblock;
use super::{ReadLimits, attributes, dataspace, fill, filters};
use crate::error::{Hdf5Error, Result};
use crate::model::template::TemplatedDataset;
use crate::model::{
    CreationOrder, Dataset, Dataspace, Datatype, FillValue, Group, Layout, Link, LinkTarget, Object, ObjectIndex,
    ObjectKind,
};
use crate::source::MetadataView;

/// Reads the object whose header is at `address`, without the objects that it links to.
///
/// In a group, `LinkTarget::Hard(n)` then only numbers the group's hard links, from 0. For whole trees use
/// [`read_tree`](super::read_tree).
///
/// # Errors
/// `Malformed`, `Truncated` or `Unsupported` if the object is damaged or not supported; `Limit` if it exceeds `limits`;
/// also if the file cannot be read.
pub fn read_object(
    view: &mut MetadataView<'_>,
    superblock: &Superblock,
    address: u64,
    limits: &ReadLimits,
) -> Result<Object> {
    let mut reader = ObjectReader::new(view, superblock, limits);
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

/// Reads one object. The links of a group are returned separately, in their order, and not stored in it.
pub(crate) fn read(reader: &mut ObjectReader<'_, '_>, address: u64) -> Result<(Object, Vec<StoredLink>)> {
    if let Some(templated) = reader.recognise(address)? {
        return Ok((formed_object(address, CreationOrder::default(), templated), Vec::new()));
    }
    reader.with_header(address, |reader, header| {
        let encoding = reader.encoding();
        if let Some(templated) = reader.forms.as_mut().and_then(|forms| forms.find(header, encoding)) {
            return Ok((formed_object(address, header.attribute_order, templated), Vec::new()));
        }
        let attributes = attributes::read(reader, header, address)?;
        let comment = match header.find(kind::COMMENT) {
            Some(message) => {
                let mut cursor = header.cursor(message, "comment");
                Some(cursor.zero_terminated().in_file(reader.path())?.to_vec())
            }
            None => None,
        };
        let (kind, links) = read_kind(reader, header, address)?;
        let attribute_order = header.attribute_order;
        let object = Object { address, kind, attributes, attribute_order, comment };
        if let Some(forms) = &mut reader.forms {
            forms.remember(header, encoding, &object);
        }
        Ok((object, links))
    })
}

fn formed_object(address: u64, attribute_order: CreationOrder, templated: TemplatedDataset) -> Object {
    Object { address, kind: ObjectKind::Templated(templated), attributes: Vec::new(), attribute_order, comment: None }
}

fn read_kind(
    reader: &mut ObjectReader<'_, '_>,
    header: &ObjectHeader,
    address: u64,
) -> Result<(ObjectKind, Vec<StoredLink>)> {
    // In libhdf5's order: a group by its storage of links, a dataset by type and extent, otherwise a committed
    // datatype.
    if let Some((order, links)) = links::read(&mut reader.bytes, header, address)? {
        let group = Group { links: Vec::new(), link_order: order };
        return Ok((ObjectKind::Group(group), links));
    }
    let kind = match (header.find(kind::DATATYPE), header.find(kind::DATASPACE)) {
        (Some(datatype), Some(dataspace)) => {
            ObjectKind::Dataset(Box::new(read_dataset(reader, header, datatype, dataspace, address)?))
        }
        (Some(_), None) => {
            let class = reader.unshared_datatype(header)?;
            ObjectKind::CommittedDatatype(Datatype { class, committed: None })
        }
        _ => {
            let what = "object is not a group, dataset or committed datatype".to_owned();
            return Err(Defect::Malformed { address, what }.in_file(reader.path()));
        }
    };
    Ok((kind, Vec::new()))
}

fn read_dataset(
    reader: &mut ObjectReader<'_, '_>,
    header: &ObjectHeader,
    datatype: &Message,
    dataspace: &Message,
    address: u64,
) -> Result<Dataset> {
    let (path, encoding) = (reader.path(), reader.encoding());
    let malformed = |what: String| Defect::Malformed { address, what: format!("dataset: {what}") }.in_file(path);
    let mut storage = Vec::new();
    let datatype = reader.datatype(header.cursor(datatype, "datatype"), datatype.shared)?;
    let cursor = header.cursor(dataspace, "dataspace");
    let cursor = reader.message_body(cursor, dataspace.shared, kind::DATASPACE, &mut storage)?;
    let dataspace = dataspace::parse(cursor, encoding).in_file(path)?;
    let Some(message) = header.find(kind::LAYOUT) else {
        return Err(malformed("no layout".to_owned()));
    };
    let cursor = header.cursor(message, "layout");
    let stored = layout::parse(cursor.clone(), encoding).in_file(path)?;
    if let (Layout::Virtual, Dataspace::Simple { max_dims, .. }) = (&stored.layout, &dataspace)
        && max_dims.contains(&u64::MAX)
    {
        // The stored extent is not the actual one, which follows from the extents of the sources.
        return Err(cursor.unsupported("unlimited virtual dataset").in_file(path));
    }
    let mut layout = check_layout(stored, &dataspace, &datatype).map_err(malformed)?;
    if let Some(message) = header.find(kind::EXTERNAL) {
        layout = layout::read_external(&mut reader.bytes, header.cursor(message, "external file list"))?;
    }
    let filters = match header.find(kind::FILTERS) {
        Some(message) => {
            let cursor = header.cursor(message, "filter pipeline");
            let cursor = reader.message_body(cursor, message.shared, kind::FILTERS, &mut storage)?;
            filters::parse(cursor).in_file(path)?
        }
        None => Vec::new(),
    };
    let fill = read_fill(reader, header, &layout)?;
    let element_len = datatype.class.len_bytes();
    if fill.value.as_ref().is_some_and(|value| value.bytes().len() as u64 != element_len) {
        return Err(malformed(format!("size of the fill value differs from the type's {element_len} bytes")));
    }
    Ok(Dataset { dataspace, datatype, layout, fill, filters })
}

fn read_fill(reader: &mut ObjectReader<'_, '_>, header: &ObjectHeader, layout: &Layout) -> Result<FillValue> {
    let path = reader.path();
    let Some(message) = header.find(kind::FILL).or_else(|| header.find(kind::FILL_OLD)) else {
        return Ok(fill::absent(layout));
    };
    let mut storage = Vec::new();
    let cursor = header.cursor(message, "fill value");
    let cursor = reader.message_body(cursor, message.shared, message.kind, &mut storage)?;
    match message.kind {
        kind::FILL => fill::parse(cursor).in_file(path),
        _ => fill::parse_old(cursor, layout).in_file(path),
    }
}

/// Checks a layout against extent and type, and fills in the length of contiguous storage.
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
                return Err(format!("size of chunk elements differs from the type's {element_len} bytes"));
            }
        }
        Layout::External { .. } | Layout::Virtual => {}
    }
    Ok(layout)
}

/// Formats the error of an unreadable object, without the file's name.
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
