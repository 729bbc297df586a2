//! Exact sums of floating-point numbers, whatever their order.
//!
//! A number is an integer multiple of 2^-1074, the smallest positive one. Sums are kept as such multiples, as in
//! Kulisch's accumulator: in digits of 32 bits, each in a word of 64, so that carries can wait. Invariant: no addition
//! rounds, so the sum does not depend on order, threads or blocks.

/// Bits of a digit.
const DIGIT_BITS: u32 = 32;
/// Number of digits. The largest number has 2^1024 / 2^-1074, or 2098 bits, and 2^64 of them have 62 more and a sign.
const DIGITS: usize = 68;
/// Number of additions before digits are reduced: each adds less than 2^32 to a word of 63 bits and a sign.
const MAX_PENDING: u32 = 1 << 30;
/// Bits of the mantissa of a float as stored.
const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;

/// Exact sum of floating-point numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FloatSum {
    digits: [i64; DIGITS],
    /// Number of additions since digits were reduced.
    pending: u32,
    /// Numbers of infinities that were added: negative, positive.
    infinities: [u64; 2],
}

impl Default for FloatSum {
    fn default() -> Self {
        Self { digits: [0; DIGITS], pending: 0, infinities: [0; 2] }
    }
}

impl FloatSum {
    /// Adds a number, which is not NaN.
    pub fn add(&mut self, number: f64) {
        let (bits, is_negative) = (number.to_bits(), number.is_sign_negative());
        let (exponent, stored) = ((bits >> MANTISSA_BITS) as u32 & 0x7ff, bits & ((1 << MANTISSA_BITS) - 1));
        if exponent == 0x7ff {
            self.infinities[usize::from(!is_negative)] += 1;
            return;
        }
        // Subnormal numbers have the exponent of the smallest normal ones, without the implied bit.
        let (mantissa, shift) = if exponent == 0 { (stored, 0) } else { (stored | 1 << MANTISSA_BITS, exponent - 1) };
        let (first, inner) = ((shift / DIGIT_BITS) as usize, shift % DIGIT_BITS);
        let wide = u128::from(mantissa) << inner;
        let sign = -i64::from(is_negative);
        for (at, digit) in self.digits[first..first + 3].iter_mut().enumerate() {
            let part = (wide >> (DIGIT_BITS * at as u32)) as u32;
            *digit = digit.wrapping_add((i64::from(part) ^ sign).wrapping_sub(sign));
        }
        self.pending += 1;
        if self.pending == MAX_PENDING {
            self.reduce();
        }
    }

    /// Adds another sum.
    pub fn add_sum(&mut self, other: &Self) {
        let mut other = other.clone();
        other.reduce();
        self.reduce();
        self.digits.iter_mut().zip(other.digits).for_each(|(digit, more)| *digit += more);
        self.infinities.iter_mut().zip(other.infinities).for_each(|(count, more)| *count += more);
        self.pending = 1;
    }

    /// Brings all digits but the last into the range from 0 to 2^32 - 1.
    fn reduce(&mut self) {
        let mut carry = 0;
        let (last, others) = self.digits.split_last_mut().expect("there are digits");
        for digit in others {
            let all = *digit + carry;
            carry = all >> DIGIT_BITS;
            *digit = all & i64::from(u32::MAX);
        }
        *last += carry;
        self.pending = 0;
    }

    /// Returns the infinity that was added, if there was one; NaN if both were added.
    pub fn infinity(&self) -> Option<f64> {
        match self.infinities {
            [0, 0] => None,
            [_, 0] => Some(f64::NEG_INFINITY),
            [0, _] => Some(f64::INFINITY),
            _ => Some(f64::NAN),
        }
    }

    /// Returns the sum of all finite numbers in units of 2^-1074, as a little-endian integer with a sign in two's
    /// complement.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        let mut reduced = self.clone();
        reduced.reduce();
        let (last, others) = reduced.digits.split_last().expect("there are digits");
        let mut bytes: Vec<u8> = others.iter().flat_map(|&digit| (digit as u32).to_le_bytes()).collect();
        bytes.extend(last.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(numbers: &[f64]) -> FloatSum {
        let mut sum = FloatSum::default();
        numbers.iter().for_each(|&number| sum.add(number));
        sum
    }

    /// Returns a sum of at most 127 bits, in units of 2^-1074.
    fn units(sum: &FloatSum) -> i128 {
        let bytes = sum.to_le_bytes();
        let (low, high) = bytes.split_at(16);
        let value = i128::from_le_bytes(low.try_into().unwrap());
        assert!(high.iter().all(|&byte| byte == if value < 0 { 0xff } else { 0 }));
        value
    }

    #[test]
    fn single_numbers_are_multiples_of_the_smallest() {
        let smallest = f64::from_bits(1);
        assert_eq!(units(&of(&[smallest])), 1);
        assert_eq!(units(&of(&[-smallest, -smallest])), -2);
        assert_eq!(units(&of(&[f64::MIN_POSITIVE])), 1 << 52);
        assert_eq!(units(&of(&[-f64::MIN_POSITIVE * 2.0, smallest])), 1 - (1 << 53));
        assert_eq!(units(&of(&[0.0, -0.0])), 0);
        // 1 is 2^1074 times the smallest number: bit 2 of byte 134.
        let bytes = of(&[1.0]).to_le_bytes();
        assert_eq!((bytes.iter().position(|&byte| byte != 0), bytes[134]), (Some(134), 4));
        let largest = of(&[f64::MAX; 1000]);
        assert_eq!(units(&of(&[f64::MAX, smallest, -f64::MAX])), 1);
        assert_ne!(largest, of(&[f64::MAX; 999]));
    }

    #[test]
    fn infinities_remain() {
        assert_eq!(of(&[1.0]).infinity(), None);
        assert_eq!(of(&[1.0, f64::INFINITY]).infinity(), Some(f64::INFINITY));
        assert_eq!(of(&[f64::NEG_INFINITY]).infinity(), Some(f64::NEG_INFINITY));
        assert!(of(&[f64::NEG_INFINITY, f64::INFINITY]).infinity().unwrap().is_nan());
    }

    proptest! {
        #[test]
        fn sums_do_not_depend_on_order_or_parts(
            drawn in prop::collection::vec(any::<i64>(), 0..50),
            shift in 0_u32..40,
            at in any::<prop::sample::Index>(),
        ) {
            // Multiples of the smallest number, so that the sum is known.
            let values: Vec<i64> = drawn.iter().map(|&value| value >> (12 + shift % 20)).collect();
            let numbers: Vec<f64> =
                values.iter().map(|&value| value as f64 * f64::MIN_POSITIVE * f64::EPSILON).collect();
            let expected = values.iter().map(|&value| i128::from(value)).sum::<i128>();
            prop_assert_eq!(units(&of(&numbers)), expected);
            let (one, other) = numbers.split_at(at.index(numbers.len() + 1));
            let mut sum = of(other);
            sum.add_sum(&of(one));
            prop_assert_eq!(units(&sum), expected);
            let backwards: Vec<f64> = numbers.iter().rev().copied().collect();
            prop_assert_eq!(of(&backwards).to_le_bytes(), sum.to_le_bytes());
        }
    }
}
