//! Computation of a column's values from the stored numbers: missing values become NaN, the others are scaled.
//!
//! Values are those of xarray, in its precision. A marker of missing values is compared with the stored number, so that
//! rounding never hides it. Invariant: without missing values, the computation is monotone, so limits of stored numbers
//! become limits of values.

use crate::any_number::AnyNumber;
use crate::limits::Limits;
use crate::numbers::{Number, with_words};
use raddle_hdf5::number::NumberType;

/// Computation of values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decoding {
    /// Type in the file, in which the index has limits.
    stored: NumberType,
    /// Type as which stored numbers are read: of the other signedness, if `_Unsigned` says so.
    read: NumberType,
    output: NumberType,
    /// Factor and summand.
    scale: Option<f64>,
    offset: Option<f64>,
    /// Read numbers that mark missing values.
    missing: Vec<AnyNumber>,
}

impl Decoding {
    /// Creates the computation `number * scale + offset` in floats of 32 bits (`is_single`) or 64 bits. `missing` are
    /// stored numbers.
    pub fn new(
        stored: NumberType,
        read: NumberType,
        is_single: bool,
        (scale, offset): (Option<f64>, Option<f64>),
        missing: Vec<AnyNumber>,
    ) -> Self {
        let output = NumberType::Float { len_bytes: if is_single { 4 } else { 8 }, is_big_endian: false };
        let missing = missing.into_iter().map(|number| match number {
            AnyNumber::Integer(value) if stored != read => AnyNumber::Integer(reinterpreted(stored, value)),
            number => number,
        });
        Self { stored, read, output, scale, offset, missing: missing.collect() }
    }

    /// Creates the computation that only gives integers the other signedness.
    pub fn reinterpretation(stored: NumberType, read: NumberType) -> Self {
        Self { stored, read, output: read, scale: None, offset: None, missing: Vec::new() }
    }

    /// Returns the type in the file.
    pub fn stored(&self) -> NumberType {
        self.stored
    }

    /// Returns the type of the values.
    pub fn output(&self) -> NumberType {
        self.output
    }

    /// Returns the length of the stored numbers of values with a length.
    pub fn stored_len_bytes(&self, len_bytes: usize) -> usize {
        len_bytes / self.output.len_bytes() * self.stored.len_bytes()
    }

    /// Writes the values of stored numbers to `out`, which has their length.
    pub fn decode(&self, stored: &[u8], out: &mut [u8]) {
        match self.output {
            NumberType::Integer { .. } => out.copy_from_slice(stored),
            NumberType::Float { len_bytes: 4, .. } => with_words!(self.read, stored, |words| {
                self.decode_words(words, out.as_chunks_mut().0, |value| (value as f32).to_le_bytes());
            }),
            NumberType::Float { .. } => with_words!(self.read, stored, |words| {
                self.decode_words(words, out.as_chunks_mut().0, f64::to_le_bytes);
            }),
        }
    }

    fn decode_words<N: Number, const LEN: usize>(
        &self,
        words: impl Iterator<Item = N>,
        out: &mut [[u8; LEN]],
        encode: impl Fn(f64) -> [u8; LEN],
    ) {
        let missing: Vec<N> = self.missing.iter().filter_map(|number| exactly(*number)).collect();
        for (place, word) in out.iter_mut().zip(words) {
            let value = if missing.contains(&word) { f64::NAN } else { self.value(word) };
            *place = encode(value);
        }
    }

    /// Returns the value of a number that does not mark a missing value.
    fn value<N: Number>(&self, number: N) -> f64 {
        match N::IS_INTEGER && size_of::<N>() == 8 {
            true => self.value_of(AnyNumber::Integer(number.to_integer())),
            false => self.scaled(number.to_float()),
        }
    }

    fn value_of(&self, number: AnyNumber) -> f64 {
        match number {
            // Rounded once.
            AnyNumber::Integer(value) if self.is_single() => self.scaled(f64::from(value as f32)),
            number => self.scaled(number.to_float()),
        }
    }

    fn scaled(&self, number: f64) -> f64 {
        // Rounded to 32 bits after each step, a result is that of 32-bit arithmetic: 53 bits are more than twice 24.
        let round = |value: f64| if self.is_single() { f64::from(value as f32) } else { value };
        let mut value = round(number);
        if let Some(scale) = self.scale {
            value = round(value * scale);
        }
        if let Some(offset) = self.offset {
            value = round(value + offset);
        }
        value
    }

    fn is_single(&self) -> bool {
        self.output.len_bytes() == 4
    }

    /// Returns limits of the values of numbers that lie within `stored`; `None` if they are not known.
    pub fn limits(&self, stored: Limits) -> Option<Limits> {
        match stored {
            Limits::Empty => Some(Limits::Empty),
            Limits::Integers { min, max } => {
                let (min, max) = self.read_limits(min, max)?;
                match self.output.is_integer() {
                    true => Some(Limits::Integers { min, max }),
                    false => self.between(AnyNumber::Integer(min), AnyNumber::Integer(max), 0),
                }
            }
            Limits::Floats { min, max, nans } if min <= max => {
                self.between(AnyNumber::Float(min), AnyNumber::Float(max), nans)
            }
            floats @ Limits::Floats { .. } => Some(floats),
            Limits::Strings { .. } => None,
        }
    }

    /// Returns limits of read numbers; `None` if numbers between the limits are read in another order.
    fn read_limits(&self, min: i128, max: i128) -> Option<(i128, i128)> {
        if self.stored == self.read {
            return Some((min, max));
        }
        let ends = (reinterpreted(self.stored, min), reinterpreted(self.stored, max));
        (ends.0 <= ends.1 && ends.1 - ends.0 == max - min).then_some(ends)
    }

    /// Returns whether limits of stored numbers may be limits of values.
    pub fn is_monotone(&self) -> bool {
        // Infinity times 0 is NaN.
        self.scale.is_none_or(|scale| scale.is_finite() && scale != 0.0) && self.offset.is_none_or(f64::is_finite)
    }

    fn between(&self, min: AnyNumber, max: AnyNumber, nans: u64) -> Option<Limits> {
        let (one, other) = (self.value_of(min), self.value_of(max));
        if !self.is_monotone() || one.is_nan() || other.is_nan() {
            return None;
        }
        // Any of the numbers may mark a missing value.
        let nans = nans + u64::from(!self.missing.is_empty());
        Some(Limits::Floats { min: one.min(other), max: one.max(other), nans })
    }
}

/// Returns the number that has the bits of an integer of type `stored` in the type of the other signedness.
fn reinterpreted(stored: NumberType, value: i128) -> i128 {
    let NumberType::Integer { len_bytes, signed, .. } = stored else { return value };
    let count = 1_i128 << (8 * len_bytes);
    match signed {
        true if value < 0 => value + count,
        false if value >= count / 2 => value - count,
        _ => value,
    }
}

/// Returns the number of type `N` that equals `number`; `None` if there is none.
fn exactly<N: Number>(number: AnyNumber) -> Option<N> {
    let found = match number {
        AnyNumber::Integer(value) => N::clamped(value),
        AnyNumber::Float(value) if N::IS_INTEGER => N::clamped(value as i128),
        AnyNumber::Float(value) => N::rounded(value),
    };
    let back = match N::IS_INTEGER {
        true => AnyNumber::Integer(found.to_integer()),
        false => AnyNumber::Float(found.to_float()),
    };
    (back == number).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{BlockStatistics, OrderedType};
    use proptest::prelude::*;

    const INT16: NumberType = NumberType::Integer { len_bytes: 2, signed: true, is_big_endian: true };

    fn decoded(decoding: &Decoding, stored: &[u8]) -> Vec<f64> {
        let mut out = vec![0; stored.len() / decoding.stored.len_bytes() * decoding.output.len_bytes()];
        decoding.decode(stored, &mut out);
        crate::any_number::floats(decoding.output, &out)
    }

    #[test]
    fn missing_values_are_nan_and_others_are_scaled_in_the_precision_of_the_output() {
        let stored: Vec<u8> = [-9999_i16, 0, 3].iter().flat_map(|value| value.to_be_bytes()).collect();
        let missing = vec![AnyNumber::Float(-9999.0), AnyNumber::Float(0.5), AnyNumber::Integer(70_000)];
        let decoding = Decoding::new(INT16, INT16, true, (Some(f64::from(0.1_f32)), Some(0.25)), missing);
        let found = decoded(&decoding, &stored);
        assert!(found[0].is_nan());
        assert_eq!(found[1..], [0.25, f64::from(3.0_f32 * 0.1 + 0.25)]);
    }

    #[test]
    fn markers_of_the_other_signedness_are_those_of_the_stored_bits() {
        let [int8, uint8] =
            [true, false].map(|signed| NumberType::Integer { len_bytes: 1, signed, is_big_endian: false });
        let decoding = Decoding::new(int8, uint8, true, (None, None), vec![AnyNumber::Integer(-1)]);
        let found = decoded(&decoding, &[255, 254, 1]);
        assert!(found[0].is_nan());
        assert_eq!(found[1..], [254.0, 1.0]);
        assert_eq!(decoding.limits(Limits::Integers { min: -2, max: 1 }), None);
        assert_eq!(
            decoding.limits(Limits::Integers { min: -3, max: -2 }),
            Some(Limits::Floats { min: 253.0, max: 254.0, nans: 1 })
        );
    }

    proptest! {
        #[test]
        fn values_lie_within_the_limits(
            words in prop::collection::vec(any::<u64>(), 1..20),
            at in 0_usize..6,
            is_single: bool,
            scale in prop::option::of(prop_oneof![-3.0..3.0, prop::sample::select(vec![0.0, 1e300, -1e-320, f64::NAN, f64::INFINITY])]),
            offset in prop::option::of(prop_oneof![-300.0..300.0, prop::sample::select(vec![1e308, f64::NEG_INFINITY])]),
            marker in 0_usize..4,
        ) {
            let integer = |len_bytes, signed| NumberType::Integer { len_bytes, signed, is_big_endian: false };
            let float = |len_bytes| NumberType::Float { len_bytes, is_big_endian: false };
            let stored = [integer(1, true), integer(2, false), integer(4, true), integer(8, false), float(4), float(8)][at];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let bytes = &bytes[..bytes.len() / 8 * stored.len_bytes()];
            let missing: Vec<AnyNumber> = crate::any_number::values(stored, bytes).into_iter().take(marker).filter(|one| !one.is_nan()).collect();
            for read in [stored, stored.with_other_signedness()] {
                let decoding = Decoding::new(stored, read, is_single, (scale, offset), missing.clone());
                let limits = BlockStatistics::of(OrderedType::Number(stored), bytes).limits;
                let found = decoded(&decoding, bytes);
                if let Some(Limits::Floats { min, max, nans }) = decoding.limits(limits) {
                    for value in found {
                        prop_assert!(min <= value && value <= max || value.is_nan() && nans > 0, "{value} {min} {max} {nans}");
                    }
                }
            }
        }
    }
}
