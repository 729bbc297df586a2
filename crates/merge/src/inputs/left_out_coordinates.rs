//! Coordinates that are left out, but whose bounds are not.
//!
//! In CF, bounds have the units and the calendar of their coordinate, usually without attributes of their own (section
//! 7.1). Bounds without their coordinate therefore get these attributes. Invariant: attributes that bounds have are not
//! changed, unless they are the unit of their time without its reference.

use super::paths::Paths;
use crate::conventions::cf::{BOUNDS, CALENDAR, paths_of_name};
use crate::rules::time_units::is_time_units;
use crate::scan::ScannedEntry;
use crate::schema::AttributeValue;
use crate::schema::attribute::{named, replaced, text};
use raddle_hdf5::model::{Attribute, Object, ObjectKind};
use std::collections::HashMap;
use std::sync::Arc;

/// Attributes that bounds have in common with their coordinate and that define what the values mean.
const INHERITED: [&str; 6] = ["units", "units_metadata", CALENDAR, "month_lengths", "leap_year", "leap_month"];

/// A coordinate that is left out.
#[derive(Debug)]
pub struct LeftOutCoordinate {
    /// Path of the coordinate.
    pub path: Vec<u8>,
    /// Attributes that name its bounds, and those that the bounds inherit.
    pub attributes: Vec<Attribute>,
}

impl LeftOutCoordinate {
    /// Returns the coordinate at `path` if it has bounds.
    pub(super) fn of(object: &Object, path: &[u8]) -> Option<Self> {
        let attributes = match &object.kind {
            ObjectKind::Templated(templated) => &templated.form.attributes,
            ObjectKind::Dataset(_) => &object.attributes,
            _ => return None,
        };
        let is_one_of =
            |attribute: &&Attribute, names: &[&str]| names.iter().any(|name| attribute.name == name.as_bytes());
        attributes.iter().find(|attribute| is_one_of(attribute, &BOUNDS))?;
        let is_needed = |attribute: &&Attribute| is_one_of(attribute, &BOUNDS) || is_one_of(attribute, &INHERITED);
        Some(Self { path: path.to_vec(), attributes: attributes.iter().filter(is_needed).cloned().collect() })
    }
}

/// Gives the bounds of each coordinate, a path with its attributes, the attributes that they inherit.
pub(crate) fn complete_bounds(
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
