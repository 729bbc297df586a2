//! Which dimension scales are attached to which variables, in the attributes of either.
//!
//! Variables list the scales of each axis (`DIMENSION_LIST`), and scales the places where they are attached
//! (`REFERENCE_LIST`). Invariant: the second follows from the first.

use crate::rules::NumberType;
use crate::rules::attribute::{named, replaced, without};
use crate::schema::{AttributeValue, Schema};
use raddle_hdf5::logical::CanonicalElements;
use raddle_hdf5::model::{Dataspace, Datatype, Member, ReferenceKind, TypeClass};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Brings the lists of scales up to date, where variables came to the first input's or got an axis more.
pub(super) fn complete(schema: &mut Schema) {
    let mut places: BTreeMap<Vec<u8>, Vec<(Vec<u8>, u32)>> = BTreeMap::new();
    for entry in &schema.entries {
        for (axis, scales) in (0..).zip(scales(&entry.attributes)) {
            for scale in scales {
                places.entry(scale).or_default().push((entry.path.clone(), axis));
            }
        }
    }
    for entry in &mut schema.entries {
        let known = named(&entry.attributes, REFERENCES);
        let found = places.get(&entry.path);
        let list = found.map(|places| reference_list(places));
        let is_listed = |list: &AttributeValue| known.is_some_and(|known| elements(known) == elements(list));
        entry.attributes = match list {
            Some(list) if !is_listed(&list) => replaced(&entry.attributes, list),
            None if known.is_some() => without(&entry.attributes, &[REFERENCES]),
            _ => continue,
        };
    }
}

/// Paths of the scales of each axis.
pub(super) fn scales(attributes: &[AttributeValue]) -> Vec<Vec<Vec<u8>>> {
    let Some(list) = named(attributes, "DIMENSION_LIST") else { return Vec::new() };
    let TypeClass::Sequence { base, .. } = &*list.datatype.class else { return Vec::new() };
    // Of each axis the number of its scales and then these, each with length and path.
    let of_axis = |of_axis: Option<&[u8]>| -> Vec<Vec<u8>> {
        let scales = of_axis.and_then(|of_axis| of_axis.get(LENGTH_LEN_BYTES..)).unwrap_or_default();
        let paths = CanonicalElements::new(base, scales).map(|scale| scale?.get(LENGTH_LEN_BYTES..));
        paths.flatten().filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
    };
    CanonicalElements::new(&list.datatype.class, &list.value).map(of_axis).collect()
}

/// Lengths in canonical bytes.
const LENGTH_LEN_BYTES: usize = 8;

const REFERENCES: &str = "REFERENCE_LIST";

/// The places of a list in canonical bytes, whatever their order.
fn elements(list: &AttributeValue) -> Option<BTreeSet<&[u8]>> {
    CanonicalElements::new(&list.datatype.class, &list.value).collect()
}

/// Scales of `rank` axes, of which the first has the scale at `record` and the others those of `known`.
pub(super) fn dimension_list(known: Option<&AttributeValue>, record: &[u8], rank: usize) -> AttributeValue {
    let mut value = 1_u64.to_le_bytes().to_vec();
    push_reference(record, &mut value);
    match known {
        Some(known) => value.extend_from_slice(&known.value),
        None => (1..rank).for_each(|_| value.extend_from_slice(&0_u64.to_le_bytes())),
    }
    let base = Arc::new(TypeClass::Reference(ReferenceKind::Object));
    attribute("DIMENSION_LIST", TypeClass::Sequence { base, len_bytes: 16 }, Some(rank), value)
}

/// The places where a scale is attached.
fn reference_list(places: &[(Vec<u8>, u32)]) -> AttributeValue {
    let axis = NumberType::Integer { len_bytes: 4, signed: false, is_big_endian: false }.class();
    let members = vec![
        Member {
            name: b"dataset".to_vec(),
            offset_bytes: 0,
            class: Arc::new(TypeClass::Reference(ReferenceKind::Object)),
        },
        Member { name: b"dimension".to_vec(), offset_bytes: 8, class: Arc::new(axis) },
    ];
    let mut value = Vec::new();
    for (path, axis) in places {
        push_reference(path, &mut value);
        value.extend_from_slice(&axis.to_le_bytes());
    }
    attribute(REFERENCES, TypeClass::Compound { len_bytes: 16, members }, Some(places.len()), value)
}

/// A text of fixed length that ends with a zero, as the library of dimension scales writes them.
pub(super) fn fixed_text(name: &str, text: &[u8]) -> AttributeValue {
    let value = [text, b"\0"].concat();
    let class = TypeClass::FixedString { len_bytes: value.len() as u32, padding: 0, charset: 0 };
    attribute(name, class, None, value)
}

/// An attribute of `count` elements, or a scalar.
fn attribute(name: &str, class: TypeClass, count: Option<usize>, value: Vec<u8>) -> AttributeValue {
    let dataspace = count.map_or(Dataspace::Scalar, |count| {
        let dims = vec![count as u64];
        Dataspace::Simple { max_dims: dims.clone(), dims }
    });
    let datatype = Datatype { class: Arc::new(class), committed: None };
    AttributeValue { name: name.as_bytes().to_vec(), utf8: false, datatype, committed: None, dataspace, value }
}

/// Appends the canonical bytes of a reference to the object at `path`.
fn push_reference(path: &[u8], value: &mut Vec<u8>) {
    value.extend_from_slice(&(path.len() as u64).to_le_bytes());
    value.extend_from_slice(path);
}
