//! Checks that need values of the inputs: whether positions fit the rows to which they refer, whether times keep their
//! instants, and the order of records.
//!
//! They run during planning, before anything is written. Only values that a rule converts or uses as positions are
//! read. Invariant: a plan that passes is written without a refusal.

use super::conversion::ElementMap;
use super::record_lengths::record_lengths;
use super::records::{self, RecordOrder};
use super::{PositionForm, ValueMeaning};
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{ABSENT, ColumnIndex, Role, child_path, display_path, parent_path};
use crate::write::values::{ColumnReader, open_pool};
use raddle_hdf5::number::NumberType;
use std::collections::HashMap;

/// Number of bytes of converted values that are read at once.
const BLOCK_LEN_BYTES: u64 = 4 << 20;
/// Number of positions that are read at once.
const BLOCK_ELEMENTS: u64 = 1 << 18;

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
            match records::order(plan, &mut checker.reader, column, &mut checker.differences)? {
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
    /// Number of records of each input, indexed by the path of their dimension.
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
        // Row numbers may have further axes, such as the corners of the cells of a mesh.
        let may_have_axes = form == PositionForm::Rows && scanned.axis == 0 && !scanned.is_lifted;
        if !may_have_axes && scanned.templates.iter().any(|template| template.dataspace.dims().len() != 1) {
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
        let model = self.plan.schema.columns[column as usize].model();
        let row_elements = model.dataspace.dims().iter().skip(1).product::<u64>().max(1);
        let block_rows = (BLOCK_ELEMENTS / row_elements).max(1);
        for start in (0..rows).step_by(block_rows as usize) {
            let count = block_rows.min(rows - start);
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
            let row = start + at as u64 / row_elements;
            let found = match row_elements {
                1 => format!("element {row} is {}", values[at]),
                _ => format!("row {row} has {}", values[at]),
            };
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
}
