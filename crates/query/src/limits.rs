//! Limits of the values of a block, and the types of values that have limits.
//!
//! Invariant: limits of strings are those of their first bytes. Limits of two blocks together follow from those of
//! each.

use crate::strings::{StringForm, unpadded};
use raddle_hdf5::number::NumberType;
use serde::{Deserialize, Serialize};

/// Type of values that have limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderedType {
    /// Numbers.
    Number(NumberType),
    /// Strings.
    String(StringForm),
}

/// First bytes of a string, as a number of the same order: of two strings, the smaller one has no greater prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StringPrefix(u128);

impl StringPrefix {
    /// Number of bytes. Strings of this length and shorter ones differ if their prefixes do not.
    pub const LEN_BYTES: usize = 16;

    /// Returns the prefix of a string, whose padding does not matter.
    pub fn of(text: &[u8]) -> Self {
        let mut first = [0; Self::LEN_BYTES];
        let len = text.len().min(Self::LEN_BYTES);
        first[..len].copy_from_slice(&text[..len]);
        Self(u128::from_be_bytes(first))
    }

    /// Returns whether a string that is stored in this form and has the prefix of `value` is equal to it; otherwise
    /// they may differ.
    pub(crate) fn is_whole(value: &[u8], form: StringForm) -> bool {
        match form {
            StringForm::Padded { len_bytes } => {
                value.len().max(len_bytes) <= Self::LEN_BYTES && unpadded(value).len() == value.len()
            }
            // A string without zeros that has the prefix of a shorter one, also without zeros, is equal to it.
            StringForm::Canonical => value.len() < Self::LEN_BYTES && !value.contains(&0),
        }
    }
}

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
    /// Strings.
    Strings {
        /// Smallest prefix.
        min: StringPrefix,
        /// Largest prefix.
        max: StringPrefix,
    },
}

impl Limits {
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
            (Self::Strings { min, max }, Self::Strings { min: low, max: high }) => {
                Self::Strings { min: min.min(low), max: max.max(high) }
            }
            (Self::Empty, other) | (other, _) => other,
        }
    }

    /// Returns whether the limits can be those of values of this type.
    pub(crate) fn is_of(&self, values: OrderedType) -> bool {
        match (self, values) {
            (Self::Empty, _) => true,
            (Self::Integers { min, max }, OrderedType::Number(number)) => number.is_integer() && min <= max,
            (Self::Floats { min, max, .. }, OrderedType::Number(number)) => {
                !number.is_integer() && !min.is_nan() && !max.is_nan()
            }
            (Self::Strings { min, max }, OrderedType::String(_)) => min <= max,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_have_the_order_of_their_strings() {
        let [far, near] = [b"far".as_slice(), b"near"].map(StringPrefix::of);
        assert_eq!(far, StringPrefix::of(b"far\0"));
        assert!(StringPrefix::of(b"fas") > far && StringPrefix::of(b"") < far && StringPrefix::of(b"\xff") > near);
        assert_eq!(StringPrefix::of(b"0123456789abcdefgh"), StringPrefix::of(b"0123456789abcdef"));
    }
}
