//! Numbers as stored in datasets, decoded to 64 bits and encoded again in blocks that stay in the first-level cache.
//!
//! This serves conversions of values; values that are only moved are never decoded. Invariant: a number that does not
//! fit the target type is an error and never wrapped or rounded, except that floats are rounded to the target's
//! precision according to IEEE 754 if the caller requested floats.

use crate::model::{BitRange, ByteOrder, TypeClass};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Number type that uses all its bits: the integers of C and IEEE 754 floats of 32 and 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NumberType {
    /// Integer.
    Integer {
        /// Length: 1, 2, 4 or 8 bytes.
        len_bytes: u8,
        /// Whether the integer is signed, in two's complement.
        signed: bool,
        /// Whether the most significant byte comes first.
        is_big_endian: bool,
    },
    /// Floating-point number.
    Float {
        /// Length: 4 or 8 bytes.
        len_bytes: u8,
        /// Whether the most significant byte comes first.
        is_big_endian: bool,
    },
}

impl NumberType {
    /// Returns the number type of `class`; `None` if it is not a number, or a number that does not use all its bits.
    pub fn of(class: &TypeClass) -> Option<Self> {
        if !class.is_machine_number() {
            return None;
        }
        match class {
            TypeClass::Integer { len_bytes, order, signed, .. } => Some(Self::Integer {
                len_bytes: *len_bytes as u8,
                signed: *signed,
                is_big_endian: *order == ByteOrder::Big,
            }),
            TypeClass::Float { len_bytes: len_bytes @ (4 | 8), order, .. } => {
                Some(Self::Float { len_bytes: *len_bytes as u8, is_big_endian: *order == ByteOrder::Big })
            }
            _ => None,
        }
    }

    /// Returns the HDF5 type.
    pub fn class(self) -> TypeClass {
        let order = |is_big_endian| if is_big_endian { ByteOrder::Big } else { ByteOrder::Little };
        match self {
            Self::Integer { len_bytes, signed, is_big_endian } => TypeClass::Integer {
                len_bytes: u32::from(len_bytes),
                order: order(is_big_endian),
                signed,
                bits: BitRange { offset: 0, count: u32::from(len_bytes) * 8 },
                padding: (0, 0),
            },
            Self::Float { len_bytes, is_big_endian } => {
                let (sign_bit, exponent, mantissa, exponent_bias) = match len_bytes {
                    4 => (31, BitRange { offset: 23, count: 8 }, BitRange { offset: 0, count: 23 }, 127),
                    _ => (63, BitRange { offset: 52, count: 11 }, BitRange { offset: 0, count: 52 }, 1023),
                };
                TypeClass::Float {
                    len_bytes: u32::from(len_bytes),
                    order: order(is_big_endian),
                    bits: BitRange { offset: 0, count: u32::from(len_bytes) * 8 },
                    padding: (0, 0, 0),
                    normalization: 2,
                    sign_bit,
                    exponent,
                    mantissa,
                    exponent_bias,
                }
            }
        }
    }

    /// Returns the type of little-endian signed integers of 64 bits.
    pub const fn int64() -> Self {
        Self::Integer { len_bytes: 8, signed: true, is_big_endian: false }
    }

    /// Returns the length of an element.
    pub fn len_bytes(self) -> usize {
        match self {
            Self::Integer { len_bytes, .. } | Self::Float { len_bytes, .. } => usize::from(len_bytes),
        }
    }

    /// Returns whether the type is an integer type.
    pub fn is_integer(self) -> bool {
        matches!(self, Self::Integer { .. })
    }

    /// Returns the integer type of this length with the other signedness; floats stay.
    #[must_use]
    pub fn with_other_signedness(self) -> Self {
        match self {
            Self::Integer { len_bytes, signed, is_big_endian } => {
                Self::Integer { len_bytes, signed: !signed, is_big_endian }
            }
            float @ Self::Float { .. } => float,
        }
    }

    /// Returns the largest integer that the type holds; 0 for floats.
    pub fn largest(self) -> u64 {
        match self {
            Self::Integer { len_bytes, signed, .. } => {
                let bits = u32::from(len_bytes) * 8 - u32::from(signed);
                u64::MAX >> (64 - bits)
            }
            Self::Float { .. } => 0,
        }
    }

    /// Returns the smallest type of the same kind, no smaller than this one, that holds `largest`; `None` if there is
    /// none.
    pub fn widened_to(self, largest: u64) -> Option<Self> {
        let Self::Integer { len_bytes, signed, is_big_endian } = self else { return None };
        [1, 2, 4, 8]
            .into_iter()
            .filter(|&len| len >= len_bytes)
            .map(|len_bytes| Self::Integer { len_bytes, signed, is_big_endian })
            .find(|wider| wider.largest() >= largest)
    }

    /// Decodes integers; returns `false` if one exceeds 63 bits.
    pub fn decode_integers(self, bytes: &[u8], out: &mut Vec<i64>) -> bool {
        let Self::Integer { len_bytes, signed, is_big_endian } = self else { return false };
        out.clear();
        macro_rules! decode {
            ($number:ty, $len:literal) => {{
                let (words, _) = bytes.as_chunks::<$len>();
                match is_big_endian {
                    false => out.extend(words.iter().map(|word| <$number>::from_le_bytes(*word) as i64)),
                    true => out.extend(words.iter().map(|word| <$number>::from_be_bytes(*word) as i64)),
                }
            }};
        }
        match (len_bytes, signed) {
            (1, true) => decode!(i8, 1),
            (1, false) => decode!(u8, 1),
            (2, true) => decode!(i16, 2),
            (2, false) => decode!(u16, 2),
            (4, true) => decode!(i32, 4),
            (4, false) => decode!(u32, 4),
            (_, true) => decode!(i64, 8),
            (_, false) => {
                decode!(u64, 8);
                return out.iter().all(|&value| value >= 0);
            }
        }
        true
    }

    /// Appends integers encoded in this type. If one does not fit, returns the index of the first such integer as the
    /// error.
    pub fn encode_integers(self, values: &[i64], out: &mut Vec<u8>) -> Result<(), usize> {
        let Self::Integer { len_bytes, signed, is_big_endian } = self else { return Err(0) };
        macro_rules! encode {
            ($number:ty) => {{
                let fits = |value: &i64| <$number>::try_from(*value).is_ok();
                if let Some(at) = values.iter().position(|value| !fits(value)) {
                    return Err(at);
                }
                match is_big_endian {
                    false => append(values, out, |value| (value as $number).to_le_bytes()),
                    true => append(values, out, |value| (value as $number).to_be_bytes()),
                }
            }};
        }
        match (len_bytes, signed) {
            (1, true) => encode!(i8),
            (1, false) => encode!(u8),
            (2, true) => encode!(i16),
            (2, false) => encode!(u16),
            (4, true) => encode!(i32),
            (4, false) => encode!(u32),
            (_, true) => encode!(i64),
            (_, false) => encode!(u64),
        }
        Ok(())
    }

    /// Decodes numbers of any kind to floats; integers of more than 53 bits are rounded. Returns `false` if an integer
    /// exceeds 63 bits.
    pub fn decode_floats(self, bytes: &[u8], integers: &mut Vec<i64>, out: &mut Vec<f64>) -> bool {
        out.clear();
        macro_rules! decode {
            ($number:ty, $len:literal, $is_big_endian:expr) => {{
                let (words, _) = bytes.as_chunks::<$len>();
                match $is_big_endian {
                    false => out.extend(words.iter().map(|word| f64::from(<$number>::from_le_bytes(*word)))),
                    true => out.extend(words.iter().map(|word| f64::from(<$number>::from_be_bytes(*word)))),
                }
            }};
        }
        match self {
            Self::Float { len_bytes: 4, is_big_endian } => decode!(f32, 4, is_big_endian),
            Self::Float { is_big_endian, .. } => decode!(f64, 8, is_big_endian),
            Self::Integer { len_bytes: 1, signed: true, .. } => decode!(i8, 1, false),
            Self::Integer { len_bytes: 1, signed: false, .. } => decode!(u8, 1, false),
            Self::Integer { len_bytes: 2, signed: true, is_big_endian } => decode!(i16, 2, is_big_endian),
            Self::Integer { len_bytes: 2, signed: false, is_big_endian } => decode!(u16, 2, is_big_endian),
            Self::Integer { len_bytes: 4, signed: true, is_big_endian } => decode!(i32, 4, is_big_endian),
            Self::Integer { len_bytes: 4, signed: false, is_big_endian } => decode!(u32, 4, is_big_endian),
            Self::Integer { .. } => {
                let is_within_63_bits = self.decode_integers(bytes, integers);
                out.extend(integers.iter().map(|&value| value as f64));
                return is_within_63_bits;
            }
        }
        true
    }

    /// Appends floats, rounded to the type's precision. Integer types are not supported.
    pub fn encode_floats(self, values: &[f64], out: &mut Vec<u8>) {
        let Self::Float { len_bytes, is_big_endian } = self else { return };
        macro_rules! encode {
            ($number:ty) => {
                match is_big_endian {
                    false => append(values, out, |value| (value as $number).to_le_bytes()),
                    true => append(values, out, |value| (value as $number).to_be_bytes()),
                }
            };
        }
        match len_bytes {
            4 => encode!(f32),
            _ => encode!(f64),
        }
    }
}

/// Appends values as bytes, in a loop that compilers vectorise.
fn append<T: Copy, const LEN: usize>(values: &[T], out: &mut Vec<u8>, encode: impl Fn(T) -> [u8; LEN]) {
    let start = out.len();
    out.resize(start + LEN * values.len(), 0);
    for (place, value) in out[start..].as_chunks_mut().0.iter_mut().zip(values) {
        *place = encode(*value);
    }
}

/// Compares an integer with a float without rounding; `None` if the float is not a number. The integer must not be the
/// smallest or largest one of 128 bits.
pub fn compare_exactly(left: i128, right: f64) -> Option<Ordering> {
    if right.is_nan() {
        return None;
    }
    // Floats beyond the range become its ends.
    let floor = right.floor() as i128;
    Some(match left.cmp(&floor) {
        Ordering::Equal if right.fract() != 0.0 => Ordering::Less,
        order => order,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn types() -> impl Strategy<Value = NumberType> {
        (prop::sample::select(vec![1_u8, 2, 4, 8]), any::<bool>(), any::<bool>())
            .prop_map(|(len_bytes, signed, is_big_endian)| NumberType::Integer { len_bytes, signed, is_big_endian })
    }

    proptest! {
        #[test]
        fn floats_of_integers_are_the_integers(number in types(), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let (mut integers, mut floats, mut again) = (Vec::new(), Vec::new(), Vec::new());
            let is_exact = number.decode_integers(&bytes, &mut integers);
            prop_assert_eq!(number.decode_floats(&bytes, &mut again, &mut floats), is_exact);
            prop_assert_eq!(floats, integers.iter().map(|&value| value as f64).collect::<Vec<f64>>());
        }

        #[test]
        fn floats_come_back_in_their_precision(values in prop::collection::vec(any::<f64>(), 0..9), is_big_endian: bool) {
            for len_bytes in [4, 8] {
                let number = NumberType::Float { len_bytes, is_big_endian };
                let rounded = |value: &f64| if len_bytes == 4 { f64::from(*value as f32) } else { *value };
                let (mut bytes, mut back) = (vec![7], Vec::new());
                number.encode_floats(&values, &mut bytes);
                number.decode_floats(&bytes[1..], &mut Vec::new(), &mut back);
                prop_assert_eq!(bytes[0], 7);
                let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<u64>>();
                prop_assert_eq!(bits(back), bits(values.iter().map(rounded).collect()));
            }
        }

        #[test]
        fn integers_are_decoded_as_encoded_or_refused(number in types(), values in prop::collection::vec(any::<i64>(), 1..9)) {
            let (low, high) = match number {
                NumberType::Integer { signed: true, .. } => (-(number.largest() as i128) - 1, number.largest() as i128),
                _ => (0, number.largest() as i128),
            };
            let misfit = values.iter().position(|&value| !(low..=high).contains(&i128::from(value)));
            let mut bytes = Vec::new();
            prop_assert_eq!(number.encode_integers(&values, &mut bytes), misfit.map_or(Ok(()), Err));
            if misfit.is_none() {
                let mut decoded = Vec::new();
                prop_assert!(number.decode_integers(&bytes, &mut decoded));
                prop_assert_eq!(decoded, values);
            }
        }

        #[test]
        fn a_type_is_what_its_description_says(number in types()) {
            prop_assert_eq!(NumberType::of(&number.class()), Some(number));
        }
    }

    fn set_float(class: &mut TypeClass, set: impl Fn(&mut u32, &mut u8, &mut BitRange)) {
        let TypeClass::Float { exponent_bias, normalization, exponent, .. } = class else { panic!("not a float") };
        set(exponent_bias, normalization, exponent);
    }

    #[test]
    fn types_are_widened_no_further_than_needed() {
        let byte = NumberType::Integer { len_bytes: 1, signed: false, is_big_endian: false };
        let len_after = |largest| byte.widened_to(largest).map(NumberType::len_bytes);
        assert_eq!([len_after(255), len_after(256), len_after(1 << 32)], [Some(1), Some(2), Some(8)]);
        assert_eq!(NumberType::int64().widened_to(u64::MAX), None);
        for len_bytes in [4, 8] {
            let float = NumberType::Float { len_bytes, is_big_endian: true };
            let class = float.class();
            assert_eq!(NumberType::of(&class), Some(float));
            for change in [
                |class: &mut TypeClass| set_float(class, |bias, _, _| *bias -= 7),
                |class: &mut TypeClass| set_float(class, |_, normalization, _| *normalization = 0),
                |class: &mut TypeClass| set_float(class, |_, _, exponent| exponent.offset -= 1),
            ] {
                let mut other = class.clone();
                change(&mut other);
                assert_eq!(NumberType::of(&other), None, "{other:?}");
            }
        }
    }
}
