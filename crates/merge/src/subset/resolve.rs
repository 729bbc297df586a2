//! Determines the elements that ranges of dimensions select, from the dimensions of a plan and the values of coordinates.

use super::selected::SelectedElements;
use super::{DimensionLimits, DimensionRange};
use super::{longitude, of_values};
use crate::error::{MergeError, Result};
use crate::plan::{Dimensions, MergePlan, offered_dimensions};
use crate::rules::packed::STORED_OTHERWISE;
use crate::schema::attribute::named;
use crate::schema::{ColumnIndex, Role, SchemaEntry, display_path, is_named, last_name};
use crate::write::values::{ColumnReader, open_pool};
use raddle_hdf5::number::NumberType;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// Determines the elements that the ranges in the options of `plan` select; `plan` has all elements. Reads coordinates
/// that are selected by their values.
///
/// # Errors
/// [`MergeError::Object`] for a dimension that no dataset has, for a range without elements, and for different ranges of
/// one axis.
pub(crate) fn resolve(plan: &MergePlan) -> Result<SelectedElements> {
    let lengths = lengths(plan);
    let mut selected = SelectedElements::default();
    for range in &plan.options.subset {
        let matching = || lengths.iter().filter(|(path, _)| is_named(path, &range.dimension));
        if matching().next().is_none() {
            let offered = offered_dimensions(lengths.keys(), "only these can be selected");
            let reason = format!("has no dimension {:?} (--select {range}): {offered}", range.dimension);
            return Err(MergeError::Object { object: "/".to_owned(), reason });
        }
        for (path, &len) in matching() {
            let refuse = |reason: String| MergeError::Object {
                object: display_path(path),
                reason: format!("{reason} (--select {range})"),
            };
            let elements = match &range.limits {
                DimensionLimits::Elements { start, end } => of_elements(len, *start, *end).map_err(refuse)?,
                DimensionLimits::Values { from, to } => {
                    of_coordinate(plan, path, (from.as_deref(), to.as_deref()), range)?
                }
            };
            if selected.0.insert(path.clone(), elements).is_some() {
                return Err(refuse("is selected twice".to_owned()));
            }
        }
    }
    include_other_scales(plan, &mut selected)?;
    Ok(selected)
}

/// Selects the same elements of all dimension scales of an axis.
fn include_other_scales(plan: &MergePlan, selected: &mut SelectedElements) -> Result<()> {
    let dimensions = Dimensions::of(&plan.schema);
    let is_column = |entry: &&SchemaEntry| matches!(entry.role, Role::Column(_));
    let columns: Vec<&SchemaEntry> = plan.schema.entries.iter().filter(is_column).collect();
    let datasets: HashSet<&[u8]> = columns.iter().map(|entry| entry.path.as_slice()).collect();
    loop {
        let mut added = BTreeMap::new();
        for entry in &columns {
            for names in dimensions.names(entry, plan.schema.rank(entry)) {
                let Some((by, elements)) = names.iter().find_map(|name| Some((name, selected.of(name)?))) else {
                    continue;
                };
                for name in names.iter().filter(|name| datasets.contains(name.as_slice())) {
                    match selected.of(name) {
                        None => _ = added.insert(name.clone(), elements.clone()),
                        Some(others) if others != elements => {
                            let [by, name] = [by, name].map(|name| display_path(name));
                            let reason = format!(
                                "has {by} and {name} on one axis, and --select takes different elements of them"
                            );
                            return Err(MergeError::Object { object: display_path(&entry.path), reason });
                        }
                        Some(_) => {}
                    }
                }
            }
        }
        if added.is_empty() {
            return Ok(());
        }
        selected.0.extend(added);
    }
}

/// Returns the length of each dimension.
pub(crate) fn lengths(plan: &MergePlan) -> BTreeMap<Vec<u8>, u64> {
    let dimensions = Dimensions::of(&plan.schema);
    let mut lengths: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for entry in &plan.schema.entries {
        let Role::Column(column) = entry.role else { continue };
        let dims = &plan.columns[column as usize].dims;
        for (names, &dim) in dimensions.names(entry, dims.len()).into_iter().zip(dims) {
            // A variable may have fewer records than its unlimited dimension.
            names.into_iter().for_each(|name| {
                let longest = lengths.entry(name).or_default();
                *longest = (*longest).max(dim);
            });
        }
    }
    lengths
}

/// Returns the elements from `start` to `end` of a dimension of `len` elements; negative numbers count from the end.
fn of_elements(len: u64, start: Option<i64>, end: Option<i64>) -> Result<Range<u64>, String> {
    let position = |number: i64| {
        let position = if number < 0 { i128::from(len) + i128::from(number) } else { i128::from(number) };
        u64::try_from(position).ok().filter(|&position| position <= len)
    };
    let outside = || format!("has {len} element(s), which the range exceeds; leave out a limit to reach the end");
    let start = start.map_or(Some(0), position).ok_or_else(outside)?;
    let end = end.map_or(Some(len), position).ok_or_else(outside)?;
    if start >= end {
        return Err(format!("has {len} element(s), and the range holds none of them"));
    }
    Ok(start..end)
}

/// Returns the elements of a dimension whose coordinate has values within limits.
fn of_coordinate(
    plan: &MergePlan,
    path: &[u8],
    limits: (Option<&str>, Option<&str>),
    range: &DimensionRange,
) -> Result<Range<u64>> {
    let refuse = |reason: String| MergeError::Object {
        object: display_path(path),
        reason: format!("{reason} (--select {range})"),
    };
    let no_coordinate =
        || refuse("has no coordinate of numbers; select by numbers of elements, such as 0:100".to_owned());
    let columns = 0..plan.schema.columns.len() as ColumnIndex;
    let column =
        columns.into_iter().find(|&column| plan.schema.column_path(column) == path).ok_or_else(no_coordinate)?;
    let scanned = &plan.schema.columns[column as usize];
    let entry = &plan.schema.entries[scanned.entry as usize];
    let is_without_values = crate::conventions::cf::names_no_variable(&entry.attributes);
    let number = NumberType::of(&scanned.model().datatype.class).filter(|_| !is_without_values);
    let (Some(number), 1) = (number, plan.columns[column as usize].dims.len()) else { return Err(no_coordinate()) };
    if let Some(name) = STORED_OTHERWISE.iter().find(|name| named(&entry.attributes, name).is_some()) {
        return Err(refuse(format!("is packed ({name}); select by numbers of elements")));
    }
    let pool = open_pool(plan);
    let values = ColumnReader::new(plan, &pool).whole_column(column)?;
    let name = String::from_utf8_lossy(last_name(path));
    longitude::check(&name, &values, &entry.attributes, number, limits).map_err(refuse)?;
    of_values::elements(&values, &entry.attributes, number, limits).map_err(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_counted_from_both_ends() {
        assert_eq!(of_elements(10, Some(2), Some(5)), Ok(2..5));
        assert_eq!(of_elements(10, Some(-3), None), Ok(7..10));
        assert_eq!(of_elements(10, None, Some(-3)), Ok(0..7));
        assert_eq!(of_elements(10, None, None), Ok(0..10));
        assert_eq!(of_elements(10, Some(9), Some(10)), Ok(9..10));
    }

    #[test]
    fn ranges_beyond_the_dimension_are_refused() {
        for (start, end) in [(Some(0), Some(11)), (Some(11), None), (Some(-11), None), (Some(i64::MIN), Some(i64::MAX))]
        {
            assert!(of_elements(10, start, end).unwrap_err().contains("exceeds"));
        }
        for (start, end) in [(Some(5), Some(5)), (Some(5), Some(4)), (Some(10), None), (Some(-1), Some(3))] {
            assert!(of_elements(10, start, end).unwrap_err().contains("none of them"));
        }
        assert!(of_elements(0, None, None).is_err());
    }
}
