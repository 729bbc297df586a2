//! Checks that need values of the inputs: whether positions fit the rows to which they refer, whether times keep their
//! instants, and the order of records.
//!
//! They run during planning, before anything is written. Only values that a rule converts or counts with are
//! read. Invariant: a plan that passes is written without a refusal.

use super::conversion::ElementMap;
use super::record_lengths::record_lengths;
use super::unit_scale::NO_TIME;
use super::unpack::decoding;
use super::{PositionForm, ValueMeaning};
use crate::conventions::Overlap;
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::schema::attribute;
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{ABSENT, ColumnIndex, Role, child_path, display_path, parent_path};
use crate::write::values::{ColumnReader, open_pool};
use raddle_hdf5::number::NumberType;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Number of bytes of converted values that are read at once.
const BLOCK_LEN_BYTES: u64 = 4 << 20;
/// Number of positions that are read at once.
const BLOCK_ELEMENTS: u64 = 1 << 18;

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

/// Records that are taken from each input, by path of the record coordinate.
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

/// Checks the values on which the rules of `plan` depend, and determines the order of its inputs' records.
///
/// # Errors
/// [`MergeError::Differences`] for positions that do not fit and records that overlap, [`MergeError::Inexact`] for
/// values without an exact counterpart.
pub(crate) fn check(plan: &MergePlan, watch: &Watch<'_>) -> Result<RecordOrder> {
    if plan.rules.is_empty() || plan.inputs.len() < 2 {
        return Ok(RecordOrder::Kept);
    }
    let pool = open_pool(plan);
    let lengths = record_lengths(&plan.schema, plan.rules.iter().map(|(entry, rule)| (*entry, rule)));
    let mut checker = Checker { plan, reader: ColumnReader::new(plan, &pool), lengths, differences: Vec::new() };
    let columns: HashMap<&[u8], ColumnIndex> =
        (0..plan.schema.columns.len() as ColumnIndex).map(|column| (plan.schema.column_path(column), column)).collect();
    let mut order = RecordOrder::Kept;
    for (entry, rule) in &plan.rules {
        watch.cancel.check()?;
        let entry = &plan.schema.entries[*entry as usize];
        let Role::Column(column) = entry.role else { continue };
        if let ValueMeaning::Positions { target, form } = &rule.values
            && let Some(target) = columns.get(target.as_slice())
        {
            checker.positions(column, *target, *form)?;
        }
        if rule.values == ValueMeaning::Unique {
            checker.unique(column, &display_path(&entry.path))?;
        }
        if rule.record.as_deref() == Some(&entry.path) && matches!(rule.values, ValueMeaning::Time(_)) {
            // Converts every value on the way.
            match checker.records(column)? {
                RecordOrder::Kept => {}
                RecordOrder::Trimmed(trims) => match &mut order {
                    RecordOrder::Trimmed(known) => known.0.extend(trims.0),
                    order => *order = RecordOrder::Trimmed(trims),
                },
                other => order = other,
            }
        } else if is_scaled(plan, column) {
            checker.convert_all(column, watch)?;
        }
    }
    match checker.differences.is_empty() {
        true => Ok(order),
        false => Err(MergeError::Differences { differences: checker.differences }),
    }
}

/// Returns whether converting a value of the column can fail.
fn is_scaled(plan: &MergePlan, column: ColumnIndex) -> bool {
    let conversion = plan.schema.columns[column as usize].conversion.as_ref();
    let can_fail = |map: &ElementMap| match map {
        ElementMap::Scale(_) | ElementMap::Cast | ElementMap::Lookup(_) => true,
        ElementMap::Unpack { unwritten, .. }
        | ElementMap::Repack { unwritten, .. }
        | ElementMap::Linear { unwritten, .. } => unwritten.is_some(),
        _ => false,
    };
    conversion.is_some_and(|conversion| conversion.of_inputs.iter().any(|one| can_fail(&one.map)))
}

struct Checker<'p> {
    plan: &'p MergePlan,
    reader: ColumnReader<'p>,
    /// Number of records of each input, by path of their dimension.
    lengths: HashMap<Vec<u8>, Vec<u64>>,
    differences: Vec<Difference>,
}

impl Checker<'_> {
    fn refuse(&mut self, column: ColumnIndex, expected: String, found: String, inputs: Vec<u32>) {
        let path = display_path(self.plan.schema.column_path(column));
        self.differences.push(Difference { path, kind: DifferenceKind::Meaning, expected, found, inputs });
    }

    /// Reads one position of an input; numbers of more than 63 bits become the largest.
    fn position(&mut self, column: ColumnIndex, input: u32, row: u64) -> Result<Option<i64>> {
        let scanned = &self.plan.schema.columns[column as usize];
        let class = &scanned.templates[scanned.facts[input as usize].template as usize].datatype.class;
        let Some(number) = NumberType::of(class) else { return Ok(None) };
        let stored = self.reader.stored_element(column, input, row)?;
        let mut values = Vec::new();
        let is_exact = number.decode_integers(&stored, &mut values);
        Ok(values.first().map(|&value| if is_exact { value } else { i64::MAX }))
    }

    fn positions(&mut self, column: ColumnIndex, target: ColumnIndex, form: PositionForm) -> Result<()> {
        let plan = self.plan;
        let (scanned, counted) = (&plan.schema.columns[column as usize], &plan.schema.columns[target as usize]);
        if scanned.templates.iter().any(|template| template.dataspace.dims().len() != 1) {
            self.refuse(column, "positions along one axis".to_owned(), "more axes".to_owned(), Vec::new());
            return Ok(());
        }
        for (input, fact) in (0..).zip(scanned.facts.iter()).filter(|(_, fact)| fact.template != ABSENT) {
            let rows = scanned.trim_of(input).map_or(fact.rows, |trim| trim.stored_rows);
            let pick = counted.conversion_of(input).and_then(|conversion| conversion.pick.as_ref());
            let of_dimension = self.lengths.get(plan.schema.column_path(target)).map(|lengths| lengths[input as usize]);
            let of_dataset = || pick.map_or(counted.facts[input as usize].rows, |pick| pick.stored);
            let target_rows = of_dimension.unwrap_or_else(of_dataset);
            let target_rows = i64::try_from(target_rows).unwrap_or(i64::MAX);
            // Positions of an input that is trimmed to nothing are never read, so they need not be checked.
            let is_read = fact.rows > 0 || scanned.trim_of(input).is_none();
            let Some(last_row) = rows.checked_sub(1).filter(|_| is_read) else {
                if target_rows > 0 && form != PositionForm::Rows {
                    let expected = format!(
                        "positions of the {target_rows} rows of {}",
                        display_path(plan.schema.column_path(target))
                    );
                    self.refuse(column, expected, "none".to_owned(), vec![input]);
                }
                continue;
            };
            let (first, last) = (self.position(column, input, 0)?, self.position(column, input, last_row)?);
            let (Some(first), Some(last)) = (first, last) else { continue };
            let counted_path = display_path(plan.schema.column_path(target));
            let expected = match form {
                PositionForm::Bounds if (first, last) != (0, target_rows) => {
                    format!("positions from 0 to {target_rows}, the rows of {counted_path}")
                }
                PositionForm::Ends if last != target_rows => {
                    format!("positions up to {target_rows}, the rows of {counted_path}")
                }
                PositionForm::Starts if first != 0 || last > target_rows => {
                    format!("positions from 0, up to {target_rows}, the rows of {counted_path}")
                }
                PositionForm::Rows if last >= target_rows.max(1) => {
                    format!(
                        "numbers of the {target_rows} rows of {counted_path}; where positions begin with 0 and end with \
                         the number of rows, the rule is 'bounds of', where they are ends it is 'ends of'"
                    )
                }
                _ => {
                    self.each_position(column, input, rows, target, (form, target_rows))?;
                    continue;
                }
            };
            self.refuse(column, expected, format!("positions from {first} to {last}"), vec![input]);
        }
        Ok(())
    }

    /// Checks all positions of an input. Negative row numbers stand for a missing row; any other negative position is
    /// invalid.
    fn each_position(
        &mut self,
        column: ColumnIndex,
        input: u32,
        rows: u64,
        target: ColumnIndex,
        (form, target_rows): (PositionForm, i64),
    ) -> Result<()> {
        let (mut bytes, mut values, mut before) = (Vec::new(), Vec::new(), 0_i64);
        for start in (0..rows).step_by(BLOCK_ELEMENTS as usize) {
            let count = BLOCK_ELEMENTS.min(rows - start);
            let class = self.reader.read_stored(column, input, start, count, &mut bytes)?;
            let Some(number) = NumberType::of(&class) else { return Ok(()) };
            let is_exact = number.decode_integers(&bytes, &mut values);
            // Unsigned numbers of more than 63 bits are decoded as negative.
            let is_beyond = |value: i64| value >= target_rows || !is_exact && value < 0;
            let at = match form {
                PositionForm::Rows => values.iter().position(|&value| is_beyond(value)),
                _ => values.iter().position(|&value| {
                    let is_out = value < before || value > target_rows;
                    before = value;
                    is_out
                }),
            };
            let Some(at) = at else { continue };
            let counted = display_path(self.plan.schema.column_path(target));
            let expected = match form {
                PositionForm::Rows => format!("numbers of the {target_rows} rows of {counted}, or negative ones"),
                _ => format!("ascending positions up to {target_rows}, the rows of {counted}"),
            };
            let found = format!("element {} is {}", start + at as u64, values[at]);
            self.refuse(column, expected, found, vec![input]);
            return Ok(());
        }
        Ok(())
    }

    /// Searches for numbers that occur twice.
    fn unique(&mut self, column: ColumnIndex, path: &str) -> Result<()> {
        let plan = self.plan;
        let scanned = &plan.schema.columns[column as usize];
        let Some(number) = NumberType::of(&scanned.model().datatype.class) else { return Ok(()) };
        let row_len_bytes = plan.row_len_bytes(column);
        let (mut seen, mut first, mut values) = (HashMap::new(), 0, Vec::new());
        for (input, fact) in (0..).zip(scanned.facts.iter()) {
            let mut bytes = vec![0; (fact.rows * row_len_bytes) as usize];
            self.reader.read_rows(column, first..first + fact.rows, &mut bytes)?;
            first += fact.rows;
            number.decode_integers(&bytes, &mut values);
            let repeated = values.iter().find_map(|value| {
                let known = *seen.entry(*value).or_insert(input);
                (known != input).then_some((*value, known))
            });
            if let Some((value, known)) = repeated {
                let file = plan.inputs[known as usize].path.display();
                let members = display_path(&child_path(parent_path(plan.schema.column_path(column)), b"**"));
                let expected = format!("identifiers that no other input has; {value} is in {file}");
                let found = format!(
                    "{value}, too; --rule '{path}: rows of {path}' continues their numbering, '{path}: concatenate' keeps \
                     them, --keep '{members}' takes a table that is the same in all inputs once"
                );
                self.refuse(column, expected, found, vec![input]);
            }
        }
        Ok(())
    }

    /// Reads all values of a column, to find any without an exact counterpart.
    fn convert_all(&mut self, column: ColumnIndex, watch: &Watch<'_>) -> Result<()> {
        let (rows, row_len_bytes) = (self.plan.columns[column as usize].dims[0], self.plan.row_len_bytes(column));
        let step = (BLOCK_LEN_BYTES / row_len_bytes.max(1)).max(1);
        let mut values = Vec::new();
        for start in (0..rows).step_by(step as usize) {
            watch.cancel.check()?;
            let end = (start + step).min(rows);
            values.resize(((end - start) * row_len_bytes) as usize, 0);
            self.reader.read_rows(column, start..end, &mut values)?;
        }
        Ok(())
    }

    /// Determines the order of the inputs by a record coordinate.
    fn records(&mut self, column: ColumnIndex) -> Result<RecordOrder> {
        let plan = self.plan;
        let scanned = &plan.schema.columns[column as usize];
        let Some(number) = NumberType::of(&scanned.model().datatype.class) else { return Ok(RecordOrder::Kept) };
        if plan.columns[column as usize].dims.len() != 1 {
            return Ok(RecordOrder::Kept);
        }
        let mut spans = Vec::new();
        let mut first = 0;
        for (input, fact) in (0..).zip(scanned.facts.iter()) {
            let mut bytes = vec![0; fact.rows as usize * number.len_bytes()];
            if fact.rows > 0 {
                self.reader.read_rows(column, first..first + fact.rows, &mut bytes)?;
                spans.push(Span::of(input, &decoded(plan, column, number, &bytes)));
            }
            first += fact.rows;
        }
        // An input without any valid time has no position in the order.
        if spans.iter().any(|span| span.low > span.high) {
            return Ok(RecordOrder::Kept);
        }
        let descends =
            spans.iter().all(|span| span.first >= span.last) && spans.iter().any(|span| span.first > span.last);
        let mut sorted: Vec<usize> = (0..spans.len()).collect();
        sorted.sort_by(|&left, &right| {
            let order = spans[left].low.total_cmp(&spans[right].low);
            if descends { order.reverse() } else { order }
        });
        let overlapping = sorted.windows(2).find(|pair| {
            let (left, right) = (&spans[pair[0]], &spans[pair[1]]);
            if descends { left.low <= right.high } else { right.low <= left.high }
        });
        let path = plan.schema.column_path(column);
        let is_sorted = sorted.is_sorted();
        if let Some(pair) = overlapping
            && (plan.options.conventions.overlap == Overlap::Refuse || descends)
        {
            let (left, right) = (&spans[pair[0]], &spans[pair[1]]);
            let words = |span: &Span| {
                let file = plan.inputs[span.input as usize].path.display();
                format!("{} to {} in {file}", span.low, span.high)
            };
            let found = format!("{}, which overlaps; --overlap first or last takes each record once", words(right));
            self.refuse(column, words(left), found, vec![right.input]);
            return Ok(RecordOrder::Kept);
        }
        if !is_sorted && plan.growth.is_some() {
            let found = "records before the last one of the existing file; merge all inputs again".to_owned();
            self.refuse(column, "records after those of the file".to_owned(), found, Vec::new());
            return Ok(RecordOrder::Kept);
        }
        if !is_sorted {
            // Inputs without records stay in front, in their order.
            let with_records: Vec<u32> = spans.iter().map(|span| span.input).collect();
            let without = (0..plan.inputs.len() as u32).filter(|input| !with_records.contains(input));
            let order = without.chain(sorted.iter().map(|&at| spans[at].input)).collect();
            return Ok(RecordOrder::Other(order, display_path(path)));
        }
        match overlapping {
            None => Ok(RecordOrder::Kept),
            Some(_) => self.trim(column, &spans, number),
        }
    }

    /// Determines which records are taken from inputs that overlap and are in order.
    fn trim(&mut self, column: ColumnIndex, spans: &[Span], number: NumberType) -> Result<RecordOrder> {
        let plan = self.plan;
        let scanned = &plan.schema.columns[column as usize];
        let all = |fact: &crate::schema::InputExtent| TakenRecords { leading: 0, count: fact.rows };
        let mut taken: Vec<TakenRecords> = scanned.facts.iter().map(all).collect();
        let starts: Vec<u64> =
            scanned.facts.iter().scan(0, |next, fact| Some(std::mem::replace(next, *next + fact.rows))).collect();
        let mut values_of = |input: u32| -> Result<Vec<f64>> {
            let (start, rows) = (starts[input as usize], scanned.facts[input as usize].rows);
            let mut bytes = vec![0; rows as usize * number.len_bytes()];
            self.reader.read_rows(column, start..start + rows, &mut bytes)?;
            Ok(decoded(plan, column, number, &bytes))
        };
        let mut unordered = None;
        let mut end = f64::NEG_INFINITY;
        let is_first = plan.options.conventions.overlap == Overlap::First;
        let order: Vec<&Span> = if is_first { spans.iter().collect() } else { spans.iter().rev().collect() };
        let mut begin = f64::INFINITY;
        let mut kept: HashSet<u64> = HashSet::new();
        let mut lost = None;
        for span in order {
            let values = values_of(span.input)?;
            if !values.is_sorted_by(|left, right| left.partial_cmp(right) == Some(Ordering::Less)) {
                unordered.get_or_insert(span.input);
            }
            let of_input = &mut taken[span.input as usize];
            if is_first {
                of_input.leading = values.partition_point(|&value| value <= end) as u64;
                of_input.count = values.len() as u64 - of_input.leading;
                end = end.max(span.high);
            } else {
                of_input.count = values.partition_point(|&value| value < begin) as u64;
                if span.high > end && begin.is_finite() {
                    // Records after those of the later input would be lost together with the replaced ones.
                    unordered.get_or_insert(span.input);
                }
                (begin, end) = (begin.min(span.low), end.max(span.high));
            }
            let of_input = taken[span.input as usize].rows();
            for (at, value) in (0..).zip(&values) {
                // -0 equals 0.
                let bits = (value + 0.0).to_bits();
                if of_input.contains(&at) {
                    kept.insert(bits);
                } else if !kept.contains(&bits) {
                    lost.get_or_insert((span.input, *value));
                }
            }
        }
        if plan.growth.is_some() && taken.first().is_some_and(|of_file| of_file.count < spans[0].count) {
            let found = "records that would replace those of the file; --overlap first keeps these".to_owned();
            self.refuse(column, "records that the file lacks".to_owned(), found, Vec::new());
            return Ok(RecordOrder::Kept);
        }
        if let Some(input) = unordered {
            let expected = "increasing values, which later inputs follow".to_owned();
            let found = "values that repeat, decrease or reach beyond those of a later input".to_owned();
            self.refuse(column, expected, found, vec![input]);
            return Ok(RecordOrder::Kept);
        }
        if let Some((input, value)) = lost {
            let expected = "records that another input has as well, where inputs overlap".to_owned();
            let found = format!("{value}, which --overlap would leave out and only this input has");
            self.refuse(column, expected, found, vec![input]);
            return Ok(RecordOrder::Kept);
        }
        let path = plan.schema.column_path(column).to_vec();
        Ok(RecordOrder::Trimmed(RecordTrims(HashMap::from([(path, taken)]))))
    }
}

/// Decodes values of a record coordinate as readers see them; missing ones become NaN.
fn decoded(plan: &MergePlan, column: ColumnIndex, number: NumberType, bytes: &[u8]) -> Vec<f64> {
    let attributes = &plan.schema.entries[plan.schema.columns[column as usize].entry as usize].attributes;
    let mut values = coordinates(number, bytes);
    let factor = |name| attribute::number(attributes, name);
    let (scale, offset) = (factor("scale_factor").unwrap_or(1.0), factor("add_offset").unwrap_or(0.0));
    let decode = decoding(number, attributes);
    values.iter_mut().for_each(|value| *value = decode(*value) * scale + offset);
    values
}

/// Decodes values of a record coordinate; missing ones become NaN.
fn coordinates(number: NumberType, bytes: &[u8]) -> Vec<f64> {
    let (mut integers, mut values) = (Vec::new(), Vec::new());
    number.decode_floats(bytes, &mut integers, &mut values);
    if number.is_integer() {
        values.iter_mut().filter(|value| **value == NO_TIME as f64).for_each(|value| *value = f64::NAN);
    }
    values
}

/// Range of the records of one input.
struct Span {
    input: u32,
    count: u64,
    first: f64,
    last: f64,
    low: f64,
    high: f64,
}

impl Span {
    fn of(input: u32, values: &[f64]) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let first = values.first().copied().unwrap_or(f64::NAN);
        Self { input, count: values.len() as u64, first, last: values.last().copied().unwrap_or(f64::NAN), low, high }
    }
}
