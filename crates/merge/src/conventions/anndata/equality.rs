//! Comparison of elements, as anndata compares them.
//!
//! Source: `equal` of `anndata._core.merge`. Invariant: values that are equal here are equal for readers with anndata; if
//! that cannot be decided, comparison fails.

use super::items::{Scalar, equal_items};
use super::tree::{CombineResult, Node};
use super::value::{ElementArray, ElementContent, InputElement, NULLABLE, SPARSE, TABLES, is_kind};
use crate::schema::attribute::{named, numbers, string};
use raddle_hdf5::logical::CanonicalElements;
use raddle_hdf5::model::{Dataset, Dataspace, TypeClass};
use raddle_hdf5::number::NumberType;
use std::collections::BTreeMap;

/// Categories of a categorical, and the category of each of its values.
#[derive(PartialEq)]
struct DecodedCategorical {
    values: Vec<Option<Vec<u8>>>,
    categories: Vec<Vec<u8>>,
}

impl InputElement<'_> {
    /// Returns whether anndata considers the element equal to that of the first input. `is_column` states whether it is
    /// a column of a data frame, whose type is compared.
    pub fn equals(&self, first: &Self, is_column: bool) -> CombineResult<bool> {
        let (kind, first_kind) = (self.node.encoding(), first.node.encoding());
        let is_either = |kinds: &[(&str, &str)]| is_kind(kinds, &kind) || is_kind(kinds, &first_kind);
        Ok(match (&self.content, &first.content) {
            (ElementContent::Scalar(left, a), ElementContent::Scalar(right, b)) => {
                scalars_equal(self.node, (left, a), (right, b))?
            }
            // numpy compares a scalar and an array by their shapes.
            (ElementContent::Scalar(..), _) | (_, ElementContent::Scalar(..)) => false,
            _ if kind != first_kind && (kind == "dict" || first_kind == "dict") => {
                return self.node.refuse(first_kind, format!("{kind}; leave it out with --exclude"));
            }
            _ if kind == "dict" => return self.node.refuse("an element", "a dict; leave it out with --exclude"),
            _ if !is_column && (is_either(&NULLABLE) || is_either(&TABLES[..1])) => return equal_items(self, first),
            _ if is_kind(&SPARSE, &first_kind) && (is_kind(&SPARSE, &kind) || kind == "array") => {
                self.is_same_matrix(first)?
            }
            (ElementContent::Array(_), _) if first_kind == "dataframe" => {
                return self.node.refuse(first_kind, format!("{kind}; leave it out with --exclude"));
            }
            _ if kind != first_kind => false,
            (ElementContent::Array(left), ElementContent::Array(right)) => left.equals(right),
            (ElementContent::Parts(left), ElementContent::Parts(right)) => match kind.as_str() {
                "categorical" => {
                    let ordered = |value: &Self| named(&value.attributes, "ordered").map(|one| one.value.clone());
                    let is_unordered =
                        |value: &Self| ordered(value).is_some_and(|one| one.iter().all(|&byte| byte == 0));
                    ordered(self) == ordered(first)
                        && (parts_equal(left, right)? || is_unordered(self) && self.has_same_categories(first))
                }
                _ if is_kind(&NULLABLE, &kind) => {
                    let pair = |name: &[u8]| self.part(name).zip(first.part(name));
                    let (Some(masks), Some(values)) = (pair(b"mask"), pair(b"values")) else { return Ok(false) };
                    masks.0.equals(masks.1) && values.0.equals_where(values.1, |at| !masks.0.is_true(at))
                }
                // pandas does not compare the name of the index, which is the last part.
                _ => match (left.split_last(), right.split_last()) {
                    (Some(((_, index), columns)), Some(((_, first_index), first_columns))) => {
                        index.equals(first_index, true)? && parts_equal(columns, first_columns)?
                    }
                    _ => false,
                },
            },
            _ => false,
        })
    }

    /// Returns whether two unordered categoricals have the same categories, in any order, and the same values.
    fn has_same_categories(&self, other: &Self) -> bool {
        let (Some(mut known), Some(mut found)) = (self.categorical(), other.categorical()) else { return false };
        known.categories.sort();
        found.categories.sort();
        let classes = [self, other].map(|value| value.part(b"categories").map(|array| &array.class));
        classes[0] == classes[1] && known == found
    }

    /// Decodes a categorical.
    fn categorical(&self) -> Option<DecodedCategorical> {
        let (codes, categories) = (self.part(b"codes")?, self.part(b"categories")?);
        let all = CanonicalElements::new(&categories.class, &categories.values);
        let all: Vec<Vec<u8>> = all.flatten().map(<[u8]>::to_vec).collect();
        let mut numbers = Vec::new();
        let is_exact = NumberType::of(&codes.class)?.decode_integers(&codes.values, &mut numbers);
        let category = |number: &i64| usize::try_from(*number).ok().and_then(|number| all.get(number).cloned());
        let values = numbers.iter().map(category).collect();
        is_exact.then_some(DecodedCategorical { values, categories: all })
    }

    /// Returns whether two matrices are equal as stored, or by their elements if both are small. numpy compares the
    /// types of an array, but scipy does not.
    fn is_same_matrix(&self, first: &Self) -> CombineResult<bool> {
        let shape = |value: &Self| match &value.content {
            ElementContent::Array(array) => Some(array.dims.iter().map(|&dim| dim as f64).collect()),
            _ => named(&value.attributes, "shape").and_then(numbers),
        };
        if shape(self) != shape(first) {
            return Ok(false);
        }
        if let ElementContent::Array(array) = &self.content
            && first.part(b"data").is_some_and(|data| data.class != array.class)
        {
            return Ok(false);
        }
        let is_same = |name: &[u8]| {
            self.part(name)
                .zip(first.part(name))
                .is_some_and(|(left, right)| left.class == right.class && left.equals(right))
        };
        let is_same_form = self.node.encoding() == first.node.encoding();
        if is_same_form && is_same(b"data") && is_same(b"indices") && is_same(b"indptr") {
            return Ok(true);
        }
        match (self.cells(), first.cells()) {
            (Some(left), Some(right)) => Ok(left.len() == right.len()
                && left
                    .iter()
                    .zip(&right)
                    .all(|((at, a), (other_at, b))| at == other_at && (a == b || a.is_nan() && b.is_nan()))),
            _ => self.node.refuse("a sparse matrix of numbers", "another type; leave it out with --exclude"),
        }
    }

    /// Returns the nonzero elements of a matrix by row and column; `None` if an element occurs twice.
    fn cells(&self) -> Option<BTreeMap<(u64, u64), f64>> {
        let floats = |array: &ElementArray<'_>| {
            let (mut scratch, mut numbers) = (Vec::new(), Vec::new());
            match NumberType::of(&array.class) {
                Some(number) => drop(number.decode_floats(&array.values, &mut scratch, &mut numbers)),
                None if array.class.len_bytes() == 1 => {
                    numbers = array.values.iter().map(|&byte| f64::from(byte)).collect();
                }
                None => return None,
            }
            Some(numbers)
        };
        let mut cells = BTreeMap::new();
        if let ElementContent::Array(array) = &self.content {
            let columns = array.dims.get(1).copied().unwrap_or(1).max(1);
            cells.extend((0..).map(|at| (at / columns, at % columns)).zip(floats(array)?));
            cells.retain(|_, number| *number != 0.0);
            return Some(cells);
        }
        let integers = |name: &[u8]| {
            let array = self.part(name)?;
            let mut integers = Vec::new();
            NumberType::of(&array.class)?.decode_integers(&array.values, &mut integers).then_some(integers)
        };
        let (indices, bounds) = (integers(b"indices")?, integers(b"indptr")?);
        let numbers = floats(self.part(b"data")?)?;
        let is_by_column = self.node.encoding() == "csc_matrix";
        for (major, pair) in (0_u64..).zip(bounds.windows(2)) {
            for at in pair[0]..pair[1] {
                let (minor, number) = (*indices.get(at as usize)? as u64, *numbers.get(at as usize)?);
                let at = if is_by_column { (minor, major) } else { (major, minor) };
                if cells.insert(at, number).is_some() {
                    return None;
                }
            }
        }
        cells.retain(|_, number| *number != 0.0);
        Some(cells)
    }
}

fn parts_equal(left: &[(&[u8], InputElement<'_>)], right: &[(&[u8], InputElement<'_>)]) -> CombineResult<bool> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for ((name, value), (other_name, other)) in left.iter().zip(right) {
        if name != other_name || !value.equals(other, true)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl ElementArray<'_> {
    /// Returns whether types, sizes and values are equal, with NaN equal to NaN.
    fn equals(&self, other: &Self) -> bool {
        self.equals_where(other, |_| true)
    }

    fn equals_where(&self, other: &Self, is_compared: impl Fn(usize) -> bool) -> bool {
        let are_strings = [self, other]
            .iter()
            .all(|array| matches!(array.class, TypeClass::VariableString { .. } | TypeClass::FixedString { .. }));
        if self.class != other.class && !are_strings || self.dims != other.dims || self.lacking != other.lacking {
            return false;
        }
        let elements = |array: &'_ Self| CanonicalElements::new(&array.class, &array.values).count();
        if elements(self) != elements(other) {
            return false;
        }
        let pairs =
            CanonicalElements::new(&self.class, &self.values).zip(CanonicalElements::new(&other.class, &other.values));
        let number = NumberType::of(&self.class).filter(|number| !number.is_integer());
        let is_same = |(left, right): (Option<&[u8]>, Option<&[u8]>)| {
            self.class == other.class && left == right
                || matches!((left.and_then(|bytes| string(&self.class, bytes)), right.and_then(|bytes| string(&other.class, bytes))),
                    (Some(left), Some(right)) if left == right)
                || number.zip(left.zip(right)).is_some_and(|(number, (left, right))| {
                    let (mut scratch, mut values) = (Vec::new(), Vec::new());
                    number.decode_floats(&[left, right].concat(), &mut scratch, &mut values);
                    values[0] == values[1] || values[0].is_nan() && values[1].is_nan()
                })
        };
        pairs.enumerate().all(|(at, pair)| !is_compared(at) || is_same(pair))
    }
}

/// Returns whether numpy considers two scalars equal: numbers of any types are compared by value.
fn scalars_equal(node: Node<'_>, (left, a): (&Dataset, &[u8]), (right, b): (&Dataset, &[u8])) -> CombineResult<bool> {
    let is_null = |dataset: &Dataset| dataset.dataspace == Dataspace::Null;
    if is_null(left) || is_null(right) {
        return Ok(is_null(left) && is_null(right));
    }
    let (classes, is_same_class) = ((&*left.datatype.class, &*right.datatype.class), left.datatype == right.datatype);
    match (string(classes.0, a), string(classes.1, b)) {
        (Some(left), Some(right)) => return Ok(left == right),
        (None, None) => {}
        _ => return Ok(false),
    }
    match (Scalar::of(classes.0, a), Scalar::of(classes.1, b)) {
        (Some(left), Some(right)) => Ok(left == right),
        // A number of a different kind equals only itself.
        _ if is_same_class && a == b => Ok(true),
        _ => node.refuse("scalars that can be compared", "numbers of other kinds; leave them out with --exclude"),
    }
}
