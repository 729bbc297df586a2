//! A column of the index group that holds the first value of another dataset in all rows. It completes ids if one part
//! of them (such as the cycle of a simulation) is constant in a file and stored elsewhere.

use super::{FirstValueSpec, KeyDatasets};
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::schema::{ColumnIndex, Role, display_path, last_name, parent_path};
use crate::write::values::{ColumnReader, open_pool};
use raddle_hdf5::model::TypeClass;
use std::sync::Arc;

/// Number of rows that are compared with the first at once.
const READ_ROWS: u64 = 1 << 16;

/// Column that has the same value in all rows.
pub(super) struct ConstantColumn {
    /// Name in the index group.
    pub name: Vec<u8>,
    /// Column of the index group that has the same number of rows.
    pub like: ColumnIndex,
    /// Type of the value.
    pub class: Arc<TypeClass>,
    /// The value, as stored.
    pub element: Vec<u8>,
}

/// Finds the first value for the column that `spec` describes.
///
/// # Errors
/// If the dataset or the group does not exist, or the dataset has no rows, or more than one value per row.
pub(super) fn constant_column(plan: &MergePlan, spec: &FirstValueSpec, watch: &Watch<'_>) -> Result<ConstantColumn> {
    let refuse = |object: &str, reason: &str| {
        Err(MergeError::Object { object: display_path(object.as_bytes()), reason: reason.to_owned() })
    };
    let find = |plan: &MergePlan, wanted: &dyn Fn(&[u8]) -> bool| -> Option<ColumnIndex> {
        plan.schema.entries.iter().find_map(|entry| match entry.role {
            Role::Column(column) if wanted(&entry.path) => Some(column),
            _ => None,
        })
    };
    let Some(source) = find(plan, &|path| path == spec.dataset.as_bytes()) else {
        return refuse(&spec.dataset, "is not in the file");
    };
    let derived_path = spec.derived_path();
    let like = column_of_table(plan, spec)?;
    let class = plan.schema.columns[source as usize].model().datatype.class.clone();
    let len_bytes = plan.row_len_bytes(source);
    if class.is_file_local() || len_bytes != class.len_bytes() {
        return refuse(&spec.dataset, "does not have one value of fixed size per row");
    }
    let (element, varies) = first_value(plan, source, len_bytes, watch)?;
    let Some(element) = element else { return refuse(&spec.dataset, "has no rows, so it has no first value") };
    if let Some(row) = varies {
        let text = format!("{} has a different value from row {row} on; the first value is used", spec.dataset);
        watch.warn(text);
    }
    let name = last_name(&derived_path).to_vec();
    Ok(ConstantColumn { name, like, class, element })
}

/// Returns a column of the index group that has one value per row. Other datasets of the group, such as stacked
/// scalars, may have different numbers of rows.
///
/// # Errors
/// If the group has no such column, or no number of rows that most of its datasets have.
fn column_of_table(plan: &MergePlan, spec: &FirstValueSpec) -> Result<ColumnIndex> {
    let refuse = |reason: String| Err(MergeError::Object { object: display_path(spec.group.as_bytes()), reason });
    let derived_path = spec.derived_path();
    let of_group: Vec<(&[u8], ColumnIndex)> = plan
        .schema
        .entries
        .iter()
        .filter(|entry| parent_path(&entry.path) == spec.group.as_bytes() && entry.path != derived_path)
        .filter_map(|entry| match entry.role {
            Role::Column(column) => Some((last_name(&entry.path), column)),
            _ => None,
        })
        .collect();
    let is_key = |name: &[u8]| {
        let endings = KeyDatasets::default().endings().filter_map(|ending| name.strip_suffix(ending.as_bytes()));
        endings.into_iter().any(|key| of_group.iter().any(|(name, _)| *name == key))
    };
    let columns: Vec<(&[u8], ColumnIndex)> = of_group.iter().filter(|(name, _)| !is_key(name)).copied().collect();
    let rows = |column: ColumnIndex| plan.columns[column as usize].dims[0];
    let have = |wanted: u64| columns.iter().filter(|(_, column)| rows(*column) == wanted).count();
    let Some(&(first, column)) = columns.iter().max_by_key(|(_, column)| have(rows(*column))) else {
        return refuse("has no dataset whose rows could be counted".to_owned());
    };
    let of_table = rows(column);
    if have(of_table) * 2 <= columns.len()
        && let Some((other, column)) = columns.iter().find(|(_, column)| rows(*column) != of_table)
    {
        let [first, other] = [first, *other].map(display_path);
        let found = rows(*column);
        return refuse(format!(
            "has {of_table} rows in {first} and {found} in {other}, so its events cannot be counted"
        ));
    }
    let has_one_value = |column: ColumnIndex| plan.columns[column as usize].dims[1..].iter().all(|&dim| dim == 1);
    match columns.iter().find(|(_, column)| rows(*column) == of_table && has_one_value(*column)) {
        Some((_, column)) => Ok(*column),
        None => refuse("has only datasets of several values per row".to_owned()),
    }
}

/// Returns the first value of a column, and the first row with a different value.
fn first_value(
    plan: &MergePlan,
    column: ColumnIndex,
    len_bytes: u64,
    watch: &Watch<'_>,
) -> Result<(Option<Vec<u8>>, Option<u64>)> {
    let pool = open_pool(plan);
    let mut reader = ColumnReader::new(plan, &pool);
    let rows = plan.columns[column as usize].dims[0];
    let mut first: Option<Vec<u8>> = None;
    let mut values = Vec::new();
    let mut row = 0;
    while row < rows {
        if watch.cancel.is_cancelled() {
            return Err(MergeError::Cancelled);
        }
        let end = (row + READ_ROWS).min(rows);
        values.resize(((end - row) * len_bytes) as usize, 0);
        reader.read_rows(column, row..end, &mut values)?;
        let known = first.get_or_insert_with(|| values[..len_bytes as usize].to_vec());
        let other = values.chunks_exact(len_bytes as usize).position(|value| value != known.as_slice());
        if let Some(other) = other {
            return Ok((first, Some(row + other as u64)));
        }
        row = end;
    }
    Ok((first, None))
}
