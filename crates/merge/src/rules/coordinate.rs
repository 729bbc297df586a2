//! Times that inputs count from different references or in different units, converted to a common one.
//!
//! Invariant: a time keeps its instant, exactly unless the user allowed the nearest number, or the merge is refused; the
//! output's times have the first input's type if that can hold all of them.

use super::calendar::Calendar;
use super::conversion::{Conversion, ElementMap, InputConversion};
use super::fills::library_fill;
use super::packed::{STORED_OTHERWISE, VALID, is_without_effect};
use super::settling::{DeclaredRule, Mismatch, Settling, common_number};
use super::time_units::{TimeUnits, is_of_varying_length, is_time_units, reference_ns, unit_ns};
use super::unit_scale::{Rounding, UnitScale};
use super::unpack::missing_values;
use super::{NexusReference, TimeAttributes, ValueMeaning};
use crate::conventions::Times;
use crate::conventions::cf::CALENDAR;
use crate::schema::attribute::{named, number, replaced, text, with_text, without, words};
use crate::schema::{AttributeValue, ColumnIndex};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Settles a time: its conversions, and the attributes that define its units in the output.
pub(super) fn settle(settling: &mut Settling<'_>, declared: &DeclaredRule, column: ColumnIndex, form: TimeAttributes) {
    match form {
        TimeAttributes::Cf => settling.require_equal(declared, &["units", "calendar", "_FillValue", "missing_value"]),
        TimeAttributes::Reference(reference) => settling.require_equal(declared, &["units", reference.attribute()]),
    }
    convert(settling, declared, declared, column, form);
}

/// Settles the conversions of `declared`, whose units are those of the time `of_time`.
fn convert(
    settling: &mut Settling<'_>,
    declared: &DeclaredRule,
    of_time: &DeclaredRule,
    column: ColumnIndex,
    form: TimeAttributes,
) {
    let first_input = settling.first_input(column);
    let (first, own) = (settling.attributes(of_time, first_input), settling.attributes(declared, first_input));
    let target = match form {
        TimeAttributes::Cf => cf_target(&first, settling.options.time_units.as_deref()),
        TimeAttributes::Reference(_) => Ok(None),
    };
    let target = match target {
        Ok(target) => target,
        Err(mismatch) => return settling.refuse(declared.entry, mismatch, Vec::new()),
    };
    let target_attributes =
        target.as_ref().map_or_else(|| Arc::clone(&first), |attribute| replaced(&first, attribute.clone()));
    let maps = settling.of_inputs(column, |settling, input| {
        let kept = kept_values(&own, &settling.attributes(declared, input))?;
        let unwritten = library_fill(settling.template(column, input))
            .filter(|_| form == TimeAttributes::Cf && named(&own, "_FillValue").is_none());
        let special = (kept, unwritten);
        scale(&settling.attributes(of_time, input), &target_attributes, form, settling.options.times, special)
    });
    let maps = match maps {
        Ok(maps) => maps,
        Err((mismatch, inputs)) => return settling.refuse(declared.entry, mismatch, inputs),
    };
    let is_same = maps.iter().all(|map| *map == ElementMap::Same);
    let common = common_number(&settling.schema.columns[column as usize]);
    let is_defining = |name: &&&str| {
        let is_idle = |value: &AttributeValue| common.is_some_and(|number| is_without_effect(value, number));
        named(&own, name).is_some_and(|value| !is_idle(value))
    };
    if !is_same && let Some(name) = STORED_OTHERWISE.iter().chain(&VALID).find(is_defining) {
        let known = named(&own, name).map_or_else(String::new, words);
        let found = "other units; packed or limited times are not converted";
        return settling.refuse(declared.entry, Mismatch::attribute(name, known, found.to_owned()), Vec::new());
    }
    let Some(number) = common else {
        if !is_same {
            let mismatch =
                Mismatch::new("a number that uses all its bits", "another type, whose times cannot be converted");
            settling.refuse(declared.entry, mismatch, Vec::new());
        }
        return;
    };
    let maps = settling.with_casts(column, number, maps);
    settling.set_attributes(declared.entry, target_attributes);
    let of_inputs: Vec<_> = maps.into_iter().map(|map| InputConversion { map, ..InputConversion::default() }).collect();
    settling.convert(column, Some(number.class()), Conversion { of_inputs });
}

/// Settles the bounds of the time at `time`, which have the units of that time. Bounds with a unit of their own but
/// without a reference, such as `days`, are only concatenated if the times of all inputs have the same units. Bounds with
/// units of their own, but without a calendar, have the calendar of the time.
pub(super) fn settle_like(settling: &mut Settling<'_>, declared: &DeclaredRule, column: ColumnIndex, time: &[u8]) {
    let Some(of_time) = settling.declared_at(time) else { return settling.require_equal(declared, &[]) };
    let ValueMeaning::Time(form) = of_time.rule.values else { return settling.require_equal(declared, &[]) };
    let unit = text(&declared.first, "units");
    if unit.as_deref().is_some_and(is_time_units) {
        settling.require_equal(declared, &["units", "_FillValue", "missing_value"]);
        let complete = with_calendar(settling, declared, &of_time);
        convert(settling, declared, &complete, column, form);
        let attributes = without(&settling.schema.entries[declared.entry as usize].attributes, &[CALENDAR]);
        return settling.set_attributes(declared.entry, attributes);
    }
    settling.require_equal(declared, &[]);
    if let Some(unit) = unit {
        let first = settling.first_input(column);
        let first = text(&settling.attributes(&of_time, first), "units");
        let target = settling.options.time_units.clone().or(first).unwrap_or_default();
        let checked =
            settling.of_inputs(column, |settling, input| match text(&settling.attributes(&of_time, input), "units") {
                Some(units) if units != target => Err(Mismatch::new(
                    format!("times in {target:?}"),
                    format!("times in {units:?}, and bounds in {unit:?}"),
                )),
                _ => Ok(()),
            });
        if let Err((mismatch, inputs)) = checked {
            return settling.refuse(declared.entry, mismatch, inputs);
        }
    }
    let attributes = settling.schema.entries[declared.entry as usize].attributes.clone();
    convert(settling, declared, &of_time, column, form);
    settling.set_attributes(declared.entry, attributes);
}

/// Returns the rule of bounds with the calendar that each input's time has.
fn with_calendar(settling: &Settling<'_>, declared: &DeclaredRule, of_time: &DeclaredRule) -> DeclaredRule {
    let complete = |own: &Arc<[AttributeValue]>, time: &[AttributeValue]| match named(time, CALENDAR) {
        Some(calendar) if named(own, CALENDAR).is_none() => replaced(own, calendar.clone()),
        _ => Arc::clone(own),
    };
    let differing: BTreeSet<u32> =
        [declared, of_time].into_iter().flat_map(|rule| rule.attributes.iter().map(|(input, _)| *input)).collect();
    let of_input = |input: u32| {
        let [own, time] = [declared, of_time].map(|rule| settling.attributes(rule, input));
        (input, complete(&own, &time))
    };
    DeclaredRule {
        first: complete(&declared.first, &of_time.first),
        attributes: differing.into_iter().map(of_input).collect(),
        ..declared.clone()
    }
}

/// Returns the `units` of the output, if the user requested other units than those of the first input.
fn cf_target(first: &[AttributeValue], asked: Option<&str>) -> Result<Option<AttributeValue>, Mismatch> {
    let (Some(asked), Some(known)) = (asked, named(first, "units")) else { return Ok(None) };
    let calendar = text(first, "calendar");
    let is_understood =
        Calendar::named(calendar.as_deref()).and_then(|calendar| TimeUnits::parse(asked, calendar)).is_some();
    if !is_understood {
        return Err(Mismatch::new("units such as 'hours since 1970-01-01'", format!("--time-units {asked:?}")));
    }
    Ok(Some(with_text(known, asked)))
}

/// Returns the values that stand for missing ones, which are not converted. They must be the same in all inputs.
fn kept_values(first: &[AttributeValue], attributes: &[AttributeValue]) -> Result<Vec<f64>, Mismatch> {
    // Readers treat NaN as missing with or without an attribute.
    let [known, found] = [first, attributes].map(|attributes| {
        let missing = missing_values(attributes).into_iter();
        missing.filter(|value| !value.is_nan()).collect::<Vec<_>>()
    });
    if known != found {
        return Err(Mismatch::attribute("_FillValue or missing_value", format!("{known:?}"), format!("{found:?}")));
    }
    Ok(missing_values(attributes))
}

/// Returns the conversion of times with these attributes to times with the attributes `target`, without the values
/// `kept`; the value `unwritten` is refused.
fn scale(
    attributes: &[AttributeValue],
    target: &[AttributeValue],
    form: TimeAttributes,
    times: Times,
    (kept, unwritten): (Vec<f64>, Option<f64>),
) -> Result<ElementMap, Mismatch> {
    let differing = match form {
        TimeAttributes::Cf => differing_cf_units(target, attributes)?,
        TimeAttributes::Reference(reference) => differing_nexus_units(target, attributes, reference)?,
    };
    let Some((to, from)) = differing else { return Ok(ElementMap::Same) };
    let difference = from.reference_ns - to.reference_ns;
    if from.unit_ns == to.unit_ns && difference == 0 {
        return Ok(ElementMap::Same);
    }
    let units = texts(target, attributes, "units");
    let common = gcd(gcd(from.unit_ns, to.unit_ns), difference.abs());
    let narrow = |number: i128| i64::try_from(number / common);
    let (Ok(multiplier), Ok(divisor)) = (narrow(from.unit_ns), narrow(to.unit_ns)) else {
        return Err(Mismatch::attribute("units", units.0, units.1));
    };
    let (units, rounding) = match form {
        TimeAttributes::Cf => {
            // The part divides both units, which are narrow.
            let nearest = i64::try_from(common).map(|part_ns| Rounding::Nearest { part_ns });
            let rounding = match times {
                Times::Exact => Rounding::NotRequested,
                Times::Nearest => nearest.unwrap_or(Rounding::NotRequested),
            };
            ((units.1, units.0), rounding)
        }
        TimeAttributes::Reference(reference) => {
            let references = texts(target, attributes, reference.attribute());
            let words = |units: &str, of: &str| format!("{units} from {} {of}", reference.attribute());
            ((words(&units.1, &references.1), words(&units.0, &references.0)), Rounding::Refused)
        }
    };
    let offset = difference / common;
    Ok(ElementMap::Scale(UnitScale { multiplier, divisor, offset, kept, unwritten, rounding, units }))
}

/// Returns the text of an attribute in the target and in the input, each empty if it is missing.
fn texts(target: &[AttributeValue], attributes: &[AttributeValue], name: &str) -> (String, String) {
    (text(target, name).unwrap_or_default(), text(attributes, name).unwrap_or_default())
}

/// Returns the CF units of the target and of the input; `None` if their texts are equal.
fn differing_cf_units(
    target: &[AttributeValue],
    attributes: &[AttributeValue],
) -> Result<Option<(TimeUnits, TimeUnits)>, Mismatch> {
    let calendars = texts(target, attributes, "calendar");
    let known = Calendar::named(text(target, "calendar").as_deref());
    if calendars.0 != calendars.1
        && (known.is_none() || known != Calendar::named(text(attributes, "calendar").as_deref()))
    {
        let named = |name: String| if name.is_empty() { "standard".to_owned() } else { name };
        return Err(Mismatch::attribute("calendar", named(calendars.0), named(calendars.1)));
    }
    let units = texts(target, attributes, "units");
    if units.0 == units.1 {
        return Ok(None);
    }
    let parse = |units: &str| known.and_then(|calendar| TimeUnits::parse(units, calendar));
    if let Some(parsed) = parse(&units.0).zip(parse(&units.1)) {
        return Ok(Some(parsed));
    }
    let has_months = is_of_varying_length(&units.0) || is_of_varying_length(&units.1);
    let mismatch = Mismatch::attribute("units", units.0, units.1);
    Err(match has_months {
        true => mismatch.or("months and years vary in length; cdo setreftime,2000-01-01,00:00:00,days writes days"),
        false => mismatch,
    })
}

/// Returns the units of the target and of the input, whose reference is an attribute of NeXus; `None` if the texts of
/// both attributes are equal.
fn differing_nexus_units(
    target: &[AttributeValue],
    attributes: &[AttributeValue],
    reference: NexusReference,
) -> Result<Option<(TimeUnits, TimeUnits)>, Mismatch> {
    let name = reference.attribute();
    let (units, references) = (texts(target, attributes, "units"), texts(target, attributes, name));
    if units.0 == units.1 && references.0 == references.1 {
        return Ok(None);
    }
    let factor = number(target, "scaling_factor").unwrap_or(1.0);
    let parse = |units: &str, reference: &str| {
        let reference_ns = match reference {
            "" => 0,
            text => reference_ns(text, Calendar::ProlepticGregorian)?,
        };
        Some(TimeUnits { unit_ns: scaled(unit_ns(units)?, factor)?, reference_ns })
    };
    // A time with a reference and one without are not comparable.
    let is_alike = references.0.is_empty() == references.1.is_empty();
    let parsed = parse(&units.0, &references.0).zip(parse(&units.1, &references.1)).filter(|_| is_alike);
    parsed.map(Some).ok_or_else(|| {
        let (differing, values) = if units.0 == units.1 { (name, references) } else { ("units", units) };
        Mismatch::attribute(differing, values.0, values.1)
    })
}

/// Returns a unit times a factor; `None` if that is not a whole number of nanoseconds.
fn scaled(unit_ns: i128, factor: f64) -> Option<i128> {
    let product = unit_ns as f64 * factor;
    let rounded = product.round();
    let is_whole = (1.0..1e18).contains(&rounded) && (product - rounded).abs() <= rounded * 1e-12;
    is_whole.then_some(rounded as i128)
}

fn gcd(left: i128, right: i128) -> i128 {
    if right == 0 { left } else { gcd(right, left % right) }
}

impl NexusReference {
    /// Returns the name of the attribute.
    pub fn attribute(self) -> &'static str {
        match self {
            Self::Offset => "offset",
            Self::Start => "start",
        }
    }
}
