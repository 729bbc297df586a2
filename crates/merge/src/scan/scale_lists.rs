//! The two lists by which HDF5 attaches dimension scales: each dataset lists the scales of its axes (`DIMENSION_LIST`),
//! each scale the places where it is attached (`REFERENCE_LIST`).
//!
//! These attributes are read and created here in canonical bytes. How a merge uses scales is decided elsewhere.
//! Invariant: a list that is created here reads back as its source.

use crate::schema::AttributeValue;
use crate::schema::attribute::{named, new};
use raddle_hdf5::logical::CanonicalElements;
use raddle_hdf5::model::{Member, ReferenceKind, TypeClass};
use raddle_hdf5::number::NumberType;
use std::sync::Arc;

/// Name of a dataset's attribute that lists the scales of each axis.
pub(crate) const DIMENSION_LIST: &str = "DIMENSION_LIST";
/// Name of a dataset's attribute with a label per axis.
pub(crate) const DIMENSION_LABELS: &str = "DIMENSION_LABELS";
/// Name of a scale's attribute that lists where it is attached.
pub(crate) const REFERENCE_LIST: &str = "REFERENCE_LIST";

/// Size of the length that precedes a sequence or a path in canonical bytes.
const LENGTH_LEN_BYTES: usize = 8;
/// Size of the axis number that follows the path in an entry of `REFERENCE_LIST`.
const AXIS_LEN_BYTES: usize = 4;

/// Returns the paths of the scales of each axis.
pub(crate) fn scales(attributes: &[AttributeValue]) -> Vec<Vec<Vec<u8>>> {
    let Some(list) = named(attributes, DIMENSION_LIST) else { return Vec::new() };
    let TypeClass::Sequence { base, .. } = &*list.datatype.class else { return Vec::new() };
    // For each axis: the number of its scales, then the scales, each as length and path.
    let of_axis = |of_axis: Option<&[u8]>| -> Vec<Vec<u8>> {
        let scales = of_axis.and_then(|of_axis| of_axis.get(LENGTH_LEN_BYTES..)).unwrap_or_default();
        let paths = CanonicalElements::new(base, scales).map(|scale| scale?.get(LENGTH_LEN_BYTES..));
        paths.flatten().filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
    };
    CanonicalElements::new(&list.datatype.class, &list.value).map(of_axis).collect()
}

/// Returns the path and the axis of each place in a `REFERENCE_LIST`; `None` if it is not one.
pub(crate) fn places(list: &AttributeValue) -> Option<Vec<(Vec<u8>, u32)>> {
    let place = |element: Option<&[u8]>| {
        let (path, axis) = element?.split_at_checked(element?.len().checked_sub(AXIS_LEN_BYTES)?)?;
        Some((path.get(LENGTH_LEN_BYTES..)?.to_vec(), u32::from_le_bytes(*axis.first_chunk()?)))
    };
    CanonicalElements::new(&list.datatype.class, &list.value).map(place).collect()
}

/// Creates the list of a dataset of `rank` axes: `first` is the scale of the first axis, the others are taken from
/// `known`.
pub(crate) fn with_first_scale(known: Option<&AttributeValue>, first: &[u8], rank: usize) -> AttributeValue {
    let mut value = 1_u64.to_le_bytes().to_vec();
    push_reference(first, &mut value);
    match known {
        Some(known) => value.extend_from_slice(&known.value),
        None => (1..rank).for_each(|_| value.extend_from_slice(&0_u64.to_le_bytes())),
    }
    let base = Arc::new(TypeClass::Reference(ReferenceKind::Object));
    new(DIMENSION_LIST, TypeClass::Sequence { base, len_bytes: 16 }, &[rank as u64], value)
}

/// Creates the list of a scale that is attached at `places`.
pub(crate) fn reference_list(places: &[(Vec<u8>, u32)]) -> AttributeValue {
    let axis = NumberType::Integer { len_bytes: AXIS_LEN_BYTES as u8, signed: false, is_big_endian: false }.class();
    let dataset = Arc::new(TypeClass::Reference(ReferenceKind::Object));
    let members = vec![
        Member { name: b"dataset".to_vec(), offset_bytes: 0, class: dataset },
        Member { name: b"dimension".to_vec(), offset_bytes: 8, class: Arc::new(axis) },
    ];
    let mut value = Vec::new();
    for (path, axis) in places {
        push_reference(path, &mut value);
        value.extend_from_slice(&axis.to_le_bytes());
    }
    new(REFERENCE_LIST, TypeClass::Compound { len_bytes: 16, members }, &[places.len() as u64], value)
}

/// Appends the canonical bytes of a reference to the object at `path`.
fn push_reference(path: &[u8], value: &mut Vec<u8>) {
    value.extend_from_slice(&(path.len() as u64).to_le_bytes());
    value.extend_from_slice(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_as_what_they_were_made_of() {
        let [time, x] = [b"/time", b"/x".as_slice()].map(<[u8]>::to_vec);
        let of_x = with_first_scale(None, &x, 2);
        assert_eq!(scales(std::slice::from_ref(&of_x)), [vec![x.clone()], vec![]]);
        let both = with_first_scale(Some(&of_x), &time, 3);
        assert_eq!(scales(&[both]), [vec![time.clone()], vec![x.clone()], vec![]]);
        let attached = vec![(b"/tas".to_vec(), 1), (x, 70_000)];
        assert_eq!(places(&reference_list(&attached)), Some(attached));
    }
}
