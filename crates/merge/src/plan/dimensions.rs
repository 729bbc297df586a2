//! Dimensions of the datasets of a schema: the dimension scales of each axis, and labels.
//!
//! Invariant: dimensions are those of the output, as its readers see them.

use crate::conventions::cf::axes::AxisRole;
use crate::conventions::cf::paths_of_name;
use crate::scan::scale_lists::{DIMENSION_LABELS, scales};
use crate::schema::attribute::{named, number, numbers, strings, text};
use crate::schema::{AttributeValue, Role, Schema, SchemaEntry};
use std::collections::{HashMap, HashSet};

/// Name of the attribute of a scale with the id of its dimension.
const DIMENSION_NUMBER: &str = "_Netcdf4Dimid";
/// Name of the attribute of a scale of several dimensions with their ids.
const DIMENSION_NUMBERS: &str = "_Netcdf4Coordinates";
/// Attributes that name the bounds of a coordinate.
const BOUNDS: [&str; 2] = ["bounds", "climatology"];

/// Dimensions of all datasets of a schema.
#[derive(Debug, Default)]
pub(crate) struct Dimensions {
    /// Path of each dimension by its netCDF id.
    by_number: HashMap<i64, Vec<u8>>,
    /// Roles of dimension scales, indexed by path.
    roles: HashMap<Vec<u8>, AxisRole>,
    /// Paths of the bounds of coordinates.
    bounds: HashSet<Vec<u8>>,
}

impl Dimensions {
    /// Collects the dimensions of a schema.
    pub fn of(schema: &Schema) -> Self {
        let mut dimensions = Self::default();
        for entry in &schema.entries {
            if !matches!(entry.role, Role::Column(_)) {
                continue;
            }
            if is_scale(&entry.attributes) {
                dimensions.roles.insert(entry.path.clone(), AxisRole::of(&entry.attributes));
                if let Some(id) = number(&entry.attributes, DIMENSION_NUMBER) {
                    dimensions.by_number.insert(id as i64, entry.path.clone());
                }
            }
            let names = BOUNDS.iter().filter_map(|name| text(&entry.attributes, name));
            dimensions.bounds.extend(names.filter_map(|name| paths_of_name(&entry.path, name.trim()).next()));
        }
        dimensions
    }

    /// Returns the names of each of the `rank` axes of a dataset: paths of dimension scales, and labels.
    pub fn names(&self, entry: &SchemaEntry, rank: usize) -> Vec<Vec<Vec<u8>>> {
        let mut names = if is_scale(&entry.attributes) {
            // A coordinate variable of several dimensions has only the ids of the others.
            let ids = named(&entry.attributes, DIMENSION_NUMBERS).and_then(numbers).unwrap_or_default();
            let others = ids.iter().skip(1).map(|id| self.by_number.get(&(*id as i64)).cloned().into_iter().collect());
            std::iter::once(vec![entry.path.clone()]).chain(others).collect()
        } else {
            scales(&entry.attributes)
        };
        names.resize(rank, Vec::new());
        let labels = named(&entry.attributes, DIMENSION_LABELS).and_then(strings).unwrap_or_default();
        for (of_axis, label) in names.iter_mut().zip(labels).filter(|(_, label)| !label.is_empty()) {
            of_axis.push(label.into_bytes());
        }
        names
    }

    /// Returns whether a dataset describes a dimension: it is a dimension scale, or holds the bounds of a coordinate.
    pub fn is_coordinate(&self, entry: &SchemaEntry) -> bool {
        is_scale(&entry.attributes) || self.bounds.contains(&entry.path)
    }

    /// Returns the role of an axis with these names.
    pub fn role(&self, names: &[Vec<u8>]) -> AxisRole {
        names.iter().find_map(|name| self.roles.get(name)).copied().unwrap_or(AxisRole::Other)
    }
}

fn is_scale(attributes: &[AttributeValue]) -> bool {
    named(attributes, "CLASS").is_some_and(|class| class.value.starts_with(b"DIMENSION_SCALE"))
}
