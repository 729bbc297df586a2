//! Elements on the other axis or on none, with their values: read in the order of the output, and written once.
//!
//! Sources: `Reindexer` and `merge_nested` of `anndata._core.merge`. Elements are compared in [`super::equality`].

use super::names::Alignment;
use super::output::{AssembledTree, constant_like};
use super::tree::{CombineResult, Node};
use crate::schema::attribute::{named, strings};
use crate::schema::{AttributeValue, child_path};
use raddle_hdf5::logical::{CanonicalElements, append_null};
use raddle_hdf5::model::{Dataset, TypeClass};
use raddle_hdf5::number::NumberType;
use std::sync::Arc;

/// Element of one input, reordered like the output.
#[derive(Debug, Clone)]
pub(super) struct InputElement<'a> {
    /// Object in the input.
    pub node: Node<'a>,
    /// Attributes of the element.
    pub attributes: Arc<[AttributeValue]>,
    /// Contents of the element.
    pub content: ElementContent<'a>,
}

/// Contents of an element.
#[derive(Debug, Clone)]
pub(super) enum ElementContent<'a> {
    /// Scalar or null dataset.
    Scalar(&'a Dataset, &'a [u8]),
    /// An array.
    Array(ElementArray<'a>),
    /// Several parts with their names.
    Parts(Vec<(&'a [u8], InputElement<'a>)>),
}

/// Array with its values.
#[derive(Debug, Clone)]
pub(super) struct ElementArray<'a> {
    model: &'a Dataset,
    /// Type of the values.
    pub class: TypeClass,
    /// Sizes of the axes.
    pub dims: Vec<u64>,
    /// Canonical bytes of the values.
    pub values: Vec<u8>,
    /// Rows that the input lacks, if the type has no value for missing elements.
    pub lacking: Vec<u64>,
}

/// Axes of an element that are matched by name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axes<'a> {
    /// Mapping of the elements of the axis.
    pub alignment: &'a Alignment,
    /// Number of leading axes that are matched.
    pub count: usize,
}

/// Kinds of elements, with their supported versions.
const ARRAYS: [(&str, &str); 3] = [("array", "0.2.0"), ("string-array", "0.2.0"), ("rec-array", "0.2.0")];
const SCALARS: [(&str, &str); 3] = [("string", "0.2.0"), ("numeric-scalar", "0.2.0"), ("null", "0.1.0")];
pub(super) const NULLABLE: [(&str, &str); 3] =
    [("nullable-integer", "0.1.0"), ("nullable-boolean", "0.1.0"), ("nullable-string-array", "0.1.0")];
pub(super) const TABLES: [(&str, &str); 2] = [("categorical", "0.2.0"), ("dataframe", "0.2.0")];
pub(super) const SPARSE: [(&str, &str); 2] = [("csr_matrix", "0.1.0"), ("csc_matrix", "0.1.0")];

/// Returns whether `kind` is one of the `kinds`, whatever its version.
pub(super) fn is_kind(kinds: &[(&str, &str)], kind: &str) -> bool {
    kinds.iter().any(|(known, _)| *known == kind)
}

/// Reads an element of an input; `axes` are the axes that are matched by name.
pub(super) fn read<'a>(node: Node<'a>, axes: Option<Axes<'_>>) -> CombineResult<InputElement<'a>> {
    let kind = node.encoding();
    let is = |kinds: &[(&str, &str)]| is_kind(kinds, &kind);
    let attributes = Arc::clone(node.attributes());
    let content = if is(&SCALARS) {
        node.expect(&SCALARS)?;
        let Some((dataset, value)) = node.constant() else { return node.refuse("a scalar", "another kind of object") };
        ElementContent::Scalar(dataset, value)
    } else if is(&ARRAYS) {
        node.expect(&ARRAYS)?;
        ElementContent::Array(array(node, axes, &MissingRows::Nan)?)
    } else if is(&NULLABLE) {
        node.expect(&NULLABLE)?;
        let values = array(node.dataset(b"values")?, axes, &MissingRows::Anything)?;
        let mask = array(node.dataset(b"mask")?, axes, &MissingRows::True)?;
        ElementContent::Parts(vec![part(node, b"values", values)?, part(node, b"mask", mask)?])
    } else if kind == "categorical" {
        node.expect(&TABLES)?;
        let codes = array(node.dataset(b"codes")?, axes, &MissingRows::MinusOne)?;
        let categories = array(node.dataset(b"categories")?, None, &MissingRows::Nan)?;
        ElementContent::Parts(vec![part(node, b"codes", codes)?, part(node, b"categories", categories)?])
    } else if kind == "dataframe" {
        node.expect(&TABLES)?;
        let inside =
            frame_columns(node)?.into_iter().map(|name| name.into_bytes()).chain([index_name(node)?.into_bytes()]);
        let mut parts = Vec::new();
        for name in inside {
            let Some(child) = node.child(&name) else {
                return node.refuse(format!("column {}", String::from_utf8_lossy(&name)), "none");
            };
            parts.push((child.name(), read(child, axes.map(|axes| Axes { count: 1, ..axes }))?));
        }
        ElementContent::Parts(parts)
    } else if is(&SPARSE) {
        node.expect(&SPARSE)?;
        let is_moved = axes.is_some_and(|axes| axes.alignment.of_inputs[node.input as usize].is_some());
        if is_moved {
            return node
                .refuse("the same names in the same order", "a sparse matrix of others; leave it out with --exclude");
        }
        let parts = [b"data".as_slice(), b"indices", b"indptr"].map(|name| {
            let values = array(node.dataset(name)?, None, &MissingRows::Nan)?;
            part(node, name, values)
        });
        ElementContent::Parts(parts.into_iter().collect::<CombineResult<_>>()?)
    } else if kind == "dict" {
        let mut parts = Vec::new();
        for child in node.children() {
            parts.push((child.name(), read(child, axes)?));
        }
        ElementContent::Parts(parts)
    } else {
        return node.refuse("an element that can be compared", format!("{kind}; leave it out with --exclude"));
    };
    Ok(InputElement { node, attributes, content })
}

fn part<'a>(node: Node<'a>, name: &[u8], array: ElementArray<'a>) -> CombineResult<(&'a [u8], InputElement<'a>)> {
    let node = node.dataset(name)?;
    Ok((
        node.name(),
        InputElement { node, attributes: Arc::clone(node.attributes()), content: ElementContent::Array(array) },
    ))
}

/// Returns the names of the columns of a data frame, in order.
pub(super) fn frame_columns(node: Node<'_>) -> CombineResult<Vec<String>> {
    let Some(order) = named(node.attributes(), "column-order") else {
        return node.refuse("an attribute column-order", "none");
    };
    // An empty list is stored as numbers.
    if order.dataspace.element_count() == Some(0) {
        return Ok(Vec::new());
    }
    match strings(order) {
        Some(strings) => Ok(strings),
        None => node.refuse("an attribute column-order of strings", "another type"),
    }
}

/// Returns the name of the dataset that holds the index of a data frame.
pub(super) fn index_name(node: Node<'_>) -> CombineResult<String> {
    match node.text("_index") {
        Some(name) => Ok(name),
        None => node.refuse("an attribute _index", "none"),
    }
}

/// Values of rows that an input lacks.
enum MissingRows {
    /// NaN; integers become floats.
    Nan,
    /// The code of a missing category.
    MinusOne,
    /// True.
    True,
    /// Any value, because it is never read.
    Anything,
}

fn array<'a>(node: Node<'a>, axes: Option<Axes<'_>>, missing: &MissingRows) -> CombineResult<ElementArray<'a>> {
    let Some((model, _)) = node.column() else { return node.refuse("an array", "another kind of object") };
    let (mut dims, mut class) = (node.dims().unwrap_or_default(), (*model.datatype.class).clone());
    let mut values = node.kept()?.to_vec();
    let mut lacking = Vec::new();
    if let Some(Axes { alignment, count }) = axes {
        let input = node.input as usize;
        if dims.len() < count || dims[..count].iter().any(|&dim| dim != alignment.lens[input]) {
            let sizes = format!("{dims:?}");
            return node.refuse(format!("{} elements", alignment.lens[input]), sizes);
        }
        if let Some(from) = &alignment.of_inputs[input] {
            if from.contains(&None)
                && let MissingRows::Nan = missing
            {
                (class, values) = with_nan(node, class, values)?;
            }
            let null = match (missing, NumberType::of(&class)) {
                (MissingRows::Nan, Some(number @ NumberType::Float { .. })) => {
                    let mut nan = Vec::new();
                    number.encode_floats(&[f64::NAN], &mut nan);
                    nan
                }
                (MissingRows::MinusOne, _) => vec![0xff; class.len_bytes() as usize],
                (MissingRows::True, _) => true_value(&class),
                _ => {
                    let mut null = Vec::new();
                    append_null(&class, &mut null);
                    null
                }
            };
            if matches!(missing, MissingRows::Nan) && NumberType::of(&class).is_none() {
                lacking = (0..).zip(from.iter()).filter(|(_, place)| place.is_none()).map(|(at, _)| at).collect();
            }
            for axis in 0..count {
                values = gathered(&class, &values, &dims, axis, from, &null);
                dims[axis] = alignment.len;
            }
        }
    }
    Ok(ElementArray { model, class, dims, values, lacking })
}

/// Converts values to a type that can represent NaN.
fn with_nan(node: Node<'_>, class: TypeClass, values: Vec<u8>) -> CombineResult<(TypeClass, Vec<u8>)> {
    let Some(number @ NumberType::Integer { .. }) = NumberType::of(&class) else { return Ok((class, values)) };
    let (mut integers, mut floats, mut out) = (Vec::new(), Vec::new(), Vec::new());
    let is_whole = number.decode_floats(&values, &mut integers, &mut floats);
    if !is_whole || integers.iter().any(|value| value.unsigned_abs() > 1 << 53) {
        return node.refuse("integers that 64-bit floats hold, for names that an input lacks", "larger ones");
    }
    let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
    double.encode_floats(&floats, &mut out);
    Ok((double.class(), out))
}

/// Returns the value that readers interpret as true.
fn true_value(class: &TypeClass) -> Vec<u8> {
    match class {
        TypeClass::Enum { symbols, .. } => symbols
            .iter()
            .find(|symbol| symbol.0 == b"TRUE")
            .map_or_else(|| vec![1; class.len_bytes() as usize], |symbol| symbol.1.clone()),
        _ => vec![1],
    }
}

/// Gathers slabs of an axis from other positions.
fn gathered(class: &TypeClass, values: &[u8], dims: &[u64], axis: usize, from: &[Option<u32>], null: &[u8]) -> Vec<u8> {
    let elements: Vec<&[u8]> = CanonicalElements::new(class, values).flatten().collect();
    let run = dims[axis + 1..].iter().product::<u64>() as usize;
    let slabs = dims[..axis].iter().product::<u64>() as usize;
    let mut out = Vec::with_capacity(values.len());
    for slab in 0..slabs {
        for place in from {
            match place {
                Some(at) => {
                    let start = (slab * dims[axis] as usize + *at as usize) * run;
                    elements[start..start + run].iter().for_each(|element| out.extend_from_slice(element));
                }
                None => (0..run).for_each(|_| out.extend_from_slice(null)),
            }
        }
    }
    out
}

impl InputElement<'_> {
    /// Returns the array of this name among the parts of the element.
    pub fn part(&self, name: &[u8]) -> Option<&ElementArray<'_>> {
        let ElementContent::Parts(parts) = &self.content else { return None };
        parts.iter().find(|(known, _)| *known == name).and_then(|(_, value)| match &value.content {
            ElementContent::Array(array) => Some(array),
            _ => None,
        })
    }

    /// Writes the element at `path`.
    pub fn write(&self, path: Vec<u8>, out: &mut AssembledTree) -> CombineResult<()> {
        match &self.content {
            ElementContent::Scalar(dataset, value) => {
                out.constant(path, self.node, (*dataset).clone(), value.to_vec());
            }
            ElementContent::Array(array) => {
                if !array.lacking.is_empty() {
                    return self.node.refuse(
                        "a value for every name",
                        "none for some, which would be missing strings or truth values; leave it out with --exclude",
                    );
                }
                let dataset = constant_like(array.model, &array.class, array.dims.clone());
                out.constant(path, self.node, dataset, array.values.clone());
            }
            ElementContent::Parts(parts) => {
                out.group(path.clone(), self.node, Arc::clone(&self.attributes));
                for (name, value) in parts {
                    value.write(child_path(&path, name), out)?;
                }
            }
        }
        Ok(())
    }
}

impl ElementArray<'_> {
    /// Returns whether element `at` of a mask is true.
    pub fn is_true(&self, at: usize) -> bool {
        let len = self.class.len_bytes() as usize;
        self.values[at * len..(at + 1) * len] == true_value(&self.class)
    }
}
