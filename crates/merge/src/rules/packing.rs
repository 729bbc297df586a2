//! Values that are packed with a scale, an offset and markers of missing values in attributes, as CF defines.
//!
//! Invariant: if inputs pack values differently, no value is written under the attributes of another input.

use super::attribute::{self, named, number, numbers, text, without, words};
use super::conversion::{Conversion, ElementMap, InputConversion};
use super::repack;
use super::settle::{Declared, Mismatch, Settling};
use super::units::linear_map;
use crate::conventions::{Packing, Units};
use crate::schema::{AttributeValue, ColumnIndex};
use raddle_hdf5::model::{Datatype, InlineData};
use raddle_hdf5::number::NumberType;
use std::sync::Arc;

/// Attributes that define the value of a stored number.
pub const PACKING: [&str; 5] = ["scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned"];
/// Attributes that mark missing values.
const MARKERS: [&str; 2] = ["_FillValue", "missing_value"];
/// Attributes that define which stored numbers are valid.
pub const VALID: [&str; 3] = ["valid_min", "valid_max", "valid_range"];

/// Hint for inputs that pack values differently.
pub const DECIDES: &str = "--packing unpack writes floats, --packing repack integers with one scale and offset";

/// Settles a dataset of values that may be packed.
pub(super) fn settle(settling: &mut Settling<'_>, declared: &Declared, column: ColumnIndex) {
    let is_same = |name: &str| {
        let known = named(&declared.first, name);
        declared.attributes.iter().all(|(_, attributes)| is_equal(known, named(attributes, name)))
    };
    if PACKING.iter().all(|name| is_same(name)) {
        let is_converted = settling.options.units == Units::Convert && !is_same("units");
        return match is_converted {
            true => convert_units(settling, declared, column),
            false => settling.require_equal(declared, &PACKING),
        };
    }
    if settling.options.packing == Packing::Refuse {
        return refuse(settling, declared);
    }
    settling.require_equal(declared, &PACKING);
    if let Some(name) = VALID.into_iter().find(|name| named(&declared.first, name).is_some()) {
        let known = named(&declared.first, name).map_or_else(String::new, words);
        let found = "packed differently, so that the limit would mean another value".to_owned();
        return settling.refuse(declared.entry, Mismatch::attribute(name, known, found), Vec::new());
    }
    let path = settling.schema.column_path(column).to_vec();
    match (settling.options.packing, settling.ranges.get(&path).copied()) {
        (Packing::Repack, Some(range)) => repack::settle(settling, declared, column, range),
        (Packing::Repack, None) => {
            settling.unranged.push(path);
            unpack(settling, declared, column);
        }
        _ => unpack(settling, declared, column),
    }
}

fn refuse(settling: &mut Settling<'_>, declared: &Declared) {
    for name in PACKING {
        let known = named(&declared.first, name);
        let differing: Vec<&(u32, Arc<[AttributeValue]>)> =
            declared.attributes.iter().filter(|(_, attributes)| !is_equal(known, named(attributes, name))).collect();
        let Some((_, attributes)) = differing.first() else { continue };
        let words_of =
            |attribute: Option<&AttributeValue>| attribute.map_or_else(|| "no such attribute".to_owned(), words);
        let mismatch = Mismatch::attribute(name, words_of(known), words_of(named(attributes, name))).or(DECIDES);
        let inputs = differing.iter().map(|(input, _)| *input).collect();
        settling.refuse(declared.entry, mismatch, inputs);
    }
    settling.require_equal(declared, &PACKING);
}

/// Converts values to the units of the first input.
fn convert_units(settling: &mut Settling<'_>, declared: &Declared, column: ColumnIndex) {
    let is_packed =
        ["scale_factor", "add_offset"].iter().chain(&VALID).any(|name| named(&declared.first, name).is_some());
    let settled: Vec<&str> = PACKING.into_iter().chain(["units"]).collect();
    settling.require_equal(declared, &settled);
    let target = text(&declared.first, "units").unwrap_or_default();
    let maps = settling.of_inputs(column, |settling, input| {
        let attributes = settling.attributes(declared, input);
        let own = text(&attributes, "units").unwrap_or_default();
        if own == target {
            return Ok(ElementMap::Same);
        }
        let scanned = &settling.schema.columns[column as usize];
        let template = scanned.facts[input as usize].template as usize;
        let number = NumberType::of(&scanned.templates[template].datatype.class);
        let is_float = number.is_some_and(|number| !number.is_integer());
        match linear_map(&own, &target) {
            Some((slope, shift)) if is_float && !is_packed => {
                Ok(ElementMap::Linear { slope, shift, kept: missing_values(&attributes) })
            }
            Some(_) => {
                let why = "values are packed, limited or integers, which other units would round";
                Err(Mismatch::attribute("units", target.clone(), format!("{own}; {why}")))
            }
            None => Err(Mismatch::attribute("units", target.clone(), format!("{own}; no conversion is known"))),
        }
    });
    match maps {
        Ok(maps) => {
            let of_inputs = maps.into_iter().map(|map| InputConversion { map, ..InputConversion::default() }).collect();
            settling.convert(column, None, Conversion { of_inputs });
        }
        Err((mismatch, inputs)) => settling.refuse(declared.entry, mismatch, inputs),
    }
}

/// Returns the conversion that unpacks the values of each input.
pub(super) fn unpacking(
    settling: &mut Settling<'_>,
    declared: &Declared,
    column: ColumnIndex,
) -> Result<Vec<ElementMap>, (Mismatch, Vec<u32>)> {
    settling.of_inputs(column, |settling, input| {
        let scanned = &settling.schema.columns[column as usize];
        let template = scanned.facts[input as usize].template as usize;
        let Some(stored) = NumberType::of(&scanned.templates[template].datatype.class) else {
            return Err(Mismatch::new("numbers", "values of another kind, which cannot be unpacked"));
        };
        let attributes = settling.attributes(declared, input);
        Ok(ElementMap::Unpack {
            scale: number(&attributes, "scale_factor").unwrap_or(1.0),
            offset: number(&attributes, "add_offset").unwrap_or(0.0),
            missing: missing_values(&attributes),
            reinterpret: reinterprets(stored, &attributes),
            in_single: is_single(stored, &attributes) && settling.options.packing == Packing::Unpack,
        })
    })
}

/// Returns the number type, if it is the same in all inputs.
pub(super) fn single_number(settling: &Settling<'_>, column: ColumnIndex) -> Option<NumberType> {
    let mut numbers = settling.schema.columns[column as usize]
        .templates
        .iter()
        .map(|template| NumberType::of(&template.datatype.class));
    let first = numbers.next()??;
    numbers.all(|number| number == Some(first)).then_some(first)
}

/// Writes the values unpacked, in the widest of the float types that readers would choose for the inputs.
fn unpack(settling: &mut Settling<'_>, declared: &Declared, column: ColumnIndex) {
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

/// Returns the attribute `_FillValue` of a float type whose missing values are NaN, and the stored bytes of NaN.
pub(super) fn nan_fill(datatype: &Datatype) -> (AttributeValue, Vec<u8>) {
    let mut nan = Vec::new();
    if let Some(number) = NumberType::of(&datatype.class) {
        number.encode_floats(&[f64::NAN], &mut nan);
    }
    (attribute::new("_FillValue", datatype.class.as_ref().clone(), &[1], nan.clone()), nan)
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

/// Whether stored signed integers are to be read as unsigned, or the reverse.
fn reinterprets(stored: NumberType, attributes: &[AttributeValue]) -> bool {
    match (stored, text(attributes, "_Unsigned").as_deref()) {
        (NumberType::Integer { signed, .. }, Some("true" | "True")) => signed,
        (NumberType::Integer { signed, .. }, Some("false" | "False")) => !signed,
        _ => false,
    }
}

/// Whether readers unpack to floats of 32 bits (as xarray does, following CF section 8.1).
fn is_single(stored: NumberType, attributes: &[AttributeValue]) -> bool {
    let float_len = |name| {
        let attribute = named(attributes, name)?;
        match NumberType::of(&attribute.datatype.class)? {
            NumberType::Float { len_bytes, .. } => Some(len_bytes),
            NumberType::Integer { .. } => Some(0),
        }
    };
    match (float_len("scale_factor"), float_len("add_offset")) {
        (Some(4), Some(4)) => stored.len_bytes() != 4 || !stored.is_integer(),
        (_, Some(_)) => false,
        (Some(scale), None) => scale == 4,
        (None, None) if stored.is_integer() => stored.len_bytes() <= 2,
        (None, None) => stored.len_bytes() <= 4,
    }
}

/// Whether two attributes have the same meaning: numbers are compared by value and type, because the type determines
/// the precision with which readers compute.
fn is_equal(left: Option<&AttributeValue>, right: Option<&AttributeValue>) -> bool {
    match (left, right) {
        // A marker has the type of its variable. If the types differ, that difference is reported instead.
        (Some(left), Some(right))
            if left.datatype != right.datatype && MARKERS.iter().any(|name| left.name == name.as_bytes()) =>
        {
            let bits =
                |attribute| numbers(attribute).map(|all| all.iter().map(|one| one.to_bits()).collect::<Vec<_>>());
            bits(left).is_some_and(|known| bits(right) == Some(known))
        }
        (Some(left), Some(right)) => {
            left.datatype == right.datatype && left.value == right.value
                || text(std::slice::from_ref(left), &String::from_utf8_lossy(&left.name)).is_some_and(|known| {
                    text(std::slice::from_ref(right), &String::from_utf8_lossy(&right.name)) == Some(known)
                })
        }
        (left, right) => left.is_none() && right.is_none(),
    }
}
