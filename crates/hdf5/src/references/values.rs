//! Conversion of metadata values to JSON: attributes, and fill values of numbers.
//!
//! Values that JSON cannot represent (references, compounds, opaque bytes, names that are not valid UTF-8) yield
//! `None`, never an approximation.

use crate::logical::NULL_STRING;
use crate::model::{ByteOrder, Dataspace, TypeClass};
use serde_json::Value;

/// Padding of a string with blanks.
const SPACE_PADDED: u8 = 2;

/// Returns the values of an attribute, nested like its dimensions; `canonical` is in the form of
/// [`crate::logical::Resolver`].
pub(super) fn attribute(class: &TypeClass, dataspace: &Dataspace, canonical: &[u8]) -> Option<Value> {
    let elements = match class {
        TypeClass::VariableString { .. } => strings(canonical)?,
        class if class.is_file_local() => return None,
        class => {
            let len = usize::try_from(class.len_bytes()).ok().filter(|&len| len > 0)?;
            canonical.chunks_exact(len).map(|bytes| element(class, bytes)).collect::<Option<Vec<_>>>()?
        }
    };
    match dataspace {
        Dataspace::Null => None,
        Dataspace::Scalar => elements.into_iter().next(),
        Dataspace::Simple { dims, .. } => nested(&mut elements.into_iter(), dims),
    }
}

fn nested(elements: &mut impl Iterator<Item = Value>, dims: &[u64]) -> Option<Value> {
    match dims {
        [] => elements.next(),
        // Each row contains elements; otherwise the loop would be bounded only by a number claimed in the file.
        [rows, inner @ ..] if !inner.contains(&0) => {
            (0..*rows).map(|_| nested(elements, inner)).collect::<Option<Vec<_>>>().map(Value::Array)
        }
        _ => Some(Value::Array(Vec::new())),
    }
}

fn strings(mut canonical: &[u8]) -> Option<Vec<Value>> {
    let mut strings = Vec::new();
    while let Some((len, behind)) = canonical.split_first_chunk() {
        let len = u64::from_le_bytes(*len);
        let len = if len == NULL_STRING { 0 } else { usize::try_from(len).ok()? };
        let (text, behind) = behind.split_at_checked(len)?;
        strings.push(std::str::from_utf8(text).ok()?.into());
        canonical = behind;
    }
    Some(strings)
}

/// Converts one stored element of a type that is not file-local.
pub(super) fn element(class: &TypeClass, stored: &[u8]) -> Option<Value> {
    match class {
        TypeClass::FixedString { padding, .. } => {
            let end = match *padding == SPACE_PADDED {
                true => stored.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1),
                false => stored.iter().position(|&byte| byte == 0).unwrap_or(stored.len()),
            };
            std::str::from_utf8(&stored[..end]).ok().map(Value::from)
        }
        TypeClass::Enum { base, .. } if is_truth(class) => {
            element(base, stored)?.as_i64().map(|value| (value != 0).into())
        }
        TypeClass::Enum { base, .. } => element(base, stored),
        TypeClass::Complex { base, .. } => {
            let (real, imaginary) = stored.split_at_checked(usize::try_from(base.len_bytes()).ok()?)?;
            Some(Value::Array(vec![element(base, real)?, element(base, imaginary)?]))
        }
        TypeClass::Integer { order, signed, .. } if class.is_machine_number() => Some(match *signed {
            true => signed_number(stored, *order).into(),
            false => number(stored, *order).into(),
        }),
        TypeClass::Bitfield { order, .. } if class.is_machine_number() => Some(number(stored, *order).into()),
        TypeClass::Float { order, len_bytes, .. } if class.is_machine_number() => {
            let bits = number(stored, *order);
            Some(real(match len_bytes {
                2 => half(bits as u16),
                4 => f64::from(f32::from_bits(bits as u32)),
                _ => f64::from_bits(bits),
            }))
        }
        _ => None,
    }
}

/// Returns whether the type is h5py's encoding of booleans.
pub(super) fn is_truth(class: &TypeClass) -> bool {
    let TypeClass::Enum { base, symbols } = class else { return false };
    let is_symbol = |name: &[u8], value: u8| symbols.iter().any(|symbol| symbol.0 == name && symbol.1 == [value]);
    base.len_bytes() == 1 && symbols.len() == 2 && is_symbol(b"FALSE", 0) && is_symbol(b"TRUE", 1)
}

fn number(stored: &[u8], order: ByteOrder) -> u64 {
    let push = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
    match order {
        ByteOrder::Big => stored.iter().fold(0, push),
        _ => stored.iter().rev().fold(0, push),
    }
}

fn signed_number(stored: &[u8], order: ByteOrder) -> i64 {
    let unused_bits = 64 - 8 * stored.len() as u32;
    (number(stored, order) << unused_bits).cast_signed() >> unused_bits
}

/// Converts a number as Zarr does: JSON itself has neither infinities nor NaN.
fn real(value: f64) -> Value {
    match value {
        value if value.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        value => value.into(),
    }
}

/// Converts IEEE 754 binary16: 1 bit sign, 5 bits exponent with bias 15, 10 bits mantissa.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => mantissa * 2_f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + mantissa) * 2_f64.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves() {
        let expected = [(0x3c00, 1.0), (0xc000, -2.0), (0x7bff, 65504.0), (0x0001, 2_f64.powi(-24)), (0x8000, -0.0)];
        for (bits, value) in expected {
            assert_eq!(half(bits).to_bits(), f64::to_bits(value), "{bits:x}");
        }
        assert!(half(0x7e00).is_nan() && half(0xfc00) == f64::NEG_INFINITY);
    }

    #[test]
    fn numbers_of_every_width() {
        assert_eq!(signed_number(&[0xff, 0xfe], ByteOrder::Big), -2);
        assert_eq!(signed_number(&[0xfe, 0xff], ByteOrder::Little), -2);
        assert_eq!(number(&u64::MAX.to_le_bytes(), ByteOrder::Little), u64::MAX);
        assert_eq!(signed_number(&i64::MIN.to_le_bytes(), ByteOrder::Little), i64::MIN);
    }
}
