//! Bounds whose coordinate is left out.
//!
//! In CF, bounds have the units and the calendar of their coordinate, usually without attributes of their own (section
//! 7.1). Bounds without their coordinate therefore get these attributes. Invariant: attributes that bounds have are not
//! changed, unless they are the unit of their time without its reference.

use super::ScannedEntry;
use crate::conventions::cf::{BOUNDS, paths_of_name};
use crate::inputs::left_out_coordinates::INHERITED;
use crate::inputs::paths::Paths;
use crate::rules::time_units::is_time_units;
use crate::schema::AttributeValue;
use crate::schema::attribute::{named, replaced, text};
use std::collections::HashMap;
use std::sync::Arc;

/// Gives the bounds of each coordinate, a path with its attributes, the attributes that they inherit.
pub(super) fn complete_bounds(
    paths: &Paths,
    entries: &mut [ScannedEntry],
    coordinates: &[(&[u8], Vec<AttributeValue>)],
) {
    if coordinates.is_empty() {
        return;
    }
    let by_path: HashMap<&[u8], usize> = paths.iter().zip(0..).collect();
    for (path, attributes) in coordinates {
        for name in BOUNDS.iter().filter_map(|name| text(attributes, name)) {
            let Some(&at) = paths_of_name(path, &name).find_map(|path| by_path.get(&*path)) else { continue };
            entries[at].attributes = completed(&entries[at].attributes, attributes);
        }
    }
}

/// Returns the attributes of bounds with those that they inherit from a coordinate.
fn completed(bounds: &Arc<[AttributeValue]>, coordinate: &[AttributeValue]) -> Arc<[AttributeValue]> {
    let is_missing = |inherited: &&AttributeValue| match text(bounds, "units") {
        Some(unit) if inherited.name == b"units" => text(coordinate, "units")
            .is_some_and(|units| is_time_units(&units) && units.split_whitespace().next() == Some(&unit)),
        _ => named(bounds, &inherited.name).is_none(),
    };
    let inherited = INHERITED.iter().filter_map(|name| named(coordinate, name)).filter(is_missing);
    inherited.fold(Arc::clone(bounds), |bounds, inherited| replaced(&bounds, inherited.clone()))
}
