//! Comparison, or union, of the attributes of an object that several inputs have.
//!
//! Values of datasets are compared elsewhere. Invariant: the order in which an object lists its attributes makes no
//! difference.

use super::contrast::{TypedValue, contrast};
use super::{DifferenceKind, describe_value};
use crate::scan::scale_lists::REFERENCE_LIST;
use crate::schema::attribute::places_by_name;
use crate::schema::{AttributeValue, display_path};
use raddle_hdf5::model::Dataspace;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Set of attributes that must be equal because they define the meaning of values: with the attributes of another
/// input, values would be read as other quantities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// Attributes that define the meaning of a dataset's values.
    Meaning,
    /// Like `Meaning`, for a dataset without values so far: it may lack attributes that the next input has.
    OtherMeaning,
    /// None: the object is a group, the input has no values, or `--convention none` was given.
    Nothing,
}

/// Names of attributes that define which numbers stored values mean, as lower-case letters; they mean the same in most
/// formats.
const SCALE: [&[u8]; 22] = [
    b"units",
    b"unit",
    b"unitsi",
    b"scalefactor",
    b"scalingfactor",
    b"scale",
    b"gain",
    b"slope",
    b"calslope",
    b"addoffset",
    b"offset",
    b"intercept",
    b"caloffset",
    b"unsigned",
    b"calendar",
    b"deltat",
    b"samplingrate",
    b"samplerate",
    b"samplingfrequency",
    b"samplefrequency",
    b"samplinginterval",
    b"sampleinterval",
];

/// Names of attributes that define which stored values are missing, as lower-case letters.
const MISSING: [&[u8]; 2] = [b"fillvalue", b"missingvalue"];

/// Ways to resolve a difference in an attribute that defines the meaning of values.
pub(super) const GUARDED: &str =
    "--attributes stack keeps each, --convention none the first, --exclude leaves the dataset out";

impl Guard {
    /// Returns whether inputs must have equal values of this attribute; `is_lacking` states whether the inputs so far
    /// lack it.
    fn holds(self, name: &[u8], is_lacking: bool) -> bool {
        let is_asked = match self {
            Self::Meaning => true,
            Self::OtherMeaning => !is_lacking,
            Self::Nothing => false,
        };
        is_asked && (defines_scale(name) || MISSING.iter().any(|guarded| are_same_letters(name, guarded)))
    }
}

/// Returns whether the attribute with this name defines which numbers stored values mean, such as `units`.
pub(crate) fn defines_scale(name: &[u8]) -> bool {
    SCALE.iter().any(|guarded| are_same_letters(name, guarded))
}

/// Returns whether a name is spelt with these lower-case letters: `Scale_Factor`, `SCALE FACTOR` and `ScaleFactor` are the
/// same.
pub(super) fn are_same_letters(name: &[u8], letters: &[u8]) -> bool {
    let of_name = name.iter().filter(|byte| !b"_ -".contains(byte)).map(u8::to_ascii_lowercase);
    of_name.eq(letters.iter().copied())
}

/// Adds attributes of `found` that `known` lacks, for an object that several inputs of a union share.
pub(super) fn unite_attributes(
    known: &mut Arc<[AttributeValue]>,
    found: &[AttributeValue],
    guard: Guard,
    dropped: &mut HashSet<Vec<u8>>,
    report: &mut dyn FnMut(DifferenceKind, String, String),
) {
    let is_compared = |attribute: &&AttributeValue| attribute.name != REFERENCE_LIST.as_bytes();
    let in_both = |list: &[AttributeValue], other: &HashMap<&[u8], usize>| -> Vec<AttributeValue> {
        list.iter().filter(is_compared).filter(|attribute| other.contains_key(&*attribute.name)).cloned().collect()
    };
    let places = places_by_name(known);
    let (of_known, of_found) = (in_both(known, &places_by_name(found)), in_both(found, &places));
    compare_attributes(&of_known, &of_found, guard, dropped, report);
    let mut united = known.to_vec();
    for attribute in found {
        match places.get(&*attribute.name).map(|&place| &mut united[place]) {
            None => united.push(attribute.clone()),
            Some(list) if list.name == REFERENCE_LIST.as_bytes() && list.datatype == attribute.datatype => {
                append_elements(list, attribute);
            }
            Some(_) => {}
        }
    }
    *known = united.into();
}

fn append_elements(list: &mut AttributeValue, more: &AttributeValue) {
    if let (Dataspace::Simple { dims, max_dims }, [count]) = (&mut list.dataspace, more.dataspace.dims())
        && let [len] = dims.as_mut_slice()
    {
        *len += count;
        max_dims.clone_from(dims);
        list.value.extend_from_slice(&more.value);
    }
}

/// Reports each attribute that differs; adds the names of attributes of `expected` that differ to `dropped`.
pub(super) fn compare_attributes(
    expected: &[AttributeValue],
    found: &[AttributeValue],
    guard: Guard,
    dropped: &mut HashSet<Vec<u8>>,
    report: &mut dyn FnMut(DifferenceKind, String, String),
) {
    let mut report = |name: &[u8], is_lacking, expected: String, found: String| match guard.holds(name, is_lacking) {
        true => report(DifferenceKind::Meaning, expected, format!("{found}; {GUARDED}")),
        false => report(DifferenceKind::Attributes, expected, found),
    };
    if expected == found {
        return;
    }
    let (of_expected, of_found) = (places_by_name(expected), places_by_name(found));
    for attribute in expected {
        match of_found.get(&*attribute.name).map(|&place| &found[place]) {
            Some(other) if other == attribute => continue,
            Some(other) => {
                let (expected, found) = contrast_attributes(attribute, other);
                report(&attribute.name, false, expected, found);
            }
            None => report(&attribute.name, false, describe_attribute(attribute), absent(attribute)),
        }
        dropped.insert(attribute.name.clone());
    }
    for attribute in found.iter().filter(|attribute| !of_expected.contains_key(&*attribute.name)) {
        report(&attribute.name, true, absent(attribute), describe_attribute(attribute));
    }
}

/// Formats an attribute as `name = value`.
pub(super) fn describe_attribute(attribute: &AttributeValue) -> String {
    let value = describe_value(&attribute.datatype.class, &attribute.dataspace, &attribute.value);
    format!("{} = {value}", display_path(&attribute.name))
}

pub(super) fn absent(attribute: &AttributeValue) -> String {
    format!("no {}", display_path(&attribute.name))
}

/// Describes two unequal attributes of the same name; the descriptions differ.
fn contrast_attributes(expected: &AttributeValue, found: &AttributeValue) -> (String, String) {
    let (left, right) = (value_of(expected), value_of(found));
    if left != right {
        return contrast(&display_path(&expected.name), left, right);
    }
    let marked = |attribute: &AttributeValue| {
        let charset = if attribute.utf8 { "UTF-8" } else { "ASCII" };
        let datatype = attribute.committed.as_ref().map_or("its own".to_owned(), |path| display_path(path));
        format!("{} (name in {charset}, datatype {datatype})", describe_attribute(attribute))
    };
    (marked(expected), marked(found))
}

fn value_of(attribute: &AttributeValue) -> TypedValue<'_> {
    let AttributeValue { datatype, dataspace, value, .. } = attribute;
    TypedValue { class: &datatype.class, dataspace, canonical: value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::attribute::fixed_text;

    /// With a search of the whole list for each name, this would take minutes.
    #[test]
    fn objects_may_have_many_attributes_in_any_order() {
        let list = |names: std::ops::Range<u32>, text: &[u8]| -> Vec<AttributeValue> {
            names.map(|number| fixed_text(&format!("attribute {number}"), text)).collect()
        };
        let expected = list(0..100_000, b"a");
        let mut found = list(1..100_001, b"b");
        found.reverse();
        let (mut dropped, mut differences) = (HashSet::new(), Vec::new());
        compare_attributes(&expected, &found, Guard::Nothing, &mut dropped, &mut |_, expected, found| {
            differences.push((expected, found));
        });
        assert_eq!((dropped.len(), differences.len()), (100_000, 100_001));
        assert_eq!(differences[0].1, "no attribute 0");
        assert_eq!(differences[100_000].0, "no attribute 100000");
        let mut known: Arc<[AttributeValue]> = expected.into();
        unite_attributes(&mut known, &found, Guard::Nothing, &mut dropped, &mut |_, _, _| {});
        assert_eq!(known.len(), 100_001);
        assert_eq!(known[0].value, fixed_text("", b"a").value);
    }
}
