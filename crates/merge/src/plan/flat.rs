//! Choice of the datasets of N x 1 elements that become datasets of N elements.
//!
//! Values and their order in the file do not change. Only the written metadata does: dimensions, chunk shapes and
//! origins of chunks. Invariant: no other object of the output depends on the rank of a flattened dataset.

use crate::error::{MergeError, Result};
use crate::scan::scale_lists::{DIMENSION_LABELS, DIMENSION_LIST};
use crate::schema::attribute::named;
use crate::schema::{Column, Role, Schema, SchemaEntry, display_path};
use raddle_hdf5::model::{ReferenceKind, TypeClass};

/// Returns whether a column can lose its second dimension. Dimension scales and labels refer to dimensions by number.
pub(super) fn can_be_flat(column: &Column, entry: &SchemaEntry) -> bool {
    let dims = column.model().dataspace.dims();
    let is_counted = [DIMENSION_LIST, DIMENSION_LABELS].iter().any(|name| named(&entry.attributes, name).is_some());
    dims.len() == 2 && dims[1] == 1 && column.axis == 0 && !is_counted
}

/// Refuses region references: their coordinates have the rank of the dataset that they refer to.
///
/// # Errors
/// [`MergeError::Object`] for the first object that holds region references.
pub(super) fn check(schema: &Schema) -> Result<()> {
    refuse_regions(schema, "which depend on the rank of the dataset; leave out --rank-1")
}

/// Refuses region references if a dataset's rows are not simply those of all inputs: their coordinates are only shifted
/// along the first axis.
///
/// # Errors
/// [`MergeError::Object`] for the first object that holds region references.
pub(super) fn check_regions(schema: &Schema) -> Result<()> {
    let is_moved = |column: &Column| {
        column.axis > 0 || column.is_lifted || column.boxes.is_some() || column.runs.is_some() || column.trims.is_some()
    };
    match schema.columns.iter().any(is_moved) {
        true => refuse_regions(
            schema,
            "which are kept only if all rows of the inputs follow one another along the first axis; leave it out with --exclude",
        ),
        false => Ok(()),
    }
}

fn refuse_regions(schema: &Schema, remedy: &str) -> Result<()> {
    let holds_regions = |entry: &&SchemaEntry| {
        let class = match &entry.role {
            Role::Column(column) => Some(&schema.columns[*column as usize].model().datatype.class),
            Role::Constant { dataset, .. } => Some(&dataset.datatype.class),
            _ => None,
        };
        let of_attributes = entry.attributes.iter().map(|attribute| &attribute.datatype.class);
        class.into_iter().chain(of_attributes).any(|class| has_region(class))
    };
    match schema.entries.iter().find(holds_regions) {
        None => Ok(()),
        Some(entry) => Err(MergeError::Object {
            object: display_path(&entry.path),
            reason: format!("holds region references, {remedy}"),
        }),
    }
}

fn has_region(class: &TypeClass) -> bool {
    const OBJECT: u8 = 2;
    match class {
        TypeClass::Reference(ReferenceKind::Object | ReferenceKind::Revised { kind: OBJECT, .. }) => false,
        TypeClass::Reference(_) => true,
        TypeClass::Compound { members, .. } => members.iter().any(|member| has_region(&member.class)),
        TypeClass::Array { base, .. } | TypeClass::Enum { base, .. } | TypeClass::Sequence { base, .. } => {
            has_region(base)
        }
        _ => false,
    }
}
