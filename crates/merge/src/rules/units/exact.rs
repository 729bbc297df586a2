//! Exact numbers of the form `numerator / denominator * 2^a * 5^b * pi^c`.
//!
//! Units mostly differ by powers of ten, whose products overflow integers, so exponents of 2 and 5 are kept separately.
//! Invariant: the fraction is in lowest terms without factors of 2 and 5, and the denominator is positive. Operations
//! that overflow return `None`.

/// Exact number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact {
    numerator: i128,
    denominator: i128,
    /// Exponents of 2, 5 and pi.
    exponents: [i16; 3],
}

impl Exact {
    pub const ZERO: Self = Self { numerator: 0, denominator: 1, exponents: [0; 3] };
    pub const ONE: Self = Self { numerator: 1, denominator: 1, exponents: [0; 3] };
    pub const PI: Self = Self { numerator: 1, denominator: 1, exponents: [0, 0, 1] };

    fn new(numerator: i128, denominator: i128, mut exponents: [i16; 3]) -> Option<Self> {
        if denominator == 0 || numerator == i128::MIN || denominator == i128::MIN {
            return None;
        }
        if numerator == 0 {
            return Some(Self::ZERO);
        }
        let (mut numerator, mut denominator) = (numerator * denominator.signum(), denominator.abs());
        for (prime, exponent) in [2, 5].into_iter().zip(&mut exponents) {
            while numerator % prime == 0 {
                numerator /= prime;
                *exponent = exponent.checked_add(1)?;
            }
            while denominator % prime == 0 {
                denominator /= prime;
                *exponent = exponent.checked_sub(1)?;
            }
        }
        let divisor = greatest_common_divisor(numerator.unsigned_abs(), denominator.unsigned_abs());
        let divisor = i128::try_from(divisor).ok()?;
        Some(Self { numerator: numerator / divisor, denominator: denominator / divisor, exponents })
    }

    /// Creates the number `digits * 10^exponent`.
    pub fn decimal(digits: i128, exponent: i32) -> Option<Self> {
        let exponent = i16::try_from(exponent).ok()?;
        Self::new(digits, 1, [exponent, exponent, 0])
    }

    pub fn times(self, other: Self) -> Option<Self> {
        // Cross-cancel first, so that no intermediate product overflows if the result fits.
        let left = Self::new(self.numerator, other.denominator, self.exponents)?;
        let right = Self::new(other.numerator, self.denominator, other.exponents)?;
        let mut exponents = left.exponents;
        for (sum, exponent) in exponents.iter_mut().zip(right.exponents) {
            *sum = sum.checked_add(exponent)?;
        }
        Self::new(
            left.numerator.checked_mul(right.numerator)?,
            left.denominator.checked_mul(right.denominator)?,
            exponents,
        )
    }

    /// Returns the inverse; `None` for zero.
    pub fn inverse(self) -> Option<Self> {
        let mut exponents = self.exponents;
        for exponent in &mut exponents {
            *exponent = exponent.checked_neg()?;
        }
        Self::new(self.denominator, self.numerator, exponents)
    }

    pub fn power(self, exponent: i8) -> Option<Self> {
        let base = if exponent < 0 { self.inverse()? } else { self };
        (0..exponent.unsigned_abs()).try_fold(Self::ONE, |power, _| power.times(base))
    }

    /// Returns the difference; `None` also if the powers of pi differ.
    pub fn minus(self, other: Self) -> Option<Self> {
        let ([_, _, left_pi], [_, _, right_pi]) = (self.exponents, other.exponents);
        if self == Self::ZERO || other == Self::ZERO {
            let negative = Self { numerator: -other.numerator, ..other };
            return Some(if self == Self::ZERO { negative } else { self });
        }
        let ((left, left_denominator), (right, right_denominator)) = (self.fraction()?, other.fraction()?);
        let difference = left.checked_mul(right_denominator)?.checked_sub(right.checked_mul(left_denominator)?)?;
        (left_pi == right_pi)
            .then(|| Self::new(difference, left_denominator.checked_mul(right_denominator)?, [0, 0, left_pi]))?
    }

    /// Returns numerator and denominator; `None` if there is a power of pi.
    pub fn ratio(self) -> Option<(i128, i128)> {
        if self.exponents[2] == 0 { self.fraction() } else { None }
    }

    /// Returns numerator and denominator including the powers of 2 and 5.
    fn fraction(self) -> Option<(i128, i128)> {
        let (mut numerator, mut denominator) = (self.numerator, self.denominator);
        for (prime, exponent) in [2_i128, 5].into_iter().zip(self.exponents) {
            let power = prime.checked_pow(u32::from(exponent.unsigned_abs()))?;
            let side = if exponent < 0 { &mut denominator } else { &mut numerator };
            *side = side.checked_mul(power)?;
        }
        Some((numerator, denominator))
    }

    /// Converts to floating point, correctly rounded if numerator and denominator have at most 53 bits and there is no
    /// factor pi.
    pub fn to_f64(self) -> f64 {
        let [two, five, pi] = self.exponents.map(i32::from);
        let rational = match self.fraction() {
            Some((numerator, denominator)) => numerator as f64 / denominator as f64,
            None => self.numerator as f64 / self.denominator as f64 * 2_f64.powi(two - five) * 10_f64.powi(five),
        };
        if pi == 0 { rational } else { rational * std::f64::consts::PI.powi(pi) }
    }
}

fn greatest_common_divisor(mut left: u128, mut right: u128) -> u128 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_exact() {
        let tenth = Exact::decimal(1, -1).unwrap();
        let third = Exact::decimal(3, 0).unwrap().inverse().unwrap();
        assert_eq!(tenth.times(third).unwrap().times(Exact::decimal(30, 0).unwrap()), Some(Exact::ONE));
        assert_eq!(tenth.minus(tenth), Some(Exact::ZERO));
        assert_eq!(tenth.power(-2), Exact::decimal(100, 0));
        assert_eq!(Exact::PI.times(Exact::PI.inverse().unwrap()), Some(Exact::ONE));
        assert_eq!(Exact::decimal(-5, -1).unwrap().to_f64(), -0.5);
    }

    #[test]
    fn numbers_that_do_not_fit_are_rejected() {
        let large = Exact::decimal(3, 0).unwrap().power(80).unwrap();
        assert_eq!(large.times(large), None);
        assert_eq!(large.times(large.inverse().unwrap()), Some(Exact::ONE));
        assert!((Exact::decimal(1, 99).unwrap().to_f64() / 1e99 - 1.0).abs() < 1e-14);
        assert_eq!(Exact::decimal(1, 99_999), None);
        assert_eq!(Exact::ZERO.inverse(), None);
    }
}
