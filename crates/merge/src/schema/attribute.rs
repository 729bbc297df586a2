//! Attributes, and their values as strings and numbers, whichever HDF5 type a library chose for them.
//!
//! Datasets are not covered. Invariant: functions return `None` for everything that a reader of the convention would
//! not accept as a string or number either.

use crate::schema::join::describe_value;
pub use raddle_hdf5::logical::{string, strings_of};
use raddle_hdf5::model::{Dataspace, Datatype, TypeClass};
use raddle_hdf5::number::NumberType;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// Beginning of the text that the netCDF library writes in `NAME` of a dimension without a variable; the dimension's
/// size follows.
pub(crate) const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable.";

/// Returns the text of `NAME` of a dimension of length `len` without a variable.
pub(crate) fn text_without_variable(len: u64) -> String {
    format!("{NO_VARIABLE}{len:10}")
}

/// An attribute with its value in canonical bytes, which are comparable between files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttributeValue {
    /// Name of the attribute.
    pub name: Vec<u8>,
    /// Whether the name is marked UTF-8.
    pub utf8: bool,
    /// Type of one element.
    pub datatype: Datatype,
    /// Path of its committed datatype, if it has one.
    pub committed: Option<Vec<u8>>,
    /// Extent of the attribute.
    pub dataspace: Dataspace,
    /// Canonical bytes of all elements.
    pub value: Vec<u8>,
}

/// Returns the attribute with this name.
pub fn named(attributes: &[AttributeValue], name: impl AsRef<[u8]>) -> Option<&AttributeValue> {
    attributes.iter().find(|attribute| attribute.name == name.as_ref())
}

/// Returns the position of each attribute by its name, which is unique: objects may have tens of thousands.
pub(crate) fn places_by_name(attributes: &[AttributeValue]) -> HashMap<&[u8], usize> {
    attributes.iter().enumerate().map(|(place, attribute)| (&*attribute.name, place)).collect()
}

/// Returns whether the attributes mark a group with a PyTables index.
pub(crate) fn marks_table_index(attributes: &[AttributeValue]) -> bool {
    named(attributes, "CLASS").is_some_and(|class| class.value.starts_with(b"TINDEX"))
}

/// Creates an attribute with `dims`; without dimensions, a scalar.
pub fn new(name: &str, class: TypeClass, dims: &[u64], value: Vec<u8>) -> AttributeValue {
    let dataspace = match dims {
        [] => Dataspace::Scalar,
        dims => Dataspace::Simple { dims: dims.to_vec(), max_dims: dims.to_vec() },
    };
    let datatype = Datatype { class: Arc::new(class), committed: None };
    AttributeValue { name: name.as_bytes().to_vec(), utf8: false, datatype, committed: None, dataspace, value }
}

/// Creates a fixed-length string that ends with a zero, as the dimension scale library writes them.
pub fn fixed_text(name: &str, text: &[u8]) -> AttributeValue {
    let value = [text, b"\0"].concat();
    new(name, TypeClass::FixedString { len_bytes: value.len() as u32, padding: 0, charset: 0 }, &[], value)
}

/// Returns the text of an attribute with this name.
pub fn text(attributes: &[AttributeValue], name: &str) -> Option<String> {
    strings(named(attributes, name)?)?.into_iter().next()
}

/// Returns all strings of an attribute.
pub fn strings(attribute: &AttributeValue) -> Option<Vec<String>> {
    strings_of(&attribute.datatype.class, &attribute.value)
}

/// Returns all numbers of an attribute.
pub fn numbers(attribute: &AttributeValue) -> Option<Vec<f64>> {
    let number = NumberType::of(&attribute.datatype.class)?;
    let (mut integers, mut floats) = (Vec::new(), Vec::new());
    number.decode_floats(&attribute.value, &mut integers, &mut floats);
    Some(floats)
}

/// Returns the first number of an attribute with this name.
pub fn number(attributes: &[AttributeValue], name: &str) -> Option<f64> {
    numbers(named(attributes, name)?)?.first().copied()
}

/// Creates a string attribute like `like`: of the same type if that is a variable-length string, otherwise a string of
/// fixed length.
pub fn with_text(like: &AttributeValue, text: &str) -> AttributeValue {
    let (class, value) = match &*like.datatype.class {
        class @ TypeClass::VariableString { .. } => {
            let mut value = (text.len() as u64).to_le_bytes().to_vec();
            value.extend_from_slice(text.as_bytes());
            (class.clone(), value)
        }
        TypeClass::FixedString { charset, padding, .. } => {
            let is_terminated = *padding == 0;
            let mut value = text.as_bytes().to_vec();
            if is_terminated || value.is_empty() {
                value.push(0);
            }
            let len_bytes = value.len() as u32;
            (TypeClass::FixedString { len_bytes, padding: *padding, charset: *charset }, value)
        }
        _ => (TypeClass::FixedString { len_bytes: text.len().max(1) as u32, padding: 1, charset: 1 }, text.into()),
    };
    AttributeValue { datatype: Datatype { class: Arc::new(class), committed: None }, value, ..like.clone() }
}

/// Creates a list of variable-length strings like `like`, which keeps its type if that is a variable-length string.
pub(crate) fn with_strings(like: &AttributeValue, strings: &[String]) -> AttributeValue {
    let mut value = Vec::new();
    for text in strings {
        value.extend_from_slice(&(text.len() as u64).to_le_bytes());
        value.extend_from_slice(text.as_bytes());
    }
    let dims = vec![strings.len() as u64];
    let datatype = match &*like.datatype.class {
        TypeClass::VariableString { .. } => like.datatype.clone(),
        _ => {
            let class = TypeClass::VariableString { len_bytes: 16, padding: 0, charset: 1 };
            Datatype { class: Arc::new(class), committed: None }
        }
    };
    AttributeValue { datatype, dataspace: Dataspace::Simple { max_dims: dims.clone(), dims }, value, ..like.clone() }
}

/// Creates an attribute of numbers with the type and extent of `like`; returns `None` if they do not fit.
pub fn with_integers(like: &AttributeValue, values: &[i64]) -> Option<AttributeValue> {
    let number = NumberType::of(&like.datatype.class)?;
    let elements = like.dataspace.element_count()?;
    let mut value = Vec::new();
    number.encode_integers(values, &mut value).ok()?;
    (elements == values.len() as u64 && like.dataspace != Dataspace::Null)
        .then(|| AttributeValue { value, ..like.clone() })
}

/// Returns the attributes with one attribute replaced, or added at the end.
pub fn replaced(attributes: &[AttributeValue], new: AttributeValue) -> Arc<[AttributeValue]> {
    let mut all = attributes.to_vec();
    match all.iter_mut().find(|attribute| attribute.name == new.name) {
        Some(known) => *known = new,
        None => all.push(new),
    }
    all.into()
}

/// Returns the attributes except those with these names.
pub fn without(attributes: &[AttributeValue], names: &[&str]) -> Arc<[AttributeValue]> {
    attributes.iter().filter(|attribute| !names.iter().any(|name| attribute.name == name.as_bytes())).cloned().collect()
}

/// Describes the value of an attribute for messages.
pub fn words(attribute: &AttributeValue) -> String {
    describe_value(&attribute.datatype.class, &attribute.dataspace, &attribute.value)
}

/// Returns whether an attribute states that a netCDF file follows the classic model. This model has no groups, so
/// programs of the netCDF library could not copy a file with the group of provenance.
pub(crate) fn marks_classic_model(path: &[u8], attribute: &AttributeValue) -> bool {
    path == b"/" && attribute.name == b"_nc3_strict"
}
