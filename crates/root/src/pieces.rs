//! The values of an entry, cut into pieces: each has the bytes with which ROOT stores it as a member of an object.
//!
//! A split collection stores each member of all of its objects together, and so does a collection that is stored member
//! by member. Whole objects need the bytes of each object. [`walk`] reads and checks every value; the bytes that were
//! read are copied, not encoded again. Invariant: the pieces of a collection are in the order of its objects, however
//! they were stored.

use super::front::Front;
use super::item::Item;
use super::object_header::ObjectHeader;
use super::walk::{self, MEMBERWISE, STATES_CLASS_VERSION};
use raddle_columns::block::Buffer;
use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;

/// Bytes of consecutive values.
#[derive(Debug, Clone, Default)]
pub(super) struct Pieces {
    bytes: Vec<u8>,
    /// End of each value in `bytes`.
    ends: Vec<usize>,
    /// Front of each value as a member of an object; it is stored once for all of them.
    front: Option<Front>,
}

impl Pieces {
    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes of a value, without its front.
    pub(super) fn bare(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    /// Appends a value as a member of an object.
    pub(super) fn write_member(&self, number: usize, out: &mut Vec<u8>) -> Result<(), UnlocatedError> {
        let bare = self.bare(number);
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(bare);
            Ok(())
        };
        match self.front {
            Some(front) => front.write(out, write),
            None => write(out),
        }
    }

    /// Adds a value that consists of all bytes that `write` appends.
    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), UnlocatedError>) -> Result<(), UnlocatedError> {
        write(&mut self.bytes)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Combines every `length` values into one.
    fn in_groups_of(mut self, length: u64) -> Self {
        let length = usize::try_from(length).unwrap_or(usize::MAX).max(1);
        self.ends = self.ends.chunks_exact(length).map(|group| group[group.len() - 1]).collect();
        self
    }
}

/// Cuts `bytes`, which must consist of `count` values, into these values. The values are also appended to `buffers`,
/// which are those of a column.
pub(super) fn cut_exactly(
    item: &Item,
    count: u64,
    bytes: &mut Bytes<'_>,
    buffers: &mut [Buffer],
) -> Result<Pieces, UnlocatedError> {
    let pieces = cut(item, count, bytes, buffers)?;
    match bytes.remaining() {
        0 => Ok(pieces),
        left => Err(bytes.damaged(format!("{left} bytes of the entry remain after {count} values"))),
    }
}

fn cut(item: &Item, count: u64, bytes: &mut Bytes<'_>, buffers: &mut [Buffer]) -> Result<Pieces, UnlocatedError> {
    if let Some(len_bytes) = item.fixed_len_bytes() {
        let mut ahead = bytes.clone();
        walk::read_values(item, count, bytes, buffers)?;
        let stored = ahead.take(bytes.position() - ahead.position())?;
        let ends = (1..=count as usize).map(|number| number * len_bytes).collect();
        return Ok(Pieces { bytes: stored.to_vec(), ends, front: None });
    }
    match item {
        Item::Regular { length, content } => {
            let inner = count.checked_mul(*length).ok_or_else(|| bytes.damaged("too many values"))?;
            Ok(cut(content, inner, bytes, buffers)?.in_groups_of(*length))
        }
        Item::Headed { content } => {
            let header = read_counted(bytes)?;
            let pieces = walk::within(&header, bytes, |bytes| cut(content, count, bytes, buffers))?;
            Ok(Pieces { front: Some(Front::of_header(&header)), ..pieces })
        }
        Item::Collection { list } => {
            let header = read_counted(bytes)?;
            let version = header.version & !MEMBERWISE;
            let pieces = walk::within(&header, bytes, |bytes| match header.version & MEMBERWISE {
                0 => cut(list, count, bytes, buffers),
                _ => cut_memberwise(list, version, count, bytes, buffers),
            })?;
            Ok(Pieces { front: Some(Front::Version(version)), ..pieces })
        }
        Item::Pointed { .. } => cut_pointed(item, count, bytes, buffers),
        _ => {
            let mut pieces = Pieces::default();
            for _ in 0..count {
                pieces.push(|out| write_one(item, bytes, buffers, out))?;
            }
            Ok(pieces)
        }
    }
}

/// Reads a front with a byte count; only the front of a `TObject` has none.
fn read_counted(bytes: &mut Bytes<'_>) -> Result<ObjectHeader, UnlocatedError> {
    let front = bytes.clone();
    let header = ObjectHeader::read(bytes)?;
    match header.end {
        Some(_) => Ok(header),
        None => Err(front.damaged("no byte count")),
    }
}

/// Appends the next value.
fn write_one(
    item: &Item,
    bytes: &mut Bytes<'_>,
    buffers: &mut [Buffer],
    out: &mut Vec<u8>,
) -> Result<(), UnlocatedError> {
    match item {
        Item::Record { fields } | Item::Pair { in_map: true, values: fields, .. } => {
            write_members(fields, bytes, buffers, out)
        }
        Item::Object { class, fields } | Item::Base { class, fields } => {
            let header = match class.front {
                Some(Front::Bare(_)) => ObjectHeader::read(bytes)?,
                _ => read_counted(bytes)?,
            };
            walk::check_class(class, header.version, header.checksum, bytes)?;
            walk::within(&header, bytes, |bytes| {
                Front::of_header(&header).write(out, |out| write_members(fields, bytes, buffers, out))
            })
        }
        Item::Pair { in_map: false, members, .. } => {
            let header = read_counted(bytes)?;
            walk::within(&header, bytes, |bytes| {
                Front::of_header(&header).write(out, |out| write_members(members, bytes, buffers, out))
            })
        }
        Item::List { content, .. } => {
            let count = walk::read_count(bytes)?;
            let values = cut(content, count, bytes, buffers)?;
            write_list(&values, out);
            Ok(())
        }
        Item::Bits { .. } => {
            let mut ahead = bytes.clone();
            walk::read_values(item, 1, bytes, buffers)?;
            match bytes.position() - ahead.position() {
                4 => {
                    out.extend_from_slice(ahead.take(4)?);
                    Ok(())
                }
                _ => {
                    Err(ahead
                        .unsupported("an object that a TRef refers to: its process number is only valid in this file"))
                }
            }
        }
        Item::Reference { .. } | Item::References { .. } => {
            Err(bytes.unsupported("a reference to another object: its process number is only valid in this file"))
        }
        _ => {
            let mut ahead = bytes.clone();
            walk::read_values(item, 1, bytes, buffers)?;
            out.extend_from_slice(ahead.take(bytes.position() - ahead.position())?);
            Ok(())
        }
    }
}

fn write_members(
    fields: &[Item],
    bytes: &mut Bytes<'_>,
    buffers: &mut [Buffer],
    out: &mut Vec<u8>,
) -> Result<(), UnlocatedError> {
    fields.iter().try_for_each(|field| cut(field, 1, bytes, buffers)?.write_member(0, out))
}

/// Appends a count and the values.
fn write_list(values: &Pieces, out: &mut Vec<u8>) {
    // The number fits 32 bits, because it was read from a count of 32 bits or is limited by the entries of a basket.
    out.extend_from_slice(&(values.len() as u32).to_be_bytes());
    out.extend_from_slice(&values.bytes);
}

/// Cuts arrays behind pointers of objects into pieces. Their lengths are the last `objects` numbers of a buffer.
fn cut_pointed(
    item: &Item,
    objects: u64,
    bytes: &mut Bytes<'_>,
    buffers: &mut [Buffer],
) -> Result<Pieces, UnlocatedError> {
    let Item::Pointed { counter, arrays, buffer, content } = item else { return Ok(Pieces::default()) };
    let mut pieces = Pieces::default();
    for object in 0..objects {
        let inner = walk::pointed_count(&buffers[*counter], objects - object, bytes)?;
        let mut ahead = bytes.clone();
        walk::read_arrays(*arrays, inner, *buffer, content, bytes, buffers)?;
        let stored = ahead.take(bytes.position() - ahead.position())?;
        if inner > 0 && stored.first() == Some(&0) {
            return Err(bytes.damaged(format!("an array of {inner} values that is stored as a null pointer")));
        }
        pieces.push(|out| {
            out.extend_from_slice(stored);
            Ok(())
        })?;
    }
    Ok(pieces)
}

/// Cuts lists of objects that are stored member by member.
fn cut_memberwise(
    list: &Item,
    version: u16,
    count: u64,
    bytes: &mut Bytes<'_>,
    buffers: &mut [Buffer],
) -> Result<Pieces, UnlocatedError> {
    if let Item::Regular { length, content } = list {
        let inner = count.checked_mul(*length).ok_or_else(|| bytes.damaged("too many values"))?;
        return Ok(cut_memberwise(content, version, inner, bytes, buffers)?.in_groups_of(*length));
    }
    let Item::List { content, .. } = list else {
        return Err(bytes.unsupported("a value stored member by member that is not a list"));
    };
    let stated = match version >= STATES_CLASS_VERSION {
        true => {
            let version = bytes.be_u16()?;
            let checksum = if version == 0 { Some(bytes.be_u32()?) } else { None };
            Some((version, checksum))
        }
        false => None,
    };
    let (fields, front) = match (content.as_ref(), stated) {
        (Item::Object { class, fields }, stated) => {
            if let Some((version, checksum)) = stated {
                walk::check_class(class, version, checksum, bytes)?;
            }
            let stated = stated.map(|(version, checksum)| checksum.map_or(Front::Version(version), Front::Checksum));
            (fields, Some(stated.or(class.front).ok_or_else(|| bytes.unsupported("a class without a version"))?))
        }
        (Item::Pair { in_map: true, members, .. }, _) => (members, None),
        (Item::Pair { members, .. }, Some((0, Some(checksum)))) => (members, Some(Front::Checksum(checksum))),
        _ => return Err(bytes.unsupported("values stored member by member whose class is not stated")),
    };
    let mut pieces = Pieces::default();
    for _ in 0..count {
        let objects = walk::read_count(bytes)?;
        let members = if objects > 0 { cut_members(fields, objects, bytes, buffers)? } else { Vec::new() };
        let mut values = Pieces::default();
        for object in 0..objects as usize {
            values.push(|out| match front {
                Some(front) => front.write(out, |out| members.iter().try_for_each(|one| one.write_member(object, out))),
                // Inside maps, values have no fronts.
                None => {
                    members.iter().for_each(|one| out.extend_from_slice(one.bare(object)));
                    Ok(())
                }
            })?;
        }
        pieces.push(|out| {
            write_list(&values, out);
            Ok(())
        })?;
    }
    Ok(pieces)
}

/// Cuts the members of `objects` objects that are stored member by member. Some base classes stay whole, as in
/// [`walk`].
fn cut_members(
    fields: &[Item],
    objects: u64,
    bytes: &mut Bytes<'_>,
    buffers: &mut [Buffer],
) -> Result<Vec<Pieces>, UnlocatedError> {
    let mut members = Vec::with_capacity(fields.len());
    for field in fields {
        members.push(match field {
            Item::Base { class, fields } if !walk::stays_whole(class) => {
                let front = class.front.ok_or_else(|| bytes.unsupported("a class without a version"))?;
                let inner = cut_members(fields, objects, bytes, buffers)?;
                let mut bases = Pieces::default();
                for object in 0..objects as usize {
                    bases.push(|out| {
                        front.write(out, |out| inner.iter().try_for_each(|one| one.write_member(object, out)))
                    })?;
                }
                bases
            }
            field => cut(field, objects, bytes, buffers)?,
        });
    }
    Ok(members)
}
