//! Conversion of the values of one attribute of all inputs to rows of a dataset, all of one type.
//!
//! Where the dataset is placed is decided elsewhere. Invariant: a row is the value of its input, in the type of the
//! dataset; values that this type cannot hold are refused.

use super::attributes::describe_attribute;
use super::{Difference, DifferenceKind};
use crate::schema::attribute::string;
use crate::schema::{AttributeValue, Column, display_path};
use raddle_hdf5::logical::CanonicalElements;
use raddle_hdf5::model::{Dataspace, TypeClass};
use std::sync::Arc;

/// An attribute whose values become a dataset.
pub(super) struct Source<'a> {
    pub object: &'a [u8],
    pub attribute: &'a [u8],
    /// Value of each input; `None` if the input lacks the attribute or its rows already exist.
    pub values: Vec<Option<&'a AttributeValue>>,
    /// Option that requested the dataset.
    pub option: &'static str,
}

/// A dataset to be created, with its type and the rows of each input.
pub(super) struct NewDataset {
    pub class: Arc<TypeClass>,
    /// Dimensions of a row.
    pub dims: Vec<u64>,
    /// Canonical bytes of the row of each input.
    pub rows: Vec<Vec<u8>>,
}

/// Converts the values of all inputs to one type: the type of the existing dataset when rows are appended to it.
pub(super) fn make(source: &Source<'_>, grown: Option<&Column>) -> Result<NewDataset, Difference> {
    let values = || (0..).zip(&source.values).filter_map(|(input, value)| Some((input, (*value)?)));
    let (class, dims) = match grown {
        Some(column) => {
            let dataset = column.model();
            (Arc::clone(&dataset.datatype.class), dataset.dataspace.dims()[1..].to_vec())
        }
        None => {
            let first = values().next().map(|(_, value)| value);
            let classes = values().map(|(_, value)| &*value.datatype.class);
            // A value exists: inputs that lack the attribute were refused before.
            let class = common_text(classes).map(Arc::new).or(first.map(|first| Arc::clone(&first.datatype.class)));
            let dims = first.map_or_else(Vec::new, |first| row_dims(&first.dataspace));
            (class.unwrap_or_else(|| crate::verify::provenance::unsigned(1)), dims)
        }
    };
    let mut rows = Vec::with_capacity(source.values.len());
    for (input, value) in (0..).zip(&source.values) {
        let Some(value) = value else {
            rows.push(Vec::new());
            continue;
        };
        let is_of_file =
            value.datatype.class.has_reference() || matches!(*value.datatype.class, TypeClass::Sequence { .. });
        if is_of_file || value.dataspace == Dataspace::Null {
            return Err(refused(
                source,
                &class,
                input,
                format!("{}, which cannot be a row of a dataset", describe_attribute(value)),
            ));
        }
        let row = (row_dims(&value.dataspace) == dims).then(|| converted(value, &class)).flatten();
        let Some(row) = row else {
            let kind = super::describe(&value.datatype.class);
            return Err(refused(
                source,
                &class,
                input,
                format!("{} ({kind}), of a different type or shape", describe_attribute(value)),
            ));
        };
        rows.push(row);
    }
    Ok(NewDataset { class, dims, rows })
}

fn refused(source: &Source<'_>, class: &TypeClass, input: u32, found: String) -> Difference {
    let (name, class) = (display_path(source.attribute), super::describe(class));
    let expected = format!("{name} as {class} ({})", source.option);
    let (path, kind) = (display_path(source.object), DifferenceKind::AttributeColumn);
    Difference { path, kind, expected, found, inputs: vec![input] }
}

/// Returns the dimensions of a row; a single value has none, however it is stored.
fn row_dims(dataspace: &Dataspace) -> Vec<u64> {
    match dataspace.dims() {
        dims if dims.iter().all(|&dim| dim == 1) => Vec::new(),
        dims => dims.to_vec(),
    }
}

/// Returns a type that holds all strings; `None` if one of the types is not text.
fn common_text<'a>(classes: impl Iterator<Item = &'a TypeClass>) -> Option<TypeClass> {
    let mut common: Option<TypeClass> = None;
    for class in classes {
        common = Some(match (common, class) {
            (None, TypeClass::FixedString { .. } | TypeClass::VariableString { .. }) => class.clone(),
            (Some(TypeClass::VariableString { padding, charset: known, len_bytes }), other) => {
                let charset = charset(other)?.max(known);
                TypeClass::VariableString { padding, charset, len_bytes }
            }
            (Some(known), TypeClass::VariableString { padding, charset: found, len_bytes }) => {
                let charset = charset(&known)?.max(*found);
                TypeClass::VariableString { padding: *padding, charset, len_bytes: *len_bytes }
            }
            (
                Some(TypeClass::FixedString { len_bytes: a, padding, charset: known }),
                TypeClass::FixedString { len_bytes: b, padding: other, charset: found },
            ) => {
                // A zero-terminated type needs one more byte, because the other type may use its whole length for text.
                let len_bytes = a.max(*b) + u32::from(padding != *other && (padding == 0 || *other == 0));
                TypeClass::FixedString { len_bytes, padding, charset: known.max(*found) }
            }
            _ => return None,
        });
    }
    common
}

fn charset(class: &TypeClass) -> Option<u8> {
    match class {
        TypeClass::FixedString { charset, .. } | TypeClass::VariableString { charset, .. } => Some(*charset),
        _ => None,
    }
}

/// Returns the canonical bytes of a value in a different type; `None` if that type cannot hold it.
fn converted(value: &AttributeValue, to: &TypeClass) -> Option<Vec<u8>> {
    let from = &*value.datatype.class;
    if from == to {
        return Some(value.value.clone());
    }
    let mut row = Vec::new();
    for element in CanonicalElements::new(from, &value.value) {
        let text = string(from, element?)?;
        match to {
            TypeClass::VariableString { charset, .. } if *charset == 1 || text.is_ascii() => {
                row.extend_from_slice(&(text.len() as u64).to_le_bytes());
                row.extend_from_slice(text);
            }
            TypeClass::FixedString { len_bytes, padding, charset } if *charset == 1 || text.is_ascii() => {
                let room = *len_bytes as usize;
                if text.len() + usize::from(*padding == 0) > room.max(usize::from(text.is_empty())) {
                    return None;
                }
                let end = row.len() + room;
                row.extend_from_slice(text);
                row.resize(end, if *padding == 2 { b' ' } else { 0 });
            }
            _ => return None,
        }
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_hdf5::model::Datatype;

    fn fixed(len_bytes: u32, padding: u8) -> TypeClass {
        TypeClass::FixedString { len_bytes, padding, charset: 0 }
    }

    fn variable(charset: u8) -> TypeClass {
        TypeClass::VariableString { padding: 0, charset, len_bytes: 16 }
    }

    fn text(class: &TypeClass, value: &[u8]) -> AttributeValue {
        AttributeValue {
            name: b"site".to_vec(),
            utf8: false,
            datatype: Datatype { class: Arc::new(class.clone()), committed: None },
            committed: None,
            dataspace: Dataspace::Scalar,
            value: value.to_vec(),
        }
    }

    #[test]
    fn strings_of_any_length_have_a_common_type() {
        let common = |classes: &[TypeClass]| common_text(classes.iter());
        assert_eq!(common(&[fixed(3, 1), fixed(7, 1), fixed(5, 1)]), Some(fixed(7, 1)));
        assert_eq!(common(&[fixed(3, 0), fixed(7, 1)]), Some(fixed(8, 0)));
        assert_eq!(common(&[fixed(3, 1), variable(1)]), Some(variable(1)));
        assert_eq!(common(&[variable(0), variable(1)]), Some(variable(1)));
        let number = TypeClass::Opaque { len_bytes: 4, tag: Vec::new() };
        assert_eq!(common(&[fixed(3, 1), number.clone()]), None);
        assert_eq!(common(&[number]), None);
    }

    #[test]
    fn strings_are_converted_or_do_not_fit() {
        let of = |value: &[u8]| [&(value.len() as u64).to_le_bytes()[..], value].concat();
        assert_eq!(converted(&text(&fixed(3, 1), b"ab\0"), &fixed(4, 2)), Some(b"ab  ".to_vec()));
        assert_eq!(converted(&text(&fixed(3, 2), b"ab "), &variable(0)), Some(of(b"ab")));
        assert_eq!(converted(&text(&variable(1), &of(b"abcd")), &fixed(4, 1)), Some(b"abcd".to_vec()));
        assert_eq!(converted(&text(&variable(1), &of(b"abcd")), &fixed(4, 0)), None);
        assert_eq!(converted(&text(&variable(1), &of("é".as_bytes())), &fixed(4, 1)), None);
        assert_eq!(converted(&text(&variable(1), &of(b"abcde")), &fixed(4, 1)), None);
    }
}
