//! Units of measurement, and linear conversions between units of the same dimension.
//!
//! Parses units like UDUNITS-2: products and quotients of powers, with SI prefixes (`W m-2`, `kg/(m2 s)`, `10^-6 mol
//! mol-1`, `degC`). Times that count from a reference ([`super::time_units`]) and logarithmic units are not supported.
//! Source: grammar and database of UDUNITS-2. Invariant: only units of one dimension have a map, and factors are
//! rounded once.

mod exact;
mod parse;
mod table;

use exact::Exact;

/// Number of base units.
const BASES: usize = 7;

/// A unit in SI base units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unit {
    /// Scale factor to base units.
    scale: Exact,
    /// Offset of its zero, in base units.
    zero: Exact,
    /// Exponents of the base units.
    dimension: [i8; BASES],
}

impl Unit {
    fn number(scale: Exact) -> Self {
        Self { scale, zero: Exact::ZERO, dimension: [0; BASES] }
    }

    fn base(index: usize) -> Self {
        let mut dimension = [0; BASES];
        dimension[index] = 1;
        Self { dimension, ..Self::number(Exact::ONE) }
    }

    /// Returns the product. A unit with an offset (`degC`) loses it in products; multiples of it are not supported.
    fn times(self, other: Self) -> Option<Self> {
        let is_number = |unit: Self| unit.dimension == [0; BASES];
        let is_offset = |unit: Self| unit.zero != Exact::ZERO;
        for (number, unit) in [(self, other), (other, self)] {
            if is_number(number) && number.scale == Exact::ONE {
                return Some(unit);
            }
            if is_number(number) && is_offset(unit) {
                return None;
            }
        }
        let mut dimension = self.dimension;
        for (sum, exponent) in dimension.iter_mut().zip(other.dimension) {
            *sum = sum.checked_add(exponent)?;
        }
        Some(Self { scale: self.scale.times(other.scale)?, zero: Exact::ZERO, dimension })
    }

    fn power(self, exponent: i8) -> Option<Self> {
        if exponent == 1 {
            return Some(self);
        }
        let mut dimension = self.dimension;
        for one in &mut dimension {
            *one = one.checked_mul(exponent)?;
        }
        Some(Self { scale: self.scale.power(exponent)?, zero: Exact::ZERO, dimension })
    }
}

/// Returns slope and shift that convert `from` to `to`; `None` if there is no such map.
pub fn linear_map(from: &str, to: &str) -> Option<(f64, f64)> {
    let (slope, shift) = exact_map(from, to)?;
    let map = (slope.to_f64(), shift.to_f64());
    (map.0.is_normal() && map.1.is_finite()).then_some(map)
}

/// Linear map in whole numbers: `(value * multiplier + offset) / divisor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WholeMap {
    /// Factor.
    pub multiplier: i64,
    /// Common divisor.
    pub divisor: i64,
    /// Summand.
    pub offset: i128,
}

/// Returns the map from `from` to `to` in whole numbers; `None` if there is none, as between degrees and radians.
pub fn whole_map(from: &str, to: &str) -> Option<WholeMap> {
    let (slope, shift) = exact_map(from, to)?;
    let ((numerator, denominator), (shift, divisor)) = (slope.ratio()?, shift.ratio()?);
    Some(WholeMap {
        multiplier: numerator.checked_mul(divisor)?.try_into().ok()?,
        divisor: denominator.checked_mul(divisor)?.try_into().ok()?,
        offset: shift.checked_mul(denominator)?,
    })
}

fn exact_map(from: &str, to: &str) -> Option<(Exact, Exact)> {
    let (from, to) = (parse::unit(from)?, parse::unit(to)?);
    if from.dimension != to.dimension {
        return None;
    }
    let inverse = to.scale.inverse()?;
    Some((from.scale.times(inverse)?, from.zero.minus(to.zero)?.times(inverse)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slope(from: &str, to: &str) -> Option<f64> {
        linear_map(from, to).filter(|(_, shift)| *shift == 0.0).map(|(slope, _)| slope)
    }

    #[test]
    fn maps_are_those_of_the_units() {
        assert_eq!(linear_map("degC", "K"), Some((1.0, 273.15)));
        assert_eq!(linear_map("K", "degrees_C"), Some((1.0, -273.15)));
        assert_eq!(linear_map("degF", "Celsius"), Some((5.0 / 9.0, -160.0 / 9.0)));
        assert_eq!(slope("hPa", "Pa"), Some(100.0));
        assert_eq!(slope("g kg-1", "%"), Some(0.1));
        assert_eq!(slope("mm day-1", "m s-1"), Some(0.001 / 86_400.0));
        assert_eq!(slope("degree_north", "radian"), Some(std::f64::consts::PI / 180.0));
        assert_eq!(slope("m", "Pa"), None);
        assert_eq!(slope("smoot", "m"), None);
    }

    #[test]
    fn maps_in_whole_numbers_are_exact() {
        let map = |multiplier, divisor, offset| Some(WholeMap { multiplier, divisor, offset });
        assert_eq!(whole_map("days", "hours"), map(24, 1, 0));
        assert_eq!(whole_map("hours", "days"), map(1, 24, 0));
        assert_eq!(whole_map("degC", "K"), map(20, 20, 5463));
        assert_eq!(whole_map("W m-2", "W/m2"), map(1, 1, 0));
        assert_eq!(whole_map("degree", "radian"), None);
        assert_eq!(whole_map("m", "Pa"), None);
    }

    #[test]
    fn spellings_of_one_unit_are_one_unit() {
        for spelling in
            ["W m-2", "W/m2", "W.m^-2", "watts per meter^2", "W*m**-2", "W m⁻²", "J s-1 m-2", "kg s-3", "W/(m m)"]
        {
            assert_eq!(slope("W m-2", spelling), Some(1.0), "{spelling}");
        }
        assert_eq!(slope("W/m2 s", "W m-2 s"), Some(1.0));
        assert_eq!(slope("1e-3 kg", "g"), Some(1.0));
        assert_eq!(slope("10^-6", "ppm"), Some(1.0));
    }

    #[test]
    fn names_come_before_prefixes() {
        assert_eq!(slope("min", "s"), Some(60.0));
        assert_eq!(slope("Pa", "hPa"), Some(0.01));
        assert_eq!(slope("dam", "m"), Some(10.0));
        assert_eq!(slope("cd", "candela"), Some(1.0));
        assert_eq!(slope("kilometers", "km"), Some(1.0));
        assert_eq!(slope("feet", "inches"), Some(12.0));
    }

    #[test]
    fn scales_with_another_zero_count_by_their_steps_in_products() {
        assert_eq!(slope("degC m-1", "K m-1"), Some(1.0));
        assert_eq!(slope("degC2", "K2"), Some(1.0));
        assert_eq!(linear_map("0.1 degC", "K"), None);
    }

    #[test]
    fn anything_but_a_unit_has_no_map() {
        let texts = [
            "",
            " ",
            "m^",
            "m^^2",
            "(m",
            "m)",
            "m-",
            "/",
            "days since 2000-01-01",
            "K @ 273.15",
            "lg(re 1 mW)",
            "m m2m",
            "1e99999 m",
            "m999",
        ];
        for text in texts {
            assert_eq!(linear_map(text, text), None, "{text}");
        }
    }
}
