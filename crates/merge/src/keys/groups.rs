//! Groups that get keys: the index, and every other group with the same id columns.

use super::{DerivedSpec, KeySpec};
use crate::error::{MergeError, Result};
use crate::schema::{ColumnIndex, Role, Schema, display_path, last_name, parent_path};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Returns a function that tests whether a path of `schema` is a dataset that `spec` computes. Keys are only computed
/// in groups that get them.
pub(super) fn maker<'a>(schema: &Schema, spec: &'a DerivedSpec) -> Result<impl Fn(&[u8]) -> bool + use<'a>> {
    let groups: Option<HashSet<Vec<u8>>> = match spec {
        DerivedSpec::Keys(keys) => Some(key_groups(schema, keys)?.keyed.into_iter().map(|(group, _)| group).collect()),
        DerivedSpec::FirstValue(_) => None,
    };
    Ok(move |path: &[u8]| spec.makes(path) && groups.as_ref().is_none_or(|groups| groups.contains(parent_path(path))))
}

/// Groups with datasets, and whether they get keys.
pub(super) struct KeyGroups {
    /// Groups that get keys, the index first, with their id columns.
    pub keyed: Vec<(Vec<u8>, Vec<ColumnIndex>)>,
    /// Paths of groups that lack an id column, escaped for display.
    pub without: Vec<String>,
    /// Patterns that match no group.
    pub unmatched_skips: Vec<String>,
}

/// Finds the groups that get keys.
///
/// # Errors
/// If the index group lacks id columns or has them in several groups, or patterns are not valid.
pub(super) fn key_groups(schema: &Schema, spec: &KeySpec) -> Result<KeyGroups> {
    let refuse = |object: &str, reason: &str| {
        Err(MergeError::Object { object: display_path(object.as_bytes()), reason: reason.to_owned() })
    };
    let Some(first) = spec.columns.first() else { return refuse("/", "no column of a key was named") };
    let index_group = parent_path(first.as_bytes()).to_vec();
    let mut names: Vec<&[u8]> = Vec::new();
    for path in &spec.columns {
        if !path.starts_with('/') {
            return refuse(path, "is not an absolute path; name a column of the index group, such as /spill/evt");
        }
        if parent_path(path.as_bytes()) != index_group {
            return refuse(path, "is in another group than the first column of the key");
        }
        if names.contains(&last_name(path.as_bytes())) {
            return refuse(path, "is named twice");
        }
        names.push(last_name(path.as_bytes()));
    }
    let mut skip = globset::GlobSetBuilder::new();
    for pattern in &spec.skip {
        let glob = globset::Glob::new(pattern);
        skip.add(glob.map_err(|source| MergeError::Pattern { pattern: pattern.clone(), source })?);
    }
    let pattern = || spec.skip.join(", ");
    let skip = skip.build().map_err(|source| MergeError::Pattern { pattern: pattern(), source })?;

    let mut groups: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    let mut columns: HashMap<&[u8], HashMap<&[u8], ColumnIndex>> = HashMap::new();
    for (place, entry) in schema.entries.iter().enumerate() {
        if let Role::Column(column) = entry.role {
            let group = parent_path(&entry.path);
            let known = columns.entry(group).or_insert_with(|| {
                groups.insert(place, group.to_vec());
                HashMap::new()
            });
            known.insert(last_name(&entry.path), column);
        }
    }
    let Some(of_index) = columns.get(index_group.as_slice()) else {
        return refuse(first, "is not in the inputs; name the columns of the group that has a row per event");
    };
    if let Some(missing) = spec.columns.iter().find(|path| !of_index.contains_key(last_name(path.as_bytes()))) {
        return refuse(missing, "is not in the inputs; name the columns of the group that has a row per event");
    }
    let (mut keyed, mut without) = (Vec::new(), Vec::new());
    let mut has_matched = vec![false; spec.skip.len()];
    let others = groups.into_values().filter(|group| *group != index_group);
    for group in std::iter::once(index_group.clone()).chain(others) {
        if group != index_group {
            let skipping = skip.matches(String::from_utf8_lossy(&group).as_ref());
            skipping.iter().for_each(|&at| has_matched[at] = true);
            if !skipping.is_empty() {
                continue;
            }
        }
        let of_group = &columns[group.as_slice()];
        let keys: Option<Vec<ColumnIndex>> = names.iter().map(|name| of_group.get(name).copied()).collect();
        match keys {
            Some(keys) => keyed.push((group, keys)),
            None => without.push(display_path(&group)),
        }
    }
    let unmatched = spec.skip.iter().zip(has_matched).filter(|(_, has_matched)| !has_matched);
    Ok(KeyGroups { keyed, without, unmatched_skips: unmatched.map(|(pattern, _)| pattern.clone()).collect() })
}
