//! Conversion of numbers to another type.
//!
//! Invariant: a number is converted to the same number, or for floating-point types to the nearest one; if there is
//! none, that is an error.

use raddle_idx::dataset::sample::Number;

/// A number of any type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum AnyNumber {
    Whole(i128),
    Real(f64),
}

impl std::fmt::Display for AnyNumber {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(formatter),
            Self::Real(number) => number.fmt(formatter),
        }
    }
}

impl AnyNumber {
    /// Returns the number as an integer; `None` if it is not one.
    fn whole(self) -> Option<i128> {
        match self {
            Self::Whole(number) => Some(number),
            // Beyond the range of i128 the cast saturates, and no type can hold the result.
            Self::Real(number) => (number.trunc() == number).then_some(number as i128),
        }
    }

    /// Returns the nearest float64.
    fn real(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Real(number) => number,
        }
    }

    /// Returns the nearest float32; `None` if the number is beyond the largest.
    fn short_real(self) -> Option<f32> {
        let near = match self {
            Self::Whole(number) => number as f32,
            Self::Real(number) => number as f32,
        };
        (near.is_finite() || !self.real().is_finite()).then_some(near)
    }
}

/// Converts the little-endian numbers in `bytes` from type `from` to little-endian numbers of type `to`.
///
/// # Errors
/// If type `to` cannot represent a number. Returns the first such number.
pub(super) fn cast(bytes: &[u8], from: Number, to: Number) -> Result<Vec<u8>, AnyNumber> {
    macro_rules! values {
        ($type:ty, $variant:ident, $wide:ty) => {{
            let (numbers, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
            put(numbers.iter().map(|number| AnyNumber::$variant(<$wide>::from(<$type>::from_le_bytes(*number)))), to)
        }};
    }
    match from {
        Number::Uint8 => values!(u8, Whole, i128),
        Number::Int8 => values!(i8, Whole, i128),
        Number::Uint16 => values!(u16, Whole, i128),
        Number::Int16 => values!(i16, Whole, i128),
        Number::Uint32 => values!(u32, Whole, i128),
        Number::Int32 => values!(i32, Whole, i128),
        Number::Uint64 => values!(u64, Whole, i128),
        Number::Int64 => values!(i64, Whole, i128),
        Number::Float32 => values!(f32, Real, f64),
        Number::Float64 => values!(f64, Real, f64),
    }
}

fn put(values: impl ExactSizeIterator<Item = AnyNumber>, to: Number) -> Result<Vec<u8>, AnyNumber> {
    let mut out = Vec::with_capacity(values.len() * to.len_bytes());
    macro_rules! whole {
        ($type:ty) => {
            for value in values {
                let number = value.whole().and_then(|number| <$type>::try_from(number).ok()).ok_or(value)?;
                out.extend_from_slice(&number.to_le_bytes());
            }
        };
    }
    match to {
        Number::Uint8 => whole!(u8),
        Number::Int8 => whole!(i8),
        Number::Uint16 => whole!(u16),
        Number::Int16 => whole!(i16),
        Number::Uint32 => whole!(u32),
        Number::Int32 => whole!(i32),
        Number::Uint64 => whole!(u64),
        Number::Int64 => whole!(i64),
        Number::Float64 => values.for_each(|value| out.extend_from_slice(&value.real().to_le_bytes())),
        Number::Float32 => {
            for value in values {
                out.extend_from_slice(&value.short_real().ok_or(value)?.to_le_bytes());
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_value_or_are_refused() {
        let reals = |numbers: &[f64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
        let cast_reals = |numbers: &[f64], to| cast(&reals(numbers), Number::Float64, to);
        assert_eq!(cast_reals(&[0.0, 255.0, -0.0], Number::Uint8), Ok(vec![0, 255, 0]));
        assert_eq!(cast_reals(&[1.0, 256.0], Number::Uint8), Err(AnyNumber::Real(256.0)));
        assert_eq!(cast_reals(&[0.5], Number::Int32), Err(AnyNumber::Real(0.5)));
        assert!(
            cast_reals(&[f64::NAN], Number::Int64).is_err() && cast_reals(&[f64::INFINITY], Number::Uint64).is_err()
        );
        assert_eq!(cast_reals(&[1e300], Number::Float32), Err(AnyNumber::Real(1e300)));
        let short = cast_reals(&[0.1, f64::NEG_INFINITY], Number::Float32).unwrap();
        assert_eq!(short, [0.1f32.to_le_bytes(), f32::NEG_INFINITY.to_le_bytes()].concat());
        let nan = cast_reals(&[f64::NAN], Number::Float32).unwrap();
        assert!(f32::from_le_bytes(nan.try_into().unwrap()).is_nan());
        assert_eq!(cast(&(-1i16).to_le_bytes(), Number::Int16, Number::Uint16), Err(AnyNumber::Whole(-1)));
        assert_eq!(cast(&(-1i16).to_le_bytes(), Number::Int16, Number::Int64), Ok((-1i64).to_le_bytes().to_vec()));
        let largest = cast(&u64::MAX.to_le_bytes(), Number::Uint64, Number::Float32);
        assert_eq!(largest, Ok(1.844_674_4e19f32.to_le_bytes().to_vec()));
        assert_eq!(cast(&2f32.to_le_bytes(), Number::Float32, Number::Float64), Ok(reals(&[2.0])));
    }
}
