//! Statistics of a block of rows of a column: the limits of its values.
//!
//! Invariant: every value of the block lies within the limits, or is NaN and counted.

use crate::numbers::{Number, with_words};
use raddle_hdf5::number::NumberType;
use serde::{Deserialize, Serialize};

/// Limits of the values of a block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Limits {
    /// The block has no values.
    Empty,
    /// Integers.
    Integers {
        /// Smallest value.
        min: i128,
        /// Largest value.
        max: i128,
    },
    /// Floating-point numbers.
    Floats {
        /// Smallest value that is a number; greater than `max` if there is none.
        min: f64,
        /// Largest value that is a number.
        max: f64,
        /// Number of values that are not numbers.
        nans: u64,
    },
}

impl Limits {
    /// Determines the limits of values as stored.
    pub fn of(number: NumberType, bytes: &[u8]) -> Self {
        with_words!(number, bytes, |words| of_words(words))
    }

    /// Returns the limits of the values of two blocks of the same type.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::Integers { min, max }, Self::Integers { min: low, max: high }) => {
                Self::Integers { min: min.min(low), max: max.max(high) }
            }
            (Self::Floats { min, max, nans }, Self::Floats { min: low, max: high, nans: more }) => {
                Self::Floats { min: min.min(low), max: max.max(high), nans: nans.saturating_add(more) }
            }
            (Self::Empty, other) | (other, _) => other,
        }
    }

    /// Whether the limits can be those of values of this type.
    pub(crate) fn is_of(&self, number: NumberType) -> bool {
        match self {
            Self::Empty => true,
            Self::Integers { min, max } => number.is_integer() && min <= max,
            Self::Floats { min, max, .. } => !number.is_integer() && !min.is_nan() && !max.is_nan(),
        }
    }
}

fn of_words<N: Number>(words: impl Iterator<Item = N>) -> Limits {
    let (mut min, mut max, mut nans): (Option<N>, Option<N>, u64) = (None, None, 0);
    for word in words {
        // Only NaN is not ordered with itself.
        if word.partial_cmp(&word).is_none() {
            nans += 1;
            continue;
        }
        min = Some(min.map_or(word, |min| if word < min { word } else { min }));
        max = Some(max.map_or(word, |max| if word > max { word } else { max }));
    }
    match (min, max) {
        (Some(min), Some(max)) if N::IS_INTEGER => Limits::Integers { min: min.to_integer(), max: max.to_integer() },
        (Some(min), Some(max)) => Limits::Floats { min: min.to_float(), max: max.to_float(), nans },
        _ if nans > 0 => Limits::Floats { min: f64::INFINITY, max: f64::NEG_INFINITY, nans },
        _ => Limits::Empty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_of_the_stored_numbers() {
        let float = |is_big_endian| NumberType::Float { len_bytes: 4, is_big_endian };
        let bytes: Vec<u8> = [1.5_f32, f32::NAN, -2.0, f32::NAN].iter().flat_map(|value| value.to_be_bytes()).collect();
        assert_eq!(Limits::of(float(true), &bytes), Limits::Floats { min: -2.0, max: 1.5, nans: 2 });
        let nan = f32::NAN.to_le_bytes();
        assert!(matches!(Limits::of(float(false), &nan), Limits::Floats { nans: 1, min, max } if min > max));
        let unsigned = NumberType::Integer { len_bytes: 8, signed: false, is_big_endian: false };
        let bytes = [u64::MAX.to_le_bytes(), 3_u64.to_le_bytes()].concat();
        assert_eq!(Limits::of(unsigned, &bytes), Limits::Integers { min: 3, max: i128::from(u64::MAX) });
        assert_eq!(Limits::of(unsigned, &[]), Limits::Empty);
    }
}
