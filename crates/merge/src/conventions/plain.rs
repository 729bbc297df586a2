//! Files of no convention: datasets are concatenated along the axis of a number (`--axis N`), or stacked along a new
//! first axis (`--new-dim NAME`).
//!
//! Dimension scales take precedence over numbers, because they state which axes belong together: `--axis` follows the
//! scales of the axes that it selects, and files with scales are read as CF if a dimension is named. Invariant: along
//! the axis of concatenation, a dataset and its scales have the same inputs in the same order; everything without that
//! axis must be equal in all inputs.

use super::cf::is_scale;
use super::{Choice, Completion, ConcatAxis, ConventionOptions, FileView, Refusal};
use crate::rules::settling::DeclaredRule;
use crate::rules::{Placement, Rule};
use crate::scan::scale_lists::{DIMENSION_LABELS, REFERENCE_LIST, scales};
use crate::schema::attribute::{named, new, replaced, strings};
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{AttributeValue, Role, Schema, display_path};
use raddle_hdf5::model::TypeClass;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the reason to read a file of no convention as CF: the user names a dimension, and the file has dimension
/// scales.
pub(super) fn named_dimension(file: &FileView<'_>, options: &ConventionOptions) -> Option<String> {
    let option = match (&options.dim, &options.new_dim, &options.tiles) {
        (Some(name), ..) => format!("--dim {name}"),
        (None, Some(name), _) => format!("--new-dim {name}"),
        (None, None, Some(_)) => "--tiles".to_owned(),
        (None, None, None) => return None,
    };
    let scale = (1..file.len()).find(|&at| is_attached(file, at))?;
    Some(format!("{option}, and {} is a dimension scale", display_path(file.path_of(scale))))
}

/// Returns the rules of a file of no convention, with the numbers of their entries.
pub(super) fn rules(file: &FileView<'_>, options: &ConventionOptions) -> Result<Vec<(usize, Rule)>, Refusal> {
    let mut rules = of_axes(file, options)?;
    if options.convention != Some(Choice::None) {
        for at in (1..file.len()).filter(|&at| describes_columns(file, at)) {
            rules.retain(|(other, _)| *other != at);
            rules.push((at, Rule::once()));
        }
    }
    Ok(rules)
}

/// Returns whether a dataset holds the units and types of the columns of the table next to it, line by line, as astropy
/// writes them.
fn describes_columns(file: &FileView<'_>, at: usize) -> bool {
    let table = file.path_of(at).strip_suffix(b".__table_column_meta__");
    table.is_some_and(|table| file.find(table).is_some())
}

/// Returns the rules for the axes along which the options concatenate or stack datasets.
fn of_axes(file: &FileView<'_>, options: &ConventionOptions) -> Result<Vec<(usize, Rule)>, Refusal> {
    if options.new_dim.is_some() {
        let has_values = |at: usize| file.scalar(at).is_some_and(|(_, value)| !value.is_empty());
        let stacked = (1..file.len()).filter(|&at| file.column(at).is_some() || has_values(at));
        return Ok(stacked.map(|at| (at, Rule { is_lifted: true, ..Rule::along(0) })).collect());
    }
    if let Some(name) = &options.dim {
        return Err(Refusal {
            object: "/".to_owned(),
            reason: format!(
                "follows no convention and has no dimension scales, so it has no dimension {name:?} (--dim); --axis N \
                 concatenates datasets along the axis of that number"
            ),
        });
    }
    if options.tiles.is_some() {
        return Err(Refusal {
            object: "/".to_owned(),
            reason: "follows no convention and has no dimension scales, so its place in a grid is unknown (--tiles)"
                .to_owned(),
        });
    }
    match options.axis {
        ConcatAxis::Number(number) if !options.axis.is_first() => along(file, number),
        _ => Ok(Vec::new()),
    }
}

/// Returns the rules for concatenation along axis `number` of each dataset that has it.
fn along(file: &FileView<'_>, number: i32) -> Result<Vec<(usize, Rule)>, Refusal> {
    let columns: Vec<(usize, usize)> =
        (1..file.len()).filter_map(|at| Some((at, file.dims(at)?.len()))).filter(|(_, rank)| *rank > 0).collect();
    // A scale has the axis that it describes, whatever its number in other datasets.
    let is_followed = |at: usize, rank: usize| rank == 1 && is_attached(file, at);
    let mut dimensions: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for &(at, rank) in columns.iter().filter(|(at, rank)| !is_followed(*at, *rank)) {
        let of_axes = scales(file.attributes(at));
        for scale in axis_of(number, rank).and_then(|axis| of_axes.get(axis)).into_iter().flatten() {
            dimensions.entry(scale.clone()).or_insert(at);
        }
    }
    let mut rules = Vec::new();
    for (at, rank) in columns {
        if is_followed(at, rank) {
            let is_along = dimensions.contains_key(file.path_of(at));
            rules.push((at, if is_along { Rule::along(0) } else { Rule::once() }));
            continue;
        }
        let mut axes: BTreeSet<usize> = axis_of(number, rank).into_iter().collect();
        for (axis, of_axis) in scales(file.attributes(at)).iter().enumerate().take(rank) {
            let Some((scale, other)) = of_axis.iter().find_map(|scale| dimensions.get_key_value(scale)) else {
                continue;
            };
            axes.insert(axis);
            if axes.len() > 1 {
                let other = if *other == at { "it".to_owned() } else { display_path(file.path_of(*other)) };
                return Err(Refusal {
                    object: display_path(file.path_of(at)),
                    reason: format!(
                        "has {scale} on axis {axis}, and {other} has it on axis {number}, along which files are \
                         concatenated (--axis); --dim names one dimension for all datasets",
                        scale = display_path(scale)
                    ),
                });
            }
        }
        rules.push((at, axes.first().map_or_else(Rule::once, |&axis| Rule::along(axis))));
    }
    Ok(rules)
}

/// Returns the axis to which `number` refers in a dataset of `rank` axes; `None` if it lacks that axis.
fn axis_of(number: i32, rank: usize) -> Option<usize> {
    let axis = if number < 0 { rank as i64 + i64::from(number) } else { i64::from(number) };
    usize::try_from(axis).ok().filter(|axis| *axis < rank)
}

/// Returns whether an entry is a dimension scale that describes an axis of a dataset.
fn is_attached(file: &FileView<'_>, at: usize) -> bool {
    file.column(at).is_some() && is_scale(file, at) && file.has(at, REFERENCE_LIST)
}

/// Adds to differences of datasets without the axis of concatenation the reason why these must be equal.
pub(super) fn explain(
    differences: &mut [Difference],
    schema: &Schema,
    declared: &[DeclaredRule],
    options: &ConventionOptions,
) {
    let ConcatAxis::Number(number) = options.axis else { return };
    let is_without = |one: &&DeclaredRule| match schema.entries[one.entry as usize].role {
        Role::Column(column) => {
            let rank = schema.columns[column as usize].model().dataspace.dims().len();
            one.rule.placement == Placement::Once && axis_of(number, rank).is_none()
        }
        _ => false,
    };
    let without = declared.iter().filter(is_without);
    let without: BTreeSet<String> = without.map(|one| display_path(&schema.entries[one.entry as usize].path)).collect();
    for difference in differences.iter_mut().filter(|one| one.kind == DifferenceKind::Scale) {
        if without.contains(&difference.path) {
            difference.found += &format!(
                "; without an axis {number} (--axis), it must be equal in all inputs; --rule '{}: concatenate' \
                 concatenates it",
                difference.path
            );
        }
    }
}

/// Names the first axis of everything that was stacked, in the labels of the dimensions.
pub(super) fn complete(completion: &mut Completion<'_>, options: &ConventionOptions) {
    let Some(name) = &options.new_dim else { return };
    for declared in completion.declared.iter().filter(|declared| declared.rule.is_lifted) {
        let entry = &mut completion.schema.entries[declared.entry as usize];
        let Role::Column(column) = entry.role else { continue };
        let rank = completion.schema.columns[column as usize].model().dataspace.dims().len();
        let labels = labels(named(&entry.attributes, DIMENSION_LABELS), name, rank);
        entry.attributes = replaced(&entry.attributes, labels);
    }
}

/// Creates the labels of a dataset of `rank` axes: `first` for the first axis, and the labels in `known` for the
/// others.
fn labels(known: Option<&AttributeValue>, first: &str, rank: usize) -> AttributeValue {
    let mut others = known.and_then(strings).unwrap_or_default();
    others.resize(rank.saturating_sub(1), String::new());
    let mut value = Vec::new();
    for label in std::iter::once(first).chain(others.iter().map(String::as_str)) {
        value.extend_from_slice(&(label.len() as u64).to_le_bytes());
        value.extend_from_slice(label.as_bytes());
    }
    let charset = u8::from(!first.is_ascii());
    new(DIMENSION_LABELS, TypeClass::VariableString { len_bytes: 16, padding: 0, charset }, &[rank as u64], value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_numbers_count_from_the_last_axis() {
        assert_eq!(axis_of(1, 3), Some(1));
        assert_eq!(axis_of(-1, 3), Some(2));
        assert_eq!(axis_of(-3, 3), Some(0));
        assert_eq!((axis_of(3, 3), axis_of(-4, 3), axis_of(1, 1)), (None, None, None));
        assert_eq!((axis_of(i32::MIN, 3), axis_of(i32::MAX, 3)), (None, None));
    }

    #[test]
    fn labels_of_other_axes_follow_the_new_one() {
        let one = labels(None, "run", 2);
        assert_eq!(strings(&one), Some(vec!["run".to_owned(), String::new()]));
        let two = labels(Some(&one), "member", 3);
        assert_eq!(strings(&two), Some(["member", "run", ""].map(str::to_owned).to_vec()));
    }
}
