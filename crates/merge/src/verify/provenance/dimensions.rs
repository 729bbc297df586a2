//! Dimensions of the tables of `/_raddle` in netCDF files, because some netCDF readers refuse files with a variable
//! that has an axis without a dimension.
//!
//! The dimensions have no variables, and names that no other dimension has. They are not part of the seal. Source: the
//! netCDF-4 format in HDF5 (NUG, appendix C). Invariant: each axis of each table has a dimension of its length, and no
//! dimension has the id of another one in the file.

use super::{ProvenanceTable, provenance_path};
use crate::conventions::cf::{DIMENSION_NUMBER, is_class_of_scales};
use crate::scan::scale_lists::{reference_list, with_first_scale};
use crate::schema::attribute::{fixed_text, named, number, text_without_variable, with_integers};
use crate::schema::{AttributeValue, Schema, parent_path};
use raddle_hdf5::model::TypeClass;
use raddle_hdf5::number::NumberType;
use std::sync::Arc;

/// Beginning of the names of the dimensions.
pub const DIMENSION_PREFIX: &[u8] = b"raddle_";

/// A dimension of `/_raddle`.
#[derive(Debug, Clone)]
pub struct ProvenanceDimension {
    /// Absolute path.
    pub path: Vec<u8>,
    /// Number of elements.
    pub len: u64,
    /// Attributes, including the list of the axes that have this dimension.
    pub attributes: Vec<AttributeValue>,
}

/// A dimension with the tables and axes to which it is attached.
struct Attached {
    path: Vec<u8>,
    len: u64,
    places: Vec<(Vec<u8>, u32)>,
}

/// Returns the type of the datasets by which the netCDF library stores dimensions without variables.
pub fn class_of_dimensions() -> Arc<TypeClass> {
    Arc::new(NumberType::Float { len_bytes: 4, is_big_endian: true }.class())
}

/// Attaches dimensions to `tables` if a file with this `schema` is read by the netCDF library. Returns the dimensions.
pub fn attach(schema: &Schema, tables: &mut [ProvenanceTable]) -> Vec<ProvenanceDimension> {
    if !is_netcdf(schema) {
        return Vec::new();
    }
    let mut found: Vec<Attached> = Vec::new();
    for table in tables {
        let names = names_of_axes(&table.path);
        for ((axis, name), &len) in (0..).zip(names).zip(&table.dims) {
            let (path, place) = (provenance_path(name), (table.path.clone(), axis));
            match found.iter_mut().find(|known| known.path == path) {
                Some(known) => known.places.push(place),
                None => found.push(Attached { path, len, places: vec![place] }),
            }
        }
        let lists =
            names.iter().rev().zip(1..).fold(None, |others, (name, rank)| {
                Some(with_first_scale(others.as_ref(), &provenance_path(name), rank))
            });
        table.attributes.extend(lists);
    }
    let ids = schema.entries.iter().filter_map(|entry| named(&entry.attributes, DIMENSION_NUMBER));
    let last = ids.max_by_key(|id| number(std::slice::from_ref(*id), DIMENSION_NUMBER).unwrap_or(0.0) as i64);
    let first_free =
        last.and_then(|last| number(std::slice::from_ref(last), DIMENSION_NUMBER)).unwrap_or(0.0) as i64 + 1;
    let dimension = |(id, Attached { path, len, places })| {
        let name = fixed_text("NAME", text_without_variable(len).as_bytes());
        let mut attributes = vec![fixed_text("CLASS", b"DIMENSION_SCALE"), name, reference_list(&places)];
        // Files whose dimensions have no ids stay without.
        attributes.extend(last.and_then(|last| with_integers(last, &[id])));
        ProvenanceDimension { path, len, attributes }
    };
    (first_free..).zip(found).map(dimension).collect()
}

/// Returns whether a file is read by the netCDF library: it has dimensions, and ids of these or the conventions that it
/// follows.
pub fn is_netcdf(schema: &Schema) -> bool {
    let has = |name: &str| schema.entries.first().is_some_and(|root| named(&root.attributes, name).is_some());
    let is_marked = has("Conventions") || has("_NCProperties");
    let mut scales = schema.entries.iter().filter(|entry| is_class_of_scales(&entry.attributes));
    scales.any(|scale| is_marked || named(&scale.attributes, DIMENSION_NUMBER).is_some())
}

/// Returns the names of the dimensions of a table.
fn names_of_axes(table: &[u8]) -> &'static [&'static str] {
    match parent_path(table) {
        group if group == provenance_path("inputs") => &["raddle_input"],
        group if group == provenance_path("objects") => &["raddle_object"],
        group if group == provenance_path("datasets") => &["raddle_dataset"],
        _ if table == provenance_path("row_starts") => &["raddle_row_list", "raddle_row_start"],
        _ => &["raddle_block"],
    }
}
