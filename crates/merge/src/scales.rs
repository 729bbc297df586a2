//! Which datasets of a file are kept once because they describe axes along which nothing is concatenated.
//!
//! Dimension scales keep a list of where they are attached (datasets and axes), and datasets one of their scales. A scale of
//! trailing axes is kept: concatenated it would be longer than the axes that it describes. So is what lies along such a scale, as
//! bounds and areas of cells do, if the file has an axis along which it grows. Not for values: those must then be equal.
//! Invariant: a scale that can grow and is attached to a first axis is concatenated, as is everything along it.

use crate::paths::Paths;
use crate::rules::attribute::{named, replaced, without};
use crate::scale_lists::{REFERENCE_LIST, places, reference_list, scales};
use crate::scan::{ScannedEntry, ScannedRole};
use crate::schema::{AttributeValue, Schema};
use raddle_hdf5::model::Dataspace;
use std::collections::HashSet;
use std::sync::Arc;

/// Numbers of the entries of one file that are kept once, ascending.
pub(crate) fn kept_once(paths: &Paths, entries: &[ScannedEntry]) -> Vec<usize> {
    let found: Vec<(usize, Scale)> =
        entries.iter().enumerate().filter_map(|(at, entry)| Scale::of(entry).map(|scale| (at, scale))).collect();
    let is_static = |scale: &Scale| scale.has_trailing && !(scale.has_first && scale.can_grow);
    let grows = found.iter().any(|(_, scale)| scale.has_first && !is_static(scale));
    // Without an axis that grows, what is attached to any first axis is that.
    let kept = |scale: &Scale| is_static(scale) && (grows || !scale.has_first);
    let of_scales: Vec<usize> = found.iter().filter(|(_, scale)| kept(scale)).map(|&(at, _)| at).collect();
    let names: HashSet<&[u8]> = of_scales.iter().map(|&at| paths.get(at)).collect();
    let lies_along = |entry: &ScannedEntry| {
        matches!(entry.role, ScannedRole::Column { .. })
            && scales(&entry.attributes)
                .first()
                .and_then(|scales| scales.first())
                .is_some_and(|scale| names.contains(&**scale))
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
    let all = places(named(attributes, REFERENCE_LIST)?)?;
    let kept: Vec<(Vec<u8>, u32)> = all.iter().filter(|(path, _)| exists(path)).cloned().collect();
    match kept.len() {
        count if count == all.len() => None,
        0 => Some(without(attributes, &[REFERENCE_LIST])),
        _ => Some(replaced(attributes, reference_list(&kept))),
    }
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
        named(&entry.attributes, "CLASS").filter(|class| class.value.starts_with(b"DIMENSION_SCALE"))?;
        let places = places(named(&entry.attributes, REFERENCE_LIST)?)?;
        let has_first = places.iter().any(|(_, axis)| *axis == 0);
        let has_trailing = places.iter().any(|(_, axis)| *axis > 0);
        let can_grow = match &template.dataspace {
            Dataspace::Simple { max_dims, .. } => max_dims.first() == Some(&u64::MAX),
            _ => false,
        };
        Some(Self { has_first, has_trailing, can_grow })
    }
}
