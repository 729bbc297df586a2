//! Statistics of a block of rows of a column: the limits of its values.
//!
//! Invariant: every value of the block lies within the limits, or is NaN and counted.

use crate::numbers::{Number, with_words};
use raddle_hdf5::number::NumberType;
use serde::{Deserialize, Serialize};

/// Number of values whose limits are determined at once: they stay in the first cache.
const BUFFER_WORDS: usize = 1024;
/// Number of values that are compared at once.
const LANES: usize = 16;

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
        let parts = bytes.chunks(BUFFER_WORDS * number.len_bytes());
        parts.map(|part| with_words!(number, part, |words| of_words(words))).reduce(Self::union).unwrap_or(Self::Empty)
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

/// Determines the limits of at most [`BUFFER_WORDS`] numbers.
fn of_words<N: Number>(words: impl Iterator<Item = N>) -> Limits {
    let mut buffer = [N::LOWEST; BUFFER_WORDS];
    let mut count = 0;
    for (place, word) in buffer.iter_mut().zip(words) {
        *place = word;
        count += 1;
    }
    // Independent lanes, so that the compiler can use vector instructions.
    let (mut low, mut high, mut nans) = ([N::HIGHEST; LANES], [N::LOWEST; LANES], [0_u32; LANES]);
    let mut take = |lane: usize, word: N| {
        // False for NaN, which therefore changes neither limit.
        low[lane] = if word < low[lane] { word } else { low[lane] };
        high[lane] = if word > high[lane] { word } else { high[lane] };
        nans[lane] += u32::from(word.is_nan());
    };
    let (whole, rest) = buffer[..count].as_chunks::<LANES>();
    for words in whole {
        words.iter().enumerate().for_each(|(lane, word)| take(lane, *word));
    }
    rest.iter().enumerate().for_each(|(lane, word)| take(lane, *word));
    let nans = nans.iter().map(|nans| u64::from(*nans)).sum();
    let least = low.into_iter().reduce(|one, other| if other < one { other } else { one });
    let greatest = high.into_iter().reduce(|one, other| if other > one { other } else { one });
    match (least, greatest) {
        _ if count == 0 => Limits::Empty,
        (Some(min), Some(max)) if N::IS_INTEGER => Limits::Integers { min: min.to_integer(), max: max.to_integer() },
        (Some(min), Some(max)) if nans < count as u64 => {
            Limits::Floats { min: min.to_float(), max: max.to_float(), nans }
        }
        _ => Limits::Floats { min: f64::INFINITY, max: f64::NEG_INFINITY, nans },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(any: u64) -> f64 {
        let extremes = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::MAX];
        extremes.get((any % 40) as usize).copied().unwrap_or(any as i64 as f64)
    }

    proptest! {
        #[test]
        fn any_number_of_values(words in prop::collection::vec(any::<u64>(), 0..3000)) {
            let floats: Vec<f64> = words.iter().map(|&word| drawn(word)).collect();
            let bytes: Vec<u8> = floats.iter().flat_map(|value| value.to_le_bytes()).collect();
            let found = Limits::of(NumberType::Float { len_bytes: 8, is_big_endian: false }, &bytes);
            let numbers: Vec<f64> = floats.iter().copied().filter(|value| !value.is_nan()).collect();
            let (min, max) = (numbers.iter().copied().reduce(f64::min), numbers.iter().copied().reduce(f64::max));
            let nans = (floats.len() - numbers.len()) as u64;
            let expected = match (min, max) {
                (Some(min), Some(max)) => Limits::Floats { min, max, nans },
                _ if nans > 0 => Limits::Floats { min: f64::INFINITY, max: f64::NEG_INFINITY, nans },
                _ => Limits::Empty,
            };
            prop_assert_eq!(found, expected);

            let bytes: Vec<u8> = words.iter().flat_map(|value| value.to_be_bytes()).collect();
            let found = Limits::of(NumberType::Integer { len_bytes: 8, signed: true, is_big_endian: true }, &bytes);
            let integers = words.iter().map(|&word| i128::from(word as i64));
            let limits = integers.clone().min().zip(integers.max());
            prop_assert_eq!(found, limits.map_or(Limits::Empty, |(min, max)| Limits::Integers { min, max }));
        }
    }

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
