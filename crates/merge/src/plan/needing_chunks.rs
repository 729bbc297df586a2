//! Datasets that readers accept only if they are chunked, or only with the chunks of their input.

use crate::conventions::cf::names_no_variable;
use crate::scan::scale_lists::scales;
use crate::schema::attribute::marks_table_index;
use crate::schema::{Role, Schema, child_path, last_name, parent_path};
use std::collections::{HashMap, HashSet};

/// Returns the paths of netCDF datasets that readers accept only if they can grow, which requires chunks: variables
/// that are shorter than their unlimited dimension, the dimensions of these variables, and unlimited dimensions without
/// a variable.
pub(super) fn short_of_dimensions(schema: &Schema) -> HashSet<Vec<u8>> {
    let mut columns = HashMap::new();
    for entry in &schema.entries {
        if let Role::Column(column) = entry.role {
            columns.insert(entry.path.as_slice(), schema.columns[column as usize].output_dims(false));
        }
    }
    let lens = dimension_lens(schema, &columns);
    let mut short = HashSet::new();
    for entry in &schema.entries {
        let Some((dims, max_dims)) = columns.get(entry.path.as_slice()) else { continue };
        let is_unlimited = max_dims.first() == Some(&u64::MAX);
        // A coordinate variable may be shorter than its dimension, too.
        let is_short = lens.get(&entry.path).is_some_and(|len| dims.first().is_some_and(|dim| dim < len));
        if is_unlimited && (is_short || names_no_variable(&entry.attributes)) {
            short.insert(entry.path.clone());
        }
        for (dim, scales) in dims.iter().zip(scales(&entry.attributes)) {
            for scale in scales.into_iter().take(1) {
                if lens.get(&scale).is_some_and(|len| dim < len) {
                    short.extend([entry.path.clone(), scale]);
                }
            }
        }
    }
    short
}

/// Returns the length of each dimension that has a scale. An unlimited dimension is as long as its longest variable.
fn dimension_lens(schema: &Schema, columns: &HashMap<&[u8], (Vec<u64>, Vec<u64>)>) -> HashMap<Vec<u8>, u64> {
    let mut lens = HashMap::new();
    for entry in &schema.entries {
        let Some((dims, _)) = columns.get(entry.path.as_slice()) else { continue };
        for (dim, scales) in dims.iter().zip(scales(&entry.attributes)) {
            for scale in scales.into_iter().take(1) {
                let Some((scale_dims, max_dims)) = columns.get(scale.as_slice()) else { continue };
                let Some(&stored) = scale_dims.first() else { continue };
                let len = lens.entry(scale).or_insert(stored);
                if max_dims.first() == Some(&u64::MAX) {
                    *len = (*len).max(*dim);
                }
            }
        }
    }
    lens
}

/// PyTables index, which relies on the chunks of its own datasets and of the table that it indexes.
pub(super) struct TableIndex {
    /// Beginning of the paths of its datasets.
    prefix: Vec<u8>,
    /// Path of the table.
    table: Vec<u8>,
}

impl TableIndex {
    /// Returns the indexes of a schema.
    pub(super) fn all(schema: &Schema) -> Vec<Self> {
        let indexes = schema.entries.iter().filter(|entry| marks_table_index(&entry.attributes));
        let index = |path: &[u8]| {
            let table = last_name(path).strip_prefix(b"_i_").unwrap_or_default();
            Self { prefix: child_path(path, b""), table: child_path(parent_path(path), table) }
        };
        indexes.map(|entry| index(&entry.path)).collect()
    }

    /// Returns whether the index relies on the chunks of the dataset at `path`.
    pub(super) fn relies_on(&self, path: &[u8]) -> bool {
        path == self.table || path.starts_with(&self.prefix)
    }
}
