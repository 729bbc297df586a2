//! Descriptions of datatypes for messages and tables; they are never parsed.

use super::describe_value;
use crate::schema::display_path;
use raddle_hdf5::model::{ByteOrder, Dataspace, Member, TypeClass};

/// Describes a datatype in a few words, for tables.
pub fn describe(class: &TypeClass) -> String {
    describe_with(class, Detail::Brief)
}

/// Describes two different datatypes, in enough detail to distinguish them.
pub(crate) fn describe_both(left: &TypeClass, right: &TypeClass) -> (String, String) {
    for detail in [Detail::Brief, Detail::Full] {
        let [left, right] = [left, right].map(|class| describe_with(class, detail));
        if left != right {
            return (left, right);
        }
    }
    let text = describe_with(left, Detail::Full);
    (text.clone(), format!("{text}, with other unused bits"))
}

/// Extent of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// The properties that users care about most.
    Brief,
    /// All properties, including paddings, offsets of members, and values of names.
    Full,
}

fn describe_with(class: &TypeClass, detail: Detail) -> String {
    let full = |text: String| if detail == Detail::Full { text } else { String::new() };
    let describe = |class: &TypeClass| describe_with(class, detail);
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
            let place = full(format!(" from bit {}", bits.offset));
            format!("{sign}{} {}{precision}{place}", len_bytes * 8, order(bytes))
        }
        TypeClass::Float { len_bytes, order: bytes, exponent, mantissa, exponent_bias, .. } => {
            let form = full(format!(
                " (exponent of {} bits, bias {exponent_bias}, mantissa of {} bits)",
                exponent.count, mantissa.count
            ));
            format!("float{} {}{form}", len_bytes * 8, order(bytes))
        }
        TypeClass::Time { len_bytes, .. } => format!("time of {len_bytes} bytes"),
        TypeClass::FixedString { len_bytes, padding, charset } => {
            let form = full(format!(" ({}, {})", charset_word(*charset), padding_word(*padding)));
            format!("string of {len_bytes} bytes{form}")
        }
        TypeClass::Bitfield { len_bytes, order: bytes, bits, .. } => {
            let form = full(format!(" ({}, {} bits from bit {})", order(bytes), bits.count, bits.offset));
            format!("bitfield of {len_bytes} bytes{form}")
        }
        TypeClass::Opaque { len_bytes, tag } => format!("opaque of {len_bytes} bytes, tag \"{}\"", display_path(tag)),
        TypeClass::Compound { members, len_bytes } => {
            let member = |member: &Member| {
                let place = full(format!(" at byte {}", member.offset_bytes));
                format!("{}: {}{place}", display_path(&member.name), describe(&member.class))
            };
            let size = full(format!(" of {len_bytes} bytes"));
            format!("compound{size} {{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        TypeClass::Reference(kind) => format!("reference ({kind:?})").to_lowercase(),
        TypeClass::Enum { base, symbols } => {
            let value = |value: &[u8]| describe_value(base, &Dataspace::Scalar, value);
            let symbol = |(name, stored): &(Vec<u8>, Vec<u8>)| format!("{}: {}", display_path(name), value(stored));
            let names = full(format!(" {{{}}}", symbols.iter().map(symbol).collect::<Vec<_>>().join(", ")));
            format!("enum of {} names over {}{names}", symbols.len(), describe(base))
        }
        TypeClass::Sequence { base, .. } => format!("variable-length sequence of {}", describe(base)),
        TypeClass::VariableString { charset, padding, .. } => {
            let form = full(format!(", {}", padding_word(*padding)));
            format!("variable-length string ({}{form})", charset_word(*charset))
        }
        TypeClass::Array { base, dims } => format!("array {dims:?} of {}", describe(base)),
        TypeClass::Complex { base, .. } => format!("complex of {}", describe(base)),
        _ => "a datatype unknown to raddle".to_owned(),
    }
}

fn charset_word(charset: u8) -> &'static str {
    if charset == 1 { "UTF-8" } else { "ASCII" }
}

fn padding_word(padding: u8) -> &'static str {
    match padding {
        0 => "ends with a zero",
        1 => "padded with zeros",
        _ => "padded with spaces",
    }
}
