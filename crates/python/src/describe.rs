//! Datatypes as nested tuples, which `raddle._types` converts to numpy types.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use raddle_hdf5::model::{ByteOrder, ReferenceKind, TypeClass};

/// Describes the type as `(name, ...)`; types without an equivalent in numpy become `("other", description)`.
pub fn describe<'py>(py: Python<'py>, class: &TypeClass) -> PyResult<Bound<'py, PyAny>> {
    let tuple = match class {
        TypeClass::Integer { len_bytes, order, signed, .. } if class.is_machine_number() => {
            ("int", *len_bytes, letter(*order), *signed).into_pyobject(py)?
        }
        TypeClass::Float { len_bytes, order, .. } if class.is_machine_number() => {
            ("float", *len_bytes, letter(*order)).into_pyobject(py)?
        }
        TypeClass::Bitfield { len_bytes, order, .. } if class.is_machine_number() => {
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

fn letter(order: ByteOrder) -> &'static str {
    if order == ByteOrder::Big { ">" } else { "<" }
}
