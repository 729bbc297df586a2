//! Which datasets of a file are kept once because they describe axes along which nothing is concatenated.
//!
//! Dimension scales keep a list of where they are attached (datasets and axes), and datasets one of their scales. A scale of
//! trailing axes is kept: concatenated it would be longer than the axes that it describes. So is what lies along such a scale, as
//! bounds and areas of cells do, if the file has an axis along which it grows. Not for values: those must then be equal.
//! Invariant: a scale that can grow and is attached to a first axis is concatenated, as is everything along it.

use crate::paths::Paths;
use crate::scan::{ScannedEntry, ScannedRole};
use crate::schema::{AttributeValue, Schema};
use raddle_hdf5::logical::CanonicalElements;
use raddle_hdf5::model::{Dataspace, TypeClass};
use std::collections::HashSet;
use std::sync::Arc;

/// Lengths in canonical bytes.
const LENGTH_LEN_BYTES: usize = 8;

/// Numbers of the entries of one file that are kept once, ascending.
pub(crate) fn kept_once(paths: &Paths, entries: &[ScannedEntry]) -> Vec<usize> {
    let scales: Vec<(usize, Scale)> =
        entries.iter().enumerate().filter_map(|(at, entry)| Scale::of(entry).map(|scale| (at, scale))).collect();
    let is_static = |scale: &Scale| scale.has_trailing && !(scale.has_first && scale.can_grow);
    let grows = scales.iter().any(|(_, scale)| scale.has_first && !is_static(scale));
    // Without an axis that grows, what is attached to any first axis is that.
    let kept = |scale: &Scale| is_static(scale) && (grows || !scale.has_first);
    let of_scales: Vec<usize> = scales.iter().filter(|(_, scale)| kept(scale)).map(|&(at, _)| at).collect();
    let names: HashSet<&[u8]> = of_scales.iter().map(|&at| paths.get(at)).collect();
    let lies_along = |entry: &ScannedEntry| {
        matches!(entry.role, ScannedRole::Column { .. })
            && first_scale(&entry.attributes).is_some_and(|scale| names.contains(scale))
    };
    let mut all = of_scales.clone();
    if !names.is_empty() {
        all.extend((0..entries.len()).filter(|&at| lies_along(&entries[at])));
        all.sort_unstable();
        all.dedup();
    }
    all
}

/// Takes datasets that the schema lacks out of the lists of where dimension scales are attached.
pub(crate) fn drop_missing(schema: &mut Schema) {
    let paths: HashSet<Vec<u8>> = schema.entries.iter().map(|entry| entry.path.clone()).collect();
    for entry in &mut schema.entries {
        if let Some(attributes) = without_missing(&entry.attributes, |path| paths.contains(path)) {
            entry.attributes = attributes;
        }
    }
}

/// The attributes of a dimension scale without the places of datasets that `exists` denies; `None` if it denies none.
fn without_missing(attributes: &[AttributeValue], exists: impl Fn(&[u8]) -> bool) -> Option<Arc<[AttributeValue]>> {
    let at = attributes.iter().position(|attribute| attribute.name == b"REFERENCE_LIST")?;
    let list = &attributes[at];
    // Length and path of the dataset, then the axis as a 32-bit integer.
    let path = |element: &[u8]| element.get(LENGTH_LEN_BYTES..element.len().saturating_sub(4)).map(<[u8]>::to_vec);
    let all: Vec<&[u8]> = CanonicalElements::new(&list.datatype.class, &list.value).collect::<Option<_>>()?;
    let kept: Vec<&[u8]> =
        all.iter().copied().filter(|element| path(element).is_some_and(|path| exists(&path))).collect();
    if kept.len() == all.len() {
        return None;
    }
    let mut attributes = attributes.to_vec();
    if kept.is_empty() {
        attributes.remove(at);
    } else {
        let dims = vec![kept.len() as u64];
        let dataspace = Dataspace::Simple { max_dims: dims.clone(), dims };
        attributes[at] = AttributeValue { value: kept.concat(), dataspace, ..list.clone() };
    }
    Some(attributes.into())
}

/// Where a dimension scale is attached.
struct Scale {
    /// To a first axis.
    has_first: bool,
    /// To another axis.
    has_trailing: bool,
    /// Its own length has no limit, or another than it has.
    can_grow: bool,
}

impl Scale {
    fn of(entry: &ScannedEntry) -> Option<Self> {
        let ScannedRole::Column { template, .. } = &entry.role else { return None };
        named(&entry.attributes, b"CLASS").filter(|class| class.value.starts_with(b"DIMENSION_SCALE"))?;
        let list = named(&entry.attributes, b"REFERENCE_LIST")?;
        let (mut has_first, mut has_trailing) = (false, false);
        for element in CanonicalElements::new(&list.datatype.class, &list.value) {
            // Length and path of the dataset, then the axis as a 32-bit integer.
            match element.and_then(|bytes| bytes.last_chunk::<4>()) {
                Some([0, 0, 0, 0]) => has_first = true,
                Some(_) => has_trailing = true,
                None => return None,
            }
        }
        let can_grow = match &template.dataspace {
            Dataspace::Simple { max_dims, .. } => max_dims.first() == Some(&u64::MAX),
            _ => false,
        };
        Some(Self { has_first, has_trailing, can_grow })
    }
}

/// Path of the first scale of a dataset's first axis.
fn first_scale(attributes: &[AttributeValue]) -> Option<&[u8]> {
    let list = named(attributes, b"DIMENSION_LIST")?;
    let TypeClass::Sequence { base, .. } = &*list.datatype.class else { return None };
    // Of each axis the number of its scales and then these, each with length and path.
    let of_axis = CanonicalElements::new(&list.datatype.class, &list.value).next()??;
    let (_, scales) = of_axis.split_at_checked(LENGTH_LEN_BYTES)?;
    let scale = CanonicalElements::new(base, scales).next()??;
    scale.get(LENGTH_LEN_BYTES..)
}

fn named<'a>(attributes: &'a [AttributeValue], name: &[u8]) -> Option<&'a AttributeValue> {
    attributes.iter().find(|attribute| attribute.name == name)
}
