//! Decoding of HDF5 numbers: integers of up to 64 bits and floating-point numbers of any format.
//!
//! HDF5 describes a number bit by bit: position of the sign, exponent and mantissa, bias, byte order. Numbers are not
//! encoded here. Invariant: a number that the result cannot hold is `None` or marked as rounded, never silently
//! changed.

use raddle_hdf5::model::{BitRange, ByteOrder, TypeClass};

/// A decoded floating-point number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Float {
    /// The nearest 64-bit number.
    pub value: f64,
    /// Whether `value` equals the stored number.
    pub is_exact: bool,
    /// Distance to the next number in the stored format.
    pub spacing: f64,
}

/// Returns the integer in an element of `class`; `None` for other classes and for more than 64 significant bits.
pub(crate) fn integer(class: &TypeClass, stored: &[u8]) -> Option<i128> {
    let TypeClass::Integer { order, signed, bits, .. } = class else { return None };
    if bits.count == 0 || bits.count > 64 {
        return None;
    }
    let number = significant(word(stored, *order)?, *bits);
    let unused = u128::BITS - bits.count;
    Some(if *signed { (number << unused) as i128 >> unused } else { number as i128 })
}

/// Returns the number in an element of a floating-point `class`; `None` for other classes, for elements of more than 16
/// bytes and for formats whose mantissa is not normalised.
pub(crate) fn float(class: &TypeClass, stored: &[u8]) -> Option<Float> {
    /// Normalisation of the mantissa (`H5T_norm_t`): its highest bit is stored and set, or implied.
    const HIGHEST_SET: u8 = 1;
    const IMPLIED: u8 = 2;
    let TypeClass::Float { order, normalization, sign_bit, exponent, mantissa, exponent_bias, .. } = class else {
        return None;
    };
    if !matches!(*normalization, HIGHEST_SET | IMPLIED) || !(1..128).contains(&mantissa.count) || exponent.count >= 32 {
        return None;
    }
    let word = word(stored, *order)?;
    let is_negative = significant(word, BitRange { offset: *sign_bit, count: 1 }) == 1;
    let power = significant(word, *exponent) as i64;
    let digits = significant(word, *mantissa);
    let signed = |value: f64| if is_negative { -value } else { value };
    let is_last = exponent.count > 0 && power == (1 << exponent.count) - 1;
    if is_last {
        let fraction = if *normalization == IMPLIED { digits } else { digits & !(1 << (mantissa.count - 1)) };
        let value = if fraction == 0 { f64::INFINITY } else { f64::NAN };
        return Some(Float { value: signed(value), is_exact: true, spacing: 0.0 });
    }
    // The value is `digits` times two to the power of `unit`. Exponent 0 means the same power as exponent 1, without
    // the implied bit.
    let digits = if *normalization == IMPLIED && power > 0 { digits | 1 << mantissa.count } else { digits };
    let fraction_bits = i64::from(mantissa.count) - i64::from(*normalization == HIGHEST_SET);
    let unit = power.max(1) - i64::from(*exponent_bias) - fraction_bits;
    let rounded = digits as f64;
    let value = scaled(rounded, unit);
    let is_exact = rounded as u128 == digits && value.is_finite() && scaled(value, -unit) == rounded;
    Some(Float { value: signed(value), is_exact, spacing: scaled(1.0, unit) })
}

/// Returns the bytes as one number; `None` for more than 16 bytes.
fn word(stored: &[u8], order: ByteOrder) -> Option<u128> {
    if stored.len() > 16 {
        return None;
    }
    let push = |number: u128, byte: &u8| number << 8 | u128::from(*byte);
    Some(match order {
        ByteOrder::Little => stored.iter().rev().fold(0, push),
        ByteOrder::Big => stored.iter().fold(0, push),
        // Two-byte words, the most significant one first, each little-endian.
        ByteOrder::Vax => stored.chunks(2).flat_map(|word| word.iter().rev()).fold(0, push),
    })
}

/// Extracts the bits of `range`.
fn significant(word: u128, range: BitRange) -> u128 {
    let mask = 1_u128.checked_shl(range.count).map_or(u128::MAX, |end| end - 1);
    word.checked_shr(range.offset).unwrap_or(0) & mask
}

/// Returns `value` times two to the power of `exponent`.
fn scaled(mut value: f64, mut exponent: i64) -> f64 {
    /// Exponents of normal numbers.
    const POWERS: std::ops::RangeInclusive<i64> = -1022..=1023;
    while exponent != 0 && value != 0.0 && value.is_finite() {
        let step = exponent.clamp(*POWERS.start(), *POWERS.end());
        value *= f64::from_bits(((step + 1023) as u64) << 52);
        exponent -= step;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn integer_class(len_bytes: u32, order: ByteOrder, signed: bool, bits: BitRange) -> TypeClass {
        TypeClass::Integer { len_bytes, order, signed, bits, padding: (0, 0) }
    }

    fn float_class(
        len_bytes: u32,
        order: ByteOrder,
        normalization: u8,
        (exponent_bits, mantissa_bits): (u32, u32),
        exponent_bias: u32,
    ) -> TypeClass {
        let bits = 1 + exponent_bits + mantissa_bits;
        TypeClass::Float {
            len_bytes,
            order,
            bits: BitRange { offset: 0, count: bits },
            padding: (0, 0, 0),
            normalization,
            sign_bit: bits - 1,
            exponent: BitRange { offset: mantissa_bits, count: exponent_bits },
            mantissa: BitRange { offset: 0, count: mantissa_bits },
            exponent_bias,
        }
    }

    #[test]
    fn integers_are_extended_by_their_sign() {
        let whole = |len: u32| BitRange { offset: 0, count: len * 8 };
        let little = ByteOrder::Little;
        assert_eq!(integer(&integer_class(2, little, true, whole(2)), &[0xff, 0xff]), Some(-1));
        assert_eq!(integer(&integer_class(2, little, false, whole(2)), &[0xff, 0xff]), Some(65_535));
        assert_eq!(integer(&integer_class(8, little, false, whole(8)), &[0xff; 8]), Some(i128::from(u64::MAX)));
        assert_eq!(integer(&integer_class(2, ByteOrder::Big, true, whole(2)), &[1, 2]), Some(0x102));
        let middle = BitRange { offset: 4, count: 8 };
        assert_eq!(integer(&integer_class(2, little, true, middle), &[0xff, 0xff]), Some(-1));
        assert_eq!(integer(&integer_class(2, little, true, middle), &[0x5f, 0xf0]), Some(5));
        assert_eq!(integer(&integer_class(16, little, true, whole(16)), &[0; 16]), None);
    }

    #[test]
    fn formats_other_than_those_of_the_machine_are_decoded() {
        let half = float_class(2, ByteOrder::Little, 2, (5, 10), 15);
        assert_eq!(float(&half, &0x3c00_u16.to_le_bytes()).unwrap().value, 1.0);
        assert_eq!(float(&half, &0x0001_u16.to_le_bytes()).unwrap().value, 2.0_f64.powi(-24));
        assert_eq!(float(&half, &0xfc00_u16.to_le_bytes()).unwrap().value, f64::NEG_INFINITY);
        // VAX F: 20.0 is 0x42a0 0000, stored as words.
        let vax = float_class(4, ByteOrder::Vax, 2, (8, 23), 129);
        assert_eq!(float(&vax, &[0xa0, 0x42, 0, 0]).unwrap().value, 20.0);
        // x87: the highest bit of the mantissa is stored.
        let extended = float_class(16, ByteOrder::Little, 1, (15, 64), 16383);
        let stored = |power: u16, digits: u64| [&digits.to_le_bytes()[..], &power.to_le_bytes(), &[0; 6]].concat();
        let twenty = float(&extended, &stored(16383 + 4, 20 << 59)).unwrap();
        assert_eq!((twenty.value, twenty.is_exact), (20.0, true));
        let tenth = float(&extended, &stored(16383 - 4, 0xcccc_cccc_cccc_cccd)).unwrap();
        assert_eq!((tenth.value, tenth.is_exact), (0.1, false));
        let beyond = float(&extended, &stored(0x7ffe, 1 << 63)).unwrap();
        assert_eq!((beyond.value, beyond.is_exact), (f64::INFINITY, false));
    }

    proptest! {
        #[test]
        fn ieee_numbers_are_those_of_the_machine(double in any::<u64>(), single in any::<u32>()) {
            let is_same = |found: Float, expected: f64| {
                found.is_exact && (found.value.to_bits() == expected.to_bits() || found.value.is_nan() && expected.is_nan())
            };
            let class = float_class(8, ByteOrder::Big, 2, (11, 52), 1023);
            prop_assert!(is_same(float(&class, &double.to_be_bytes()).unwrap(), f64::from_bits(double)));
            let class = float_class(4, ByteOrder::Little, 2, (8, 23), 127);
            prop_assert!(is_same(float(&class, &single.to_le_bytes()).unwrap(), f64::from(f32::from_bits(single))));
        }
    }
}
