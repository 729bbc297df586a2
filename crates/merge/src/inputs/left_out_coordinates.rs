//! Coordinates that a selection leaves out, with what their bounds need of them.
//!
//! Invariant: a coordinate without bounds is not recorded.

use crate::conventions::cf::{BOUNDS, CALENDAR};
use raddle_hdf5::model::{Attribute, Object, ObjectKind};

/// Attributes that bounds have in common with their coordinate and that define what the values mean.
pub(crate) const INHERITED: [&str; 6] =
    ["units", "units_metadata", CALENDAR, "month_lengths", "leap_year", "leap_month"];

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
