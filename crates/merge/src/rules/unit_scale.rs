//! Conversion of a number that counts from one reference, in one unit, to a number that counts from another.
//!
//! Invariant: the result stands for the same quantity: exactly or, for a time and if the user allowed it, within a
//! microsecond.

use super::inexact::Inexact;
use raddle_hdf5::number::NumberType;
use serde::{Deserialize, Serialize};

/// Computation of `(value * multiplier + offset) / divisor`, where all three count a common part of both units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnitScale {
    /// Length of the input's unit.
    pub multiplier: i64,
    /// Length of the output's unit.
    pub divisor: i64,
    /// The input's reference, counted from the output's.
    pub offset: i128,
    /// Values that are not converted, such as the fill value.
    pub kept: Vec<f64>,
    /// Value of elements that were never written, if no attribute names it: for some readers it is a missing value, for
    /// others a number.
    pub unwritten: Option<f64>,
    /// Treatment of results that are not exact.
    pub rounding: Rounding,
    /// Units of the input and of the output, for messages.
    pub units: (String, String),
}

/// Treatment of a time without an exact counterpart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rounding {
    /// Refuse it; no option changes that.
    Refused,
    /// Refuse it; options change that.
    NotRequested,
    /// Write the nearest float.
    Nearest {
        /// Length of the common part of both units, in nanoseconds.
        part_ns: i64,
    },
}

/// Stored integer of a missing time (numpy's `NaT`), which xarray writes and reads without a `_FillValue`.
pub(crate) const NO_TIME: i64 = i64::MIN;

/// Largest difference between a time and its nearest counterpart. A double that counts days stays below it for 350
/// years.
const MAX_DIFFERENCE_NS: u128 = 1_000;

/// Reason why a number is not converted.
pub(super) const UNWRITTEN: &str = "is the netCDF default fill value, a missing value for some readers and a number for \
     others; an attribute _FillValue that names it (ncatted) makes it a missing value";

/// Reason why a number has no counterpart.
const MISSING: &str = "would become the number that stands for a missing value (_FillValue or missing_value)";

impl UnitScale {
    /// Returns whether a value of this type may have a counterpart that is not exact.
    pub(super) fn rounds(&self, target: NumberType) -> bool {
        matches!(self.rounding, Rounding::Nearest { .. }) && !target.is_integer()
    }

    /// Converts an integer to an integer.
    ///
    /// # Errors
    /// If the value has no exact counterpart.
    pub(super) fn integer(&self, value: i64, target: NumberType) -> Result<i64, Inexact> {
        let is_kept = |value: i64| value == NO_TIME || self.kept.contains(&(value as f64));
        if is_kept(value) {
            return Ok(value);
        }
        if self.unwritten == Some(value as f64) {
            return Err(Inexact::new(&value, UNWRITTEN));
        }
        let scaled = (i128::from(value) * i128::from(self.multiplier)).checked_add(self.offset);
        let exact = scaled.filter(|scaled| scaled % i128::from(self.divisor) == 0);
        match exact.and_then(|scaled| i64::try_from(scaled / i128::from(self.divisor)).ok()) {
            Some(exact) if is_kept(exact) => Err(Inexact::new(&value, MISSING)),
            Some(exact) => Ok(exact),
            None => Err(self.without_counterpart(value, target)),
        }
    }

    /// Converts a float to a number that `target` can hold.
    ///
    /// # Errors
    /// If the value has no counterpart, or none that is exact or near enough.
    pub(super) fn float(&self, value: f64, target: NumberType) -> Result<f64, Inexact> {
        if !value.is_finite() || self.kept.contains(&value) {
            return Ok(value);
        }
        if self.unwritten == Some(value) {
            return Err(Inexact::new(&value, UNWRITTEN));
        }
        let exact =
            scale_exactly(value, self.multiplier, self.divisor, self.offset).filter(|&exact| holds(target, exact));
        let found = match self.rounding {
            Rounding::Nearest { part_ns } if exact.is_none() && !target.is_integer() => {
                self.nearest(value, part_ns, target)
            }
            _ => exact,
        };
        match found {
            Some(found) if self.kept.contains(&found) => Err(Inexact::new(&value, MISSING)),
            Some(found) => Ok(found),
            None => Err(self.without_counterpart(value, target)),
        }
    }

    /// Returns the float of type `target` nearest to a time, which is first rounded to nanoseconds, as readers do; `None`
    /// if it is further away than [`MAX_DIFFERENCE_NS`].
    fn nearest(&self, value: f64, part_ns: i64, target: NumberType) -> Option<f64> {
        let [from_ns, to_ns] = [self.multiplier, self.divisor].map(|parts| i128::from(parts) * i128::from(part_ns));
        let instant_ns = whole_multiple(value, from_ns)?.checked_add(self.offset.checked_mul(i128::from(part_ns))?)?;
        let (whole, rest) = (instant_ns / to_ns, instant_ns % to_ns);
        let nearest = narrowed(target, whole as f64 + rest as f64 / to_ns as f64);
        (whole_multiple(nearest, to_ns)?.abs_diff(instant_ns) <= MAX_DIFFERENCE_NS).then_some(nearest)
    }

    fn without_counterpart(&self, value: impl std::fmt::Display, target: NumberType) -> Inexact {
        let (from, to) = &self.units;
        let remedy = match self.rounding {
            Rounding::NotRequested if target.is_integer() => "; --time-units names finer units for the output",
            Rounding::NotRequested => {
                "; --time-units names finer units for the output, --times nearest accepts less than a microsecond of difference"
            }
            Rounding::Nearest { .. } if target.is_integer() => {
                "; --times nearest is for floating-point times, --time-units names finer units for the output"
            }
            Rounding::Nearest { .. } => ", nor one within a microsecond; --time-units names finer units for the output",
            Rounding::Refused => "",
        };
        Inexact::new(&format!("{value} {from}"), format!("has no exact counterpart in {to}{remedy}"))
    }
}

/// Returns the value nearest to `value` that a float type can represent; an integer type gives the whole number.
pub(super) fn narrowed(target: NumberType, value: f64) -> f64 {
    match target {
        NumberType::Float { len_bytes: 4, .. } => f64::from(value as f32),
        NumberType::Float { .. } => value,
        NumberType::Integer { .. } => value.trunc(),
    }
}

/// Returns whether a float type holds this value without rounding, or an integer type holds it because it is whole.
pub(super) fn holds(target: NumberType, value: f64) -> bool {
    narrowed(target, value) == value
}

/// Returns `value * unit`, rounded to a whole number; `None` if it exceeds 126 bits.
fn whole_multiple(value: f64, unit: i128) -> Option<i128> {
    // |value| = mantissa * 2^exponent.
    let bits = value.abs().to_bits();
    let (biased, fraction) = ((bits >> 52) as i32, i128::from(bits & ((1 << 52) - 1)));
    let (mantissa, exponent) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    let product = mantissa.checked_mul(unit)?;
    let multiple = match exponent {
        0..=126 => product.checked_mul(1_i128.checked_shl(exponent as u32)?)?,
        127.. => return None,
        -125..0 => product.checked_add(1 << (-exponent - 1))? >> -exponent,
        _ => 0,
    };
    Some(if value.is_sign_negative() { -multiple } else { multiple })
}

/// Computes `(value * multiplier + offset) / divisor`; returns `None` if a 64-bit float cannot hold the result, or
/// intermediate numbers exceed 127 bits.
fn scale_exactly(value: f64, multiplier: i64, divisor: i64, offset: i128) -> Option<f64> {
    // value = mantissa / 2^shift, with the smallest possible shift.
    let mut shift = 0_u32;
    let mut mantissa = value;
    while mantissa.fract() != 0.0 {
        mantissa *= 2.0;
        shift += 1;
        if shift > 60 {
            return None;
        }
    }
    if mantissa.abs() >= 9.2e18 {
        return None;
    }
    let scaled = (mantissa as i128).checked_mul(i128::from(multiplier))?;
    let total = scaled.checked_add(offset.checked_mul(1_i128 << shift)?)?;
    // total / (divisor * 2^shift): after powers of two are taken out of the divisor, it must divide the total.
    let (odd, twos) = (divisor >> divisor.trailing_zeros(), divisor.trailing_zeros());
    if odd == 0 || total % i128::from(odd) != 0 {
        return None;
    }
    let quotient = total / i128::from(odd);
    let result = quotient as f64 / 2_f64.powi((shift + twos) as i32);
    // Rounded if more than 53 bits are significant.
    let significant = quotient.unsigned_abs().checked_shr(quotient.trailing_zeros().min(127)).unwrap_or(0);
    (significant < 1 << 53).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn floats_are_scaled_exactly_or_not_at_all(
            mantissa in -(1_i64 << 50)..(1_i64 << 50), shift in 0_u32..20,
            multiplier in 1_i64..100_000, divisor in prop::sample::select(vec![1_i64, 2, 3, 24, 60, 3600, 86400]),
            offset in -1_000_000_i128..1_000_000,
        ) {
            let value = mantissa as f64 / 2_f64.powi(shift as i32);
            let exact = (i128::from(mantissa) * i128::from(multiplier) + (offset << shift), i128::from(divisor) << shift);
            match scale_exactly(value, multiplier, divisor, offset) {
                // Decomposes the result as p / q, and compares cross products.
                Some(result) => {
                    let (mut numerator, mut denominator) = (result, 1_i128);
                    while numerator.fract() != 0.0 {
                        numerator *= 2.0;
                        denominator *= 2;
                    }
                    prop_assert_eq!(numerator as i128 * exact.1, exact.0 * denominator);
                }
                None => {
                    let is_representable = exact.0 % exact.1 == 0 && (exact.0 / exact.1).unsigned_abs() < 1 << 53;
                    prop_assert!(!is_representable, "{} has an exact counterpart", value);
                }
            }
        }
    }

    const DAY_NS: i64 = 86_400_000_000_000;

    /// Returns the conversion between units of these lengths, with the input's reference `difference_ns` after the
    /// output's.
    fn nearest(from_ns: i64, to_ns: i64, difference_ns: i128) -> UnitScale {
        UnitScale {
            multiplier: from_ns,
            divisor: to_ns,
            offset: difference_ns,
            kept: vec![-1.0],
            unwritten: None,
            rounding: Rounding::Nearest { part_ns: 1 },
            units: Default::default(),
        }
    }

    const DOUBLE: NumberType = NumberType::Float { len_bytes: 8, is_big_endian: false };

    proptest! {
        /// A program that stores the same instants with the units of the output computes the same numbers, except for rounding.
        #[test]
        fn nearest_times_are_those_of_whole_seconds(seconds in -8_000_000_000_i64..8_000_000_000, days in -90_000_i64..90_000) {
            let value = seconds as f64 / 86_400.0;
            let total = seconds + days * 86_400;
            // Doubles of more days are further apart than two microseconds.
            prop_assume!(total.abs() < 131_072 * 86_400);
            for (to_ns, per_second) in [(DAY_NS, 86_400.0), (DAY_NS / 24, 3_600.0), (1_000_000_000, 1.0)] {
                let scale = nearest(DAY_NS, to_ns, i128::from(days) * i128::from(DAY_NS));
                let found = scale.float(value, DOUBLE).unwrap();
                let expected = total as f64 / per_second;
                prop_assert!((found - expected).abs() * per_second <= 2e-6, "{} is not {}", found, expected);
            }
        }
    }

    #[test]
    fn thirds_of_a_day_become_whole_hours() {
        let scale = nearest(DAY_NS, DAY_NS / 24, i128::from(DAY_NS) * 31);
        for third in 0..90 {
            assert_eq!(scale.float(f64::from(third) / 3.0, DOUBLE), Ok(f64::from(third * 8 + 31 * 24)));
        }
    }

    #[test]
    fn times_are_nearest_only_within_a_microsecond() {
        let single = NumberType::Float { len_bytes: 4, is_big_endian: false };
        let scale = nearest(DAY_NS, DAY_NS, i128::from(DAY_NS) * 31);
        assert_eq!(scale.float(1.0 / 3.0, DOUBLE), Ok(31.0 + 1.0 / 3.0));
        assert!(scale.float(1.0 / 3.0, single).unwrap_err().reason.contains("microsecond"));
        assert_eq!(scale.float(0.5, single), Ok(31.5));
        assert!(scale.float(1.0 / 3.0, NumberType::int64()).is_err());
        assert!(scale.float(1e300, DOUBLE).is_err());
        // Values that stand for missing ones stay, and no other value becomes one of them.
        assert_eq!(scale.float(-1.0, DOUBLE), Ok(-1.0));
        assert!(scale.float(-32.0, DOUBLE).is_err());
        assert!(scale.float(f64::NAN, DOUBLE).unwrap().is_nan());
    }

    #[test]
    fn multiples_are_rounded_to_the_nearest() {
        for (value, unit, multiple) in [
            (0.5, 3, Some(2)),
            (-0.5, 3, Some(-2)),
            (1.0 / 3.0, 86_400_000_000_000, Some(28_800_000_000_000)),
            (f64::MIN_POSITIVE / 2.0, i128::from(u64::MAX), Some(0)),
            (2_f64.powi(80), 4, Some(1 << 82)),
            (2_f64.powi(125), 4, None),
            (f64::MAX, 1, None),
        ] {
            assert_eq!(whole_multiple(value, unit), multiple, "{value} * {unit}");
        }
    }
}
