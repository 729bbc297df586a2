//! Elements of a coordinate whose values lie between two limits.
//!
//! Limits of numbers are included. Limits of times are dates in the calendar of the coordinate; a date without a day or
//! month stands for the whole month or year, as in pandas. Invariant: the elements are consecutive, or there is an error.

use crate::rules::calendar::Calendar;
use crate::rules::time_units::{TimeUnits, is_time_units, reference_ns};
use crate::schema::AttributeValue;
use crate::schema::attribute::text;
use raddle_hdf5::number::NumberType;
use std::ops::Range;

/// Number of nanoseconds in a second.
const SECOND_NS: i128 = 1_000_000_000;
/// Number of nanoseconds in a day.
const DAY_NS: i128 = 86_400 * SECOND_NS;

/// Values that are selected.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SelectedValues {
    from: f64,
    to: f64,
    /// Whether `to` itself is not selected.
    excludes_end: bool,
}

/// Returns the elements of a coordinate with values from `from` to `to`; an error gives the reason if there are none.
pub(super) fn elements(
    values: &[f64],
    attributes: &[AttributeValue],
    number: NumberType,
    (from, to): (Option<&str>, Option<&str>),
) -> Result<Range<u64>, String> {
    let wanted = match text(attributes, "units").filter(|units| is_time_units(units)) {
        Some(units) => of_times(&units, text(attributes, "calendar").as_deref(), from, to)?,
        None => of_numbers(number, from, to)?,
    };
    let words = [from, to].map(|bound| bound.unwrap_or_default()).join("..");
    if wanted.from > wanted.to {
        return Err(format!("cannot be selected by {words}: the first value is the larger one"));
    }
    let is_in =
        |value: f64| value >= wanted.from && if wanted.excludes_end { value < wanted.to } else { value <= wanted.to };
    let is_selected = |value: &f64| is_in(*value);
    let (Some(first), Some(last)) = (values.iter().position(is_selected), values.iter().rposition(is_selected)) else {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        return Err(match low <= high {
            true => format!("has no value in {words}; its values reach from {low} to {high}"),
            false => format!("has no value in {words}"),
        });
    };
    if !values[first..=last].iter().all(is_selected) {
        return Err(format!("has values in {words} that do not follow one another; select by numbers of elements"));
    }
    Ok(first as u64..last as u64 + 1)
}

fn of_numbers(number: NumberType, from: Option<&str>, to: Option<&str>) -> Result<SelectedValues, String> {
    let parse = |bound: Option<&str>, open: f64| match bound {
        None => Ok(open),
        Some(text) => match text.parse::<f64>() {
            // A stored 0.1 is the nearest number of its type, and so is a limit of 0.1.
            Ok(value) if value.is_finite() && number.len_bytes() == 4 && !number.is_integer() => {
                Ok(f64::from(value as f32))
            }
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err(format!("is a coordinate of numbers, and {text:?} is not a number")),
        },
    };
    let (from, to) = (parse(from, f64::NEG_INFINITY)?, parse(to, f64::INFINITY)?);
    Ok(SelectedValues { from, to, excludes_end: false })
}

fn of_times(
    units: &str,
    calendar: Option<&str>,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<SelectedValues, String> {
    let calendar_of = Calendar::named(calendar);
    let known = calendar_of.and_then(|of| Some((of, TimeUnits::parse(units, of)?)));
    let Some((calendar, units)) = known else {
        let calendar = calendar.map(|name| format!(" (calendar {name:?})")).unwrap_or_default();
        return Err(format!(
            "has units {units:?}{calendar}, for which dates are not known; select by numbers of elements"
        ));
    };
    let value = |instant_ns: i128| (instant_ns - units.reference_ns) as f64 / units.unit_ns as f64;
    let parse = |bound: &str| {
        period_ns(bound, calendar).ok_or_else(|| {
            format!("is a time, and {bound:?} is not a date of its calendar, such as 2001-06 or 2001-06-15T12:00")
        })
    };
    let from = from.map(&parse).transpose()?.map_or(f64::NEG_INFINITY, |(start, _)| value(start));
    let end = to.map(&parse).transpose()?.map(|(_, end)| value(end));
    // An instant ends where it begins, and is included.
    let excludes_end = to.is_some_and(is_period);
    Ok(SelectedValues { from, to: end.unwrap_or(f64::INFINITY), excludes_end })
}

/// Returns whether a date stands for a whole day, month or year.
fn is_period(text: &str) -> bool {
    !text.contains(['T', 't', ':', ' '])
}

/// Returns the first instant of a date and the instant after its last one, in nanoseconds from the calendar's origin;
/// both are the same for a date with a time of day.
fn period_ns(text: &str, calendar: Calendar) -> Option<(i128, i128)> {
    let start = reference_ns(text, calendar)?;
    if !is_period(text) {
        return Some((start, start));
    }
    let (sign, date) = text.strip_prefix('-').map_or((1, text), |date| (-1, date));
    let parts: Vec<i64> = date.split('-').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let next = |year: i64, month: u32| Some(i128::from(calendar.days(year, month, 1)?) * DAY_NS);
    let end = match parts.as_slice() {
        [year] => next(sign * year + 1, 1)?,
        [year, 12] => next(sign * year + 1, 1)?,
        [year, month] => next(sign * year, *month as u32 + 1)?,
        _ => start + DAY_NS,
    };
    Some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::attribute;

    const DOUBLE: NumberType = NumberType::Float { len_bytes: 8, is_big_endian: false };

    fn bounds(text: &str) -> (Option<&str>, Option<&str>) {
        let (from, to) = text.split_once("..").unwrap();
        ((!from.is_empty()).then_some(from), (!to.is_empty()).then_some(to))
    }

    fn of(values: &[f64], text: &str) -> Result<Range<u64>, String> {
        elements(values, &[], DOUBLE, bounds(text))
    }

    #[test]
    fn limits_are_included_in_any_order_of_the_coordinate() {
        assert_eq!(of(&[-60.0, -30.0, 0.0, 30.0, 60.0], "-30..30"), Ok(1..4));
        assert_eq!(of(&[60.0, 30.0, 0.0, -30.0, -60.0], "-30..30"), Ok(1..4));
        assert_eq!(of(&[60.0, 30.0, f64::NAN, -30.0], "-30..-30"), Ok(3..4));
        assert_eq!(of(&[1.0, 2.0, 3.0], "..2"), Ok(0..2));
        assert_eq!(of(&[1.0, 2.0, 3.0], "2.5.."), Ok(2..3));
    }

    #[test]
    fn selections_without_consecutive_elements_are_refused() {
        let refused = |values: &[f64], text: &str| of(values, text).unwrap_err();
        assert_eq!(refused(&[1.0, 2.0], "5..9"), "has no value in 5..9; its values reach from 1 to 2");
        assert_eq!(refused(&[f64::NAN], "5..9"), "has no value in 5..9");
        assert!(refused(&[350.0, 355.0, 0.0, 5.0], "350..10").contains("the first value is the larger one"));
        assert!(refused(&[0.0, 180.0, -170.0, 10.0], "0..20").contains("do not follow one another"));
        assert!(refused(&[0.0], "a..").contains("\"a\" is not a number"));
        assert!(refused(&[0.0], "..nan").contains("\"nan\" is not a number"));
    }

    #[test]
    fn a_limit_has_the_precision_of_the_coordinate() {
        let single = NumberType::Float { len_bytes: 4, is_big_endian: true };
        let values = [0.1_f32, 0.2, 0.3].map(f64::from);
        assert_eq!(elements(&values, &[], single, bounds("0.1..0.2")), Ok(0..2));
        assert_eq!(elements(&values, &[], DOUBLE, bounds("0.1..0.2")), Ok(0..1));
    }

    #[test]
    fn dates_are_of_the_calendar_of_the_time() {
        let of = |units: &str, calendar: &str, values: &[f64], text: &str| {
            let attributes = [("units", units), ("calendar", calendar)]
                .map(|(name, value)| attribute::fixed_text(name, value.as_bytes()));
            elements(values, &attributes, DOUBLE, bounds(text))
        };
        let days: Vec<f64> = (0..800).map(f64::from).collect();
        let standard = |text: &str| of("days since 2000-01-01", "standard", &days, text);
        assert_eq!(standard("2000..2000"), Ok(0..366));
        assert_eq!(standard("2000-02..2000-02"), Ok(31..60));
        assert_eq!(standard("2000-12..2001-01-02"), Ok(335..368));
        assert_eq!(standard("2000-01-03T00:00..2000-01-04 00:00"), Ok(2..4));
        assert_eq!(of("days since 2000-01-01", "360_day", &days, "2000-02-30..2000-03"), Ok(59..90));
        assert_eq!(of("days since 2000-01-01", "noleap", &days, "2000-02-28..2000-03-01"), Ok(58..60));
        let half_days: Vec<f64> = (0..80).map(|day| f64::from(day) / 2.0).collect();
        assert_eq!(of("days since 2000-01-01", "standard", &half_days, "2000-01-02..2000-01-02"), Ok(2..4));
        assert!(
            of("days since 2000-01-01", "noleap", &days, "2000-02-29..")
                .unwrap_err()
                .contains("is not a date of its calendar")
        );
        assert!(
            of("months since 2000-01-01", "standard", &days, "2000..").unwrap_err().contains("dates are not known")
        );
        assert!(standard("5.5..").unwrap_err().contains("is not a date"));
    }
}
