//! Restricts the columns of a schema to selected elements of their dimensions.
//!
//! A range along the axis of concatenation leaves out rows of inputs; ranges along other axes make boxes of the inputs.
//! Invariant: values that refer to positions along a dimension are refused if that dimension is restricted.

use super::selected::SelectedElements;
use crate::conventions::cf::{self, references};
use crate::error::{MergeError, Result};
use crate::plan::Dimensions;
use crate::rules::settling::DeclaredRule;
use crate::rules::{Trim, ValueMeaning};
use crate::schema::attribute::{named, text};
use crate::schema::boxes::BoxLayout;
use crate::schema::extents::InputExtents;
use crate::schema::{ABSENT, Column, InputExtent, Role, Schema, SchemaEntry, display_path, is_named};
use raddle_core::plan::boxes::{Boxes, PlacedBox};
use raddle_core::plan::extent::{Coordinates, Extent};
use raddle_hdf5::model::Dataspace;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Restricts all columns that have a selected dimension.
///
/// # Errors
/// [`MergeError::Object`] for values that cannot be restricted, or that refer to positions along a selected dimension.
pub(crate) fn cut(schema: &mut Schema, declared: &[DeclaredRule], selected: &SelectedElements) -> Result<()> {
    let dimensions = Dimensions::of(schema);
    let is_selected = |name: &str| selected.paths().any(|path| is_named(path, name));
    let is_cut = |entry: &SchemaEntry| ranges_of(schema, &dimensions, entry, selected).iter().any(Option::is_some);
    check_references(schema, is_selected, is_cut)?;
    let mut cut_paths = BTreeSet::new();
    for at in 0..schema.entries.len() {
        let entry = &schema.entries[at];
        let Role::Column(index) = entry.role else { continue };
        let ranges = ranges_of(schema, &dimensions, entry, selected);
        if ranges.iter().all(Option::is_none) {
            continue;
        }
        cut_paths.insert(entry.path.clone());
        let refuse = |reason: String| MergeError::Object { object: display_path(&entry.path), reason };
        let column = &mut schema.columns[index as usize];
        restrict(column, &ranges).map_err(refuse)?;
        if let Some(range) = selected.of(&entry.path)
            && let Some(attributes) = cf::with_length(&entry.attributes, range.end - range.start)
        {
            schema.entries[at].attributes = attributes;
        }
    }
    if let Some(root) = schema.entries.first_mut() {
        for path in selected.paths() {
            let Some(elements) = selected.of(path) else { continue };
            root.attributes = cf::tiles::of_selection(&root.attributes, path, elements);
        }
    }
    check_rules(schema, declared, &cut_paths)
}

/// Refuses values that, by a rule, refer to elements by their position, if they or these elements are restricted.
///
/// # Errors
/// [`MergeError::Object`] for the first such dataset.
pub(super) fn check_rules(schema: &Schema, declared: &[DeclaredRule], cut_paths: &BTreeSet<Vec<u8>>) -> Result<()> {
    for one in declared {
        let path = &schema.entries[one.entry as usize].path;
        let Some(target) = one.rule.values.refers_to() else { continue };
        let is_of_positions = matches!(one.rule.values, ValueMeaning::Positions { .. });
        if cut_paths.contains(target) || is_of_positions && cut_paths.contains(path) {
            return Err(refers(path, &display_path(target)));
        }
    }
    Ok(())
}

/// Returns the selected elements of each axis of a column; `None` for an axis of which all elements are selected.
fn ranges_of(
    schema: &Schema,
    dimensions: &Dimensions,
    entry: &SchemaEntry,
    selected: &SelectedElements,
) -> Vec<Option<Range<u64>>> {
    let names = dimensions.names(entry, schema.rank(entry));
    names.iter().map(|names| names.iter().find_map(|name| selected.of(name)).cloned()).collect()
}

/// Restricts a column to the selected elements of each axis.
fn restrict(column: &mut Column, ranges: &[Option<Range<u64>>]) -> Result<(), String> {
    if column.runs.is_some() {
        return Err("does not have its rows in the order of its inputs, which --select cannot restrict".to_owned());
    }
    let is_along_rows = ranges.iter().enumerate().all(|(axis, range)| range.is_none() || axis == column.axis);
    if is_along_rows && column.boxes.is_none() {
        let rows = ranges.get(column.axis).cloned().flatten().unwrap_or(0..u64::MAX);
        take_rows(column, &rows);
        return Ok(());
    }
    let mut dims = column.model().dataspace.dims().to_vec();
    dims[column.axis] = column.rows();
    let mut window = Extent::whole(&dims);
    for (axis, range) in ranges.iter().enumerate() {
        if let Some(range) = range {
            let (start, end) = (range.start.min(dims[axis]), range.end.min(dims[axis]));
            (window.start[axis], window.count[axis]) = (start, end - start);
        }
    }
    let boxes: Boxes = boxes_of(column, &dims).iter().filter_map(|one| within(one, &window)).collect::<Vec<_>>().into();
    let mut output = column.model().clone();
    if let Dataspace::Simple { dims, max_dims } = &mut output.dataspace {
        for (axis, &count) in window.count.iter().enumerate() {
            (dims[axis], max_dims[axis]) = (count, if max_dims[axis] == u64::MAX { u64::MAX } else { count });
        }
    }
    column.set_output(output);
    let dims = window.count.to_vec();
    column.boxes = Some(Arc::new(BoxLayout { dims, boxes, overlaps: Vec::new(), places: Vec::new() }));
    Ok(())
}

/// Leaves out the rows of all inputs together that are not in `rows`.
fn take_rows(column: &mut Column, rows: &Range<u64>) {
    let (mut first, mut facts, mut trims) = (0, Vec::new(), Vec::new());
    for (input, fact) in (0..).zip(column.facts.iter()) {
        let end = first + fact.rows;
        let (from, to) = (rows.start.clamp(first, end), rows.end.clamp(first, end));
        let known = column.trim_of(input);
        let stored_rows = known.map_or(fact.rows, |trim| trim.stored_rows);
        let leading = known.map_or(0, |trim| trim.leading) + (from - first);
        let count = to.saturating_sub(from);
        let is_whole = leading == 0 && count == stored_rows;
        trims.push((fact.template != ABSENT && !is_whole).then_some(Trim { leading, stored_rows }));
        facts.push(InputExtent { rows: count, ..*fact });
        first = end;
    }
    column.facts = InputExtents::with_addresses(facts.into_iter());
    if trims.iter().any(Option::is_some) {
        column.trims = Some(trims.into());
    }
}

/// Returns the boxes that make up a column.
fn boxes_of(column: &Column, dims: &[u64]) -> Vec<PlacedBox> {
    if let Some(layout) = &column.boxes {
        return layout.boxes.iter().cloned().collect();
    }
    let mut first = 0;
    let placed = (0..).zip(column.facts.iter()).filter_map(|(input, fact)| {
        let (mut start, mut source) = (Coordinates::from_elem(0, dims.len()), Extent::whole(dims));
        (start[column.axis], source.count[column.axis]) = (first, fact.rows);
        first += fact.rows;
        (!source.is_empty()).then_some(PlacedBox { input, start, source })
    });
    placed.collect()
}

/// Returns the part of a box in a window, placed relative to the window.
fn within(one: &PlacedBox, window: &Extent) -> Option<PlacedBox> {
    let part = one.target().intersection(window)?;
    let mut source = Extent { start: one.source.start.clone(), count: part.count.clone() };
    for (axis, start) in source.start.iter_mut().enumerate() {
        *start += part.start[axis] - one.start[axis];
    }
    let start = part.start.iter().zip(&window.start).map(|(at, first)| at - first).collect();
    (!source.is_empty()).then_some(PlacedBox { input: one.input, start, source })
}

/// Refuses ranges of dimensions to whose positions other variables refer.
pub(super) fn check_references(
    schema: &Schema,
    is_selected: impl Fn(&str) -> bool,
    is_cut: impl Fn(&SchemaEntry) -> bool,
) -> Result<()> {
    for entry in &schema.entries {
        for attribute in [references::INSTANCE, references::GATHERED, references::TIE_POINTS] {
            let names = text(&entry.attributes, attribute).unwrap_or_default();
            let mut names = names.split_whitespace().map(|name| name.trim_end_matches(':'));
            if let Some(name) = names.find(|name| is_selected(name)) {
                return Err(refers(&entry.path, &format!("dimension {name} ({attribute})")));
            }
        }
        if let Some(name) = references::of_radar(&entry.path).filter(|name| is_selected(name)) {
            return Err(refers(&entry.path, &format!("dimension {name}")));
        }
        if let Some(name) = text(&entry.attributes, references::COUNTED)
            && (is_selected(name.trim()) || is_cut(entry))
        {
            return Err(refers(&entry.path, &format!("dimension {name} ({})", references::COUNTED)));
        }
        let names: Vec<String> =
            naming(entry).iter().filter_map(|attribute| text(&entry.attributes, attribute)).collect();
        let is_part = |other: &&SchemaEntry| {
            names.iter().flat_map(|names| names.split_whitespace()).any(|name| is_named(&other.path, name))
        };
        if let Some(other) = schema.entries.iter().filter(is_part).find(|other| is_cut(other)) {
            return Err(refers(&entry.path, &format!("the dimensions of {}", display_path(&other.path))));
        }
    }
    Ok(())
}

/// Returns the attributes of an entry that name variables whose elements belong together: those of a mesh, and those of
/// geometries with several nodes each.
fn naming(entry: &SchemaEntry) -> &'static [&'static str] {
    let is_mesh = text(&entry.attributes, "cf_role").is_some_and(|role| role == "mesh_topology");
    let has = |attribute: &str| named(&entry.attributes, attribute).is_some();
    match (is_mesh, has("geometry_type") && has("node_count")) {
        (true, _) => &references::OF_MESH,
        (false, true) => &references::OF_GEOMETRY,
        (false, false) => &[],
    }
}

fn refers(path: &[u8], to: &str) -> MergeError {
    let reason = format!("refers to positions along {to}, which would no longer be right; leave it out with --exclude");
    MergeError::Object { object: display_path(path), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(input: u32, start: &[u64], source: Extent) -> PlacedBox {
        PlacedBox { input, start: Coordinates::from_slice(start), source }
    }

    #[test]
    fn boxes_are_placed_relative_to_the_window() {
        let one = placed(3, &[2, 0], Extent::new(&[5, 1], &[4, 6]));
        let window = Extent::new(&[3, 2], &[9, 2]);
        assert_eq!(within(&one, &window), Some(placed(3, &[0, 0], Extent::new(&[6, 3], &[3, 2]))));
        assert_eq!(within(&one, &Extent::new(&[0, 0], &[2, 6])), None);
        assert_eq!(within(&one, &Extent::new(&[4, 0], &[0, 6])), None);
    }
}
