//! `--new-dim NAME`: each file is one record, and the scalar variable NAME is the coordinate of the records, as in
//! `xarray.concat(dim=NAME)`.
//!
//! Invariant: variables that describe the grid keep their dimensions and must be equal in all files; all others get the
//! new dimension as their first one.

use super::{
    COORDINATES, DIMENSION_NUMBER, DIMENSION_NUMBERS, GRID_MAPPING, Variables, bounds, is_scale, is_time, mappings,
    of_grid, of_root, of_scalar, of_variable, values,
};
use crate::conventions::{Completion, ConventionOptions, FileView, Refusal};
use crate::rules::Rule;
use crate::scan::scale_lists::{DIMENSION_LIST, with_first_scale};
use crate::schema::attribute::{fixed_text, named, number, numbers, replaced, with_integers};
use crate::schema::{AttributeValue, Role, Schema, display_path, is_named, last_name, parent_path};
use raddle_hdf5::model::{Dataspace, Datatype};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Attributes that name variables of the grid.
const OF_GRID: [&str; 2] = [COORDINATES, "cell_measures"];

/// Returns the rules of a file that is one record along `name`.
pub(super) fn rules(
    variables: &Variables<'_, '_>,
    name: &str,
    options: &ConventionOptions,
) -> Result<Vec<(usize, Rule)>, Refusal> {
    let file = variables.file;
    let coordinate = coordinate(file, name)?;
    let record = file.path_of(coordinate);
    let mut grid = of_grid(file, &OF_GRID);
    grid.extend(mappings(file));
    let times = scalars(file).filter(|&at| is_time(file, at));
    let times: BTreeMap<usize, usize> = times.flat_map(|at| bounds(file, at).map(move |bounds| (bounds, at))).collect();
    let in_reach = |at: usize| {
        let group = parent_path(record);
        group == b"/" || file.path_of(at).strip_prefix(group).is_some_and(|rest| rest.starts_with(b"/"))
    };
    let mut rules = vec![(0, of_root(options))];
    for at in (1..file.len()).filter(|&at| file.column(at).is_some() || file.scalar(at).is_some()) {
        let is_scalar = file.scalar(at).is_some();
        let stays = is_scale(file, at) || grid.contains(&at) || !in_reach(at);
        let mut rule = match (stays, is_scalar) {
            (true, true) => of_scalar(),
            (true, false) => of_variable(Rule::once()),
            (false, _) => Rule { is_lifted: true, record: Some(record.to_vec()), ..of_variable(Rule::along(0)) },
        };
        if !stays {
            rule.values = values(file, at, times.get(&at).copied());
        }
        rules.push((at, rule));
    }
    Ok(rules)
}

/// Finds the scalar variable to which `name` refers.
fn coordinate(file: &FileView<'_>, name: &str) -> Result<usize, Refusal> {
    let is_meant = |at: &usize| is_named(file.path_of(*at), name);
    let refuse = |object: &[u8], reason: String| Refusal { object: display_path(object), reason };
    let found: Vec<usize> = scalars(file).filter(is_meant).collect();
    match found[..] {
        [one] => Ok(one),
        [first, second, ..] => Err(refuse(
            file.path_of(first),
            format!("and {} are both named {name:?}: --new-dim takes a whole path", display_path(file.path_of(second))),
        )),
        [] => {
            let known: Vec<String> = scalars(file).map(|at| display_path(file.path_of(at))).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let is_dimension = (1..file.len()).filter(is_meant).any(|at| is_scale(file, at));
            Err(refuse(
                b"/",
                match is_dimension {
                    true => format!("already has the dimension {name:?}: --dim {name} concatenates files along it"),
                    false => format!("has no scalar variable {name:?} (--new-dim); it has {known}"),
                },
            ))
        }
    }
}

/// Returns the numbers of the entries that are scalar variables.
fn scalars<'f>(file: &'f FileView<'_>) -> impl Iterator<Item = usize> + 'f {
    (1..file.len())
        .filter(|&at| file.scalar(at).is_some_and(|(_, value)| !value.is_empty()) && !file.has(at, GRID_MAPPING))
}

/// Makes the coordinate a dimension scale, and attaches it to everything that has the new dimension.
pub(super) fn complete(completion: &mut Completion<'_>) {
    let mut lifted = completion.declared.iter().filter(|declared| declared.rule.is_lifted).peekable();
    let Some(record) = lifted.peek().and_then(|declared| declared.rule.record.clone()) else { return };
    let schema = &mut *completion.schema;
    let id = next_id(schema);
    for declared in lifted {
        let entry = &mut schema.entries[declared.entry as usize];
        let attributes = if entry.path == record {
            let name = last_name(&record);
            let mut attributes = replaced(&entry.attributes, fixed_text("CLASS", b"DIMENSION_SCALE"));
            attributes = replaced(&attributes, fixed_text("NAME", name));
            match &id {
                Some(id) => replaced(&attributes, id.clone()),
                None => attributes,
            }
        } else {
            let Role::Column(column) = entry.role else { continue };
            let rank = schema.columns[column as usize].model().dataspace.dims().len();
            let list = with_first_scale(named(&entry.attributes, DIMENSION_LIST), &record, rank);
            let mut attributes = replaced(&entry.attributes, list);
            let ids = named(&attributes, DIMENSION_NUMBERS).and_then(|known| with_id(known, id.as_ref()?));
            if let Some(ids) = ids {
                attributes = replaced(&attributes, ids);
            }
            attributes
        };
        entry.attributes = attributes;
    }
}

/// Returns an attribute with the next unused dimension id; `None` if dimensions have no ids.
fn next_id(schema: &Schema) -> Option<AttributeValue> {
    let of_entries = schema.entries.iter().filter_map(|entry| named(&entry.attributes, DIMENSION_NUMBER));
    let last = of_entries.max_by_key(|id| number(std::slice::from_ref(id), DIMENSION_NUMBER).unwrap_or(0.0) as i64)?;
    let next = numbers(last)?.first().map(|&last| last as i64 + 1)?;
    with_integers(last, &[next])
}

/// Returns the dimension ids of a variable, preceded by the id of the new dimension.
fn with_id(known: &AttributeValue, id: &AttributeValue) -> Option<AttributeValue> {
    let mut ids: Vec<i64> = numbers(id)?.into_iter().map(|id| id as i64).collect();
    ids.extend(numbers(known)?.into_iter().map(|id| id as i64));
    let dims = vec![ids.len() as u64];
    let dataspace = Dataspace::Simple { max_dims: dims.clone(), dims };
    let datatype = Datatype { class: Arc::clone(&known.datatype.class), committed: None };
    with_integers(&AttributeValue { dataspace, datatype, ..known.clone() }, &ids)
}
