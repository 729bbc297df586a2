//! Updates the lists of variables to which dimension scales are attached, after variables were added to those of the
//! first input or got an axis.
//!
//! Invariant: the lists of scales follow from those of variables; a list with the same contents in a different order is
//! kept.

use crate::scan::scale_lists::{REFERENCE_LIST, places, reference_list, scales};
use crate::schema::Schema;
use crate::schema::attribute::{named, replaced, without};
use std::collections::{BTreeMap, BTreeSet};

/// Updates the lists of all scales.
pub(super) fn complete(schema: &mut Schema) {
    let mut attached: BTreeMap<Vec<u8>, Vec<(Vec<u8>, u32)>> = BTreeMap::new();
    for entry in &schema.entries {
        for (axis, scales) in (0..).zip(scales(&entry.attributes)) {
            for scale in scales {
                attached.entry(scale).or_default().push((entry.path.clone(), axis));
            }
        }
    }
    for entry in &mut schema.entries {
        let known = named(&entry.attributes, REFERENCE_LIST);
        entry.attributes = match (attached.remove(&entry.path), known) {
            (Some(found), Some(known)) if is_same(&found, places(known)) => continue,
            (Some(found), _) => replaced(&entry.attributes, reference_list(&found)),
            (None, Some(_)) => without(&entry.attributes, &[REFERENCE_LIST]),
            (None, None) => continue,
        };
    }
}

fn is_same(found: &[(Vec<u8>, u32)], known: Option<Vec<(Vec<u8>, u32)>>) -> bool {
    known.is_some_and(|known| found.iter().collect::<BTreeSet<_>>() == known.iter().collect())
}
