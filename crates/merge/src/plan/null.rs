//! Conversion of datasets without elements to null datasets, which have a type and attributes but no dimensions.
//!
//! Invariant: a dataset with elements remains a column, in its original order among the others.

use crate::error::{MergeError, Result};
use crate::scan::scale_lists::{DIMENSION_LABELS, DIMENSION_LIST, REFERENCE_LIST};
use crate::schema::attribute::named;
use crate::schema::join::JoinResult;
use crate::schema::{Column, Role, SchemaEntry};
use raddle_hdf5::model::{Dataset, Dataspace, Layout};

/// Turns columns without elements into null datasets. Dimension scales, and datasets to which they are attached, keep
/// their dimensions.
///
/// # Errors
/// If the inputs follow a convention, whose readers expect dimensions.
pub(super) fn make_null(joined: &mut JoinResult) -> Result<()> {
    if let Some(convention) = joined.convention {
        return Err(MergeError::Object {
            object: "/".to_owned(),
            reason: format!(
                "the inputs follow {}, in which datasets have dimensions: leave out --empty null, or read them with --convention none",
                convention.title()
            ),
        });
    }
    let schema = &mut joined.schema;
    let columns = std::mem::take(&mut schema.columns);
    let mut columns: Vec<Option<Column>> = columns.into_iter().map(Some).collect();
    for (index, entry) in (0..).zip(&mut schema.entries) {
        let Role::Column(number) = entry.role else { continue };
        let Some(mut column) = columns[number as usize].take() else { continue };
        if is_empty(&column) && !has_scales(entry) {
            let model = column.model().clone();
            let layout = Layout::Contiguous { address: None, len_bytes: 0 };
            let dataset = Dataset { dataspace: Dataspace::Null, layout, filters: Vec::new(), ..model };
            entry.role =
                Role::Constant { dataset: Box::new(dataset), committed: column.committed.take(), value: Vec::new() };
            continue;
        }
        column.entry = index;
        entry.role = Role::Column(schema.columns.len() as u32);
        schema.columns.push(column);
    }
    Ok(())
}

fn is_empty(column: &Column) -> bool {
    let dims = column.model().dataspace.dims().iter().enumerate();
    column.rows() == 0 || dims.filter(|(axis, _)| *axis != column.axis).any(|(_, &dim)| dim == 0)
}

fn has_scales(entry: &SchemaEntry) -> bool {
    let names = [DIMENSION_LIST, DIMENSION_LABELS, REFERENCE_LIST];
    names.iter().any(|name| named(&entry.attributes, name).is_some())
}
