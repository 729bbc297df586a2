//! Lengths of header messages, from the file format.

use super::Compat;
use crate::model::{Dataspace, TypeClass};

pub(super) fn padded(len_bytes: u64) -> u64 {
    len_bytes.saturating_add(7) / 8 * 8
}

/// Returns the maximum length of a datatype message.
pub(super) fn datatype_len_bytes(compat: Compat, class: &TypeClass) -> u64 {
    // Version 1 (before 1.8) pads names and reserves 32 bytes per member for an array that is never used; version 3
    // stores names unpadded and offsets in 1 to 4 bytes.
    let old = compat == Compat::Earliest;
    let name = |len: usize| if old { padded(len as u64 + 1) } else { len as u64 + 1 };
    8 + match class {
        TypeClass::Integer { .. } | TypeClass::Bitfield { .. } => 4,
        TypeClass::Float { .. } => 12,
        TypeClass::Time { .. } => 2,
        TypeClass::FixedString { .. } | TypeClass::Reference(_) => 0,
        TypeClass::Opaque { tag, .. } => padded(tag.len() as u64 + 1),
        TypeClass::Compound { members, .. } => members
            .iter()
            .map(|member| {
                name(member.name.len()) + if old { 40 } else { 4 } + datatype_len_bytes(compat, &member.class)
            })
            .sum(),
        TypeClass::Enum { base, symbols } => {
            let symbols: u64 = symbols.iter().map(|(text, value)| name(text.len()) + value.len() as u64).sum();
            datatype_len_bytes(compat, base) + symbols
        }
        TypeClass::Sequence { base, .. } | TypeClass::Complex { base, .. } => datatype_len_bytes(compat, base),
        // A string is a sequence of bytes: the base type is an 8-bit integer.
        TypeClass::VariableString { .. } => 12,
        TypeClass::Array { base, dims } => 4 + 8 * dims.len() as u64 + datatype_len_bytes(compat, base),
    }
}

/// Returns the length of a dataspace message: 8 bytes in version 1, 4 in version 2, and current and maximum sizes.
pub(super) fn dataspace_len_bytes(compat: Compat, dataspace: &Dataspace) -> u64 {
    let head = if compat == Compat::Earliest { 8 } else { 4 };
    head + 16 * dataspace.dims().len() as u64
}

/// Returns the length of an object header with messages of these lengths; a length of 0 means no message.
///
/// A header of version 1 takes 16 bytes and 8 for each message, all padded to 8; a header of version 2 takes 12 bytes
/// and 4 for each message. According to measurements, libhdf5 adds 24 and 20 bytes: a null message that reserves space
/// for a continuation.
pub(super) fn header_len_bytes(compat: Compat, messages: &[u64]) -> u64 {
    match compat {
        Compat::Earliest => 40 + messages.iter().map(|&len| if len == 0 { 0 } else { 8 + padded(len) }).sum::<u64>(),
        _ => 32 + messages.iter().map(|&len| if len == 0 { 0 } else { 4 + len }).sum::<u64>(),
    }
}
