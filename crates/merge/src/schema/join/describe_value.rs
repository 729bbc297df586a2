//! Descriptions of values for messages and tables: `20.01`, `"days since 1850"`, `[1, 2, 3, …] of 500`.
//!
//! Values are canonical bytes as in `raddle_hdf5::logical`; bytes that contradict their type are shown in hexadecimal.
//! Invariants: the text is short however long the value is; a number reads back as itself; descriptions are never
//! parsed.

use crate::number;
use crate::schema::display_path;
use raddle_hdf5::logical::{CanonicalElements, NULL_STRING, element_len_bytes};
use raddle_hdf5::model::{Dataspace, Member, ReferenceKind, TypeClass};

/// Number of array elements or compound members shown.
const SHOWN_ITEMS: usize = 4;
/// Maximum number of bytes shown of a string; half of it for other bytes.
const SHOWN_LEN_BYTES: usize = 48;
/// Text length after which further items are omitted.
const ENOUGH_LEN_BYTES: usize = 72;

/// Describes the value of a scalar dataset or attribute.
pub(crate) fn describe_value(class: &TypeClass, dataspace: &Dataspace, canonical: &[u8]) -> String {
    match dataspace {
        Dataspace::Null => "no value".to_owned(),
        Dataspace::Scalar => describe_element(class, canonical),
        Dataspace::Simple { dims, .. } => {
            let items = describe_items(class, canonical);
            if items.ends_with("…]") || dims.len() > 1 {
                let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
                format!("{items} of {}", dims.join(" x "))
            } else {
                items
            }
        }
    }
}

/// Describes one element.
pub(super) fn describe_element(class: &TypeClass, canonical: &[u8]) -> String {
    words(class, canonical).unwrap_or_else(|| describe_bytes(canonical))
}

/// Describes one element; `None` if the bytes are not one element of the class.
fn words(class: &TypeClass, canonical: &[u8]) -> Option<String> {
    Some(match class {
        TypeClass::Integer { .. } => number::integer(class, canonical)?.to_string(),
        TypeClass::Float { .. } => describe_float(class, canonical)?,
        TypeClass::VariableString { .. } if length(canonical)?.0 == NULL_STRING => "a null string".to_owned(),
        TypeClass::FixedString { .. } | TypeClass::VariableString { .. } => describe_text(text_of(class, canonical)?),
        TypeClass::Enum { base, symbols } => match symbols.iter().find(|(_, value)| value == canonical) {
            Some((name, _)) => display_path(name),
            None => describe_element(base, canonical),
        },
        TypeClass::Compound { .. } => {
            let describe_member = |(member, bytes): (&Member, &[u8])| {
                format!("{}: {}", display_path(&member.name), describe_element(&member.class, bytes))
            };
            braced('{', '}', members(class, canonical)?.into_iter(), describe_member)
        }
        TypeClass::Array { base, .. } => describe_items(base, canonical),
        TypeClass::Sequence { base, .. } => describe_items(base, length(canonical)?.1),
        TypeClass::Complex { base, .. } => {
            let (real, imaginary) = canonical.split_at_checked(usize::try_from(base.len_bytes()).ok()?)?;
            let (real, imaginary) = (describe_element(base, real), describe_element(base, imaginary));
            match imaginary.strip_prefix('-') {
                Some(imaginary) => format!("{real} - {imaginary}i"),
                None => format!("{real} + {imaginary}i"),
            }
        }
        TypeClass::Reference(ReferenceKind::Object | ReferenceKind::Region) => {
            let (len, rest) = length(canonical)?;
            match rest.get(..usize::try_from(len).ok()?)? {
                b"" => "a null reference".to_owned(),
                path if matches!(class, TypeClass::Reference(ReferenceKind::Object)) => display_path(path),
                path => format!("a region of {}", display_path(path)),
            }
        }
        _ => return None,
    })
}

/// Returns the shortest decimal number that reads back as the stored one.
fn describe_float(class: &TypeClass, canonical: &[u8]) -> Option<String> {
    /// Number of decimal digits after the first one that distinguish all 64-bit floating-point numbers.
    const MAX_DIGITS: usize = 16;
    let number::Float { value, is_exact, spacing } = number::float(class, canonical)?;
    if !is_exact {
        return Some(format!("{value:?} ({})", describe_bytes(canonical)));
    }
    if value == 0.0 || !value.is_finite() {
        return Some(format!("{value:?}"));
    }
    // The spacing below a power of two is half of the spacing above it.
    let is_power = value.to_bits() << 12 == 0;
    let is_near = |text: &f64| {
        let nearest = if is_power && text.abs() < value.abs() { spacing / 2.0 } else { spacing };
        (text - value).abs() < nearest / 2.0
    };
    let shorter = (0..MAX_DIGITS).filter_map(|digits| format!("{value:.digits$e}").parse().ok());
    Some(format!("{:?}", { shorter }.find(is_near).unwrap_or(value)))
}

/// Returns the text of a string without padding; `None` for null strings and other classes.
pub(super) fn text_of<'a>(class: &TypeClass, canonical: &'a [u8]) -> Option<&'a [u8]> {
    match class {
        TypeClass::FixedString { padding, .. } => Some(without_padding(canonical, *padding)),
        TypeClass::VariableString { .. } => {
            let (len, text) = length(canonical)?;
            text.get(..usize::try_from(len).ok()?)
        }
        _ => None,
    }
}

/// Quotes and escapes a string; truncates it if it is long.
pub(super) fn describe_text(text: &[u8]) -> String {
    let mut displayed = text;
    if text.len() > SHOWN_LEN_BYTES {
        // Avoids splitting a character.
        let is_inside = |byte: &u8| byte & 0xc0 == 0x80;
        let end = (0..4).map(|back| SHOWN_LEN_BYTES - back).find(|&end| !is_inside(&text[end]));
        displayed = &text[..end.unwrap_or(SHOWN_LEN_BYTES)];
    }
    let mut escaped = Vec::with_capacity(displayed.len());
    for &byte in displayed {
        if matches!(byte, b'"' | b'\\') {
            escaped.push(b'\\');
        }
        escaped.push(byte);
    }
    let rest = if displayed.len() < text.len() { "…" } else { "" };
    format!("\"{}{rest}\"", display_path(&escaped))
}

/// Formats bytes in hexadecimal, in stored order.
pub(super) fn describe_bytes(bytes: &[u8]) -> String {
    let displayed = &bytes[..bytes.len().min(SHOWN_LEN_BYTES / 2)];
    let digits: String = displayed.iter().map(|byte| format!("{byte:02x}")).collect();
    let rest = if displayed.len() < bytes.len() { "…" } else { "" };
    format!("bytes {digits}{rest}")
}

/// Describes the first items that `canonical` holds.
fn describe_items(base: &TypeClass, canonical: &[u8]) -> String {
    let describe_item =
        |item: Option<&[u8]>| item.map_or_else(|| "truncated".to_owned(), |item| describe_element(base, item));
    braced('[', ']', CanonicalElements::new(base, canonical), describe_item)
}

/// Lists the first of `items` between `open` and `close`. Only items that are shown are described: for nested types the
/// work would otherwise double at each level.
fn braced<T>(open: char, close: char, items: impl Iterator<Item = T>, describe_item: impl Fn(T) -> String) -> String {
    let mut text = open.to_string();
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        if index == SHOWN_ITEMS || text.len() > ENOUGH_LEN_BYTES {
            text.push('…');
            break;
        }
        text.push_str(&describe_item(item));
    }
    text.push(close);
    text
}

/// Returns the members of a compound with their bytes. Without members of variable length these lie at their offsets.
pub(super) fn members<'a>(class: &'a TypeClass, canonical: &'a [u8]) -> Option<Vec<(&'a Member, &'a [u8])>> {
    let TypeClass::Compound { members, .. } = class else { return None };
    let is_packed = class.is_file_local();
    let mut rest = canonical;
    let bytes_of = |member: &'a Member| {
        let bytes = if is_packed {
            let (bytes, others) = rest.split_at_checked(element_len_bytes(&member.class, rest)?)?;
            rest = others;
            bytes
        } else {
            canonical.get(member.offset_bytes as usize..)?.get(..usize::try_from(member.class.len_bytes()).ok()?)?
        };
        Some((member, bytes))
    };
    members.iter().map(bytes_of).collect()
}

/// Returns the length at the start of canonical bytes of variable length, and the bytes after it.
fn length(canonical: &[u8]) -> Option<(u64, &[u8])> {
    let (len, rest) = canonical.split_first_chunk()?;
    Some((u64::from_le_bytes(*len), rest))
}

/// Returns a fixed-length string without its padding (`H5T_str_t`: null-terminated, null-padded, space-padded).
fn without_padding(text: &[u8], padding: u8) -> &[u8] {
    const ENDED_BY_ZERO: u8 = 0;
    const PADDED_WITH_ZEROS: u8 = 1;
    let pad = if padding == PADDED_WITH_ZEROS { 0 } else { b' ' };
    let end = match padding {
        ENDED_BY_ZERO => text.iter().position(|&byte| byte == 0).unwrap_or(text.len()),
        _ => text.iter().rposition(|&byte| byte != pad).map_or(0, |last| last + 1),
    };
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use raddle_hdf5::model::{BitRange, ByteOrder};
    use std::sync::Arc;

    const NORMAL: u8 = 2;

    fn integer(len_bytes: u32, order: ByteOrder, signed: bool) -> TypeClass {
        let bits = BitRange { offset: 0, count: len_bytes * 8 };
        TypeClass::Integer { len_bytes, order, signed, bits, padding: (0, 0) }
    }

    fn float(len_bytes: u32, exponent_bits: u32) -> TypeClass {
        let bits = BitRange { offset: 0, count: len_bytes * 8 };
        let mantissa = BitRange { offset: 0, count: bits.count - 1 - exponent_bits };
        TypeClass::Float {
            len_bytes,
            order: ByteOrder::Little,
            bits,
            padding: (0, 0, 0),
            normalization: NORMAL,
            sign_bit: bits.count - 1,
            exponent: BitRange { offset: mantissa.count, count: exponent_bits },
            mantissa,
            exponent_bias: (1 << (exponent_bits - 1)) - 1,
        }
    }

    fn string(len_bytes: u32, padding: u8) -> TypeClass {
        TypeClass::FixedString { len_bytes, padding, charset: 0 }
    }

    fn variable_string() -> TypeClass {
        TypeClass::VariableString { padding: 0, charset: 1, len_bytes: 16 }
    }

    fn long(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes(), text].concat()
    }

    fn scalar(class: &TypeClass, canonical: &[u8]) -> String {
        describe_value(class, &Dataspace::Scalar, canonical)
    }

    fn compound(members: Vec<(&str, u32, TypeClass)>, len_bytes: u32) -> TypeClass {
        let member = |(name, offset_bytes, class): (&str, u32, TypeClass)| Member {
            name: name.as_bytes().to_vec(),
            offset_bytes,
            class: Arc::new(class),
        };
        TypeClass::Compound { len_bytes, members: members.into_iter().map(member).collect() }
    }

    #[test]
    fn numbers_are_shown_shortest() {
        assert_eq!(scalar(&integer(4, ByteOrder::Big, true), &(-20_i32).to_be_bytes()), "-20");
        assert_eq!(scalar(&integer(8, ByteOrder::Little, false), &u64::MAX.to_le_bytes()), "18446744073709551615");
        assert_eq!(scalar(&float(8, 11), &20.01_f64.to_le_bytes()), "20.01");
        assert_eq!(scalar(&float(4, 8), &20.01_f32.to_le_bytes()), "20.01");
        assert_eq!(scalar(&float(4, 8), &20.0_f32.to_le_bytes()), "20.0");
        assert_eq!(scalar(&float(2, 5), &0x2e66_u16.to_le_bytes()), "0.1");
        assert_eq!(scalar(&float(8, 11), &f64::NAN.to_le_bytes()), "NaN");
        assert_eq!(scalar(&float(8, 11), &(-0.0_f64).to_le_bytes()), "-0.0");
    }

    #[test]
    fn texts_are_quoted_and_escaped() {
        assert_eq!(scalar(&string(8, 0), b"ab\0rest\0"), "\"ab\"");
        assert_eq!(scalar(&string(6, 1), b"ab \0\0\0"), "\"ab \"");
        assert_eq!(scalar(&string(4, 2), b"ab  "), "\"ab\"");
        assert_eq!(scalar(&string(2, 2), b"  "), "\"\"");
        assert_eq!(scalar(&variable_string(), &long("a\"\\\x1bé".as_bytes())), "\"a\\\"\\\\\\u{1b}é\"");
        assert_eq!(scalar(&variable_string(), &NULL_STRING.to_le_bytes()), "a null string");
        let text = scalar(&variable_string(), &long("é".repeat(1000).as_bytes()));
        assert_eq!(text, format!("\"{}…\"", "é".repeat(24)));
        assert_eq!(scalar(&variable_string(), &long(&[b"x", "é".repeat(99).as_bytes()].concat())).len(), 2 + 47 + 3);
    }

    #[test]
    fn arrays_and_compounds_leave_out_what_is_too_much() {
        let class = integer(2, ByteOrder::Little, true);
        let values: Vec<u8> = (0..500_i16).flat_map(i16::to_le_bytes).collect();
        let space = |dims: &[u64]| Dataspace::Simple { dims: dims.to_vec(), max_dims: dims.to_vec() };
        assert_eq!(describe_value(&class, &space(&[3]), &values[..6]), "[0, 1, 2]");
        assert_eq!(describe_value(&class, &space(&[0]), &[]), "[]");
        assert_eq!(describe_value(&class, &space(&[500]), &values), "[0, 1, 2, 3, …] of 500");
        assert_eq!(describe_value(&class, &space(&[2, 2]), &values[..8]), "[0, 1, 2, 3] of 2 x 2");
        assert_eq!(describe_value(&class, &Dataspace::Null, &[]), "no value");
        let array = TypeClass::Array { base: Arc::new(class.clone()), dims: vec![3] };
        assert_eq!(scalar(&array, &values[..6]), "[0, 1, 2]");
        let sequence = TypeClass::Sequence { base: Arc::new(class.clone()), len_bytes: 16 };
        assert_eq!(scalar(&sequence, &[&2_u64.to_le_bytes(), &values[2..6]].concat()), "[1, 2]");
        // Padding between members is part of the stored bytes, unless a member is of variable length.
        let padded = compound(vec![("a", 0, class.clone()), ("b", 4, class.clone())], 6);
        assert_eq!(scalar(&padded, &[1, 0, 9, 9, 2, 0]), "{a: 1, b: 2}");
        let packed = compound(vec![("a", 0, class.clone()), ("t", 8, variable_string())], 24);
        assert_eq!(scalar(&packed, &[&[1, 0][..], &long(b"x")].concat()), "{a: 1, t: \"x\"}");
        let pair = TypeClass::Complex { base: Arc::new(float(4, 8)), len_bytes: 8 };
        assert_eq!(scalar(&pair, &[1.5_f32.to_le_bytes(), (-2_f32).to_le_bytes()].concat()), "1.5 - 2.0i");
    }

    #[test]
    fn names_stand_for_values_and_paths_for_references() {
        let symbols = vec![(b"FALSE".to_vec(), vec![0]), (b"TRUE".to_vec(), vec![1])];
        let class = TypeClass::Enum { base: Arc::new(integer(1, ByteOrder::Little, true)), symbols };
        assert_eq!((scalar(&class, &[1]), scalar(&class, &[7])), ("TRUE".to_owned(), "7".to_owned()));
        assert_eq!(scalar(&TypeClass::Reference(ReferenceKind::Object), &long(b"/g/x")), "/g/x");
        assert_eq!(scalar(&TypeClass::Reference(ReferenceKind::Object), &long(b"")), "a null reference");
        assert_eq!(scalar(&TypeClass::Opaque { len_bytes: 2, tag: Vec::new() }, &[0xab, 1]), "bytes ab01");
    }

    #[test]
    fn types_inside_of_types_take_no_more_time_than_their_text() {
        let mut class = string(40, 1);
        for _ in 0..14 {
            let len_bytes = class.len_bytes() as u32;
            class = compound((0..2).map(|_| ("member", 0, class.clone())).collect(), len_bytes);
        }
        assert!(scalar(&class, &[b'x'; 40]).len() < 4000);
    }

    #[test]
    fn bytes_that_contradict_their_type_are_shown_as_bytes() {
        assert_eq!(scalar(&variable_string(), &5_u64.to_le_bytes()), "bytes 0500000000000000");
        assert_eq!(scalar(&TypeClass::Sequence { base: Arc::new(variable_string()), len_bytes: 16 }, &[1]), "bytes 01");
    }

    proptest! {
        #[test]
        fn numbers_read_back(double in any::<f64>(), single in any::<f32>(), half in any::<u16>()) {
            let text = scalar(&float(8, 11), &double.to_le_bytes());
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits() == double.to_bits(), !double.is_nan());
            let text = scalar(&float(4, 8), &single.to_le_bytes());
            prop_assert_eq!(text.parse::<f32>().unwrap().to_bits() == single.to_bits(), !single.is_nan());
            // Neighbouring 16-bit numbers have different descriptions.
            let class = float(2, 5);
            let texts: Vec<String> =
                [half.saturating_sub(1), half].map(|bits| scalar(&class, &bits.to_le_bytes())).into();
            prop_assert!(half == 0 || texts[0] != texts[1] || texts[0] == "NaN", "{:?}", texts);
        }

        #[test]
        fn any_bytes_have_a_short_text(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let classes = [
                integer(4, ByteOrder::Vax, true),
                float(8, 11),
                string(9, 1),
                variable_string(),
                TypeClass::Sequence { base: Arc::new(variable_string()), len_bytes: 16 },
                compound(vec![("a", 190, float(8, 11)), ("b", 0, variable_string())], 200),
                TypeClass::Reference(ReferenceKind::Region),
            ];
            let space = Dataspace::Simple { dims: vec![bytes.len() as u64], max_dims: vec![bytes.len() as u64] };
            for class in classes {
                for space in [&Dataspace::Scalar, &space] {
                    let text = describe_value(&class, space, &bytes);
                    prop_assert!(text.len() < 1000 && !text.chars().any(char::is_control), "{}", text);
                }
            }
        }
    }
}
