//! `--packing repack`: one packing for the values of all inputs, with the smallest possible step.
//!
//! The first plan has the values unpacked, and their range is found by reading them; the second plan packs them.
//! Invariant: no value differs from the input's value by more than half a step of the packing.

use super::attribute::{self, replaced, without};
use super::conversion::{Conversion, ElementMap, InputConversion};
use super::packing::{PACKING, single_number, unpacking};
use super::settle::{Declared, Mismatch, Settling};
use crate::error::Result;
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::schema::{ColumnIndex, Role, display_path};
use crate::write::values::{ColumnReader, open_pool};
use raddle_hdf5::model::{Datatype, InlineData};
use raddle_hdf5::number::NumberType;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// Number of bytes of unpacked values that are read at once.
const BLOCK_LEN_BYTES: u64 = 4 << 20;

/// Minimum and maximum of the values of datasets, by path.
pub(crate) type Ranges = HashMap<Vec<u8>, (f64, f64)>;

/// Packing of the output: `stored * scale + offset`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OnePacking {
    /// Factor.
    pub scale: f64,
    /// Summand.
    pub offset: f64,
    /// Stored number of a missing value.
    pub missing: i64,
    /// Smallest and largest stored number.
    pub stored: (i64, i64),
}

impl OnePacking {
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

/// Finds the range of the unpacked values of the datasets at `paths`.
pub(crate) fn ranges(plan: &MergePlan, paths: &[Vec<u8>], watch: &Watch<'_>) -> Result<Ranges> {
    let pool = open_pool(plan);
    let mut reader = ColumnReader::new(plan, &pool);
    let mut ranges = Ranges::new();
    for path in paths {
        let column = crate::write::picking::column_at(plan, path)?;
        let Some(number) = NumberType::of(&plan.schema.columns[column as usize].model().datatype.class) else {
            continue;
        };
        let dims = &plan.columns[column as usize].dims;
        let row_len_bytes = dims.iter().skip(1).product::<u64>() * number.len_bytes() as u64;
        let block_rows = (BLOCK_LEN_BYTES / row_len_bytes.max(1)).max(1);
        let (mut bytes, mut integers, mut floats) = (Vec::new(), Vec::new(), Vec::new());
        let (mut least, mut largest) = (f64::INFINITY, f64::NEG_INFINITY);
        for start in (0..dims[0]).step_by(block_rows as usize) {
            watch.cancel.check()?;
            let rows = start..dims[0].min(start + block_rows);
            bytes.clear();
            bytes.resize(((rows.end - rows.start) * row_len_bytes) as usize, 0);
            reader.read_rows(column, rows, &mut bytes)?;
            number.decode_floats(&bytes, &mut integers, &mut floats);
            for value in floats.iter().filter(|value| !value.is_nan()) {
                (least, largest) = (least.min(*value), largest.max(*value));
            }
        }
        ranges.insert(path.clone(), if least <= largest { (least, largest) } else { (0.0, 0.0) });
    }
    Ok(ranges)
}

/// Packs the values of all inputs in the same way, once their range is known.
pub(super) fn settle(settling: &mut Settling<'_>, declared: &Declared, column: ColumnIndex, range: (f64, f64)) {
    let refuse = |settling: &mut Settling<'_>, found: &str| {
        let mismatch = Mismatch::new("integers of up to 32 bits and finite values", found);
        settling.refuse(declared.entry, mismatch.or("--packing unpack writes the values as floats"), Vec::new());
    };
    let Some(number) = single_number(settling, column) else {
        return refuse(settling, "values of several types, which no single packing covers");
    };
    let packing = OnePacking::of(number, range).filter(|packing| packing.scale.is_finite() && packing.scale > 0.0);
    let Some(packing) = packing else { return refuse(settling, "values that no packing covers") };
    let maps = match unpacking(settling, declared, column) {
        Ok(maps) => maps,
        Err((mismatch, inputs)) => return settling.refuse(declared.entry, mismatch, inputs),
    };
    let of_inputs = maps.into_iter().map(|map| {
        let map = match map {
            ElementMap::Unpack { scale, offset, missing, reinterpret, .. } => {
                ElementMap::Repack { scale, offset, missing, reinterpret, packing }
            }
            other => other,
        };
        InputConversion { map, ..InputConversion::default() }
    });
    let conversion = Conversion { of_inputs: of_inputs.collect() };
    let mut output = settling.schema.columns[column as usize].model().clone();
    output.datatype = Datatype { class: Arc::new(number.class()), committed: None };
    let mut missing = Vec::new();
    // The number is one of the type's, so this cannot fail.
    let _ = number.encode_integers(&[packing.missing], &mut missing);
    output.fill.value = Some(InlineData::Stored(missing.clone()));
    (output.fill.user_defined, output.fill.undefined) = (true, false);
    let mut attributes = without(&declared.first, &PACKING);
    let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
    for (name, value) in [("scale_factor", packing.scale), ("add_offset", packing.offset)] {
        let mut bytes = Vec::new();
        double.encode_floats(&[value], &mut bytes);
        attributes = replaced(&attributes, attribute::new(name, double.class(), &[1], bytes));
    }
    attributes = replaced(&attributes, attribute::new("_FillValue", number.class(), &[1], missing));
    settling.set_attributes(declared.entry, attributes);
    settling.schema.columns[column as usize].set_output(output);
    settling.convert(column, None, conversion);
}

/// Describes each repacked dataset, with its largest error.
pub(crate) fn describe(plan: &MergePlan) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in &plan.schema.entries {
        let Role::Column(column) = entry.role else { continue };
        let Some(conversion) = &plan.schema.columns[column as usize].conversion else { continue };
        let packing = conversion.of_inputs.iter().find_map(|one| match &one.map {
            ElementMap::Repack { packing, .. } => Some(packing),
            _ => None,
        });
        let Some(packing) = packing else { continue };
        lines.push(format!(
            "{} is repacked (scale_factor {}, add_offset {}): the largest error is {:.3e}",
            display_path(&entry.path),
            packing.scale,
            packing.offset,
            packing.scale / 2.0
        ));
    }
    lines
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
            let packing = OnePacking::of(number, (-3.0, 11.5)).unwrap();
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
        assert_eq!(OnePacking::of(NumberType::Float { len_bytes: 4, is_big_endian: false }, (0.0, 1.0)), None);
        let constant =
            OnePacking::of(NumberType::Integer { len_bytes: 2, signed: true, is_big_endian: false }, (5.0, 5.0));
        assert_eq!(constant.map(|packing| packing.stored(5.0) as f64 * packing.scale + packing.offset), Some(5.0));
    }
}
