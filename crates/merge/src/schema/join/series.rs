//! Regularly sampled series, whose attributes state the time of the first sample and the interval between samples.
//!
//! Readers compute the time of each sample from the first one. Invariant: an input continues a series only if its first
//! sample follows the last one after one interval.

use super::attributes::{are_same_letters, describe_attribute};
use crate::schema::AttributeValue;
use crate::schema::attribute::numbers;

/// Names of attributes that state the time of the first sample, as lower-case letters.
const STARTS: [&[u8]; 7] = [b"starttime", b"starttimestamp", b"startepoch", b"timestart", b"tstart", b"t0", b"epoch"];
/// Names of attributes that state the interval between samples, as lower-case letters.
const INTERVALS: [&[u8]; 5] = [b"deltat", b"dt", b"tsamp", b"samplinginterval", b"sampleinterval"];
/// Names of attributes that state the number of samples per unit of time, as lower-case letters.
const RATES: [&[u8]; 5] = [b"samplingrate", b"samplerate", b"samplingfrequency", b"samplefrequency", b"fs"];
/// Largest distance between the times of a sample that are taken as equal, in intervals.
const TOLERANCE: f64 = 0.01;

/// Returns descriptions of a series and of the start of the next input, if that input does not continue the series. `known`
/// and `found` are the attributes of the two datasets, and `rows` returns the number of samples so far.
pub(super) fn gap(
    known: &[AttributeValue],
    found: &[AttributeValue],
    rows: impl FnOnce() -> u64,
) -> Option<(String, String)> {
    let start = of_names(known, &STARTS)?;
    let interval = of_names(known, &INTERVALS).and_then(number);
    let interval = interval.or_else(|| of_names(known, &RATES).and_then(number).map(f64::recip));
    let is_regular = interval.is_some() || of_names(known, &INTERVALS).or(of_names(known, &RATES)).is_some();
    let next =
        found.iter().find(|attribute| attribute.name == start.name).filter(|next| is_regular && *next != start)?;
    let rows = rows();
    let expected = number(start).zip(interval).map(|(start, interval)| (rows as f64).mul_add(interval, start));
    if let (Some(expected), Some(interval), Some(next)) = (expected, interval, number(next))
        && (next - expected).abs() <= TOLERANCE * interval.abs()
    {
        return None;
    }
    let continued = match expected {
        Some(expected) => {
            format!("a series of {rows} samples from {}, which {expected} continues", describe_attribute(start))
        }
        None => format!("a series from {}", describe_attribute(start)),
    };
    Some((continued, describe_attribute(next)))
}

/// Returns the first attribute that has one of these names.
fn of_names<'a>(attributes: &'a [AttributeValue], names: &[&[u8]]) -> Option<&'a AttributeValue> {
    attributes.iter().find(|attribute| names.iter().any(|name| are_same_letters(&attribute.name, name)))
}

fn number(attribute: &AttributeValue) -> Option<f64> {
    numbers(attribute).and_then(|numbers| <[f64; 1]>::try_from(numbers).ok()).map(|[number]| number)
}
