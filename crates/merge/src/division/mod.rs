//! Division of one merge into several outputs: by variable, by rows, or by size.
//!
//! A division is computed from the plan of the merge and is pure data. An output is described by the objects, the range
//! of a dimension and the inputs that it holds, so each output is itself a merge. Invariant: every dataset and every
//! row of the plan is in an output, and values that vary between outputs are in one output only.

mod along;
mod variables;

pub use along::RowLimit;

use crate::conventions::belongs_together;
use crate::error::{MergeError, Result};
use crate::inputs::selection::Selection;
use crate::options::MergeOptions;
use crate::plan::{Dimensions, MergePlan};
use crate::schema::ColumnIndex;
use crate::schema::{display_path, is_named};
use crate::subset::{DimensionLimits, DimensionRange};
use along::DivisionPoints;
use std::ops::Range;
use std::path::PathBuf;
use variables::{OutputVariable, variables};

/// An output of a division.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPart {
    /// Name of the variable, if each has its own outputs.
    pub variable: Option<String>,
    /// Paths of the datasets of the output; `None` for all.
    datasets: Option<Vec<Vec<u8>>>,
    /// Dimensions of these datasets.
    dimensions: Vec<Vec<u8>>,
    /// Number of the output among those that follow one another, from 1; 0 if it is the only one.
    pub number: u64,
    /// Range of the divided dimension that the output has, unless it has all elements. It takes the place of a range of
    /// the options.
    pub range: Option<DimensionRange>,
    /// Whether all inputs have the same values, in which case one is enough.
    is_once: bool,
    /// Numbers of the inputs, if the output needs only some of them.
    pub inputs: Option<Range<usize>>,
    /// Uncompressed length of its datasets.
    pub logical_len_bytes: u64,
}

impl OutputPart {
    /// Returns the options of the merge that writes this output: the options of the whole merge that concern its
    /// datasets.
    ///
    /// # Errors
    /// [`MergeError::Object`] for a dataset whose path is not UTF-8, because patterns cannot select it.
    pub fn options(&self, whole: &MergeOptions, output: PathBuf) -> Result<MergeOptions> {
        // The whole merge was planned with a check of the layouts.
        let mut options = MergeOptions { output, refuses_unused_layouts: false, ..whole.clone() };
        let has = |name: &str| self.dimensions.iter().any(|path| is_named(path, name));
        options.subset.retain(|range| has(&range.dimension));
        if let Some(range) = &self.range {
            options.subset.retain(|requested| !requested.is_of(&range.dimension));
            options.subset.push(range.clone());
        }
        let Some(datasets) = &self.datasets else { return Ok(options) };
        let pattern = |path: &Vec<u8>| {
            std::str::from_utf8(path).map(globset::escape).map_err(|_| MergeError::Object {
                object: display_path(path),
                reason:
                    "has a name that is not UTF-8, which a file of its own cannot have; leave it out with --exclude"
                        .to_owned(),
            })
        };
        let include = datasets.iter().map(pattern).collect::<Result<Vec<_>>>()?;
        let [_, exclude, keep] = whole.selection.patterns();
        options.selection = Selection::new(&include, exclude, keep)?;
        let conventions = &mut options.conventions;
        conventions.rules.retain(|rule| datasets.iter().any(|path| rule.matches(path)));
        let dims: Vec<&str> = conventions.dims(has).into_iter().filter(|name| has(name)).collect();
        if !dims.is_empty() {
            // The other dimensions may not exist in this output.
            conventions.dim = Some(dims.join(","));
        }
        if self.is_once {
            // Nothing is concatenated. The dimension also holds for a comparison with all inputs.
            (conventions.new_dim, conventions.tiles) = (None, None);
        }
        Ok(options)
    }
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
/// [`MergeError::Object`] if one row, or one input that cannot be divided, exceeds the limit, or if the datasets of the
/// inputs belong together.
pub fn divide(plan: &MergePlan, criteria: Criteria) -> Result<Vec<OutputPart>> {
    if let Some(choice) = plan.convention.filter(|choice| criteria.by_variable && belongs_together(*choice)) {
        let reason = format!(
            "belongs to a file of {}, whose readers need all of its datasets; --convention none divides them as they are",
            choice.title()
        );
        return Err(MergeError::Object { object: "/".to_owned(), reason });
    }
    let of_variables = match criteria.by_variable {
        true => variables(plan),
        false => vec![OutputVariable::all(plan)],
    };
    let along = criteria.limit.map(|limit| (DivisionPoints::of(plan), limit));
    let dimensions = Dimensions::of(&plan.schema);
    let mut parts = Vec::new();
    for variable in of_variables {
        let only_input = variable.only_input(plan);
        let whole = OutputPart {
            variable: criteria.by_variable.then(|| variable.name.clone()),
            datasets: criteria.by_variable.then(|| variable.paths(plan)),
            dimensions: variable.dimensions(plan, &dimensions),
            number: 0,
            range: None,
            is_once: only_input.is_some(),
            inputs: only_input.map(|input| input..input + 1),
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
    let limits = DimensionLimits::Elements { start: number(elements.start), end: number(elements.end) };
    DimensionRange { dimension: String::from_utf8_lossy(dimension).into_owned(), limits }
}

/// Returns the uncompressed length of a column in the output.
fn column_len_bytes(plan: &MergePlan, column: ColumnIndex) -> u64 {
    let element_len_bytes = plan.schema.columns[column as usize].model().datatype.class.len_bytes();
    plan.columns[column as usize].logical_len_bytes(element_len_bytes)
}
