//! Elements of a coordinate whose values lie between two limits.
//!
//! Limits of numbers are included. Limits of times are dates in the calendar of the coordinate; a date stands for its
//! whole year, month, day, hour, minute or second, as in pandas. Invariant: the elements are consecutive, or there is an
//! error.

use crate::rules::calendar::Calendar;
use crate::rules::time_units::{TimeUnits, is_time_units, reference_ns};
use crate::rules::unit_scale::NO_TIME;
use crate::schema::AttributeValue;
use crate::schema::attribute::text;
use raddle_hdf5::number::NumberType;
use std::fmt::Display;
use std::ops::Range;

/// Number of nanoseconds in a second.
const SECOND_NS: i128 = 1_000_000_000;
/// Number of nanoseconds in a day.
const DAY_NS: i128 = 86_400 * SECOND_NS;
/// Half of a microsecond, to which cftime rounds times.
const HALF_MICROSECOND_NS: i128 = 500;

/// Values that are selected; `None` if there is no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SelectedValues<T> {
    from: Option<T>,
    to: Option<T>,
    /// Whether `to` itself is not selected.
    excludes_end: bool,
}

/// Returns the elements of a coordinate with values from `from` to `to`; an error gives the reason if there are none.
/// The values are `stored` as `number`.
pub(super) fn elements(
    stored: &[u8],
    attributes: &[AttributeValue],
    number: NumberType,
    (from, to): (Option<&str>, Option<&str>),
) -> Result<Range<u64>, String> {
    let units = text(attributes, "units").filter(|units| is_time_units(units));
    let times =
        units.as_deref().map(|units| of_times(units, text(attributes, "calendar").as_deref(), from, to)).transpose()?;
    let words = [from, to].map(|bound| bound.unwrap_or_default()).join("..");
    let unit = units.map(|units| format!(" {units}")).unwrap_or_default();
    let is_reversed = match &times {
        Some(times) => times.from_ns.zip(times.to_ns).is_some_and(|(from, to)| from > to),
        None => {
            let [from, to] = [from, to].map(|limit| limit.map(parse_limit).transpose());
            from?.zip(to?).is_some_and(|(from, to)| from > to)
        }
    };
    if is_reversed {
        return Err(format!("cannot be selected by {words}: the first value is the larger one"));
    }
    let (mut integers, mut floats) = (Vec::new(), Vec::new());
    if number.is_integer() {
        // A float has room for 53 bits of them.
        if !number.decode_integers(stored, &mut integers) {
            return Err("has integers of more than 63 bits; select by numbers of elements".to_owned());
        }
        let wanted = times.map_or_else(|| of_integers(from, to), |times| Ok(times.as_integers()))?;
        let values = integers.into_iter().map(|value| (value != NO_TIME).then_some(i128::from(value)));
        return wanted.elements(values.collect(), &words, &unit);
    }
    number.decode_floats(stored, &mut integers, &mut floats);
    let wanted = times.map_or_else(|| of_floats(number, from, to), |times| Ok(times.as_floats()))?;
    wanted.elements(floats.into_iter().map(|value| (!value.is_nan()).then_some(value)).collect(), &words, &unit)
}

impl<T: PartialOrd + Copy + Display> SelectedValues<T> {
    /// Returns the elements of `values` that are selected; missing values are `None`. `words` describes the limits in
    /// errors, and `unit` follows the numbers.
    fn elements(&self, values: Vec<Option<T>>, words: &str, unit: &str) -> Result<Range<u64>, String> {
        let is_before_end = |value: T, to: T| if self.excludes_end { value < to } else { value <= to };
        let is_in =
            |value: T| self.from.is_none_or(|from| value >= from) && self.to.is_none_or(|to| is_before_end(value, to));
        let is_selected = |value: &Option<T>| value.is_some_and(is_in);
        let (Some(first), Some(last)) = (values.iter().position(is_selected), values.iter().rposition(is_selected))
        else {
            let numbers = || values.iter().copied().flatten();
            let low = numbers().reduce(|low, value| if value < low { value } else { low });
            let high = numbers().reduce(|high, value| if value > high { value } else { high });
            return Err(match low.zip(high) {
                Some((low, high)) => format!("has no value in {words}; its values reach from {low} to {high}{unit}"),
                None => format!("has no value in {words}"),
            });
        };
        if !values[first..=last].iter().all(is_selected) {
            return Err(format!("has values in {words} that do not follow one another; select by numbers of elements"));
        }
        Ok(first as u64..last as u64 + 1)
    }
}

/// Returns the limits of a coordinate of floats.
fn of_floats(number: NumberType, from: Option<&str>, to: Option<&str>) -> Result<SelectedValues<f64>, String> {
    let parse = |text: &str| match parse_limit(text)? {
        // A stored 0.1 is the nearest number of its type, and so is a limit of 0.1.
        value if number.len_bytes() == 4 => Ok(f64::from(value as f32)),
        value => Ok::<_, String>(value),
    };
    Ok(SelectedValues { from: from.map(parse).transpose()?, to: to.map(parse).transpose()?, excludes_end: false })
}

/// Returns the limits of a coordinate of integers. A fraction is rounded towards the selected values.
fn of_integers(from: Option<&str>, to: Option<&str>) -> Result<SelectedValues<i128>, String> {
    let parse = |text: &str, round: fn(f64) -> f64| match text.parse::<i128>() {
        Ok(value) => Ok(value),
        Err(_) => parse_limit(text).map(|value| round(value) as i128),
    };
    let (from, to) = (from.map(|text| parse(text, f64::ceil)), to.map(|text| parse(text, f64::floor)));
    Ok(SelectedValues { from: from.transpose()?, to: to.transpose()?, excludes_end: false })
}

fn parse_limit(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(format!("is a coordinate of numbers, and {text:?} is not a number")),
    }
}

/// Times that are selected, in nanoseconds from the reference of their units; `None` if there is no limit.
struct SelectedTimes {
    from_ns: Option<i128>,
    to_ns: Option<i128>,
    /// Whether `to_ns` itself is excluded.
    excludes_end: bool,
    /// Number of nanoseconds per unit.
    unit_ns: i128,
    /// Largest difference, in nanoseconds, between a float and a limit that readers consider equal to it.
    tolerance_ns: i128,
}

impl SelectedTimes {
    fn as_floats(&self) -> SelectedValues<f64> {
        let value = |time_ns: i128| time_ns as f64 / self.unit_ns as f64;
        let Self { from_ns, to_ns, excludes_end, tolerance_ns, .. } = *self;
        let after_ns = if excludes_end { -tolerance_ns } else { tolerance_ns };
        SelectedValues {
            from: from_ns.map(|time_ns| value(time_ns - tolerance_ns)),
            to: to_ns.map(|time_ns| value(time_ns + after_ns)),
            excludes_end,
        }
    }

    fn as_integers(&self) -> SelectedValues<i128> {
        let floor = |time_ns: i128| time_ns.div_euclid(self.unit_ns);
        let ceil = |time_ns: i128| -floor(-time_ns);
        let to = self.to_ns.map(|time_ns| if self.excludes_end { ceil(time_ns) } else { floor(time_ns) });
        SelectedValues { from: self.from_ns.map(ceil), to, excludes_end: self.excludes_end }
    }
}

fn of_times(
    units: &str,
    calendar: Option<&str>,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<SelectedTimes, String> {
    let calendar_of = Calendar::named(calendar);
    let known = calendar_of.and_then(|of| Some((of, TimeUnits::parse(units, of)?)));
    let Some((calendar, units)) = known else {
        let calendar = calendar.map(|name| format!(" (calendar {name:?})")).unwrap_or_default();
        return Err(format!(
            "has units {units:?}{calendar}, for which dates are not known; select by numbers of elements"
        ));
    };
    let parse = |bound: &str| {
        let (start_ns, end_ns) = period_ns(bound, calendar).ok_or_else(|| {
            format!("is a time, and {bound:?} is not a date of its calendar, such as 2001-06 or 2001-06-15T12:00")
        })?;
        Ok::<_, String>((start_ns - units.reference_ns, end_ns - units.reference_ns))
    };
    Ok(SelectedTimes {
        from_ns: from.map(parse).transpose()?.map(|(start_ns, _)| start_ns),
        to_ns: to.map(parse).transpose()?.map(|(_, end_ns)| end_ns),
        // An instant ends where it begins, and is included.
        excludes_end: to.is_some_and(is_period),
        unit_ns: units.unit_ns,
        tolerance_ns: match calendar {
            // xarray decodes these calendars to numpy's times, which have nanoseconds.
            Calendar::Standard | Calendar::ProlepticGregorian => 0,
            Calendar::Julian | Calendar::NoLeap | Calendar::AllLeap | Calendar::Days360 => HALF_MICROSECOND_NS,
        },
    })
}

/// Returns whether a date stands for a whole year, month, day, hour, minute or second, and not for an instant, which has
/// a fraction of a second.
fn is_period(text: &str) -> bool {
    !text.contains('.')
}

/// Returns the first instant of a date and the instant after its last one, in nanoseconds from the calendar's origin;
/// both are the same for an instant.
fn period_ns(text: &str, calendar: Calendar) -> Option<(i128, i128)> {
    let start = reference_ns(text, calendar)?;
    if !is_period(text) {
        return Some((start, start));
    }
    if let Some((_, clock)) = text.split_once(['T', 't', ' ']) {
        let clock = clock.split(['Z', 'z', '+', '-', 'U', ' ']).next().unwrap_or_default();
        let len_s = match clock.matches(':').count() {
            0 => 3_600,
            1 => 60,
            _ => 1,
        };
        return Some((start, start + len_s * SECOND_NS));
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

    fn stored(values: &[f64], number: NumberType) -> Vec<u8> {
        let mut stored = Vec::new();
        number.encode_floats(values, &mut stored);
        stored
    }

    fn of(values: &[f64], text: &str) -> Result<Range<u64>, String> {
        elements(&stored(values, DOUBLE), &[], DOUBLE, bounds(text))
    }

    fn of_integers(values: &[i64], attributes: &[AttributeValue], text: &str) -> Result<Range<u64>, String> {
        let mut stored = Vec::new();
        NumberType::int64().encode_integers(values, &mut stored).unwrap();
        elements(&stored, attributes, NumberType::int64(), bounds(text))
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
        assert_eq!(elements(&stored(&values, single), &[], single, bounds("0.1..0.2")), Ok(0..2));
        assert_eq!(of(&values, "0.1..0.2"), Ok(0..1));
    }

    #[test]
    fn integers_are_compared_exactly() {
        const LARGE: i64 = 1 << 53;
        let values = [LARGE, LARGE + 1, LARGE + 2, LARGE + 3];
        let of = |text: &str| of_integers(&values, &[], text);
        assert_eq!(of(&format!("{}..{}", LARGE + 1, LARGE + 2)), Ok(1..3));
        assert_eq!(of(&format!("{}..", LARGE + 3)), Ok(3..4));
        assert!(of(&format!("..{}", LARGE - 1)).unwrap_err().contains("reach from 9007199254740992 to"));
        let small = |text: &str| of_integers(&[-2, -1, 1, 2], &[], text);
        assert_eq!(small("-1.5..1.5"), Ok(1..3));
        assert_eq!(small("-1e0..2"), Ok(1..4));
        assert!(small("0.2..0.8").unwrap_err().contains("has no value"));
        assert!(small("2..1").unwrap_err().contains("the first value is the larger one"));
    }

    #[test]
    fn integer_times_are_compared_exactly() {
        let units = [attribute::fixed_text("units", b"nanoseconds since 1970-01-01")];
        const DAY: i64 = 86_400_000_000_000;
        let day = 20_000 * DAY;
        let values = [i64::MIN, day - 1, day, day + DAY - 1, day + DAY, day + DAY + 1];
        let of = |text: &str| of_integers(&values, &units, text);
        assert_eq!(of("2024-10-04..2024-10-04"), Ok(2..4));
        assert_eq!(of("2024-10-04T00:00..2024-10-05T00:00"), Ok(2..6));
        assert_eq!(of("2024-10-04T00:00:00.0..2024-10-05T00:00:00.0"), Ok(2..5));
        assert_eq!(of("..2024-10-03"), Ok(1..2));
    }

    #[test]
    fn dates_are_of_the_calendar_of_the_time() {
        let of = |units: &str, calendar: &str, values: &[f64], text: &str| {
            let attributes = [("units", units), ("calendar", calendar)]
                .map(|(name, value)| attribute::fixed_text(name, value.as_bytes()));
            elements(&stored(values, DOUBLE), &attributes, DOUBLE, bounds(text))
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
        let minutes: Vec<f64> = (0..300).map(f64::from).collect();
        let of_minutes = |text: &str| of("minutes since 2000-01-01", "standard", &minutes, text);
        assert_eq!(of_minutes("2000-01-01T01..2000-01-01T03"), Ok(60..240));
        assert_eq!(of_minutes("2000-01-01T01:30..2000-01-01 01:40:00Z"), Ok(90..101));
        assert!(
            of("days since 2000-01-01", "noleap", &days, "2000-02-29..")
                .unwrap_err()
                .contains("is not a date of its calendar")
        );
        assert!(
            of("months since 2000-01-01", "standard", &days, "2000..").unwrap_err().contains("dates are not known")
        );
        assert!(standard("5.5..").unwrap_err().contains("is not a date"));
        let outside = standard("1999..1999").unwrap_err();
        assert_eq!(outside, "has no value in 1999..1999; its values reach from 0 to 799 days since 2000-01-01");
    }

    #[test]
    fn times_are_rounded_as_readers_round_them() {
        let units = attribute::fixed_text("units", b"days since 2000-01-01");
        // 70 ns before a full hour.
        let hours: Vec<f64> = (0..4).map(|hour| 729.958_333_333_332_5 + f64::from(hour) / 24.0).collect();
        let of = |calendar: &str, text: &str| {
            let attributes = [units.clone(), attribute::fixed_text("calendar", calendar.as_bytes())];
            elements(&stored(&hours, DOUBLE), &attributes, DOUBLE, bounds(text))
        };
        assert_eq!(of("noleap", "2001-12-31T23:00..2002-01-01T00:00"), Ok(0..2));
        assert_eq!(of("noleap", "..2001-12-31"), Ok(0..1));
        assert_eq!(of("standard", "2001-12-30T23:00.."), Ok(1..4));
        assert_eq!(of("standard", "..2001-12-30"), Ok(0..2));
    }
}
