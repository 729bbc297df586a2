//! Order of the records of several inputs by their coordinate, and records that inputs have in common.
//!
//! Invariant: coordinates are compared as the exact numbers that readers see, so two records are the same only if their
//! coordinates are equal.

use super::unit_scale::NO_TIME;
use super::unpack::decoding;
use crate::conventions::Overlap;
use crate::error::Result;
use crate::plan::MergePlan;
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{ColumnIndex, InputExtent, attribute, display_path};
use crate::write::values::ColumnReader;
use raddle_hdf5::number::NumberType;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

/// Result of the check of the order of inputs.
#[derive(Debug)]
pub(crate) enum RecordOrder {
    /// The records are in order, or no coordinate determines an order.
    Kept,
    /// Order of the inputs by their records, as numbers of inputs of the plan, with the coordinate that determines it.
    Other(Vec<u32>, String),
    /// Records that inputs have in common are taken once.
    Trimmed(RecordTrims),
}

/// Records that are taken from each input, indexed by the path of the record coordinate.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordTrims(pub HashMap<Vec<u8>, Vec<TakenRecords>>);

impl RecordTrims {
    /// Returns whether records along `dimension` are left out; `lengths` are their numbers in the inputs.
    pub(super) fn leaves_out(&self, dimension: &[u8], lengths: &[u64]) -> bool {
        let is_whole = |(taken, &count): (&TakenRecords, &u64)| *taken == TakenRecords { leading: 0, count };
        self.0.get(dimension).is_some_and(|taken| !taken.iter().zip(lengths).all(is_whole))
    }
}

/// Records that are taken from one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TakenRecords {
    /// Number of records before the taken ones.
    pub leading: u64,
    /// Number of records taken.
    pub count: u64,
}

impl TakenRecords {
    /// Returns the numbers of the taken records in their input.
    fn rows(self) -> Range<u64> {
        self.leading..self.leading + self.count
    }
}

/// Determines the order of the inputs by the record coordinate `column`. Adds the reason to `differences` if there is
/// no order.
pub(super) fn order<'p>(
    plan: &'p MergePlan,
    reader: &mut ColumnReader<'p>,
    column: ColumnIndex,
    differences: &mut Vec<Difference>,
) -> Result<RecordOrder> {
    let scanned = &plan.schema.columns[column as usize];
    let Some(number) = NumberType::of(&scanned.model().datatype.class) else { return Ok(RecordOrder::Kept) };
    if plan.columns[column as usize].dims.len() != 1 {
        return Ok(RecordOrder::Kept);
    }
    let mut coordinates = Coordinates { plan, reader, column, number };
    let (mut spans, mut unplaced) = (Vec::new(), Vec::new());
    for (input, _) in (0..).zip(scanned.facts.iter()).filter(|(_, fact)| fact.rows > 0) {
        match Span::of(input, &coordinates.of_input(input)?) {
            Some(span) => spans.push(span),
            None => unplaced.push(input),
        }
    }
    let found = match by_spans(plan, column, &spans, &unplaced) {
        Ok(Some(order)) => Ok(order),
        Ok(None) => trim(&mut coordinates, &spans)?,
        Err(refusal) => Err(refusal),
    };
    Ok(found.unwrap_or_else(|refusal| {
        differences.push(refusal.of_column(plan, column));
        RecordOrder::Kept
    }))
}

/// Reason why records have no order.
struct Refusal {
    expected: String,
    found: String,
    inputs: Vec<u32>,
}

impl Refusal {
    fn new(expected: impl Into<String>, found: impl Into<String>, inputs: Vec<u32>) -> Self {
        Self { expected: expected.into(), found: found.into(), inputs }
    }

    fn of_column(self, plan: &MergePlan, column: ColumnIndex) -> Difference {
        let Self { expected, found, inputs } = self;
        let path = display_path(plan.schema.column_path(column));
        Difference { path, kind: DifferenceKind::Meaning, expected, found, inputs }
    }
}

/// Determines the order of inputs whose records do not overlap; `None` if they are in order and do overlap. `unplaced`
/// are inputs whose coordinates are all missing, ascending.
fn by_spans(
    plan: &MergePlan,
    column: ColumnIndex,
    spans: &[Span],
    unplaced: &[u32],
) -> std::result::Result<Option<RecordOrder>, Refusal> {
    let descends = spans.iter().all(|span| span.first >= span.last) && spans.iter().any(|span| span.first > span.last);
    let mut sorted: Vec<usize> = (0..spans.len()).collect();
    sorted.sort_by(|&left, &right| {
        let order = spans[left].low.partial_cmp(&spans[right].low).unwrap_or(Ordering::Equal);
        if descends { order.reverse() } else { order }
    });
    let overlapping = sorted.windows(2).find(|pair| {
        let (left, right) = (&spans[pair[0]], &spans[pair[1]]);
        if descends { left.low <= right.high } else { right.low <= left.high }
    });
    if let Some(pair) = overlapping
        && (plan.options.conventions.overlap == Overlap::Refuse || descends)
    {
        let (left, right) = (&spans[pair[0]], &spans[pair[1]]);
        let words = |span: &Span| {
            let file = plan.inputs[span.input as usize].path.display();
            format!("{} to {} in {file}", span.low, span.high)
        };
        let found = format!("{}, which overlaps; --overlap first or last takes each record once", words(right));
        return Err(Refusal::new(words(left), found, vec![right.input]));
    }
    if sorted.is_sorted() {
        return Ok(overlapping.is_none().then_some(RecordOrder::Kept));
    }
    if plan.growth.is_some() {
        let found = "records before the last one of the existing file; merge all inputs again";
        return Err(Refusal::new("records after those of the file", found, Vec::new()));
    }
    // Inputs without records stay in front, in their order.
    let with_records: HashSet<u32> = spans.iter().map(|span| span.input).chain(unplaced.iter().copied()).collect();
    let without = (0..plan.inputs.len() as u32).filter(|input| !with_records.contains(input));
    let mut order: Vec<u32> = without.chain(sorted.iter().map(|&at| spans[at].input)).collect();
    // An input without a time stays behind its predecessor.
    for &input in unplaced {
        let place = order.iter().position(|&other| Some(other) == input.checked_sub(1)).map_or(0, |before| before + 1);
        order.insert(place, input);
    }
    Ok(Some(RecordOrder::Other(order, display_path(plan.schema.column_path(column)))))
}

/// Determines which records are taken from inputs that overlap and are in order.
fn trim(coordinates: &mut Coordinates<'_, '_>, spans: &[Span]) -> Result<std::result::Result<RecordOrder, Refusal>> {
    let (plan, column) = (coordinates.plan, coordinates.column);
    let all = |fact: &InputExtent| TakenRecords { leading: 0, count: fact.rows };
    let mut taken: Vec<TakenRecords> = plan.schema.columns[column as usize].facts.iter().map(all).collect();
    let is_first = plan.options.conventions.overlap == Overlap::First;
    let order: Vec<&Span> = if is_first { spans.iter().collect() } else { spans.iter().rev().collect() };
    let (mut begin, mut end) = (Coordinate::from(f64::INFINITY), Coordinate::from(f64::NEG_INFINITY));
    let (mut unordered, mut lost) = (None, None);
    let mut kept: HashSet<(u64, i64)> = HashSet::new();
    for span in order {
        let values = coordinates.of_input(span.input)?;
        if !values.is_sorted_by(|left, right| left < right) {
            unordered.get_or_insert(span.input);
        }
        let of_input = &mut taken[span.input as usize];
        if is_first {
            of_input.leading = values.partition_point(|&value| value <= end) as u64;
            of_input.count = values.len() as u64 - of_input.leading;
        } else {
            of_input.count = values.partition_point(|&value| value < begin) as u64;
            if span.high > end && begin.rounded.is_finite() {
                // Records after those of the later input would be lost together with the replaced ones.
                unordered.get_or_insert(span.input);
            }
            begin = if span.low < begin { span.low } else { begin };
        }
        end = if span.high > end { span.high } else { end };
        let of_input = of_input.rows();
        for (at, value) in (0..).zip(&values) {
            if of_input.contains(&at) {
                kept.insert(value.key());
            } else if !kept.contains(&value.key()) {
                lost.get_or_insert((span.input, *value));
            }
        }
    }
    if plan.growth.is_some() && spans.iter().any(|span| span.input == 0 && taken[0].count < span.count) {
        let found = "records that would replace those of the file; --overlap first keeps these";
        return Ok(Err(Refusal::new("records that the file lacks", found, Vec::new())));
    }
    if let Some(input) = unordered {
        let expected = "increasing values, which later inputs follow";
        let found = "values that repeat, decrease or reach beyond those of a later input";
        return Ok(Err(Refusal::new(expected, found, vec![input])));
    }
    if let Some((input, value)) = lost {
        let expected = "records that another input has as well, where inputs overlap";
        let found = format!("{value}, which --overlap would leave out and only this input has");
        return Ok(Err(Refusal::new(expected, found, vec![input])));
    }
    let path = plan.schema.column_path(column).to_vec();
    Ok(Ok(RecordOrder::Trimmed(RecordTrims(HashMap::from([(path, taken)])))))
}

/// Values of a record coordinate.
struct Coordinates<'p, 'r> {
    plan: &'p MergePlan,
    reader: &'r mut ColumnReader<'p>,
    column: ColumnIndex,
    number: NumberType,
}

impl Coordinates<'_, '_> {
    /// Reads the values of an input as readers see them, in the unit of the output.
    fn of_input(&mut self, input: u32) -> Result<Vec<Coordinate>> {
        let facts = &self.plan.schema.columns[self.column as usize].facts;
        let start: u64 = facts.iter().take(input as usize).map(|fact| fact.rows).sum();
        let rows = facts[input as usize].rows;
        let mut bytes = vec![0; rows as usize * self.number.len_bytes()];
        self.reader.read_rows(self.column, start..start + rows, &mut bytes)?;
        Ok(self.decode(&bytes))
    }

    /// Decodes stored values; missing ones become NaN.
    fn decode(&self, bytes: &[u8]) -> Vec<Coordinate> {
        let schema = &self.plan.schema;
        let attributes = &schema.entries[schema.columns[self.column as usize].entry as usize].attributes;
        let factor = |name| attribute::number(attributes, name);
        let (scale, offset) = (factor("scale_factor").unwrap_or(1.0), factor("add_offset").unwrap_or(0.0));
        let decode = decoding(self.number, attributes);
        let (mut integers, mut floats) = (Vec::new(), Vec::new());
        self.number.decode_floats(bytes, &mut integers, &mut floats);
        if self.number.is_integer() && self.number.decode_integers(bytes, &mut integers) {
            let of_integer = |&stored: &i64| match decode(stored as f64) * scale + offset {
                _ if stored == NO_TIME => Coordinate::from(f64::NAN),
                rounded if rounded == stored as f64 => Coordinate::of_integer(stored),
                value => Coordinate::from(value),
            };
            return integers.iter().map(of_integer).collect();
        }
        floats.iter().map(|&stored| Coordinate::from(decode(stored) * scale + offset)).collect()
    }
}

/// Magnitude up to which every integer is a float of 64 bits.
const EXACT_INTEGERS: f64 = (1_u64 << 53) as f64;
/// Magnitude that no integer of 64 bits exceeds.
const I64_RANGE: f64 = (1_u64 << 63) as f64;

/// A coordinate of a record, as an exact number.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
struct Coordinate {
    /// Nearest float; NaN for a missing value.
    rounded: f64,
    /// Difference of the number from `rounded`, which is not zero only for integers of more than 53 bits.
    rest: i64,
}

impl Coordinate {
    fn of_integer(value: i64) -> Self {
        let rounded = value as f64;
        Self { rounded, rest: (i128::from(value) - rounded as i128) as i64 }
    }

    /// Returns the same value for coordinates that are equal; -0 equals 0.
    fn key(self) -> (u64, i64) {
        ((self.rounded + 0.0).to_bits(), self.rest)
    }
}

impl From<f64> for Coordinate {
    fn from(rounded: f64) -> Self {
        Self { rounded, rest: 0 }
    }
}

impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Floats of this size are integers, and are formatted with zeros in place of their last digits.
        let is_long = (EXACT_INTEGERS..=I64_RANGE).contains(&self.rounded.abs());
        match is_long {
            true => (self.rounded as i128 + i128::from(self.rest)).fmt(f),
            false => self.rounded.fmt(f),
        }
    }
}

/// Range of the records of one input.
struct Span {
    input: u32,
    count: u64,
    first: Coordinate,
    last: Coordinate,
    low: Coordinate,
    high: Coordinate,
}

impl Span {
    /// Returns the range of these values; `None` if all of them are missing.
    fn of(input: u32, values: &[Coordinate]) -> Option<Self> {
        let valid = || values.iter().copied().filter(|value| !value.rounded.is_nan());
        let low = valid().reduce(|low, value| if value < low { value } else { low })?;
        let high = valid().reduce(|high, value| if value > high { value } else { high })?;
        Some(Self { input, count: values.len() as u64, first: *values.first()?, last: *values.last()?, low, high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_beyond_53_bits_are_compared_exactly() {
        let numbers = [i64::MIN, -1, 0, (1 << 53) + 1, 1_700_000_000_000_000_000, 1_700_000_000_000_000_001, i64::MAX];
        for (left, right) in numbers.into_iter().flat_map(|left| numbers.map(|right| (left, right))) {
            let of = Coordinate::of_integer;
            assert_eq!(of(left).partial_cmp(&of(right)), Some(left.cmp(&right)), "{left} {right}");
            assert_eq!(of(left).key() == of(right).key(), left == right, "{left} {right}");
            assert_eq!(of(left).to_string(), left.to_string());
        }
        assert_eq!(Coordinate::from(-0.0), Coordinate::of_integer(0));
        assert_eq!(Coordinate::from(-0.0).key(), Coordinate::of_integer(0).key());
    }
}
