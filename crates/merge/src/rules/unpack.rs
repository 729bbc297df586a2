//! `--packing unpack`: the values that readers compute from packed numbers.
//!
//! Invariant: values are written in a float type that holds what readers see of every input.

use super::conversion::{Conversion, ElementMap, InputConversion};
use super::fills::{library_fill, nan_fill};
use super::packed::PACKING;
use super::settling::{DeclaredRule, Mismatch, Settling};
use crate::conventions::Packing;
use crate::schema::attribute::{named, number, numbers, text, without};
use crate::schema::{AttributeValue, ColumnIndex};
use raddle_hdf5::model::{Datatype, InlineData};
use raddle_hdf5::netcdf;
use raddle_hdf5::number::NumberType;
use std::sync::Arc;

/// Returns the conversion that unpacks the values of each input.
pub(super) fn unpacking(
    settling: &mut Settling<'_>,
    declared: &DeclaredRule,
    column: ColumnIndex,
) -> Result<Vec<ElementMap>, (Mismatch, Vec<u32>)> {
    settling.of_inputs(column, |settling, input| {
        let Some(stored) = NumberType::of(&settling.template(column, input).datatype.class) else {
            return Err(Mismatch::new("numbers", "values of another kind, which cannot be unpacked"));
        };
        let attributes = settling.attributes(declared, input);
        Ok(ElementMap::Unpack {
            scale: number(&attributes, "scale_factor").unwrap_or(1.0),
            offset: number(&attributes, "add_offset").unwrap_or(0.0),
            missing: missing_values(&attributes).into_iter().map(decoding(stored, &attributes)).collect(),
            unwritten: unwritten_value(settling, column, input, &attributes).map(decoding(stored, &attributes)),
            reinterpret: reinterprets(stored, &attributes),
            in_single: is_single(stored, &attributes) && settling.options.packing == Packing::Unpack,
        })
    })
}

/// Returns the number type; `None` if it differs between inputs.
pub(super) fn single_number(settling: &Settling<'_>, column: ColumnIndex) -> Option<NumberType> {
    let mut numbers = settling.schema.columns[column as usize]
        .templates
        .iter()
        .map(|template| NumberType::of(&template.datatype.class));
    let first = numbers.next()??;
    numbers.all(|number| number == Some(first)).then_some(first)
}

/// Writes the values unpacked, in the widest of the float types that readers would choose for the inputs.
pub(super) fn unpack(settling: &mut Settling<'_>, declared: &DeclaredRule, column: ColumnIndex) {
    let maps = match unpacking(settling, declared, column) {
        Ok(maps) => maps,
        Err((mismatch, inputs)) => return settling.refuse(declared.entry, mismatch, inputs),
    };
    let is_double = maps.iter().any(|map| matches!(map, ElementMap::Unpack { in_single: false, .. }));
    let of_inputs = maps.into_iter().map(|map| InputConversion { map, ..InputConversion::default() }).collect();
    let scanned = &settling.schema.columns[column as usize];
    let number = NumberType::Float { len_bytes: if is_double { 8 } else { 4 }, is_big_endian: false };
    let mut output = scanned.model().clone();
    output.datatype = Datatype { class: Arc::new(number.class()), committed: None };
    let (attribute, nan) = nan_fill(&output.datatype);
    output.fill.value = Some(InlineData::Stored(nan));
    output.fill.user_defined = true;
    let mut attributes = without(&declared.first, &PACKING).to_vec();
    attributes.push(attribute);
    settling.set_attributes(declared.entry, attributes.into());
    settling.schema.columns[column as usize].set_output(output);
    settling.convert(column, None, Conversion { of_inputs });
}

/// Returns the stored numbers that represent missing values.
pub(super) fn missing_values(attributes: &[AttributeValue]) -> Vec<f64> {
    let of = |name| named(attributes, name).and_then(numbers).unwrap_or_default();
    let mut missing = of("_FillValue");
    missing.extend(of("missing_value"));
    missing.sort_by(f64::total_cmp);
    missing.dedup_by(|one, other| one.total_cmp(other).is_eq());
    missing
}

/// Returns the value of elements of an input that were never written, if none of its `attributes` names it. Readers
/// with the netCDF library regard it as a missing value.
pub(super) fn unwritten_value(
    settling: &Settling<'_>,
    column: ColumnIndex,
    input: u32,
    attributes: &[AttributeValue],
) -> Option<f64> {
    let is_named = named(attributes, "_FillValue").is_some();
    let fill = library_fill(settling.template(column, input)).filter(|_| !is_named)?;
    (!missing_values(attributes).contains(&fill)).then_some(fill)
}

/// Returns the function that gives a stored number the signedness of `_Unsigned`, as readers do.
pub(super) fn decoding(stored: NumberType, attributes: &[AttributeValue]) -> impl Fn(f64) -> f64 + use<> {
    let is_signed = matches!(stored, NumberType::Integer { signed: true, .. });
    let count = 2_f64.powi(8 * stored.len_bytes() as i32);
    let is_other = reinterprets(stored, attributes);
    move |value| match is_signed {
        true if is_other && value < 0.0 => value + count,
        false if is_other && value >= count / 2.0 => value - count,
        _ => value,
    }
}

/// Returns whether `_Unsigned` gives stored integers the other signedness.
fn reinterprets(stored: NumberType, attributes: &[AttributeValue]) -> bool {
    netcdf::reinterprets(stored, text(attributes, "_Unsigned").as_deref())
}

/// Returns whether readers unpack to floats of 32 bits.
fn is_single(stored: NumberType, attributes: &[AttributeValue]) -> bool {
    let number_of = |name| NumberType::of(&named(attributes, name)?.datatype.class);
    netcdf::is_single(stored, number_of("scale_factor"), number_of("add_offset"))
}
