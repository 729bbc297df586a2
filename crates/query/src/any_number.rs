//! Numbers of any type, which are compared exactly.

use crate::numbers::{Number, with_words};
use raddle_hdf5::number::{NumberType, compare_exactly};
use std::cmp::Ordering;

/// A number of any type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AnyNumber {
    Integer(i128),
    Float(f64),
}

impl PartialOrd for AnyNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => Some(left.cmp(right)),
            (Self::Float(left), Self::Float(right)) => left.partial_cmp(right),
            (Self::Integer(left), Self::Float(right)) => compare_exactly(*left, *right),
            (Self::Float(left), Self::Integer(right)) => compare_exactly(*right, *left).map(Ordering::reverse),
        }
    }
}

impl PartialEq for AnyNumber {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl AnyNumber {
    /// Returns whether the value is not a number (NaN).
    pub fn is_nan(&self) -> bool {
        matches!(self, Self::Float(value) if value.is_nan())
    }

    /// Returns the nearest 64-bit float.
    pub fn to_float(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// Returns the shortest text of the number; `is_single` states whether it is a float of 32 bits.
    pub fn described(self, is_single: bool) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Float(value) if is_single => format!("{:?}", value as f32),
            Self::Float(value) => format!("{value:?}"),
        }
    }
}

/// Decodes integers.
pub(crate) fn integers(number: NumberType, bytes: &[u8]) -> Vec<i128> {
    with_words!(number, bytes, |words| words.map(Number::to_integer).collect())
}

/// Decodes numbers as the nearest 64-bit floats.
pub(crate) fn floats(number: NumberType, bytes: &[u8]) -> Vec<f64> {
    with_words!(number, bytes, |words| words.map(Number::to_float).collect())
}

/// Decodes numbers.
pub(crate) fn values(number: NumberType, bytes: &[u8]) -> Vec<AnyNumber> {
    match number.is_integer() {
        true => integers(number, bytes).into_iter().map(AnyNumber::Integer).collect(),
        false => floats(number, bytes).into_iter().map(AnyNumber::Float).collect(),
    }
}
