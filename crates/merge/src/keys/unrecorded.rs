//! Partition keys without a record, as ph5concat writes them.
//!
//! They count the events of one file, like those of raddle, so rows of several files must not be concatenated. They are
//! recognised by their names and shapes. Invariant: a single dataset whose name ends in `.seq` is not taken for a key.

use super::groups::maker;
use super::{DerivedSpec, KeyDatasets};
use crate::conventions::Choice;
use crate::error::Result;
use crate::options::MergeOptions;
use crate::rules::user;
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{ABSENT, Column, Role, Schema, SchemaEntry, child_path, display_path, last_name, parent_path};
use raddle_hdf5::model::{Dataspace, TypeClass};
use std::collections::{BTreeMap, HashMap};

/// Returns a difference for each key that the inputs have without a record, unless the options recreate it, a rule
/// keeps it, or no convention is to be recognised. `recorded` are the records of the inputs. If the inputs are appended
/// (`is_append`), the first is the file that grows.
///
/// # Errors
/// If specs of keys do not fit the inputs.
pub fn unrecorded(
    schema: &Schema,
    recorded: &[DerivedSpec],
    options: &MergeOptions,
    is_append: bool,
) -> Result<Vec<Difference>> {
    if options.conventions.convention == Some(Choice::None) {
        return Ok(Vec::new());
    }
    let makers = options.derived.iter().map(|spec| maker(schema, spec)).collect::<Result<Vec<_>>>()?;
    let is_known = |path: &[u8]| match is_append {
        true => makers.iter().any(|makes| makes(path)),
        false => recorded.iter().chain(&options.derived).any(|spec| spec.makes(path)),
    };
    let is_kept = |path: &Vec<u8>| user::has_rows(&options.conventions.rules, path);
    let differences = keys(schema).into_values().filter(|paths| !paths.iter().any(is_kept)).filter_map(|mut paths| {
        paths.retain(|path| !is_known(path));
        let (first, others) = paths.split_first()?;
        let (path, inputs) = (display_path(first), holders(schema, first));
        let others = match others.len() {
            0 => String::new(),
            others => format!(" ({others} more such datasets)"),
        };
        let remedy = match is_append {
            true => "raddle keys add --force recreates them in the file, so that they can grow".to_owned(),
            false => format!(
                "--keys with the ids of the index group recreates them, --exclude leaves them out, \
                 --rule '{path}: concatenate' keeps them"
            ),
        };
        Some(Difference {
            path,
            kind: DifferenceKind::Meaning,
            expected: "values computed from the rows of all inputs".to_owned(),
            found: format!("partition keys, which count the events of one file{others}; {remedy}"),
            inputs,
        })
    });
    Ok(differences.collect())
}

/// Returns the paths of the key datasets of every key by its name, such as `evt`.
fn keys(schema: &Schema) -> BTreeMap<&[u8], Vec<Vec<u8>>> {
    let columns: HashMap<&[u8], &Column> = columns(schema).collect();
    let column = |path: &[u8]| columns.get(path).copied();
    let mut groups: BTreeMap<&[u8], Vec<&[u8]>> = BTreeMap::new();
    for entry in &schema.entries {
        let (group, name) = (parent_path(&entry.path), last_name(&entry.path));
        let Some(named) = name.strip_suffix(b".seq") else { continue };
        if let (Some(seq), Some(ids)) = (column(&entry.path), column(&child_path(group, named)))
            && is_number_per_row(seq, ids)
        {
            groups.entry(named).or_default().push(group);
        }
    }
    let datasets = |named: &[u8], groups: &[&[u8]]| {
        let of_group = |group: &&[u8]| {
            let group = group.to_vec();
            let path = move |ending: &str| child_path(&group, &[named, ending.as_bytes()].concat());
            KeyDatasets::default().endings().map(path).collect::<Vec<_>>()
        };
        groups.iter().flat_map(of_group).filter(|path| column(path).is_some()).collect::<Vec<_>>()
    };
    let found = groups.into_iter().map(|(named, groups)| (named, datasets(named, &groups)));
    found.filter(|(_, paths)| paths.len() > 1).collect()
}

/// Returns whether `seq` has an integer for every row of `ids` in the inputs that have it.
fn is_number_per_row(seq: &Column, ids: &Column) -> bool {
    let is_integer = matches!(*seq.model().datatype.class, TypeClass::Integer { .. });
    let Dataspace::Simple { dims, .. } = &seq.model().dataspace else { return false };
    let mut rows = seq.facts.iter().zip(ids.facts.iter());
    let is_complete = rows.all(|(seq, ids)| seq.template == ABSENT || seq.rows == ids.rows);
    is_integer && !seq.is_once && dims.iter().skip(1).all(|&len| len == 1) && is_complete
}

/// Returns the numbers of the inputs that have the dataset at `path`.
fn holders(schema: &Schema, path: &[u8]) -> Vec<u32> {
    let facts = columns(schema).filter(|(known, _)| *known == path).flat_map(|(_, column)| column.facts.iter());
    (0..).zip(facts).filter(|(_, fact)| fact.template != ABSENT).map(|(input, _)| input).collect()
}

/// Returns all datasets with their paths.
fn columns(schema: &Schema) -> impl Iterator<Item = (&[u8], &Column)> {
    schema.entries.iter().filter_map(|entry: &SchemaEntry| match entry.role {
        Role::Column(column) => Some((entry.path.as_slice(), &schema.columns[column as usize])),
        _ => None,
    })
}
