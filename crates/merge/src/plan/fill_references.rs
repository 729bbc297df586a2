//! Fill values that are references, which are kept if the target object exists when the dataset is created.
//!
//! A fill value is part of a dataset from its creation, and a reference needs an existing target. In MATLAB files, the
//! fill values of cell arrays refer to one object that comes first in the file. Invariant: after [`settle`], the target
//! of every reference in a fill value is created before the dataset.

use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{Role, Schema, display_path};
use raddle_hdf5::logical::append_null;
use raddle_hdf5::model::{Dataset, InlineData, ReferenceKind, TypeClass};
use std::collections::HashMap;
use std::sync::Arc;

/// Replaces the fill values that cannot be kept with null references, and returns a warning for each. The output has
/// `inputs` inputs.
pub fn settle(schema: &mut Schema, inputs: u32) -> Vec<Difference> {
    let referring: Vec<usize> = (0..schema.entries.len()).filter(|&index| fill(schema, index).is_some()).collect();
    if referring.is_empty() {
        return Vec::new();
    }
    let places: HashMap<&[u8], usize> = (0..).zip(&schema.entries).map(|(at, entry)| (&*entry.path, at)).collect();
    let mut warnings = Vec::new();
    let mut nulled = Vec::new();
    for index in referring {
        let Some(target) = fill(schema, index) else { continue };
        let is_kept = match &target {
            Target::Null => true,
            Target::Object(path) => path == b"/" || places.get(path.as_slice()).is_some_and(|&place| place < index),
            Target::Inner => false,
        };
        if !is_kept {
            nulled.push(index);
            warnings.push(Difference {
                path: display_path(&schema.entries[index].path),
                kind: DifferenceKind::FillValue,
                expected: match target {
                    Target::Object(path) => format!("a reference to {}", display_path(&path)),
                    _ => "references in a larger type".to_owned(),
                },
                found: "null: the fill value is written before the target of the reference".to_owned(),
                inputs: (0..inputs).collect(),
            });
        }
    }
    for index in nulled {
        match &mut schema.entries[index].role {
            Role::Column(column) => make_null(Arc::make_mut(&mut schema.columns[*column as usize].templates[0])),
            Role::Constant { dataset, .. } => make_null(dataset),
            _ => {}
        }
    }
    warnings
}

/// Target of a fill value.
enum Target {
    Null,
    Object(Vec<u8>),
    /// References inside a larger type, as members or items.
    Inner,
}

/// Returns the target of an entry's fill value; `None` if its type holds no references or it has no fill value.
fn fill(schema: &Schema, index: usize) -> Option<Target> {
    let dataset: &Dataset = match &schema.entries[index].role {
        Role::Column(column) => schema.columns[*column as usize].model(),
        Role::Constant { dataset, .. } => dataset,
        _ => return None,
    };
    let Some(InlineData::Canonical(value)) = &dataset.fill.value else { return None };
    match &*dataset.datatype.class {
        // Canonical bytes: the length of the path, then the path.
        TypeClass::Reference(ReferenceKind::Object) => match value.get(8..) {
            None | Some([]) => Some(Target::Null),
            Some(path) => Some(Target::Object(path.to_vec())),
        },
        class if class.has_reference() => Some(Target::Inner),
        _ => None,
    }
}

fn make_null(dataset: &mut Dataset) {
    let mut value = Vec::new();
    append_null(&dataset.datatype.class, &mut value);
    dataset.fill.value = Some(InlineData::Canonical(value));
}
