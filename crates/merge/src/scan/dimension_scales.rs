//! Search for datasets of a file that are stored once because they describe axes along which nothing is concatenated.
//!
//! A dimension scale lists where it is attached (datasets and axes), and a dataset lists its scales. A scale of
//! trailing axes is stored once: concatenated, it would be longer than the axes it describes. The same holds for
//! datasets along such a scale, such as bounds and areas of cells, if the file also has an axis that grows. Values are
//! not compared here; they must be equal in all inputs. Invariant: a scale that can grow and is attached to a first
//! axis is concatenated, as is everything along it.

use crate::inputs::paths::Paths;
use crate::scan::scale_lists::{REFERENCE_LIST, places, reference_list, scales};
use crate::scan::{ScannedEntry, ScannedRole};
use crate::schema::attribute::{named, replaced, without};
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{ABSENT, AttributeValue, Column, InputExtent, Role, Schema, SchemaEntry, display_path};
use raddle_hdf5::model::Dataspace;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Returns the numbers of the entries of one file that are stored once, ascending.
pub(crate) fn kept_once(paths: &Paths, entries: &[ScannedEntry]) -> Vec<usize> {
    let found: Vec<(usize, Scale)> =
        entries.iter().enumerate().filter_map(|(at, entry)| Scale::of(entry).map(|scale| (at, scale))).collect();
    let is_static = |scale: &Scale| scale.has_trailing && !(scale.has_first && scale.can_grow);
    let grows = found.iter().any(|(_, scale)| scale.has_first && !is_static(scale));
    // Without any growing axis, scales attached to a first axis are the ones that grow.
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

/// Returns the datasets that the user wants to store once, but that lie along a scale that is concatenated, or are the
/// scale of a dataset that is: their length would differ from that of their dimension.
pub(crate) fn once_along_rows(schema: &Schema, is_by_user: impl Fn(&[u8]) -> bool) -> Vec<Difference> {
    let column = |entry: &SchemaEntry| match entry.role {
        Role::Column(column) => Some(&schema.columns[column as usize]),
        _ => None,
    };
    let by_path: HashMap<&[u8], &SchemaEntry> =
        schema.entries.iter().map(|entry| (entry.path.as_slice(), entry)).collect();
    let grows = |scale: &Vec<u8>| {
        by_path.get(scale.as_slice()).and_then(|entry| column(entry)).is_some_and(has_rows_of_several)
    };
    let mut described: HashMap<Vec<u8>, &[u8]> = HashMap::new();
    for entry in &schema.entries {
        let Some(column) = column(entry).filter(|column| has_rows_of_several(column)) else { continue };
        for scale in scales(&entry.attributes).into_iter().nth(column.axis).into_iter().flatten() {
            described.entry(scale).or_insert(&entry.path);
        }
    }
    let mut differences = Vec::new();
    for entry in &schema.entries {
        if !column(entry).is_some_and(|column| column.is_once) || !is_by_user(&entry.path) {
            continue;
        }
        let along = scales(&entry.attributes).into_iter().flatten().find(grows);
        let along = along.map(|scale| format!("a dataset along {}, which is concatenated", display_path(&scale)));
        let scale_of = || {
            let dataset = described.get(entry.path.as_slice())?;
            Some(format!("the dimension of {}, which is concatenated", display_path(dataset)))
        };
        if let Some(expected) = along.or_else(scale_of) {
            differences.push(Difference {
                path: display_path(&entry.path),
                kind: DifferenceKind::Meaning,
                expected,
                found: "one copy for all inputs, which would be too short; --exclude leaves it out".to_owned(),
                inputs: Vec::new(),
            });
        }
    }
    differences
}

/// Returns the datasets that the user wants to concatenate although their dimension, or the dataset whose dimension they
/// are, has the elements of one input: they would be longer, and netCDF readers would see other rows or none.
pub(crate) fn rows_along_once(schema: &Schema, is_by_user: impl Fn(&[u8]) -> bool) -> Vec<Difference> {
    let column = |entry: &SchemaEntry| match entry.role {
        Role::Column(column) => Some(&schema.columns[column as usize]),
        _ => None,
    };
    let once: HashSet<&[u8]> = schema
        .entries
        .iter()
        .filter(|entry| column(entry).is_some_and(|column| column.is_once))
        .map(|entry| entry.path.as_slice())
        .collect();
    // Datasets along each scale whose axis is not concatenated.
    let mut described: HashMap<Vec<u8>, &[u8]> = HashMap::new();
    for entry in &schema.entries {
        let Some(column) = column(entry) else { continue };
        let is_as_long = |axis: usize| column.is_once || axis != column.axis;
        let of_axes = scales(&entry.attributes).into_iter().enumerate().filter(|(axis, _)| is_as_long(*axis));
        for scale in of_axes.flat_map(|(_, scales)| scales) {
            described.entry(scale).or_insert(&entry.path);
        }
    }
    let refused = |entry: &SchemaEntry| {
        let column = column(entry).filter(|column| has_rows_of_several(column) && is_by_user(&entry.path))?;
        let along = scales(&entry.attributes).into_iter().nth(column.axis).and_then(|scales| scales.into_iter().next());
        let along = along.filter(|scale| once.contains(scale.as_slice()));
        let along = along.map(|scale| format!("a dataset along {}, which is stored once", display_path(&scale)));
        let scale_of = || {
            let dataset = described.get(&entry.path)?;
            Some(format!("the dimension of {}, which is not concatenated along it", display_path(dataset)))
        };
        along.or_else(scale_of).map(|expected| Difference {
            path: display_path(&entry.path),
            kind: DifferenceKind::Meaning,
            expected,
            found: "rows of several inputs, which would be too many; --exclude leaves it out".to_owned(),
            inputs: Vec::new(),
        })
    };
    schema.entries.iter().filter_map(refused).collect()
}

/// Returns whether rows of several inputs follow one another in a dataset.
fn has_rows_of_several(column: &Column) -> bool {
    let has_rows = |fact: &&InputExtent| fact.template != ABSENT && fact.rows > 0;
    !column.is_once && column.facts.iter().filter(has_rows).count() > 1
}

/// Removes datasets that the schema lacks from the `REFERENCE_LIST` of dimension scales.
pub(crate) fn drop_missing(schema: &mut Schema) {
    let paths: HashSet<Vec<u8>> = schema.entries.iter().map(|entry| entry.path.clone()).collect();
    for entry in &mut schema.entries {
        if let Some(attributes) = without_missing(&entry.attributes, |path| paths.contains(path)) {
            entry.attributes = attributes;
        }
    }
}

/// Returns the attributes of a dimension scale without places in datasets for which `exists` is false; `None` if there
/// are none.
fn without_missing(attributes: &[AttributeValue], exists: impl Fn(&[u8]) -> bool) -> Option<Arc<[AttributeValue]>> {
    let all = places(named(attributes, REFERENCE_LIST)?)?;
    let kept: Vec<(Vec<u8>, u32)> = all.iter().filter(|(path, _)| exists(path)).cloned().collect();
    match kept.len() {
        count if count == all.len() => None,
        0 => Some(without(attributes, &[REFERENCE_LIST])),
        _ => Some(replaced(attributes, reference_list(&kept))),
    }
}

/// Axes to which a dimension scale is attached.
struct Scale {
    /// Whether the scale is attached to a first axis.
    has_first: bool,
    /// Whether the scale is attached to another axis.
    has_trailing: bool,
    /// Whether the length of the scale is unlimited.
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
