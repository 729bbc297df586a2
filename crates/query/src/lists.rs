//! Sorted lists of floats or strings, one of which a value must equal.
//!
//! Invariant: the values of a list are in ascending order, and none of them is NaN.

use crate::limits::{Limits, StringPrefix};
use crate::matches::Matches;
use crate::numbers::{Number, with_words};
use crate::strings::StringForm;
use raddle_hdf5::number::NumberType;

/// Floats in the precision of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FloatList {
    number: NumberType,
    values: Vec<f64>,
}

impl FloatList {
    /// Creates the list. NaN is left out, because no value equals it.
    pub fn new(number: NumberType, mut values: Vec<f64>) -> Self {
        values.retain(|value| !value.is_nan());
        // Zeros of both signs are equal, and may stand next to each other in any order.
        values.sort_unstable_by(f64::total_cmp);
        Self { number, values }
    }

    /// Judges the values of a block.
    pub fn judge(&self, limits: Limits) -> Matches {
        let Limits::Floats { min, max, nans } = limits else { return Matches::Some };
        let from = self.values.partition_point(|value| *value < min);
        let is_between = self.values.get(from).is_some_and(|value| *value <= max);
        Matches::of(is_between && min == max && nans == 0, !is_between)
    }

    /// Returns whether each value is in the list.
    pub fn contain(&self, bytes: &[u8]) -> Vec<bool> {
        with_words!(self.number, bytes, |words| are_among(words, &self.values))
    }
}

/// Strings, compared byte by byte.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StringList {
    form: StringForm,
    values: Vec<Vec<u8>>,
}

impl StringList {
    /// Creates the list.
    pub fn new(form: StringForm, mut values: Vec<Vec<u8>>) -> Self {
        values.sort_unstable();
        Self { form, values }
    }

    /// Judges the strings of a block.
    pub fn judge(&self, limits: Limits) -> Matches {
        let Limits::Strings { min, max } = limits else { return Matches::Some };
        let from = self.values.partition_point(|value| StringPrefix::of(value) < min);
        let between = || self.values[from..].iter().take_while(|value| StringPrefix::of(value) <= max);
        let is_every = min == max && between().any(|value| StringPrefix::is_whole(value, self.form));
        Matches::of(is_every, between().next().is_none())
    }

    /// Returns whether each string is in the list.
    pub fn contain(&self, bytes: &[u8]) -> Vec<bool> {
        let mut are_in = Vec::new();
        self.form.for_each(bytes, |text| {
            are_in.push(self.values.binary_search_by(|value| value.as_slice().cmp(text)).is_ok());
        });
        are_in
    }
}

fn are_among<N: Number>(words: impl Iterator<Item = N>, values: &[f64]) -> Vec<bool> {
    let values: Vec<N> = values.iter().map(|value| N::rounded(*value)).collect();
    let is_in = |word: N| values.get(values.partition_point(|value| *value < word)).is_some_and(|value| *value == word);
    words.map(is_in).collect()
}
