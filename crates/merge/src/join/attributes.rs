//! Attributes of an object that several inputs have: compared, or in a union put together.
//!
//! Not for values of datasets. Invariant: the order in which an object lists its attributes makes no difference.

use super::DifferenceKind;
use crate::schema::{AttributeValue, display_path};
use raddle_hdf5::model::Dataspace;
use std::collections::HashSet;
use std::sync::Arc;

/// Adds to `known` what `found` has besides, for an object that several inputs of a union share.
pub(super) fn unite_attributes(
    known: &mut Arc<[AttributeValue]>,
    found: &[AttributeValue],
    dropped: &mut HashSet<Vec<u8>>,
    report: &mut impl FnMut(DifferenceKind, String, String),
) {
    let is_compared = |attribute: &&AttributeValue| attribute.name != REFERENCE_LIST;
    let in_both = |list: &[AttributeValue], other: &[AttributeValue]| -> Vec<AttributeValue> {
        list.iter().filter(is_compared).filter(|attribute| !lacks(other, attribute)).cloned().collect()
    };
    compare_attributes(&in_both(known, found), &in_both(found, known), dropped, report);
    let mut united = known.to_vec();
    for attribute in found {
        match united.iter_mut().find(|other| other.name == attribute.name) {
            None => united.push(attribute.clone()),
            Some(list) if list.name == REFERENCE_LIST && list.datatype == attribute.datatype => {
                append_elements(list, attribute);
            }
            Some(_) => {}
        }
    }
    *known = united.into();
}

/// Where a dimension scale is attached: in a union, to datasets of all inputs.
const REFERENCE_LIST: &[u8] = b"REFERENCE_LIST";

fn append_elements(list: &mut AttributeValue, more: &AttributeValue) {
    if let (Dataspace::Simple { dims, max_dims }, [count]) = (&mut list.dataspace, more.dataspace.dims())
        && let [own] = dims.as_mut_slice()
    {
        *own += count;
        max_dims.clone_from(dims);
        list.value.extend_from_slice(&more.value);
    }
}

/// Whether `list` has no attribute of this name.
fn lacks(list: &[AttributeValue], attribute: &AttributeValue) -> bool {
    !list.iter().any(|other| other.name == attribute.name)
}

/// Reports how the attributes differ, if they do; `dropped` gets the names of those that are not the same in both.
pub(super) fn compare_attributes(
    expected: &[AttributeValue],
    found: &[AttributeValue],
    dropped: &mut HashSet<Vec<u8>>,
    report: &mut impl FnMut(DifferenceKind, String, String),
) {
    if expected == found {
        return;
    }
    let names = |names: &[&AttributeValue]| {
        let names: Vec<String> = names.iter().map(|attribute| display_path(&attribute.name)).collect();
        if names.is_empty() { "the same names".to_owned() } else { names.join(", ") }
    };
    let differing: Vec<&AttributeValue> = expected.iter().filter(|attribute| !found.contains(attribute)).collect();
    let added: Vec<&AttributeValue> = found.iter().filter(|attribute| lacks(expected, attribute)).collect();
    if differing.is_empty() && added.is_empty() {
        return; // the same attributes in another order
    }
    dropped.extend(differing.iter().map(|attribute| attribute.name.clone()));
    let gone: Vec<&AttributeValue> = differing.iter().copied().filter(|attribute| lacks(found, attribute)).collect();
    let change = match (gone.is_empty(), added.is_empty()) {
        (true, true) => "another value".to_owned(),
        (false, true) => format!("without {}", names(&gone)),
        (true, false) => format!("also {}", names(&added)),
        (false, false) => format!("without {}, also {}", names(&gone), names(&added)),
    };
    report(DifferenceKind::Attributes, names(&differing), change);
}
