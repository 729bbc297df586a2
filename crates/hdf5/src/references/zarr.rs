//! Types, filters and fill values in terms of Zarr (format version 2, codecs of numcodecs).
//!
//! Only types, filters and fill values that have the same bytes in both formats are supported. For all others the
//! reason is returned, and the dataset gets no references.

use super::values::{element, is_truth};
use crate::model::{ByteOrder, Dataset, TypeClass};
use raddle_codec::{Filter, KnownFilter};
use serde_json::{Value, json};

/// Padding of a string with blanks, which Zarr does not support.
const SPACE_PADDED: u8 = 2;

/// Returns the `.zarray` of a dataset whose chunks have the shape `chunk_shape`; `is_whole` states that no chunk is
/// missing.
pub(super) fn array(dataset: &Dataset, chunk_shape: &[u64], is_whole: bool) -> Result<Value, String> {
    let class = &dataset.datatype.class;
    let filters = dataset.filters.iter().map(|filter| codec(filter, class)).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({
        "zarr_format": 2,
        "shape": dataset.dataspace.dims(),
        "chunks": chunk_shape,
        "dtype": dtype(class)?,
        "compressor": null,
        "filters": if filters.is_empty() { Value::Null } else { filters.into() },
        "fill_value": fill(dataset, is_whole)?,
        "order": "C",
        "dimension_separator": ".",
    }))
}

fn dtype(class: &TypeClass) -> Result<Value, String> {
    let refused = || Err(format!("Zarr has no type for {}", kind(class)));
    Ok(match class {
        TypeClass::Integer { len_bytes, order, signed, .. } if class.is_machine_number() => {
            text(*order, if *signed { 'i' } else { 'u' }, *len_bytes)
        }
        TypeClass::Bitfield { len_bytes, order, .. } if class.is_machine_number() => text(*order, 'u', *len_bytes),
        TypeClass::Float { len_bytes, order, .. } if class.is_machine_number() => text(*order, 'f', *len_bytes),
        TypeClass::Complex { base, len_bytes } => match &**base {
            TypeClass::Float { len_bytes: 4 | 8, order, .. } if base.is_machine_number() => {
                text(*order, 'c', *len_bytes)
            }
            _ => return refused(),
        },
        TypeClass::FixedString { len_bytes, padding, .. } if *padding != SPACE_PADDED && *len_bytes > 0 => {
            format!("|S{len_bytes}").into()
        }
        TypeClass::Opaque { len_bytes, .. } if *len_bytes > 0 => format!("|V{len_bytes}").into(),
        TypeClass::Enum { .. } if is_truth(class) => "|b1".into(),
        TypeClass::Enum { base, .. } => return dtype(base),
        TypeClass::Compound { len_bytes, members } if !members.is_empty() => {
            let (mut fields, mut end) = (Vec::new(), 0);
            for member in members {
                let Ok(name) = std::str::from_utf8(&member.name) else { return refused() };
                if u64::from(member.offset_bytes) != end || matches!(*member.class, TypeClass::Compound { .. }) {
                    return Err("Zarr has no type for compounds with gaps or nested compounds".to_owned());
                }
                end += member.class.len_bytes();
                fields.push(json!([name, dtype(&member.class)?]));
            }
            if end != u64::from(*len_bytes) {
                return Err("Zarr has no type for compounds with gaps or nested compounds".to_owned());
            }
            fields.into()
        }
        _ => return refused(),
    })
}

fn text(order: ByteOrder, kind: char, len_bytes: u32) -> Value {
    let order = match order {
        _ if len_bytes == 1 => '|',
        ByteOrder::Big => '>',
        _ => '<',
    };
    format!("{order}{kind}{len_bytes}").into()
}

fn kind(class: &TypeClass) -> &'static str {
    match class {
        TypeClass::Sequence { .. } | TypeClass::VariableString { .. } => "elements of variable length",
        TypeClass::Reference(_) => "references",
        TypeClass::FixedString { .. } => "strings padded with blanks",
        TypeClass::Array { .. } => "arrays as elements",
        TypeClass::Compound { .. } => "this compound",
        _ => "such numbers",
    }
}

fn codec(filter: &Filter, class: &TypeClass) -> Result<Value, String> {
    let parameter = |at: usize| filter.parameters.get(at).copied();
    Ok(match KnownFilter::from_id(filter.id) {
        Some(KnownFilter::Deflate) => json!({"id": "zlib", "level": parameter(0).unwrap_or(6).min(9)}),
        Some(KnownFilter::Shuffle) => {
            let len_bytes = parameter(0).map_or(class.len_bytes(), u64::from);
            json!({"id": "shuffle", "elementsize": len_bytes})
        }
        Some(KnownFilter::Fletcher32) => json!({"id": "fletcher32"}),
        Some(KnownFilter::Zstd) => json!({"id": "zstd", "level": parameter(0).unwrap_or(3)}),
        Some(KnownFilter::Bzip2) => json!({"id": "bz2", "level": parameter(0).unwrap_or(9)}),
        // A Blosc chunk records its own compression, so these parameters do not matter.
        Some(KnownFilter::Blosc) => json!({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
        Some(known) => return Err(format!("Zarr has no codec for the frames of HDF5's filter {known}")),
        None => return Err(format!("Zarr has no codec for filter {}", filter.id)),
    })
}

/// Returns null if no fill value was set and no chunk is missing, because readers interpret the fill value as
/// "missing". If chunks are missing, the value is always given: without it they would be undefined in Zarr, but zero in
/// HDF5.
fn fill(dataset: &Dataset, is_whole: bool) -> Result<Value, String> {
    let fill = &dataset.fill;
    let class = &dataset.datatype.class;
    if fill.undefined || (is_whole && !fill.user_defined) {
        return Ok(Value::Null);
    }
    let len = usize::try_from(class.len_bytes()).map_err(|_| "an element longer than memory".to_owned())?;
    let stored = match &fill.value {
        None => vec![0; len],
        Some(value) => match value.stored() {
            Some(stored) if stored.len() == len => stored.to_vec(),
            _ => return Err("a fill value that differs in length from an element".to_owned()),
        },
    };
    Ok(match &**class {
        TypeClass::FixedString { .. } | TypeClass::Opaque { .. } | TypeClass::Compound { .. } => base64(&stored).into(),
        class => element(class, &stored).ok_or_else(|| "a fill value that JSON cannot hold".to_owned())?,
    })
}

/// Encodes in Base64 (RFC 4648, section 4).
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | usize::from(group.get(at).copied().unwrap_or(0)));
        for digit in 0..4 {
            let is_padding = digit > group.len();
            text.push(if is_padding { '=' } else { char::from(DIGITS[bits >> (18 - 6 * digit) & 63]) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of RFC 4648, section 10.
    #[test]
    fn base64_of_the_rfc() {
        let expected =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")];
        for (bytes, text) in expected {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
