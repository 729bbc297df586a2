//! Division along the axis of concatenation: at any row of a named dimension, or else between inputs.
//!
//! Tables of different lengths belong together input by input, so they are not divided at a row.

use super::column_len_bytes;
use super::variables::OutputVariable;
use super::{OutputPart, range_of};
use crate::conventions::Choice;
use crate::error::{MergeError, Result};
use crate::plan::{Dimensions, MergePlan};
use crate::schema::{ColumnIndex, display_path, is_named, parent_path};
use crate::subset::resolve::lengths;
use raddle_hdf5::model::Dataspace;
use std::collections::BTreeSet;
use std::ops::Range;

/// Limit for the outputs of a division.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowLimit {
    /// Number of rows.
    Rows(u64),
    /// Uncompressed length.
    LenBytes(u64),
}

/// Positions at which a merge can be divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DivisionPoints {
    /// At any element of the dimension with this path and this length.
    Dimension(Vec<u8>, u64),
    /// Between inputs.
    Inputs,
}

impl DivisionPoints {
    /// Determines where the merge of `plan` can be divided: along the dimension of all datasets that are concatenated,
    /// if there is only one. A single input is divided along its unlimited dimension, or along the dimension of
    /// `--dim`.
    pub fn of(plan: &MergePlan) -> Self {
        let dimensions = Dimensions::of(&plan.schema);
        let mut found: BTreeSet<Option<Vec<u8>>> = BTreeSet::new();
        for column in plan.schema.columns.iter().filter(|column| !column.is_once) {
            let record = plan.rule_of(column.entry).and_then(|rule| rule.record.clone());
            if record.is_some() {
                found.insert(record);
            } else if column.facts.iter().filter(|fact| fact.rows > 0).count() > 1 {
                let entry = &plan.schema.entries[column.entry as usize];
                let names = dimensions.names(entry, column.model().dataspace.dims().len());
                found.insert(names.get(column.axis).and_then(|names| names.first().cloned()));
            }
        }
        let lengths = lengths(plan);
        if plan.inputs.len() == 1 && found.is_empty() {
            let options = &plan.options.conventions;
            let dims = options.dims(|name| lengths.keys().any(|path| is_named(path, name)));
            let is_asked = |path: &&Vec<u8>| dims.iter().any(|dim| is_named(path, dim));
            found = match options.dim {
                Some(_) => lengths.keys().filter(is_asked).cloned().map(Some).collect(),
                None => unlimited(plan, &dimensions),
            };
        }
        match found.pop_first() {
            Some(Some(dimension)) if found.is_empty() => {
                let len = lengths.get(&dimension).copied().unwrap_or(0);
                Self::Dimension(dimension, len)
            }
            _ => Self::Inputs,
        }
    }

    /// Divides `whole`, the output of a variable.
    pub(super) fn parts(
        &self,
        plan: &MergePlan,
        variable: &OutputVariable,
        whole: OutputPart,
        limit: RowLimit,
    ) -> Result<Vec<OutputPart>> {
        match self {
            Self::Dimension(dimension, len) => at_rows(plan, variable, whole, limit, (dimension, *len)),
            Self::Inputs => between_inputs(plan, variable, whole, limit),
        }
    }
}

/// Returns the unlimited dimensions of a plan; `None` for an axis without a name.
fn unlimited(plan: &MergePlan, dimensions: &Dimensions) -> BTreeSet<Option<Vec<u8>>> {
    let mut found = BTreeSet::new();
    for column in &plan.schema.columns {
        let Dataspace::Simple { dims, max_dims } = &column.model().dataspace else { continue };
        let names = dimensions.names(&plan.schema.entries[column.entry as usize], dims.len());
        let growing = names.into_iter().zip(max_dims).filter(|(_, max)| **max == u64::MAX);
        found.extend(growing.map(|(names, _)| names.into_iter().next()));
    }
    found
}

/// Divides an output along a dimension; values that do not have the dimension are in each part.
fn at_rows(
    plan: &MergePlan,
    variable: &OutputVariable,
    whole: OutputPart,
    limit: RowLimit,
    (dimension, len): (&[u8], u64),
) -> Result<Vec<OutputPart>> {
    let dimensions = Dimensions::of(&plan.schema);
    let (mut row_bytes, mut fixed_bytes) = (0_u64, 0_u64);
    for &column in &variable.columns {
        let (entry, dims) = (plan.schema.columns[column as usize].entry, &plan.columns[column as usize].dims);
        let names = dimensions.names(&plan.schema.entries[entry as usize], dims.len());
        let len_bytes = column_len_bytes(plan, column);
        match names.iter().position(|names| names.iter().any(|name| name == dimension)) {
            // A variable with fewer rows than its dimension may have a value in each row of a part.
            Some(axis) => row_bytes = row_bytes.saturating_add(len_bytes / dims[axis].max(1)),
            None => fixed_bytes = fixed_bytes.saturating_add(len_bytes),
        }
    }
    if row_bytes == 0 || len == 0 {
        return Ok(vec![whole]);
    }
    let rows = match limit {
        RowLimit::Rows(rows) => rows,
        RowLimit::LenBytes(limit) => limit.saturating_sub(fixed_bytes) / row_bytes,
    };
    if rows == 0 {
        let needed = fixed_bytes.saturating_add(row_bytes);
        let reason = format!("needs {needed} bytes for one element, more than --size-per-file");
        return Err(MergeError::Object { object: display_path(dimension), reason });
    }
    if rows >= len {
        return Ok(vec![whole]);
    }
    // The plan may hold only some elements already.
    let first = plan.selected.as_ref().and_then(|selected| selected.of(dimension)).map_or(0, |elements| elements.start);
    let parts = (0..len).step_by(rows as usize).zip(1..).map(|(start, number)| {
        let end = (start + rows).min(len);
        let logical_len_bytes = row_bytes.saturating_mul(end - start).saturating_add(fixed_bytes);
        let range = Some(range_of(dimension, &(first + start..first + end)));
        OutputPart { number, range, logical_len_bytes, ..whole.clone() }
    });
    Ok(parts.collect())
}

/// Returns the columns whose rows are counted: of AnnData those of the data frame of observations or variables, because
/// sparse matrices have a row for each stored number; otherwise all.
fn counted_columns(plan: &MergePlan, divided: &[ColumnIndex]) -> Vec<ColumnIndex> {
    let frame = format!("/{}", plan.options.conventions.axis.of_anndata().frame());
    let is_counted = |column: &&ColumnIndex| {
        plan.convention != Some(Choice::Anndata) || parent_path(plan.schema.column_path(**column)) == frame.as_bytes()
    };
    divided.iter().filter(is_counted).copied().collect()
}

/// Divides an output between inputs, with as many inputs in each part as the limit allows.
fn between_inputs(
    plan: &MergePlan,
    variable: &OutputVariable,
    whole: OutputPart,
    limit: RowLimit,
) -> Result<Vec<OutputPart>> {
    let scanned = |column: &ColumnIndex| &plan.schema.columns[*column as usize];
    let (repeated, divided): (Vec<ColumnIndex>, Vec<ColumnIndex>) =
        variable.columns.iter().partition(|column| scanned(column).is_once);
    let fixed_bytes: u64 = repeated.iter().fold(0, |sum, &column| sum.saturating_add(column_len_bytes(plan, column)));
    let counted = counted_columns(plan, &divided);
    let rows_of = |input: usize| counted.iter().map(|column| scanned(column).facts[input].rows).max().unwrap_or(0);
    let bytes_of = |input: usize| {
        let of_column = |column: &ColumnIndex| {
            let row_len_bytes = column_len_bytes(plan, *column) / scanned(column).rows().max(1);
            row_len_bytes * scanned(column).facts[input].rows
        };
        divided.iter().map(of_column).fold(0, u64::saturating_add)
    };
    let (max, size_of): (u64, &dyn Fn(usize) -> u64) = match limit {
        RowLimit::Rows(rows) => (rows, &rows_of),
        RowLimit::LenBytes(len_bytes) => (len_bytes.saturating_sub(fixed_bytes), &bytes_of),
    };
    let (mut ranges, mut first, mut sum): (Vec<Range<usize>>, usize, u64) = (Vec::new(), 0, 0);
    for (input, planned) in plan.inputs.iter().enumerate() {
        let size = size_of(input);
        if size > max {
            let (found, option) = match limit {
                RowLimit::Rows(_) => (format!("{size} rows"), "--rows-per-file"),
                RowLimit::LenBytes(_) => (format!("{} bytes", size.saturating_add(fixed_bytes)), "--size-per-file"),
            };
            let remedy = if lengths(plan).is_empty() { "" } else { "; --dim names the dimension to divide" };
            let reason = format!(
                "has {found}, more than {option}, and is not divided: its datasets are not all concatenated along one named \
                 dimension{remedy}"
            );
            return Err(MergeError::Object { object: planned.path.display().to_string(), reason });
        }
        // Rows of different tables do not add up to those of the longest one, so a part may end early.
        if sum.saturating_add(size) > max {
            ranges.push(first..input);
            (first, sum) = (input, 0);
        }
        sum += size;
    }
    ranges.push(first..plan.inputs.len());
    if ranges.len() == 1 {
        return Ok(vec![whole]);
    }
    let parts = ranges.into_iter().zip(1..).map(|(inputs, number)| {
        let logical_len_bytes = inputs.clone().map(bytes_of).fold(fixed_bytes, u64::saturating_add);
        OutputPart { number, inputs: Some(inputs), logical_len_bytes, ..whole.clone() }
    });
    Ok(parts.collect())
}
