//! Packed numbers as CF defines them: the attributes of a packing, and the one packing of repacked values.
//!
//! Invariant: no repacked value differs from the input's value by more than half a step of the packing.

use crate::schema::AttributeValue;
use crate::schema::attribute::numbers;
pub use raddle_hdf5::netcdf::PACKING;
use raddle_hdf5::number::NumberType;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Attributes with which a stored number is not the number that readers see.
pub const STORED_OTHERWISE: [&str; 3] = ["scale_factor", "add_offset", "_Unsigned"];
/// Attributes that define which stored numbers are valid.
pub const VALID: [&str; 3] = ["valid_min", "valid_max", "valid_range"];

/// Returns whether an attribute of [`VALID`] makes no stored number of this type invalid.
pub(crate) fn is_without_effect(limit: &AttributeValue, number: NumberType) -> bool {
    let NumberType::Integer { len_bytes: len @ 1..=4, signed, .. } = number else { return false };
    let count = 2_f64.powi(8 * i32::from(len));
    let (least, largest) = if signed { (-count / 2.0, count / 2.0 - 1.0) } else { (0.0, count - 1.0) };
    match (limit.name.as_slice(), numbers(limit).as_deref()) {
        (b"valid_min", Some(&[min])) => min <= least,
        (b"valid_max", Some(&[max])) => max >= largest,
        (b"valid_range", Some(&[min, max])) => min <= least && max >= largest,
        _ => false,
    }
}

/// Hint for inputs that pack values differently.
pub const DECIDES: &str = "--packing unpack writes floats, --packing repack integers with one scale and offset";

/// Minimum and maximum of the values of datasets, indexed by path.
pub(crate) type Ranges = HashMap<Vec<u8>, (f64, f64)>;

/// Packing of the output: `stored * scale + offset`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OutputPacking {
    /// Factor.
    pub scale: f64,
    /// Summand.
    pub offset: f64,
    /// Stored number of a missing value.
    pub missing: i64,
    /// Smallest and largest stored number.
    pub stored: (i64, i64),
}

impl OutputPacking {
    /// Returns the packing of values between `least` and `largest` in integers of a type; `None` if the type does not
    /// consist of integers of up to 32 bits.
    pub(crate) fn of(number: NumberType, (least, largest): (f64, f64)) -> Option<Self> {
        let NumberType::Integer { len_bytes: len @ 1..=4, signed, .. } = number else { return None };
        let steps = (1_i64 << (8 * len)) - 2;
        // One number is reserved for missing values: the smallest if signed, otherwise the largest.
        let (missing, first) = if signed { (-(steps / 2) - 1, -(steps / 2)) } else { (steps + 1, 0) };
        let scale = if largest > least { (largest - least) / steps as f64 } else { 1.0 };
        let offset = least - first as f64 * scale;
        Some(Self { scale, offset, missing, stored: (first, first + steps) })
    }

    /// Returns the stored number of a value; for NaN, the number of a missing value.
    pub(crate) fn stored(&self, value: f64) -> i64 {
        if value.is_nan() {
            return self.missing;
        }
        // Rounding may lead beyond the ends, whose values are the minimum and maximum.
        rounded((value - self.offset) / self.scale).clamp(self.stored.0, self.stored.1)
    }
}

/// Rounds half away from zero, like `f64::round`, which is a call of a function on processors without SSE 4.1.
fn rounded(value: f64) -> i64 {
    let whole = value as i64;
    let rest = value - whole as f64;
    whole.saturating_add(i64::from(rest >= 0.5)).saturating_sub(i64::from(rest <= -0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn values_are_rounded_as_the_standard_library_does(value: f64, near in -1e6..1e6, whole in -1_000_000_i32..1_000_000) {
            let half = f64::from(whole) + 0.5;
            for value in [value, near, half, half.next_up(), half.next_down()] {
                proptest::prop_assert_eq!(rounded(value), value.round() as i64);
            }
        }
    }

    #[test]
    fn the_ends_are_the_ends_of_the_type_and_one_number_is_left() {
        for (len_bytes, signed, ends, missing) in [
            (1, true, (-127, 127), -128),
            (1, false, (0, 254), 255),
            (2, true, (-32_767, 32_767), -32_768),
            (4, false, (0, u32::MAX.into()), i64::from(u32::MAX)),
        ] {
            let number = NumberType::Integer { len_bytes, signed, is_big_endian: false };
            let packing = OutputPacking::of(number, (-3.0, 11.5)).unwrap();
            let ends = if len_bytes == 4 { (0, i64::from(u32::MAX) - 1) } else { ends };
            assert_eq!(
                (packing.stored(-3.0), packing.stored(11.5), packing.stored(f64::NAN)),
                (ends.0, ends.1, missing)
            );
            for value in [-3.0, 0.1, 4.0, 11.499] {
                let read = packing.stored(value) as f64 * packing.scale + packing.offset;
                assert!((read - value).abs() <= packing.scale * 0.500_001);
            }
        }
        assert_eq!(OutputPacking::of(NumberType::Float { len_bytes: 4, is_big_endian: false }, (0.0, 1.0)), None);
        let constant =
            OutputPacking::of(NumberType::Integer { len_bytes: 2, signed: true, is_big_endian: false }, (5.0, 5.0));
        assert_eq!(constant.map(|packing| packing.stored(5.0) as f64 * packing.scale + packing.offset), Some(5.0));
    }
}
