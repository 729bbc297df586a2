//! Values that are packed with a scale, an offset and markers of missing values in attributes, as CF defines.
//!
//! Invariant: if inputs pack values differently, no value is written under the attributes of another input.

use super::conversion::{Conversion, ElementMap, InputConversion};
use super::packed::{DECIDES, PACKING, VALID};
use super::repack;
use super::settling::{DeclaredRule, Mismatch, Settling};
use super::unit_scale::{Rounding, UnitScale};
use super::units::{WholeMap, linear_map, whole_map};
use super::unpack::{missing_values, unpack, unwritten_value};
use crate::conventions::cf::paths_of_name;
use crate::conventions::{Packing, Units};
use crate::schema::attribute::{named, numbers, text, words};
use crate::schema::join::describe;
use crate::schema::{AttributeValue, ColumnIndex};
use raddle_hdf5::number::NumberType;
use std::sync::Arc;

/// Attributes that mark missing values.
const MARKERS: [&str; 2] = ["_FillValue", "missing_value"];
/// Settles a dataset of values that may be packed.
pub(super) fn settle(settling: &mut Settling<'_>, declared: &DeclaredRule, column: ColumnIndex) {
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
        let found = "packed differently, so that the limit would have a different meaning".to_owned();
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

fn refuse(settling: &mut Settling<'_>, declared: &DeclaredRule) {
    for name in PACKING {
        let known = named(&declared.first, name);
        let differing: Vec<&(u32, Arc<[AttributeValue]>)> =
            declared.attributes.iter().filter(|(_, attributes)| !is_equal(known, named(attributes, name))).collect();
        let Some((_, attributes)) = differing.first() else { continue };
        let (known, found) = differing_words(known, named(attributes, name));
        let mismatch = Mismatch::attribute(name, known, found).or(DECIDES);
        let inputs = differing.iter().map(|(input, _)| *input).collect();
        settling.refuse(declared.entry, mismatch, inputs);
    }
    settling.require_equal(declared, &PACKING);
}

/// Describes two unequal attributes, with their types if their values are equal.
fn differing_words(known: Option<&AttributeValue>, found: Option<&AttributeValue>) -> (String, String) {
    let both = [known, found];
    let texts = both.map(|attribute| attribute.map_or_else(|| "no such attribute".to_owned(), words));
    let [known, found] = match texts[0] == texts[1] {
        false => texts,
        true => both.map(|attribute| {
            attribute.map_or_else(String::new, |one| format!("{} ({})", words(one), describe(&one.datatype.class)))
        }),
    };
    (known, found)
}

/// Converts values to the units of the first input.
fn convert_units(settling: &mut Settling<'_>, declared: &DeclaredRule, column: ColumnIndex) {
    let is_packed =
        ["scale_factor", "add_offset"].iter().chain(&VALID).any(|name| named(&declared.first, name).is_some());
    let settled: Vec<&str> = PACKING.into_iter().chain(["units"]).collect();
    settling.require_equal(declared, &settled);
    let target = text(&declared.first, "units").unwrap_or_default();
    let path = settling.schema.column_path(column).to_vec();
    let has = |name: &&&str| {
        let bounds = text(&declared.first, name);
        bounds.is_some_and(|bounds| paths_of_name(&path, &bounds).any(|bounds| settling.column_at(&bounds).is_some()))
    };
    if let Some(name) = ["bounds", "climatology"].iter().find(has) {
        let known = named(&declared.first, name).map_or_else(String::new, words);
        let found = "other units, but bounds are not converted; leave them out with --exclude";
        return settling.refuse(declared.entry, Mismatch::attribute(name, known, found.to_owned()), Vec::new());
    }
    let metadata = named(&declared.first, "units_metadata").map(words);
    let maps = settling.of_inputs(column, |settling, input| {
        let attributes = settling.attributes(declared, input);
        let units = text(&attributes, "units").unwrap_or_default();
        if units == target {
            return Ok(ElementMap::Same);
        }
        let number = NumberType::of(&settling.template(column, input).datatype.class);
        let unwritten = unwritten_value(settling, column, input, &attributes);
        let is_float = number.is_some_and(|number| !number.is_integer());
        let is_plain = !is_packed && number.is_some() && named(&attributes, "_Unsigned").is_none();
        match linear_map(&units, &target) {
            Some((_, shift)) if shift != 0.0 && metadata.is_some() => {
                let found = format!("{units}, whose conversion adds {shift}");
                Err(Mismatch::attribute("units_metadata", metadata.clone().unwrap_or_default(), found))
            }
            Some((slope, shift)) if slope == 1.0 && shift == 0.0 => Ok(ElementMap::Same),
            Some((slope, shift)) if is_float && !is_packed => {
                Ok(ElementMap::Linear { slope, shift, kept: missing_values(&attributes), unwritten })
            }
            Some(_) => match whole_map(&units, &target).filter(|_| is_plain) {
                Some(WholeMap { multiplier, divisor, offset }) => Ok(ElementMap::Scale(UnitScale {
                    multiplier,
                    divisor,
                    offset,
                    kept: missing_values(&attributes),
                    unwritten,
                    rounding: Rounding::Refused,
                    units: (units, target.clone()),
                })),
                None => {
                    let why = "values are packed or limited, or integers that other units would round";
                    Err(Mismatch::attribute("units", target.clone(), format!("{units}; {why}")))
                }
            },
            None => Err(Mismatch::attribute("units", target.clone(), format!("{units}; no conversion is known"))),
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

/// Returns whether two attributes have the same meaning: numbers are compared by value and type, because the type
/// determines the precision with which readers compute.
fn is_equal(left: Option<&AttributeValue>, right: Option<&AttributeValue>) -> bool {
    // Readers treat NaN as missing with or without a marker.
    let is_nan = |marker: &AttributeValue| {
        let values = numbers(marker).filter(|values| !values.is_empty());
        MARKERS.iter().any(|name| marker.name == name.as_bytes())
            && values.is_some_and(|values| values.iter().all(|value| value.is_nan()))
    };
    match (left, right) {
        (Some(one), None) | (None, Some(one)) if is_nan(one) => true,
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
