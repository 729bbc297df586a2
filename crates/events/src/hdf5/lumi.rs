//! Common parts of the layouts that store bytes: the group `/Lumi`, products that are blobs, and raddle's attributes
//! for them.
//!
//! Invariant: products are in the order of the attribute that names them, regardless of the order in which a reader
//! lists attributes or links.

use super::series::{SeriesAttribute, SeriesValue};
use super::{COUNTED_IDS, IDS_ATTRIBUTE, LAYOUT_ATTRIBUTE, LUMI};
use crate::error::{EventsError, NEEDS_BYTES, Result};
use raddle_columns::block::{Block, Column};
use raddle_columns::error::ColumnsError;
use raddle_columns::event_id::EventId;
use raddle_columns::schema::{Form, Product, Schema, Serialization};

/// Attributes of `/Lumi` in files written by raddle: names, classes and serialisations of products, one string per
/// product.
pub(super) const PRODUCT_NAMES: &str = "ProductNames";
pub(super) const CLASS_NAMES: &str = "ClassNames";
pub(super) const SERIALIZATIONS: &str = "Serializations";

/// Attributes of `/Lumi` in files written by the framework.
pub(super) const RUN: &str = "run";
pub(super) const LUMISEC: &str = "lumisec";
pub(super) const COMPRESSION_LEVEL: &str = "CompressionLevel";
pub(super) const COMPRESSION_CHOICE: &str = "CompressionChoice";
pub(super) const COMPRESSION: &str = "Compression";

/// Returns the attributes of `/Lumi` in a file written by raddle. `with_ids` states whether the source has ids.
pub(super) fn attributes(
    layout: &str,
    schema: &Schema,
    with_ids: bool,
) -> Result<Vec<(&'static str, SeriesAttribute)>> {
    let mut serializations = Vec::with_capacity(schema.products.len());
    for product in &schema.products {
        serializations.push(serialization(product, "this HDF5 layout")?.name().to_owned());
    }
    let strings =
        |text: fn(&Product) -> &String| SeriesValue::Strings(schema.products.iter().map(text).cloned().collect());
    let mut attributes = vec![
        (LUMI, SeriesAttribute::text(LAYOUT_ATTRIBUTE, layout)),
        (LUMI, SeriesAttribute::new(PRODUCT_NAMES, strings(|product| &product.name))),
        (LUMI, SeriesAttribute::new(CLASS_NAMES, strings(|product| &product.class))),
        (LUMI, SeriesAttribute::new(SERIALIZATIONS, SeriesValue::Strings(serializations))),
    ];
    if !with_ids {
        attributes.push((LUMI, SeriesAttribute::text(IDS_ATTRIBUTE, COUNTED_IDS)));
    }
    Ok(attributes)
}

/// Returns the serialisation of a product; fails if it is not stored as bytes.
pub(super) fn serialization(product: &Product, layout: &'static str) -> Result<Serialization> {
    match product.form {
        Form::Blob(serialization) if !product.name.contains('\0') && !product.class.contains('\0') => Ok(serialization),
        Form::Blob(_) => Err(refused(product, layout, "names must be without NUL")),
        _ => Err(refused(product, layout, NEEDS_BYTES)),
    }
}

/// Creates the error for a product that a layout cannot hold.
pub(super) fn refused(product: &Product, layout: &'static str, needed: &'static str) -> EventsError {
    ColumnsError::Form { product: product.name.clone(), form: product.form.to_string(), layout, needed }.into()
}

/// Returns run and subrun of the first event as attributes, as the framework records them.
pub(super) fn first_event(first: Option<EventId>) -> Vec<(&'static str, SeriesAttribute)> {
    let Some(id) = first else { return Vec::new() };
    // The framework stores them as signed numbers.
    vec![
        (LUMI, SeriesAttribute::new(RUN, SeriesValue::Int32(id.run as i32))),
        (LUMI, SeriesAttribute::new(LUMISEC, SeriesValue::Int32(id.lumi as i32))),
    ]
}

/// Returns offsets and bytes of each product in a checked block of blobs.
pub(super) fn blobs(block: &Block) -> Vec<(&[u64], &[u8])> {
    block.columns.iter().filter_map(Column::as_bytes).collect()
}

/// Returns blob `number` of a checked column.
pub(super) fn blob<'b>((offsets, bytes): (&[u64], &'b [u8]), number: usize) -> &'b [u8] {
    &bytes[offsets[number] as usize..offsets[number + 1] as usize]
}
