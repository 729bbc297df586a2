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

/// Type of the numbers in a column.
pub(crate) trait Number: Copy + PartialOrd {
    /// Whether the type is an integer type.
    const IS_INTEGER: bool;
    /// Smallest number of the type; for floats, negative infinity.
    const LOWEST: Self;
    /// Largest number of the type; for floats, infinity.
    const HIGHEST: Self;

    /// Returns whether the value is not a number (NaN).
    fn is_nan(self) -> bool;

    /// Returns a word that is equal for equal numbers, and differs for others. All NaN have the same word.
    fn word(self) -> u64;

    /// Returns the sum of at most 65,536 integers; 0 for floats.
    fn sum(numbers: &[Self]) -> i128;

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

            fn word(self) -> u64 {
                self as u64
            }

            fn sum(numbers: &[Self]) -> i128 {
                // Halves of words whose least value is 0 fit into unsigned words that the compiler adds with vector
                // instructions, unless it has to check for overflow.
                let (base, count) = (i128::from(<$kind>::MIN), numbers.len() as i128);
                let of_halves = match size_of::<Self>() {
                    8 => {
                        let (low, high) = numbers.iter().fold((0_u64, 0_u64), |(low, high), &number| {
                            let word = (number as u64).wrapping_sub(<$kind>::MIN as u64);
                            (low.wrapping_add(word & 0xffff_ffff), high.wrapping_add(word >> 32))
                        });
                        i128::from(low) + (i128::from(high) << 32)
                    }
                    _ => {
                        let (low, high) = numbers.iter().fold((0_u32, 0_u32), |(low, high), &number| {
                            let word = (number as u32).wrapping_sub(<$kind>::MIN as u32);
                            (low.wrapping_add(word & 0xffff), high.wrapping_add(word >> 16))
                        });
                        i128::from(low) + (i128::from(high) << 16)
                    }
                };
                of_halves + base * count
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

            fn word(self) -> u64 {
                // -0 becomes 0.
                u64::from(if self.is_nan() { <$kind>::NAN.to_bits() } else { (self + 0.0).to_bits() })
            }

            fn sum(_: &[Self]) -> i128 {
                0
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
