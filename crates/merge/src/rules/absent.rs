//! Records of a variable that an input lacks, in an outer join: they must read as missing.
//!
//! Invariant: the number of such records equals that of the other variables along their dimension, and a number that
//! represents a missing value is one that the variable's attributes name.

use super::conversion::ElementMap;
use super::fills::{FLOAT_FILL, INTEGER_FILLS, nan_fill};
use super::settling::{DeclaredRule, Mismatch, Settling};
use super::{Placement, ValueMeaning};
use crate::schema::attribute::{self, named, numbers};
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{ABSENT, AttributeValue, Column, ColumnIndex, InputExtent, Schema, display_path};
use raddle_hdf5::model::{Dataset, InlineData, TypeClass};
use raddle_hdf5::number::NumberType;
use std::collections::HashMap;

/// Attributes that contain the number for a missing value; the first is the one that writers prefer.
const MARKERS: [&str; 2] = ["_FillValue", "missing_value"];

/// Settles the records of `column` that inputs lack. Their numbers are those of other variables along the same
/// dimension, in `lengths`.
pub(super) fn settle(
    settling: &mut Settling<'_>,
    declared: &DeclaredRule,
    column: ColumnIndex,
    lengths: &HashMap<Vec<u8>, Vec<u64>>,
) {
    let Some(lengths) = declared.rule.record.as_ref().and_then(|record| lengths.get(record)) else { return };
    if !matches!(declared.rule.placement, Placement::Along(_)) {
        return;
    }
    let scanned = &mut settling.schema.columns[column as usize];
    let facts = scanned.facts.iter().zip(lengths);
    let facts = facts.map(|(fact, &rows)| if fact.template == ABSENT { InputExtent::absent(rows) } else { *fact });
    scanned.facts = facts.collect();
    let is_lacking = |(_, fact): &(u32, &InputExtent)| fact.template == ABSENT && fact.rows > 0;
    let absent: Vec<u32> = (0..).zip(scanned.facts.iter()).filter(is_lacking).map(|(input, _)| input).collect();
    if absent.is_empty() || scanned.is_file_local() {
        return;
    }
    let attributes = &settling.schema.entries[declared.entry as usize].attributes;
    let marker = MARKERS.iter().find_map(|name| named(attributes, name));
    let mut output = scanned.model().clone();
    let number = NumberType::of(&output.datatype.class);
    let is_time = matches!(declared.rule.values, ValueMeaning::Time(_) | ValueMeaning::TimeOf { .. });
    let fill = match (marker, number) {
        (Some(marker), _) => fill_like(marker, &output.datatype.class),
        (None, Some(NumberType::Float { .. })) if !is_time && settling.is_new => {
            let (attribute, fill) = float_fill(&output);
            let attributes = attributes.iter().cloned().chain([attribute]).collect();
            settling.set_attributes(declared.entry, attributes);
            Some(fill)
        }
        _ => None,
    };
    let Some(fill) = fill else {
        let mismatch = Mismatch::new(
            "a value for missing data (_FillValue)",
            "no variable, and no value that its records could have",
        );
        return settling.refuse(declared.entry, mismatch.or("--join inner leaves it out"), absent);
    };
    output.fill.value = Some(InlineData::Stored(fill));
    (output.fill.user_defined, output.fill.undefined) = (true, false);
    settling.schema.columns[column as usize].set_output(output);
}

/// Returns the columns that lack rows of an input and cannot be filled: strings and references have no value for
/// missing data.
pub(crate) fn unfillable(schema: &Schema) -> Vec<Difference> {
    let mut differences = Vec::new();
    let is_read = |column: &Column| column.is_file_local() && column.of_inputs.is_none();
    for (number, column) in (0..).zip(&schema.columns).filter(|(_, column)| is_read(column)) {
        let is_blank = |input| column.conversion_of(input).is_some_and(|one| one.map == ElementMap::Blank);
        let is_lacking =
            |(input, fact): &(u32, &InputExtent)| fact.template == ABSENT && fact.rows > 0 && !is_blank(*input);
        let inputs: Vec<u32> = (0..).zip(column.facts.iter()).filter(is_lacking).map(|(input, _)| input).collect();
        if !inputs.is_empty() {
            differences.push(Difference {
                path: display_path(schema.column_path(number)),
                kind: DifferenceKind::Missing,
                expected: "strings, sequences or references".to_owned(),
                found: "nothing, and no such value represents missing data; --join inner leaves the dataset out"
                    .to_owned(),
                inputs,
            });
        }
    }
    differences
}

/// Returns the value of elements of `dataset` that no input has, and the attribute to add if none names it. The value
/// is that of an attribute, or the netCDF default fill value if the dataset has it, or NaN for other floats.
pub(crate) fn value_for_holes(
    attributes: &[AttributeValue],
    dataset: &Dataset,
) -> Option<(Vec<u8>, Option<AttributeValue>)> {
    let class = &dataset.datatype.class;
    if let Some(marker) = MARKERS.iter().find_map(|name| named(attributes, name)) {
        return Some((fill_like(marker, class)?, None));
    }
    match NumberType::of(class)? {
        NumberType::Float { .. } => {
            let (attribute, fill) = float_fill(dataset);
            Some((fill, Some(attribute)))
        }
        number @ NumberType::Integer { len_bytes, signed, .. } => {
            let (.., fill) = INTEGER_FILLS.into_iter().find(|one| (one.0, one.1) == (len_bytes, signed))?;
            let mut bytes = Vec::new();
            let of_netcdf = if signed || len_bytes < 8 { fill.to_le_bytes() } else { (u64::MAX - 1).to_le_bytes() };
            bytes.extend_from_slice(&of_netcdf[..number.len_bytes()]);
            if matches!(number, NumberType::Integer { is_big_endian: true, .. }) {
                bytes.reverse();
            }
            let is_of_dataset = dataset.fill.value.as_ref().is_some_and(|value| value.bytes() == bytes);
            let attribute = attribute::new(MARKERS[0], class.as_ref().clone(), &[1], bytes.clone());
            is_of_dataset.then_some((bytes, Some(attribute)))
        }
    }
}

/// Returns the attribute `_FillValue` of a float dataset that has none, and the stored bytes of its value. Elements
/// that were never written have the fill value of the dataset. The netCDF library treats its own fill value as missing
/// only if no attribute names another.
fn float_fill(dataset: &Dataset) -> (AttributeValue, Vec<u8>) {
    let (mut attribute, nan) = nan_fill(&dataset.datatype);
    let mut of_netcdf = Vec::new();
    if let Some(number) = NumberType::of(&dataset.datatype.class) {
        number.encode_floats(&[FLOAT_FILL], &mut of_netcdf);
    }
    if dataset.fill.value.as_ref().is_none_or(|value| value.bytes() != of_netcdf) {
        return (attribute, nan);
    }
    attribute.value.clone_from(&of_netcdf);
    (attribute, of_netcdf)
}

/// Converts the number in an attribute to an element of type `class`; returns `None` if the type cannot hold it.
fn fill_like(marker: &AttributeValue, class: &TypeClass) -> Option<Vec<u8>> {
    if *marker.datatype.class == *class {
        return marker.value.get(..class.len_bytes() as usize).map(<[u8]>::to_vec);
    }
    let (number, value) = (NumberType::of(class)?, *numbers(marker)?.first()?);
    let mut fill = Vec::new();
    if number.is_integer() {
        let integer = value as i64;
        (integer as f64 == value).then_some(())?;
        number.encode_integers(&[integer], &mut fill).ok()?;
    } else {
        number.encode_floats(&[value], &mut fill);
    }
    Some(fill)
}
