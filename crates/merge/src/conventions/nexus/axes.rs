//! Axes of the fields of NXdata and NXlog groups, which readers guess from lengths unless the group names them.
//!
//! Source: `_guess_dims` of scippnexus. Invariant: a field has the axes in the output that readers find in an input, except
//! for a summary of a log, which has none, although readers find one where the log has a single entry.

use super::SUMMARIES;
use crate::conventions::Completion;
use crate::schema::attribute::{self, named, replaced, strings, text};
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{ABSENT, AttributeValue, Column, Role, Schema, SchemaEntry, display_path, last_name, parent_path};
use raddle_hdf5::number::NumberType;
use std::collections::HashMap;

/// Name and column of a field.
type Field = (String, u32);

/// Names the axes of fields for which readers would guess others, because the merged signal has another shape. Returns
/// the fields whose axes cannot be named.
pub(super) fn settle(completion: &mut Completion<'_>) -> Vec<Difference> {
    let is_data = |entry: &SchemaEntry| {
        text(&entry.attributes, "NX_class").is_some_and(|class| class == "NXdata" || class == "NXlog")
    };
    let groups = (0..).zip(&completion.schema.entries).filter(|(_, entry)| is_data(entry));
    let mut groups: HashMap<Vec<u8>, (usize, Vec<Field>)> =
        groups.map(|(at, entry)| (entry.path.clone(), (at, Vec::new()))).collect();
    if groups.is_empty() {
        return Vec::new();
    }
    let entries = &completion.schema.entries;
    let by_path: HashMap<&[u8], &SchemaEntry> = entries.iter().map(|entry| (entry.path.as_slice(), entry)).collect();
    for entry in entries {
        let target = entry.role.target(&entry.path).and_then(|target| by_path.get(target.as_slice()).copied());
        if let Role::Column(column) = target.unwrap_or(entry).role
            && let Some((_, fields)) = groups.get_mut(parent_path(&entry.path))
        {
            fields.push((String::from_utf8_lossy(last_name(&entry.path)).into_owned(), column));
        }
    }
    let mut differences = Vec::new();
    for (at, fields) in groups.into_values() {
        let mut attributes = completion.schema.entries[at].attributes.clone();
        let axes = named(&attributes, "axes").and_then(strings).unwrap_or_default();
        for (name, column, found) in other_guesses(completion.schema, &attributes, &axes, &fields) {
            let is_named = |axis: &usize| axes.get(*axis).is_some_and(|name| name != ".");
            if completion.is_new && found.iter().all(is_named) {
                attributes = replaced(&attributes, indices(&name, &found));
                continue;
            }
            // Without names of axes, readers cannot use the attribute.
            let remedy = match axes.is_empty() {
                true => String::new(),
                false => format!("name its axes in the attribute {name}_indices of its group, or "),
            };
            differences.push(Difference {
                path: display_path(completion.schema.column_path(column)),
                kind: DifferenceKind::Meaning,
                expected: "axes that its lengths show".to_owned(),
                found: format!("lengths that fit other axes of the merged signal: {remedy}leave it out with --exclude"),
                inputs: Vec::new(),
            });
        }
        completion.schema.entries[at].attributes = attributes;
    }
    differences.sort_by(|left, right| left.path.cmp(&right.path));
    differences
}

/// Returns the fields of a group with these `attributes` and `axes` for which readers guess other axes in the output than
/// in the first input, with the axes in that input.
fn other_guesses(
    schema: &Schema,
    attributes: &[AttributeValue],
    axes: &[String],
    fields: &[Field],
) -> Vec<(String, u32, Vec<usize>)> {
    let column = |name: &str| {
        let (_, column) = fields.iter().find(|(known, _)| known == name)?;
        Some(&schema.columns[*column as usize])
    };
    let is_log = text(attributes, "NX_class").is_some_and(|class| class == "NXlog");
    let signal_name = text(attributes, "signal").or_else(|| is_log.then(|| "value".to_owned())).unwrap_or_default();
    let Some(signal) = column(&signal_name) else { return Vec::new() };
    // An NXlog may hold further logs: what begins with NAME belongs to NAME_time.
    let logs = fields.iter().filter_map(|(name, _)| name.strip_suffix("_time")).filter(|_| is_log);
    let is_of_log = |name: &str| logs.clone().any(|log| name.starts_with(log));
    // Readers take an array of one element for a scalar, unless the log has one entry, too.
    let is_summary = |name: &str| {
        let is_one = |field: &Column| field.output_dims(false).0.iter().product::<u64>() == 1;
        is_log && SUMMARIES.contains(&name.as_bytes()) && column(name).is_some_and(is_one)
    };
    let is_guessed = |name: &String| {
        let of = name.strip_suffix("_errors").or(name.strip_suffix("_error"));
        *name != signal_name
            && !is_summary(name)
            && !axes.contains(name)
            && !(is_log && (name == "time" || is_of_log(name)))
            && named(attributes, format!("{name}_indices")).is_none()
            && of.is_none_or(|of| column(of).is_none())
    };
    let mut others = Vec::new();
    for (name, number) in fields.iter().filter(|(name, _)| is_guessed(name)) {
        let field = &schema.columns[*number as usize];
        let has = |column: &Column, input: usize| column.facts[input].template != ABSENT;
        let inputs = field.facts.len().min(signal.facts.len());
        let Some(input) = (0..inputs).find(|&input| has(field, input) && has(signal, input)) else { continue };
        let in_input = guess(&signal.dims_in(input as u32), &field.dims_in(input as u32));
        let in_output = guess(&signal.output_dims(false).0, &field.output_dims(false).0);
        if let Some(found) = in_input.filter(|found| in_output.as_ref() != Some(found)) {
            others.push((name.clone(), *number, found));
        }
    }
    others
}

/// Returns the axes of a signal of this `shape` that readers assume for a field with these `dims`.
pub(super) fn guess(shape: &[u64], dims: &[u64]) -> Option<Vec<usize>> {
    if shape.ends_with(dims) && (dims.len() > 1 || dims.len() == shape.len()) {
        return Some((shape.len() - dims.len()..shape.len()).collect());
    }
    let axis_of = |length: u64| {
        let mut axes = (0..shape.len()).filter(|&axis| shape[axis] == length);
        axes.next().filter(|_| axes.next().is_none())
    };
    let axes = |dims: &[u64]| dims.iter().map(|&length| axis_of(length)).collect::<Option<Vec<usize>>>();
    axes(dims).or_else(|| {
        // The last axis may hold edges of bins.
        let (last, others) = dims.split_last()?;
        axes(&[others, &[last.checked_sub(1)?]].concat())
    })
}

/// Creates the attribute that names the axes of a field.
fn indices(name: &str, axes: &[usize]) -> AttributeValue {
    let bytes = axes.iter().flat_map(|&axis| (axis as i64).to_le_bytes()).collect();
    attribute::new(&format!("{name}_indices"), NumberType::int64().class(), &[axes.len() as u64], bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_guessed_as_by_scippnexus() {
        for (shape, dims, axes) in [
            (&[3, 6][..], &[3][..], Some(vec![0])),
            (&[3, 6], &[6], Some(vec![1])),
            (&[3, 6], &[7], Some(vec![1])),
            (&[3, 6], &[4], Some(vec![0])),
            (&[3, 6], &[5], None),
            (&[6, 6], &[6], None),
            (&[6, 6], &[6, 6], Some(vec![0, 1])),
            (&[6, 6, 6], &[6, 6], Some(vec![1, 2])),
            (&[5], &[5], Some(vec![0])),
        ] {
            assert_eq!(guess(shape, dims), axes, "{shape:?} {dims:?}");
        }
    }
}
