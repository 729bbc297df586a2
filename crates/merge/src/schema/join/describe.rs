//! Descriptions of datatypes for messages and tables; they are never parsed.

use crate::schema::display_path;
use raddle_hdf5::model::{ByteOrder, Member, TypeClass};

/// Describes a datatype in a few words, for tables.
pub fn describe(class: &TypeClass) -> String {
    let order = |order: &ByteOrder| match order {
        ByteOrder::Little => "little-endian",
        ByteOrder::Big => "big-endian",
        ByteOrder::Vax => "VAX-order",
    };
    match class {
        TypeClass::Integer { len_bytes, order: bytes, signed, bits, .. } => {
            let sign = if *signed { "int" } else { "uint" };
            let precision =
                if bits.count == len_bytes * 8 { String::new() } else { format!(" ({} bits used)", bits.count) };
            format!("{sign}{} {}{precision}", len_bytes * 8, order(bytes))
        }
        TypeClass::Float { len_bytes, order: bytes, .. } => format!("float{} {}", len_bytes * 8, order(bytes)),
        TypeClass::Time { len_bytes, .. } => format!("time of {len_bytes} bytes"),
        TypeClass::FixedString { len_bytes, .. } => format!("string of {len_bytes} bytes"),
        TypeClass::Bitfield { len_bytes, .. } => format!("bitfield of {len_bytes} bytes"),
        TypeClass::Opaque { len_bytes, tag } => format!("opaque of {len_bytes} bytes, tag \"{}\"", display_path(tag)),
        TypeClass::Compound { members, .. } => {
            let member = |member: &Member| format!("{}: {}", display_path(&member.name), describe(&member.class));
            format!("compound {{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        TypeClass::Reference(kind) => format!("reference ({kind:?})").to_lowercase(),
        TypeClass::Enum { base, symbols } => format!("enum of {} names over {}", symbols.len(), describe(base)),
        TypeClass::Sequence { base, .. } => format!("variable-length sequence of {}", describe(base)),
        TypeClass::VariableString { charset, .. } => {
            format!("variable-length string ({})", if *charset == 1 { "UTF-8" } else { "ASCII" })
        }
        TypeClass::Array { base, dims } => format!("array {dims:?} of {}", describe(base)),
        TypeClass::Complex { base, .. } => format!("complex of {}", describe(base)),
        _ => "a datatype unknown to raddle".to_owned(),
    }
}
