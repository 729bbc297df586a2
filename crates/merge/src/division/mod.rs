//! Division of one merge into several outputs: by variable, by rows, or by size.
//!
//! A division is computed from the plan of the merge and is pure data. An output is described by the objects, the range
//! of a dimension and the inputs that it holds, so that it is a merge of its own. Invariant: every dataset and every row
//! of the plan is in an output, and values that vary between outputs are in one output only.

mod along;
mod variables;

pub use along::{Along, RowLimit};
pub use variables::{OutputVariable, variables};

use crate::error::Result;
use crate::plan::MergePlan;
use crate::subset::{DimensionRange, Limits};
use std::ops::Range;

/// An output of a division.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPart {
    /// Name of the variable, if each has its own outputs.
    pub variable: Option<String>,
    /// Patterns of the datasets of the output, as for `--include`; all of them if there are none.
    pub include: Vec<String>,
    /// Number of the output among those that follow one another, from 1; 0 if it is the only one.
    pub number: u64,
    /// Range of the divided dimension that the output has, unless it has all elements. It takes the place of a range of
    /// the options.
    pub range: Option<DimensionRange>,
    /// Numbers of the inputs, if the output has some of them as a whole.
    pub inputs: Option<Range<usize>>,
    /// Uncompressed length of its datasets.
    pub logical_len_bytes: u64,
}

/// Criteria of a division.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Criteria {
    /// Whether each variable has its own outputs.
    pub by_variable: bool,
    /// Limit for each output, if there is one.
    pub limit: Option<RowLimit>,
}

/// Divides the merge that `plan` describes.
///
/// # Errors
/// [`MergeError::Object`](crate::MergeError::Object) if one row, or one input that cannot be divided, exceeds the limit,
/// and for a variable whose name is not UTF-8.
pub fn divide(plan: &MergePlan, criteria: Criteria) -> Result<Vec<OutputPart>> {
    let of_variables = match criteria.by_variable {
        true => variables(plan),
        false => vec![OutputVariable::all(plan)],
    };
    let along = criteria.limit.map(|limit| (Along::of(plan), limit));
    let mut parts = Vec::new();
    for variable in of_variables {
        let whole = OutputPart {
            variable: criteria.by_variable.then(|| variable.name.clone()),
            include: if criteria.by_variable { variable.patterns(plan)? } else { Vec::new() },
            number: 0,
            range: None,
            inputs: variable.only_input(plan).map(|input| input..input + 1),
            logical_len_bytes: variable.len_bytes(plan),
        };
        match &along {
            None => parts.push(whole),
            Some((along, limit)) => parts.extend(along.parts(plan, &variable, whole, *limit)?),
        }
    }
    Ok(parts)
}

/// Returns the range of a dimension with these elements.
fn range_of(dimension: &[u8], elements: &Range<u64>) -> DimensionRange {
    let number = |position: u64| Some(i64::try_from(position).unwrap_or(i64::MAX));
    let limits = Limits::Elements { start: number(elements.start), end: number(elements.end) };
    DimensionRange { dimension: String::from_utf8_lossy(dimension).into_owned(), limits }
}
