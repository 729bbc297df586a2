//! Digests of structure: one per object or link, over everything that a reader sees of it, except for a column's
//! values.
//!
//! They cover kind, character set of the name, datatype (with names, paddings and offsets), dimensions and their
//! maxima, fill value, link target, comment, attributes with type, extent and value, and the whole value of scalar
//! datasets. They do not cover the storage layout. The digested bytes are the serialisation of `DigestedObject` below
//! in postcard's format, so any change of the types in this file or in the model is a change of
//! [`crate::verify::provenance::FORMAT`]; a test guards this.

use super::contents::StoredDigests;
use crate::error::{MergeError, Result};
use crate::plan::MergePlan;
use crate::schema::attribute::marks_classic_model;
use crate::schema::{Role, SchemaEntry, display_path};
use crate::write::values::{ColumnReader, open_pool};
use raddle_core::digest::Digest;
use raddle_hdf5::logical::append_null;
use raddle_hdf5::model::{CreationOrder, Dataset, Dataspace, InlineData, TypeClass};
use serde::Serialize;
use std::borrow::Cow;

/// Digested properties of an object.
#[derive(Serialize)]
struct DigestedObject<'p> {
    utf8: bool,
    kind: ObjectStructure<'p>,
    comment: &'p Option<Vec<u8>>,
    attribute_order: CreationOrder,
    /// Attributes, sorted by name if no order is kept.
    attributes: Vec<AttributeStructure<'p>>,
}

#[derive(Serialize)]
enum ObjectStructure<'p> {
    Group(CreationOrder),
    Column {
        class: Cow<'p, TypeClass>,
        committed: &'p Option<Vec<u8>>,
        dims: &'p [u64],
        max_dims: &'p [u64],
        fill: Option<&'p [u8]>,
        fill_is_undefined: bool,
    },
    Constant {
        class: Cow<'p, TypeClass>,
        committed: &'p Option<Vec<u8>>,
        dataspace: &'p Dataspace,
        value: &'p [u8],
    },
    CommittedDatatype(Cow<'p, TypeClass>),
    HardLink(&'p [u8]),
    SoftLink(&'p [u8]),
    ExternalLink(&'p [u8], &'p [u8]),
    UserLink(u8, &'p [u8]),
}

#[derive(Serialize)]
struct AttributeStructure<'p> {
    name: &'p [u8],
    utf8: bool,
    class: Cow<'p, TypeClass>,
    committed: &'p Option<Vec<u8>>,
    dataspace: &'p Dataspace,
    value: &'p [u8],
}

/// Computes the digest of each entry of the plan's schema, in schema order.
pub fn structure_digests(plan: &MergePlan) -> Vec<u64> {
    structure_digests_with(plan, &|column| plan.columns[column as usize].dims.first().copied().unwrap_or(0))
}

/// Computes the digest of each entry; `rows` returns the number of rows of a column.
pub fn structure_digests_with(plan: &MergePlan, rows: &dyn Fn(u32) -> u64) -> Vec<u64> {
    plan.schema.entries.iter().map(|entry| of_entry(plan, entry, rows)).collect()
}

/// Returns the digest in `stored` of the structure of the dataset of `entry`, and the digest to compare with it:
/// `current`. The digest of a stack of scalars (`--scalars stack`) is computed here, because it also covers the values.
pub fn known_and_found(
    plan: &MergePlan,
    stored: &StoredDigests,
    (entry, column): (&SchemaEntry, u32),
    current: u64,
    reader: &mut ColumnReader<'_>,
) -> Result<(Option<u64>, u64)> {
    let (planned, scanned) = (&plan.columns[column as usize], &plan.schema.columns[column as usize]);
    let known = stored.datasets.get(&entry.path);
    if known.is_some() || !stored.is_stack(&entry.path, &planned.dims) {
        return Ok((known.map(|known| known.structure), current));
    }
    let (dims, max_dims) = (planned.dims.clone(), planned.max_dims.clone());
    let value = reader.canonical_rows(column, 0, 0, dims[0], &dims)?;
    let mut dataset = Box::new(scanned.model().clone());
    dataset.dataspace = Dataspace::Simple { dims, max_dims };
    let role = Role::Constant { dataset, committed: scanned.committed.clone(), value };
    let found = of_entry(plan, &SchemaEntry { role, ..entry.clone() }, &|_| 0);
    Ok((stored.objects.get(&entry.path).copied(), found))
}

/// Refuses a file whose objects differ from those in `stored`, because new digests would hide the change. `digests` are
/// those of the plan's entries; computed columns are new.
pub fn check_structure(plan: &MergePlan, stored: &StoredDigests, digests: Vec<u64>) -> Result<()> {
    let pool = open_pool(plan);
    let mut reader = ColumnReader::new(plan, &pool);
    for (entry, mut digest) in plan.schema.entries.iter().zip(digests) {
        let known = match entry.role {
            Role::Column(column) if plan.derived.has(column) => continue,
            Role::Column(column) => {
                let (known, found) = known_and_found(plan, stored, (entry, column), digest, &mut reader)?;
                digest = found;
                known
            }
            _ => stored.objects.get(&entry.path).copied(),
        };
        if known != Some(digest) {
            return Err(not_as_written(display_path(&entry.path)));
        }
    }
    Ok(())
}

/// Creates the error for an object that has changed since its digests were computed.
pub fn not_as_written(object: String) -> MergeError {
    let reason = "differs from what was written; run raddle verify before adding anything".to_owned();
    MergeError::Object { object, reason }
}

fn of_entry(plan: &MergePlan, entry: &SchemaEntry, rows: &dyn Fn(u32) -> u64) -> u64 {
    let mut attributes: Vec<AttributeStructure<'_>> = entry
        .attributes
        .iter()
        .filter(|attribute| !marks_classic_model(&entry.path, attribute))
        .map(|attribute| AttributeStructure {
            name: &attribute.name,
            utf8: attribute.utf8,
            class: attribute.datatype.class.with_long_addresses(),
            committed: &attribute.committed,
            dataspace: &attribute.dataspace,
            value: &attribute.value,
        })
        .collect();
    if !entry.attribute_order.tracked {
        attributes.sort_by_key(|attribute| attribute.name);
    }
    let (dims, max_dims);
    let kind = match &entry.role {
        Role::Group { link_order } => ObjectStructure::Group(*link_order),
        Role::Column(column) => {
            let (planned, scanned) = (&plan.columns[*column as usize], &plan.schema.columns[*column as usize]);
            let model = scanned.model();
            let with_rows = |sizes: &[u64], is_unlimited: bool| {
                let mut sizes = sizes.to_vec();
                if let (Some(first), false) = (sizes.first_mut(), is_unlimited) {
                    *first = rows(*column);
                }
                sizes
            };
            dims = with_rows(planned.file_dims(), false);
            // Axis 0 is unlimited, or its maximum is its length.
            max_dims = with_rows(planned.file_max_dims(), planned.max_dims.first() == Some(&u64::MAX));
            ObjectStructure::Column {
                class: model.datatype.class.with_long_addresses(),
                committed: &scanned.committed,
                dims: &dims,
                max_dims: &max_dims,
                fill: fill_value(model),
                fill_is_undefined: model.fill.undefined,
            }
        }
        Role::Constant { dataset, committed, value } => ObjectStructure::Constant {
            class: dataset.datatype.class.with_long_addresses(),
            committed,
            dataspace: &dataset.dataspace,
            value,
        },
        Role::CommittedDatatype(class) => ObjectStructure::CommittedDatatype(class.with_long_addresses()),
        Role::HardLink { target } => ObjectStructure::HardLink(target),
        Role::SoftLink(target) => ObjectStructure::SoftLink(target),
        Role::ExternalLink { file, path } => ObjectStructure::ExternalLink(file, path),
        Role::UserLink { class, data } => ObjectStructure::UserLink(*class, data),
    };
    let facts = DigestedObject {
        utf8: entry.utf8,
        kind,
        comment: &entry.comment,
        attribute_order: entry.attribute_order,
        attributes,
    };
    of_facts(&facts)
}

fn of_facts(facts: &DigestedObject<'_>) -> u64 {
    // Serialising plain values to memory cannot fail. If it did, no digest would match the empty serialisation.
    let bytes = postcard::to_stdvec(facts).unwrap_or_default();
    Digest::of(&bytes).crc64_nvme()
}

/// Returns the fill value, unless it is the default of zeros, which writers either store or omit. In canonical form,
/// zeros are null references and null strings.
fn fill_value(dataset: &Dataset) -> Option<&[u8]> {
    let value = dataset.fill.value.as_ref()?;
    let is_default = match value {
        InlineData::Stored(_) => false,
        InlineData::Canonical(bytes) => {
            let mut null = Vec::new();
            append_null(&dataset.datatype.class, &mut null);
            *bytes == null
        }
    };
    let bytes = value.bytes();
    (!is_default && bytes.iter().any(|&byte| byte != 0)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::provenance::{string, unsigned};

    #[test]
    fn the_serialisation_is_that_of_the_format() {
        let (class, text) = (unsigned(4), string());
        let attribute = AttributeStructure {
            name: b"unit",
            utf8: false,
            class: Cow::Borrowed(&text),
            committed: &None,
            dataspace: &Dataspace::Scalar,
            value: b"\x02\0\0\0\0\0\0\0cm",
        };
        let facts = |dims| DigestedObject {
            utf8: true,
            kind: ObjectStructure::Column {
                class: Cow::Borrowed(&class),
                committed: &None,
                dims,
                max_dims: &[u64::MAX, 3],
                fill: None,
                fill_is_undefined: false,
            },
            comment: &None,
            attribute_order: CreationOrder::default(),
            attributes: vec![],
        };
        // If these change, older files would be reported as damaged: FORMAT must change with them.
        assert_eq!(of_facts(&facts(&[7, 3])), 14_470_578_904_392_753_516);
        assert_ne!(of_facts(&facts(&[8, 3])), of_facts(&facts(&[7, 3])));
        let with_attribute = DigestedObject { attributes: vec![attribute], ..facts(&[7, 3]) };
        assert_eq!(of_facts(&with_attribute), 10_046_929_017_648_245_959);
    }
}
