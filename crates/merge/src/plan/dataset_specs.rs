//! Specifications of an output's objects and the predicted size of its metadata: pure functions of a plan.
//!
//! The objects are created in `commit`. Invariant: predictions use the same specifications by which objects are
//! created.

use crate::plan::{MergePlan, Route, Storage};
use crate::schema::parent_path;
use crate::schema::{ABSENT, AttributeValue, Role, SchemaEntry};
use raddle_hdf5::model::{Dataset, Dataspace, Layout, TypeClass};
use raddle_hdf5::write::{
    AttributeSpec, DatasetSpec, MetadataPrediction, OutputLayout, OutputOptions, TypeRef, VirtualMapping,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Returns how an object refers to its datatype: committed at a path, or its own.
pub fn type_ref(class: &Arc<TypeClass>, committed: Option<&Vec<u8>>) -> TypeRef {
    match committed {
        Some(path) => TypeRef::Committed { path: path.clone(), class: Arc::clone(class) },
        None => TypeRef::Own(Arc::clone(class)),
    }
}

/// Returns the specification of an attribute.
pub fn attribute_spec<'a>(attribute: &'a AttributeValue, datatype: &'a TypeRef) -> AttributeSpec<'a> {
    AttributeSpec {
        name: &attribute.name,
        utf8: attribute.utf8,
        datatype,
        dataspace: &attribute.dataspace,
        value: &attribute.value,
    }
}

/// Returns the specification of a dataset whose value all inputs share.
pub fn constant_spec(entry: &SchemaEntry, dataset: &Dataset, committed: Option<&Vec<u8>>) -> DatasetSpec {
    DatasetSpec {
        datatype: type_ref(&dataset.datatype.class, committed),
        dataspace: dataset.dataspace.clone(),
        layout: match dataset.layout {
            Layout::Compact(_) => OutputLayout::Compact,
            _ => OutputLayout::Contiguous,
        },
        filters: Vec::new(),
        fill: dataset.fill.clone(),
        attribute_order: entry.attribute_order,
        has_attributes: !entry.attributes.is_empty(),
    }
}

/// Returns the specification of a column's dataset.
pub fn column_spec(plan: &MergePlan, entry: &SchemaEntry, column: u32) -> DatasetSpec {
    let (planned, scanned) = (&plan.columns[column as usize], &plan.schema.columns[column as usize]);
    DatasetSpec {
        datatype: type_ref(&scanned.model().datatype.class, scanned.committed.as_ref()),
        dataspace: Dataspace::Simple { dims: planned.file_dims().to_vec(), max_dims: planned.file_max_dims().to_vec() },
        layout: match &planned.storage {
            Storage::Compact => OutputLayout::Compact,
            Storage::Contiguous => OutputLayout::Contiguous,
            Storage::Chunked(shape) => OutputLayout::Chunked { chunk_shape: shape[..planned.rank()].to_vec() },
            Storage::Virtual => OutputLayout::Virtual(mappings(plan, &entry.path, column)),
        },
        filters: planned.filters.clone(),
        fill: scanned.model().fill.clone(),
        attribute_order: entry.attribute_order,
        has_attributes: !entry.attributes.is_empty(),
    }
}

/// Returns the mappings of a virtual dataset: all rows of each input, one input after another.
fn mappings(plan: &MergePlan, path: &[u8], column: u32) -> Vec<VirtualMapping> {
    let mut start_row = 0;
    let mut mappings = Vec::new();
    for (fact, file) in plan.schema.columns[column as usize].facts.iter().zip(&plan.link_names) {
        if fact.template != ABSENT && fact.rows > 0 {
            mappings.push(VirtualMapping { start_row, rows: fact.rows, file: file.clone(), dataset: path.to_vec() });
        }
        start_row += fact.rows;
    }
    mappings
}

/// Returns the settings of the output file, with a metadata region sized for the plan.
pub fn output_options(plan: &MergePlan) -> OutputOptions {
    let mut options = OutputOptions {
        compat: plan.options.compat,
        metadata_region_len_bytes: predict_metadata(plan),
        ..OutputOptions::default()
    };
    if let Some(root) = plan.schema.entries.first()
        && let Role::Group { link_order } = root.role
    {
        options.root_link_order = link_order;
        options.root_attribute_order = root.attribute_order;
    }
    options
}

/// Predicts the size of the output's metadata from the schema. If the prediction is too small, objects are placed after
/// the raw region, next to the values and attributes that are written late.
pub fn predict_metadata(plan: &MergePlan) -> u64 {
    let compat = plan.options.compat;
    let mut prediction = MetadataPrediction::new(compat);
    let mut links: HashMap<&[u8], (u64, u64)> = HashMap::new();
    for entry in plan.schema.entries.iter().skip(1) {
        let parent = parent_path(&entry.path);
        let target = match &entry.role {
            Role::SoftLink(target) => target.len(),
            Role::ExternalLink { file, path } => file.len() + path.len(),
            Role::UserLink { data, .. } => data.len(),
            _ => 0,
        };
        let (count, text_len_bytes) = links.entry(parent).or_default();
        *count += 1;
        *text_len_bytes += (entry.path.len() - parent.len() + target) as u64;
    }
    for entry in &plan.schema.entries {
        let is_late = entry.attributes.iter().any(|attribute| attribute.datatype.class.has_reference());
        let attributes: Vec<u64> = entry
            .attributes
            .iter()
            .filter(|_| !is_late)
            .map(|attribute| {
                let datatype = type_ref(&attribute.datatype.class, attribute.committed.as_ref());
                attribute_spec(attribute, &datatype).message_len_bytes(compat)
            })
            .collect();
        match &entry.role {
            Role::Group { link_order } => {
                let (count, text_len_bytes) = links.get(entry.path.as_slice()).copied().unwrap_or_default();
                prediction.add_group(count, text_len_bytes, *link_order, &attributes);
            }
            Role::Column(column) => {
                let spec = column_spec(plan, entry, *column);
                let chunks = match plan.columns[*column as usize].route {
                    Route::Encoded { array, .. } | Route::Verbatim { array } => {
                        plan.tiles.arrays[array as usize].tile_count()
                    }
                    _ => 0,
                };
                prediction.add_dataset(&spec, chunks, &attributes);
                if let Route::Direct = plan.columns[*column as usize].route {
                    let element_len_bytes = spec.datatype.class().len_bytes();
                    let planned = &plan.columns[*column as usize];
                    prediction.add_values(&spec, planned.logical_len_bytes(element_len_bytes));
                }
            }
            Role::Constant { dataset, committed, value } => {
                let spec = constant_spec(entry, dataset, committed.as_ref());
                prediction.add_dataset(&spec, 0, &attributes);
                if !dataset.datatype.class.is_file_local() {
                    prediction.add_values(&spec, value.len() as u64);
                }
            }
            Role::CommittedDatatype(class) => prediction.add_datatype(class, &attributes),
            Role::HardLink { .. } | Role::SoftLink(_) | Role::ExternalLink { .. } | Role::UserLink { .. } => {}
        }
    }
    prediction.len_bytes()
}
