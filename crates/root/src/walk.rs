//! Conversion of the bytes of entries into columns, according to [`super::layout`].
//!
//! Invariants: an entry is consumed completely, or reading fails; columns grow by at most a constant times the number
//! of bytes read.

use super::buffers::{push_numbers, push_offset, push_packed};
use super::item::{Class, Item};
use super::key::text_bytes;
use super::object_header::ObjectHeader;
use super::references;
use raddle_columns::block::Buffer;
use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;
use raddle_columns::schema::Number;

/// Flag in the version of a collection that is stored member by member.
pub(super) const MEMBERWISE: u16 = 0x4000;

/// Version from which collections that are stored member by member record the version of their class.
pub(super) const STATES_CLASS_VERSION: u16 = 8;

/// Number of values to read.
#[derive(Debug, Clone, Copy)]
enum Count {
    Exactly(u64),
    /// Values up to the end of the entry or of the enclosing byte count.
    UntilEnd,
}

/// Reads one whole entry, which must fill `bytes`.
pub(super) fn read_entry(item: &Item, bytes: &mut Bytes<'_>, buffers: &mut [Buffer]) -> Result<(), UnlocatedError> {
    read_exactly(item, 1, bytes, buffers)
}

/// Reads `count` values, which must fill `bytes`.
pub(super) fn read_exactly(
    item: &Item,
    count: u64,
    bytes: &mut Bytes<'_>,
    buffers: &mut [Buffer],
) -> Result<(), UnlocatedError> {
    read(item, Count::Exactly(count), bytes, buffers)?;
    match bytes.remaining() {
        0 => Ok(()),
        left => Err(bytes.damaged(format!("{left} bytes of the entry are left"))),
    }
}

/// Reads an entry of a blob, which may be followed by up to `padding` zeros.
pub(super) fn read_padded(
    item: &Item,
    padding: usize,
    bytes: &mut Bytes<'_>,
    buffers: &mut [Buffer],
) -> Result<(), UnlocatedError> {
    read(item, Count::Exactly(1), bytes, buffers)?;
    let left = bytes.remaining();
    match left <= padding && bytes.take(left)?.iter().all(|&byte| byte == 0) {
        true => Ok(()),
        false => Err(bytes.damaged(format!("{left} bytes of the blob are left"))),
    }
}

/// Reads `count` values.
pub(super) fn read_values(
    item: &Item,
    count: u64,
    bytes: &mut Bytes<'_>,
    buffers: &mut [Buffer],
) -> Result<(), UnlocatedError> {
    read(item, Count::Exactly(count), bytes, buffers).map(|_| ())
}

/// Reads consecutive values of `item` and returns their number.
fn read(item: &Item, count: Count, bytes: &mut Bytes<'_>, buffers: &mut [Buffer]) -> Result<u64, UnlocatedError> {
    match item {
        Item::Number { number, buffer } => {
            let (count, stored) = take_numbers(*number, number.len_bytes(), count, bytes)?;
            push_numbers(*number, stored, &mut buffers[*buffer]);
            Ok(count)
        }
        Item::Packed { number, packing, buffer } => {
            let (count, stored) = take_numbers(*number, packing.len_bytes(), count, bytes)?;
            push_packed(*number, *packing, stored, &mut buffers[*buffer]);
            Ok(count)
        }
        Item::Bits { buffer } => repeat(count, bytes, |bytes| references::read_bits(bytes, &mut buffers[*buffer])),
        Item::Reference { buffer } => repeat(count, bytes, |bytes| references::read_one(bytes, &mut buffers[*buffer])),
        Item::References { buffer } => {
            repeat(count, bytes, |bytes| references::read_array(bytes, &mut buffers[*buffer..]))
        }
        Item::Pointed { counter, arrays, buffer, content } => match count {
            Count::Exactly(objects) => {
                for object in 0..objects {
                    let inner = pointed_count(&buffers[*counter], objects - object, bytes)?;
                    read_arrays(*arrays, inner, *buffer, content, bytes, buffers)?;
                }
                Ok(objects)
            }
            Count::UntilEnd => Err(bytes.unsupported("arrays behind pointers without their counts")),
        },
        Item::PointedRest { arrays, buffer, content } => repeat(count, bytes, |bytes| {
            let len_bytes = arrays.saturating_mul(content.fixed_len_bytes().unwrap_or(1) as u64);
            let inner = bytes.remaining().saturating_sub(1) as u64 / len_bytes;
            read_arrays(*arrays, inner, *buffer, content, bytes, buffers)
        }),
        Item::Regular { length, content } => {
            read_regular(*length, count, bytes, |count, bytes| read(content, count, bytes, buffers))
        }
        Item::Text { buffer } => repeat(count, bytes, |bytes| {
            let text = text_bytes(bytes)?;
            if let Buffer::Values(values) = &mut buffers[*buffer + 1] {
                values.extend_from_slice(text);
            }
            push_offset(&mut buffers[*buffer], text.len() as u64);
            Ok(())
        }),
        Item::List { buffer, content } => repeat(count, bytes, |bytes| {
            let inner = read_count(bytes)?;
            read(content, Count::Exactly(inner), bytes, buffers)?;
            push_offset(&mut buffers[*buffer], inner);
            Ok(())
        }),
        Item::Rest { buffer, content } => repeat(count, bytes, |bytes| {
            let inner = if bytes.remaining() == 0 { 0 } else { read(content, Count::UntilEnd, bytes, buffers)? };
            push_offset(&mut buffers[*buffer], inner);
            Ok(())
        }),
        Item::Record { fields } => repeat(count, bytes, |bytes| read_fields(fields, bytes, buffers)),
        Item::Pair { in_map: true, values, .. } => repeat(count, bytes, |bytes| read_fields(values, bytes, buffers)),
        Item::Pair { in_map: false, members, .. } => repeat(count, bytes, |bytes| {
            // The members suffice: the version of a pair is a checksum of their types.
            let header = ObjectHeader::read(bytes)?;
            within(&header, bytes, |bytes| read_fields(members, bytes, buffers).map(|()| 0)).map(|_| ())
        }),
        Item::Object { class, fields } | Item::Base { class, fields } => repeat(count, bytes, |bytes| {
            let header = ObjectHeader::read(bytes)?;
            check_class(class, header.version, header.checksum, bytes)?;
            within(&header, bytes, |bytes| read_fields(fields, bytes, buffers).map(|()| 0)).map(|_| ())
        }),
        Item::Headed { content } => {
            let header = ObjectHeader::read(bytes)?;
            within(&header, bytes, |bytes| read(content, count, bytes, buffers))
        }
        Item::Collection { list } => {
            let header = ObjectHeader::read(bytes)?;
            within(&header, bytes, |bytes| match header.version & MEMBERWISE {
                0 => read(list, count, bytes, buffers),
                _ => read_memberwise(list, header.version & !MEMBERWISE, count, bytes, buffers),
            })
        }
    }
}

/// Takes the bytes of numbers that are stored in `len_bytes` bytes each, and returns them with their number.
fn take_numbers<'b>(
    number: Number,
    len_bytes: usize,
    count: Count,
    bytes: &mut Bytes<'b>,
) -> Result<(u64, &'b [u8]), UnlocatedError> {
    let count = match count {
        Count::Exactly(count) => count,
        Count::UntilEnd => match bytes.remaining() % len_bytes {
            0 => (bytes.remaining() / len_bytes) as u64,
            _ => return Err(bytes.damaged(format!("{} bytes of {}", bytes.remaining(), number.name()))),
        },
    };
    let total = usize::try_from(count).ok().and_then(|count| count.checked_mul(len_bytes));
    Ok((count, bytes.take(total.unwrap_or(usize::MAX))?))
}

fn read_fields(fields: &[Item], bytes: &mut Bytes<'_>, buffers: &mut [Buffer]) -> Result<(), UnlocatedError> {
    fields.iter().try_for_each(|field| read(field, Count::Exactly(1), bytes, buffers).map(|_| ()))
}

/// Reads arrays behind pointers, each of `count` values.
pub(super) fn read_arrays(
    arrays: u64,
    count: u64,
    buffer: usize,
    content: &Item,
    bytes: &mut Bytes<'_>,
    buffers: &mut [Buffer],
) -> Result<(), UnlocatedError> {
    let count = if bytes.be_u8()? == 0 { 0 } else { count };
    for _ in 0..arrays {
        read(content, Count::Exactly(count), bytes, buffers)?;
        push_offset(&mut buffers[buffer], count);
    }
    Ok(())
}

/// Returns the number at `from_end` numbers before the end of a buffer.
pub(super) fn pointed_count(counts: &Buffer, from_end: u64, bytes: &Bytes<'_>) -> Result<u64, UnlocatedError> {
    let Buffer::Values(counts) = counts else { return Ok(0) };
    let number = counts.as_chunks().0.iter().rev().nth((from_end as usize).saturating_sub(1));
    let count = number.map_or(0, |number| i32::from_le_bytes(*number));
    u64::try_from(count).map_err(|_| bytes.damaged(format!("an array of {count} values")))
}

/// Reads arrays of `length` values with a function that reads values.
fn read_regular<'b>(
    length: u64,
    count: Count,
    bytes: &mut Bytes<'b>,
    read: impl FnOnce(Count, &mut Bytes<'b>) -> Result<u64, UnlocatedError>,
) -> Result<u64, UnlocatedError> {
    match count {
        Count::Exactly(count) => {
            let inner = count.checked_mul(length).ok_or_else(|| bytes.damaged("too many values"))?;
            read(Count::Exactly(inner), bytes)?;
            Ok(count)
        }
        Count::UntilEnd => {
            let inner = read(Count::UntilEnd, bytes)?;
            match inner.checked_rem(length) {
                Some(0) => Ok(inner / length),
                _ => Err(bytes.damaged(format!("{inner} values in arrays of {length}"))),
            }
        }
    }
}

/// Reads lists of objects that are stored member by member: each member of all objects of a list together.
fn read_memberwise(
    list: &Item,
    version: u16,
    count: Count,
    bytes: &mut Bytes<'_>,
    buffers: &mut [Buffer],
) -> Result<u64, UnlocatedError> {
    if let Item::Regular { length, content } = list {
        return read_regular(*length, count, bytes, |count, bytes| {
            read_memberwise(content, version, count, bytes, buffers)
        });
    }
    let Item::List { buffer, content } = list else {
        return Err(bytes.unsupported("something other than a list stored member by member"));
    };
    let (Item::Object { fields, .. } | Item::Pair { members: fields, .. }) = content.as_ref() else {
        return Err(bytes.unsupported("values without members stored member by member"));
    };
    if version >= STATES_CLASS_VERSION {
        let version = bytes.be_u16()?;
        let checksum = if version == 0 { Some(bytes.be_u32()?) } else { None };
        if let Item::Object { class, .. } = content.as_ref() {
            check_class(class, version, checksum, bytes)?;
        }
    }
    repeat(count, bytes, |bytes| {
        let inner = read_count(bytes)?;
        if inner > 0 {
            read_members(fields, inner, bytes, buffers)?;
        }
        push_offset(&mut buffers[*buffer], inner);
        Ok(())
    })
}

/// Reads members of `count` objects member by member. Some base classes are stored as a whole, because ROOT has
/// streamer types for them.
fn read_members(
    fields: &[Item],
    objects: u64,
    bytes: &mut Bytes<'_>,
    buffers: &mut [Buffer],
) -> Result<(), UnlocatedError> {
    fields.iter().try_for_each(|field| match field {
        Item::Base { class, fields } if !stays_whole(class) => read_members(fields, objects, bytes, buffers),
        field => read(field, Count::Exactly(objects), bytes, buffers).map(|_| ()),
    })
}

/// Returns whether ROOT stores a base class whole where members come together, because it has its own streamer type.
pub(super) fn stays_whole(class: &Class) -> bool {
    matches!(class.name.as_str(), "TObject" | "TNamed")
}

/// Calls `read_one` as often as `count` requires, and returns how often that was.
fn repeat(
    count: Count,
    bytes: &mut Bytes<'_>,
    mut read_one: impl FnMut(&mut Bytes<'_>) -> Result<(), UnlocatedError>,
) -> Result<u64, UnlocatedError> {
    match count {
        Count::Exactly(count) => {
            for _ in 0..count {
                read_one(bytes)?;
            }
            Ok(count)
        }
        Count::UntilEnd => {
            let mut done = 0;
            while bytes.remaining() > 0 {
                let before = bytes.remaining();
                read_one(bytes)?;
                if bytes.remaining() == before {
                    return Err(bytes.damaged("values without length cannot fill an entry"));
                }
                done += 1;
            }
            Ok(done)
        }
    }
}

/// Reads a list's count. Every element has at least one byte.
pub(super) fn read_count(bytes: &mut Bytes<'_>) -> Result<u64, UnlocatedError> {
    let count = bytes.be_u32()?;
    match count as usize <= bytes.remaining() {
        true => Ok(u64::from(count)),
        false => Err(bytes.damaged(format!("a list of {count}, {} bytes are left", bytes.remaining()))),
    }
}

/// Reads the bytes enclosed by a byte count with `read`, which must consume them.
pub(super) fn within<'b, T>(
    header: &ObjectHeader,
    bytes: &mut Bytes<'b>,
    read: impl FnOnce(&mut Bytes<'b>) -> Result<T, UnlocatedError>,
) -> Result<T, UnlocatedError> {
    let Some(end) = header.end else { return read(bytes) };
    let len_bytes = end.checked_sub(bytes.position()).ok_or_else(|| bytes.damaged("an object without content"))?;
    let mut inside = bytes.part(len_bytes)?;
    let content = read(&mut inside)?;
    match inside.remaining() {
        0 => Ok(content),
        left => Err(inside.damaged(format!("{left} bytes of an object are left"))),
    }
}

pub(super) fn check_class(
    class: &Class,
    version: u16,
    checksum: Option<u32>,
    bytes: &Bytes<'_>,
) -> Result<(), UnlocatedError> {
    let is_right = match checksum {
        Some(checksum) => checksum == class.checksum,
        None => version == class.version,
    };
    match is_right {
        true => Ok(()),
        false => {
            let Class { name, version: expected, .. } = class;
            Err(bytes.unsupported(format!("class {name} of version {version}, but the file describes {expected}")))
        }
    }
}
