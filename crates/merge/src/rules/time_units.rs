//! Units of the form "days since 2000-01-01 12:00", parsed to an exact length and an exact reference.
//!
//! Only units of fixed length are supported: no years, and months only of 30 days. Source: UDUNITS-2 as CF uses it (CF
//! conventions 1.11, section 4.4).

use super::calendar::Calendar;

/// Number of nanoseconds in a second.
const SECOND_NS: i128 = 1_000_000_000;
/// Number of nanoseconds in a day.
const DAY_NS: i128 = 86_400 * SECOND_NS;

/// Units of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeUnits {
    /// Number of nanoseconds per unit.
    pub unit_ns: i128,
    /// Reference, in nanoseconds from the calendar's origin.
    pub reference_ns: i128,
}

/// Returns whether a string has the form of units of time; its words are not checked.
pub fn is_time_units(units: &str) -> bool {
    let mut words = units.split_whitespace();
    words.next().is_some() && words.next().is_some_and(|word| word.eq_ignore_ascii_case("since"))
}

impl TimeUnits {
    /// Parses "UNIT since REFERENCE"; returns `None` if it has no exact meaning here.
    pub fn parse(units: &str, calendar: Calendar) -> Option<Self> {
        let units = units.trim();
        let (unit, rest) = units.split_once(char::is_whitespace)?;
        let (since, reference) = rest.trim_start().split_once(char::is_whitespace)?;
        if !since.eq_ignore_ascii_case("since") || !is_read_alike(reference.trim(), calendar) {
            return None;
        }
        let month_ns = (calendar == Calendar::Days360 && is_month(unit)).then_some(30 * DAY_NS);
        Some(Self {
            unit_ns: month_ns.or_else(|| unit_ns(unit))?,
            reference_ns: reference_ns(reference.trim(), calendar)?,
        })
    }
}

fn is_month(unit: &str) -> bool {
    ["month", "months"].iter().any(|month| unit.eq_ignore_ascii_case(month))
}

/// Returns whether the units of a time count months or years, whose lengths may vary.
pub fn is_of_varying_length(units: &str) -> bool {
    let unit = units.split_whitespace().next().unwrap_or_default();
    is_month(unit)
        || ["year", "years", "common_year", "common_years"].iter().any(|year| unit.eq_ignore_ascii_case(year))
}

/// Returns whether all readers interpret a reference as the same instant. They disagree about dates without separators,
/// about years before 1 in calendars with Julian years, of which some readers have a year 0, and about time zones other
/// than `+05`, `+0530` and `+05:30`, which some readers ignore.
fn is_read_alike(reference: &str, calendar: Calendar) -> bool {
    let (date, rest) = date_and_rest(reference);
    let zone = clock_and_zone(rest).1;
    let is_whole =
        |digits: &str| digits.split(':').all(|part| part.len() == 2) || digits.len() == 4 && !digits.contains(':');
    if !zone.strip_prefix(['+', '-']).is_some_and(is_whole) && zone_ns(zone) != Some(0) {
        return false;
    }
    let mut parts = date.trim_start_matches(['-', '+']).split('-');
    let year = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let is_separated = if rest.is_empty() { year.len() == 4 } else { rest.iter().all(|part| part.len() <= 2) };
    let is_before_1 = date.starts_with('-') || year.bytes().all(|digit| digit == b'0');
    let has_year_0 = !matches!(calendar, Calendar::Standard | Calendar::Julian);
    is_separated && year.len() <= 4 && (has_year_0 || !is_before_1)
}

/// Returns the number of nanoseconds in a unit of fixed length.
pub fn unit_ns(unit: &str) -> Option<i128> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "nanosecond" | "nanoseconds" | "nsec" | "nsecs" | "ns" => 1,
        "microsecond" | "microseconds" | "microsec" | "microsecs" | "us" | "µs" => 1_000,
        "millisecond" | "milliseconds" | "millisec" | "millisecs" | "msec" | "msecs" | "ms" => 1_000_000,
        "second" | "seconds" | "sec" | "secs" | "s" => SECOND_NS,
        "minute" | "minutes" | "min" | "mins" => 60 * SECOND_NS,
        "hour" | "hours" | "hr" | "hrs" | "h" => 3_600 * SECOND_NS,
        "day" | "days" | "d" => DAY_NS,
        "week" | "weeks" => 7 * DAY_NS,
        _ => return None,
    })
}

/// Parses an instant to nanoseconds from the calendar's origin: "2000-01-01", "2000-1-1 6:30:15.5",
/// "2000-01-01T00:00:00Z", "2000-01-01 00:00:00 +02:00".
pub fn reference_ns(text: &str, calendar: Calendar) -> Option<i128> {
    let (date, rest) = date_and_rest(text);
    let (sign, date) = match date.strip_prefix('-') {
        Some(date) => (-1, date),
        None => (1, date.strip_prefix('+').unwrap_or(date)),
    };
    let mut parts = date.split('-');
    let year: i64 = number(parts.next()?)?.try_into().ok()?;
    let month = number(parts.next().unwrap_or("1"))?;
    let day = number(parts.next().unwrap_or("1"))?;
    if parts.next().is_some() {
        return None;
    }
    let days = calendar.days(sign * year, month.try_into().ok()?, day.try_into().ok()?)?;
    let (clock, zone) = clock_and_zone(rest);
    Some(i128::from(days) * DAY_NS + clock_ns(clock)? - zone_ns(zone)?)
}

/// Splits the text of an instant after the date.
fn date_and_rest(text: &str) -> (&str, &str) {
    text.split_at(text.find(['T', 't', ' ']).unwrap_or(text.len()))
}

/// Splits what follows a date into the time of day and the time zone.
fn clock_and_zone(rest: &str) -> (&str, &str) {
    let rest = rest.trim_start_matches(['T', 't']).trim();
    let (clock, zone) = rest.split_at(rest.find(['Z', 'z', '+', '-', 'U', ' ']).unwrap_or(rest.len()));
    (clock, zone.trim())
}

/// Parses a time of day to nanoseconds: empty, "6", "6:30", "6:30:15.25".
fn clock_ns(clock: &str) -> Option<i128> {
    if clock.is_empty() {
        return Some(0);
    }
    let mut parts = clock.split(':');
    let hours = number(parts.next()?)?;
    let minutes = parts.next().map_or(Some(0), number)?;
    let (whole, fraction) = parts.next().map_or(("0", ""), |text| text.split_once('.').unwrap_or((text, "")));
    if parts.next().is_some() || fraction.len() > 9 || hours > 24 || minutes > 59 {
        return None;
    }
    let seconds = number(whole)?;
    let fraction_ns = if fraction.is_empty() { 0 } else { number(&format!("{fraction:0<9}"))? };
    Some(i128::from(hours * 3_600 + minutes * 60 + seconds) * SECOND_NS + i128::from(fraction_ns))
}

/// Parses the offset of a time zone to nanoseconds: empty, "Z", "UTC", "+2", "-03:30", "+0530", "0:00".
fn zone_ns(zone: &str) -> Option<i128> {
    let is_utc = ["", "z", "utc", "gmt", "utc0", "0:00", "00:00"].iter().any(|utc| zone.eq_ignore_ascii_case(utc));
    if is_utc {
        return Some(0);
    }
    let zone = zone.strip_prefix("UTC").unwrap_or(zone);
    let (sign, digits) = match (zone.strip_prefix('+'), zone.strip_prefix('-')) {
        (Some(digits), _) => (1, digits),
        (_, Some(digits)) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (number(hours)?, number(minutes)?),
        None if digits.len() == 4 => (number(digits.get(..2)?)?, number(digits.get(2..)?)?),
        None => (number(digits)?, 0),
    };
    (hours <= 24 && minutes < 60).then(|| sign * i128::from(hours * 3_600 + minutes * 60) * SECOND_NS)
}

/// Parses an unsigned number that consists only of digits.
fn number(text: &str) -> Option<u64> {
    (!text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<i128> {
        let units = TimeUnits::parse(text, Calendar::Standard)?;
        let epoch = TimeUnits::parse("seconds since 2000-01-01", Calendar::Standard)?;
        Some((units.reference_ns - epoch.reference_ns) / SECOND_NS)
    }

    #[test]
    fn references_are_exact() {
        assert_eq!(seconds("days since 2000-01-02"), Some(86_400));
        assert_eq!(seconds("hours since 2000-1-1 6:30"), Some(23_400));
        assert_eq!(seconds("hours since 2000-01-01T06:00:01Z"), Some(21_601));
        assert_eq!(seconds("hours since 2000-01-01 06:00:00 +02:00"), Some(14_400));
        assert_eq!(seconds("hours since 2000-01-01 06:00:00 -0130"), Some(27_000));
        assert_eq!(seconds("DAYS SINCE 2000-01-01 00:00:00 UTC"), Some(0));
        assert_eq!(seconds("days since 2000"), Some(0));
        assert_eq!(seconds("seconds since 2000-01-01 00:00:00 0:00"), Some(0));
        for unclear in [
            "months since 2000-01-01",
            "days since yesterday",
            "days after 2000-01-01",
            "days since 2000-13-01",
            "days since 20000101",
            "days since 2000-001",
            "days since 20000-01-01",
            "days since 0000-01-01",
            "days since -4713-01-01",
            "days since 2000-01-01 00:00 +5",
            "days since 2000-01-01 00:00 -8:00",
            "days since 2000-01-01 00:00 UTC+1",
            "days since 2000-01-01 00:00 +a\u{e9}b",
        ] {
            assert_eq!(seconds(unclear), None, "{unclear}");
        }
        let milliseconds = TimeUnits::parse("ms since 1970-01-01 00:00:00.25", Calendar::Standard).unwrap();
        assert_eq!((milliseconds.unit_ns, milliseconds.reference_ns % SECOND_NS), (1_000_000, 250_000_000));
    }

    #[test]
    fn the_form_is_seen_whatever_the_words() {
        assert!(is_time_units("fortnights since the flood"));
        assert!(!is_time_units("kg m-2 s-1"));
        assert!(!is_time_units("since"));
    }
}
