//! Numbers of a column as stored, decoded one by one without a copy.

/// Calls a generic function with a number type's Rust type and the decoder of a word.
macro_rules! with_words {
    ($number:expr, $bytes:expr, |$words:ident| $body:expr) => {{
        use raddle_hdf5::number::NumberType::{Float, Integer};
        macro_rules! words {
            ($kind:ty, $from:ident, $len:literal) => {{
                let $words = $bytes.as_chunks::<$len>().0.iter().map(|word| <$kind>::$from(*word));
                $body
            }};
        }
        match $number {
            Integer { len_bytes: 1, signed: true, .. } => words!(i8, from_le_bytes, 1),
            Integer { len_bytes: 1, signed: false, .. } => words!(u8, from_le_bytes, 1),
            Integer { len_bytes: 2, signed: true, is_big_endian: false } => words!(i16, from_le_bytes, 2),
            Integer { len_bytes: 2, signed: false, is_big_endian: false } => words!(u16, from_le_bytes, 2),
            Integer { len_bytes: 4, signed: true, is_big_endian: false } => words!(i32, from_le_bytes, 4),
            Integer { len_bytes: 4, signed: false, is_big_endian: false } => words!(u32, from_le_bytes, 4),
            Integer { signed: true, is_big_endian: false, .. } => words!(i64, from_le_bytes, 8),
            Integer { signed: false, is_big_endian: false, .. } => words!(u64, from_le_bytes, 8),
            Integer { len_bytes: 2, signed: true, .. } => words!(i16, from_be_bytes, 2),
            Integer { len_bytes: 2, signed: false, .. } => words!(u16, from_be_bytes, 2),
            Integer { len_bytes: 4, signed: true, .. } => words!(i32, from_be_bytes, 4),
            Integer { len_bytes: 4, signed: false, .. } => words!(u32, from_be_bytes, 4),
            Integer { signed: true, .. } => words!(i64, from_be_bytes, 8),
            Integer { signed: false, .. } => words!(u64, from_be_bytes, 8),
            Float { len_bytes: 4, is_big_endian: false } => words!(f32, from_le_bytes, 4),
            Float { len_bytes: 4, is_big_endian: true } => words!(f32, from_be_bytes, 4),
            Float { is_big_endian: false, .. } => words!(f64, from_le_bytes, 8),
            Float { is_big_endian: true, .. } => words!(f64, from_be_bytes, 8),
        }
    }};
}
pub(crate) use with_words;

/// A number of a column.
pub(crate) trait Number: Copy + PartialOrd {
    /// Whether the type is one of integers.
    const IS_INTEGER: bool;
    /// Number that no other is less than.
    const LOWEST: Self;
    /// Number that no other is greater than.
    const HIGHEST: Self;

    /// Whether this is not a number.
    fn is_nan(self) -> bool;

    /// Returns the integer; of a float, its integral part.
    fn to_integer(self) -> i128;

    /// Returns the nearest 64-bit float, which equals any 32-bit float.
    fn to_float(self) -> f64;

    /// Returns the nearest number of this type to an integer.
    fn clamped(value: i128) -> Self;

    /// Returns a 64-bit float in the precision of this type.
    fn rounded(value: f64) -> Self;
}

macro_rules! integer {
    ($($kind:ty)*) => {$(
        impl Number for $kind {
            const IS_INTEGER: bool = true;
            const LOWEST: Self = <$kind>::MIN;
            const HIGHEST: Self = <$kind>::MAX;

            fn is_nan(self) -> bool {
                false
            }

            fn to_integer(self) -> i128 {
                i128::from(self)
            }

            fn to_float(self) -> f64 {
                self as f64
            }

            fn clamped(value: i128) -> Self {
                value.clamp(i128::from(<$kind>::MIN), i128::from(<$kind>::MAX)) as $kind
            }

            fn rounded(value: f64) -> Self {
                value as $kind
            }
        }
    )*};
}

macro_rules! float {
    ($($kind:ty)*) => {$(
        impl Number for $kind {
            const IS_INTEGER: bool = false;
            const LOWEST: Self = <$kind>::NEG_INFINITY;
            const HIGHEST: Self = <$kind>::INFINITY;

            fn is_nan(self) -> bool {
                <$kind>::is_nan(self)
            }

            fn to_integer(self) -> i128 {
                self as i128
            }

            fn to_float(self) -> f64 {
                f64::from(self)
            }

            fn clamped(value: i128) -> Self {
                value as $kind
            }

            fn rounded(value: f64) -> Self {
                value as $kind
            }
        }
    )*};
}

integer!(i8 u8 i16 u16 i32 u32 i64 u64);
float!(f32 f64);
