//! Datatypes as nested tuples, of which `raddle._types` makes numpy types.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use raddle_hdf5::model::{BitRange, ByteOrder, ReferenceKind, TypeClass};

/// The type as `(name, ...)`; what numpy has no equal for is `("other", description)`.
pub fn describe<'py>(py: Python<'py>, class: &TypeClass) -> PyResult<Bound<'py, PyAny>> {
    let tuple = match class {
        TypeClass::Integer { len_bytes, order, signed, bits, .. }
            if is_whole(*bits, *len_bytes) && is_plain(*order) =>
        {
            ("int", *len_bytes, letter(*order), *signed).into_pyobject(py)?
        }
        TypeClass::Float { len_bytes, order, .. } if is_ieee(class) && is_plain(*order) => {
            ("float", *len_bytes, letter(*order)).into_pyobject(py)?
        }
        TypeClass::Bitfield { len_bytes, order, bits, .. } if is_whole(*bits, *len_bytes) && is_plain(*order) => {
            ("int", *len_bytes, letter(*order), false).into_pyobject(py)?
        }
        TypeClass::FixedString { len_bytes, charset, .. } => ("string", *len_bytes, *charset).into_pyobject(py)?,
        TypeClass::VariableString { charset, .. } => ("variable_string", *charset).into_pyobject(py)?,
        TypeClass::Opaque { len_bytes, tag } => ("opaque", *len_bytes, PyBytes::new(py, tag)).into_pyobject(py)?,
        TypeClass::Compound { len_bytes, members } => {
            let fields = PyList::empty(py);
            for member in members {
                let class = describe(py, &member.class)?;
                fields.append((PyBytes::new(py, &member.name), member.offset_bytes, class))?;
            }
            ("compound", *len_bytes, fields).into_pyobject(py)?
        }
        TypeClass::Enum { base, symbols } => {
            let named = PyList::empty(py);
            for (name, value) in symbols {
                named.append((PyBytes::new(py, name), PyBytes::new(py, value)))?;
            }
            ("enum", describe(py, base)?, named).into_pyobject(py)?
        }
        TypeClass::Sequence { base, .. } => ("sequence", describe(py, base)?).into_pyobject(py)?,
        TypeClass::Array { base, dims } => ("array", describe(py, base)?, dims.clone()).into_pyobject(py)?,
        TypeClass::Complex { base, .. } => ("complex", describe(py, base)?).into_pyobject(py)?,
        TypeClass::Reference(ReferenceKind::Object) => ("reference", "object").into_pyobject(py)?,
        TypeClass::Reference(ReferenceKind::Region) => ("reference", "region").into_pyobject(py)?,
        other => ("other", format!("{other:?}")).into_pyobject(py)?,
    };
    Ok(tuple.into_any())
}

fn is_whole(bits: BitRange, len_bytes: u32) -> bool {
    bits.offset == 0 && bits.count == 8 * len_bytes && matches!(len_bytes, 1 | 2 | 4 | 8)
}

fn is_plain(order: ByteOrder) -> bool {
    order != ByteOrder::Vax
}

fn letter(order: ByteOrder) -> &'static str {
    if order == ByteOrder::Big { ">" } else { "<" }
}

/// Whether it is a number of IEEE 754 of 2, 4 or 8 bytes.
fn is_ieee(class: &TypeClass) -> bool {
    let TypeClass::Float { len_bytes, bits, normalization, sign_bit, exponent, mantissa, exponent_bias, .. } = class
    else {
        return false;
    };
    let (exponent_bits, mantissa_bits) = match len_bytes {
        2 => (5, 10),
        4 => (8, 23),
        8 => (11, 52),
        _ => return false,
    };
    let whole = is_whole(*bits, *len_bytes) && *normalization == 2 && *sign_bit == 8 * len_bytes - 1;
    whole
        && *exponent == BitRange { offset: mantissa_bits, count: exponent_bits }
        && *mantissa == BitRange { offset: 0, count: mantissa_bits }
        && *exponent_bias == (1 << (exponent_bits - 1)) - 1
}
