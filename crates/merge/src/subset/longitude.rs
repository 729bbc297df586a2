//! Ranges of longitudes that pass the end of the coordinate, such as `-10..10` where it reaches from 0 to 350.
//!
//! A longitude and the same longitude plus 360 are one place. Invariant: no range loses places without an error, because a
//! selection has only elements that follow one another in the file.

use crate::schema::AttributeValue;
use crate::schema::attribute::text;
use raddle_hdf5::number::NumberType;

/// Units of longitudes, by CF section 4.2.
const UNITS: [&str; 6] = ["degrees_east", "degree_east", "degree_E", "degrees_E", "degreeE", "degreesE"];
/// Names of longitudes that have no such units.
const NAMES: [&str; 2] = ["lon", "longitude"];
/// Number of degrees after which longitudes repeat.
const CIRCLE: f64 = 360.0;
/// Rounding error of single-precision longitudes, in degrees.
const TOLERANCE: f64 = 2e-5;

/// Checks that the limits `from` and `to` select all places between them, if the coordinate `name` is a longitude; its
/// values are `stored` as `number`. An error names what to select instead.
pub(super) fn check(
    name: &str,
    stored: &[u8],
    attributes: &[AttributeValue],
    number: NumberType,
    (from, to): (Option<&str>, Option<&str>),
) -> Result<(), String> {
    let limits = from.zip(to).and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    let Some((from, to)) = limits.filter(|_| is_longitude(name, attributes)) else { return Ok(()) };
    let (mut integers, mut values) = (Vec::new(), Vec::new());
    number.decode_floats(stored, &mut integers, &mut values);
    let Some(parts) = other_parts(&values, from, to) else { return Ok(()) };
    let is_single = !number.is_integer() && number.len_bytes() == 4;
    let words = |value: f64| if is_single { (value as f32).to_string() } else { value.to_string() };
    let parts: Vec<String> = parts.into_iter().map(|(low, high)| format!("{}..{}", words(low), words(high))).collect();
    Err(match parts.as_slice() {
        [part] => format!("repeats after 360 degrees, and has these longitudes as {part}: select them as such"),
        parts => format!(
            "repeats after 360 degrees, and has these longitudes in separate parts: select {} in a merge each, and join the \
             outputs with --dim {name}",
            parts.join(" and ")
        ),
    })
}

fn is_longitude(name: &str, attributes: &[AttributeValue]) -> bool {
    let units = text(attributes, "units").unwrap_or_default();
    let may_be = units.is_empty() || units.starts_with("degree");
    UNITS.contains(&units.as_str())
        || text(attributes, "standard_name").is_some_and(|name| name == "longitude")
        || may_be && NAMES.contains(&name.to_lowercase().as_str())
}

/// Returns the smallest and the largest value of each part of a coordinate that lies between two longitudes, from west to
/// east; `None` if the values from `from` to `to` are all of them.
fn other_parts(values: &[f64], from: f64, to: f64) -> Option<Vec<(f64, f64)>> {
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    if from <= to && from >= lowest - TOLERANCE && to <= lowest + CIRCLE + TOLERANCE {
        return None;
    }
    let turns = if from <= to { 0.0 } else { ((from - to) / CIRCLE).ceil() };
    let to = to + turns * CIRCLE;
    let part = |turn: i32| {
        let shift = f64::from(turn) * CIRCLE;
        let places = from + shift - TOLERANCE..=to + shift + TOLERANCE;
        let inside = || values.iter().copied().filter(|value| places.contains(value));
        Some((turn, inside().reduce(f64::min)?, inside().reduce(f64::max)?))
    };
    // The westernmost part lies at the end of the coordinate.
    let parts: Vec<(i32, f64, f64)> = (-3..=3).rev().filter_map(part).collect();
    match parts.as_slice() {
        [] | [(0, ..)] if turns == 0.0 => None,
        [] => None,
        // The coordinate has all of them in one range.
        parts
            if parts.iter().any(|&(turn, low, high)| turn == 0 && values.iter().all(|v| (low..=high).contains(v))) =>
        {
            None
        }
        parts => Some(parts.iter().map(|&(_, low, high)| (low, high)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::attribute;

    fn parts(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Option<Vec<(f64, f64)>> {
        other_parts(&values.into_iter().collect::<Vec<_>>(), from, to)
    }

    fn grid(first: i32) -> impl Iterator<Item = f64> {
        (0..36).map(move |column| f64::from(first + 10 * column))
    }

    #[test]
    fn ranges_past_the_end_of_the_coordinate_have_several_parts() {
        assert_eq!(parts(grid(0), -10.0, 10.0), Some(vec![(350.0, 350.0), (0.0, 10.0)]));
        assert_eq!(parts(grid(0), 340.0, 20.0), Some(vec![(340.0, 350.0), (0.0, 20.0)]));
        assert_eq!(parts(grid(0), -180.0, 180.0), Some(vec![(180.0, 350.0), (0.0, 180.0)]));
        assert_eq!(parts(grid(-180), 170.0, 190.0), Some(vec![(170.0, 170.0), (-180.0, -170.0)]));
        assert_eq!(parts(grid(0), -30.0, -15.0), Some(vec![(330.0, 340.0)]));
        assert_eq!(parts(grid(-180), 200.0, 230.0), Some(vec![(-160.0, -130.0)]));
        // A coordinate that passes the end of the circle itself.
        assert_eq!(parts([350.0, 355.0, 0.0, 5.0], -10.0, 5.0), Some(vec![(350.0, 355.0), (0.0, 5.0)]));
    }

    #[test]
    fn ranges_within_the_coordinate_have_one_part() {
        for (first, from, to) in
            [(0, 0.0, 10.0), (0, 180.0, 360.0), (0, 0.0, 360.0), (-180, -180.0, 180.0), (-180, 0.0, 180.0)]
        {
            assert_eq!(parts(grid(first), from, to), None, "{from}..{to}");
        }
        // The last longitude may repeat the first one.
        assert_eq!(parts(grid(0).chain([360.0]), 0.0, 10.0), None);
        // A region.
        let region = || (0..5).map(|column| 100.0 + f64::from(column));
        assert_eq!(parts(region(), -10.0, 10.0), None);
        assert_eq!(parts(region(), 90.0, 102.0), None);
        assert_eq!(parts(region(), -180.0, 180.0), None);
        assert_eq!(parts([], -10.0, 10.0), None);
        assert_eq!(parts([f64::NAN], -10.0, 10.0), None);
    }

    #[test]
    fn longitudes_are_recognised_by_units_and_names() {
        let units = |units: &str| vec![attribute::fixed_text("units", units.as_bytes())];
        assert!(is_longitude("x", &units("degrees_east")) && is_longitude("LON", &[]));
        assert!(is_longitude("lon", &units("degrees")) && !is_longitude("lon", &units("m")));
        assert!(is_longitude("x", &[attribute::fixed_text("standard_name", b"longitude")]));
        assert!(!is_longitude("lat", &units("degrees_north")) && !is_longitude("x", &units("degrees")));
    }
}
