//! Conversions: how an input's values become those of the output, as plain numbers, and their application to a box.
//!
//! Made by [`settle`](super::settle), applied by [`ColumnReader`](crate::values::ColumnReader). Invariant: a conversion
//! gives the value that the convention's readers would see as equal, or an error that names the value.

use super::attribute::string;
use super::number::NumberType;
use super::pick::Pick;
use super::repack::OnePacking;
use raddle_core::extent::{BoxSource, BoxTarget, Extent, copy_box};
use raddle_hdf5::logical::CanonicalElements;
use raddle_hdf5::model::TypeClass;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How the parts of a column are converted, input by input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversion {
    /// Of each input, in input order.
    pub of_inputs: Vec<InputConversion>,
}

/// How one input's part of a column is converted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InputConversion {
    /// What happens to each value.
    pub map: ElementMap,
    /// The place in the input of each element on another axis, `None` where the input has none.
    pub gather: Option<Gather>,
    /// Which elements are taken, where not all are.
    pub pick: Option<Pick>,
}

/// An axis whose elements come from other places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gather {
    /// The axis.
    pub axis: usize,
    /// Of each element in the output, the place in the input.
    pub from: Arc<[Option<u32>]>,
    /// Elements in the input.
    pub len: u64,
}

/// What happens to each value.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub enum ElementMap {
    /// Nothing.
    #[default]
    Same,
    /// It is stored in another type, which holds it exactly.
    Cast,
    /// A number is added to those that are not negative: these are positions, others stand for none.
    Shift(i64),
    /// `value * multiplier / divisor + offset / divisor`, which must be exact in the output's type.
    Scale {
        /// Factor.
        multiplier: i64,
        /// Divisor of both.
        divisor: i64,
        /// What is added, in units of one divisor-th.
        offset: i128,
        /// Values that are not converted, such as the fill value.
        kept: Vec<f64>,
        /// What the input counts, and the output, in words.
        units: (String, String),
    },
    /// `value * scale + offset` in floating point; some values become the output's fill value.
    Unpack {
        /// Factor.
        scale: f64,
        /// What is added.
        offset: f64,
        /// Packed values that stand for missing ones.
        missing: Vec<f64>,
        /// The stored integers are of the other signedness (`_Unsigned`).
        reinterpret: bool,
        /// Computed in 32 bits, as readers do for small types.
        in_single: bool,
    },
    /// The same, and then packed as the output packs values.
    Repack {
        /// Factor.
        scale: f64,
        /// What is added.
        offset: f64,
        /// Packed values that stand for missing ones.
        missing: Vec<f64>,
        /// The stored integers are of the other signedness (`_Unsigned`).
        reinterpret: bool,
        /// The output's packing.
        packing: OnePacking,
    },
    /// A float in other units: `value * slope + shift`, rounded.
    Linear {
        /// Factor.
        slope: f64,
        /// What is added.
        shift: f64,
        /// Values that are not converted, such as the fill value.
        kept: Vec<f64>,
    },
    /// Non-negative values are looked up; negative ones stay.
    Lookup(Arc<[i64]>),
    /// Texts are followed by this one.
    Suffix(Arc<str>),
    /// Texts of no length, of an input that has none.
    Blank,
}

/// Rows of an input that the output does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trim {
    /// Rows before those taken.
    pub leading: u64,
    /// Rows that the input has.
    pub stored_rows: u64,
}

impl InputConversion {
    /// Whether values come out as they are stored.
    pub fn is_identity(&self) -> bool {
        self.map == ElementMap::Same && self.gather.is_none() && self.pick.is_none()
    }
}

/// A value that a conversion cannot turn into one of the output.
#[derive(Debug, Clone, PartialEq)]
pub struct Inexact {
    /// The value, as stored.
    pub value: String,
    /// Why.
    pub reason: String,
}

impl Inexact {
    fn new(value: &dyn std::fmt::Display, reason: impl Into<String>) -> Self {
        Self { value: value.to_string(), reason: reason.into() }
    }

    /// A value without a counterpart in other units.
    fn of_units(value: &dyn std::fmt::Display, (from, to): &(String, String)) -> Self {
        let value = format!("{value} {from}");
        let reason = format!("has no exact counterpart in {to}");
        Self { value, reason }
    }
}

/// The stored integer of a missing time (numpy's `NaT`), which xarray writes and reads without a `_FillValue`.
pub(super) const NO_TIME: i64 = i64::MIN;

/// Values decoded at once: 32 KiB of 64-bit numbers.
const BLOCK_ELEMENTS: usize = 4096;

/// Buffers of [`convert`].
#[derive(Debug, Default)]
pub(crate) struct ConvertBuffers {
    integers: Vec<i64>,
    floats: Vec<f64>,
}

/// Appends the values in `stored`, converted from one type to another.
///
/// # Errors
/// The first value that has no exact counterpart.
pub(crate) fn convert(
    map: &ElementMap,
    stored: &[u8],
    (from, to): (&TypeClass, &TypeClass),
    buffers: &mut ConvertBuffers,
    out: &mut Vec<u8>,
) -> Result<(), Inexact> {
    if *map == ElementMap::Same {
        out.extend_from_slice(stored);
        return Ok(());
    }
    let (Some(source), Some(target)) = (NumberType::of(from), NumberType::of(to)) else {
        return Err(Inexact::new(&"its type", "is not a plain number"));
    };
    out.reserve(stored.len() / source.len_bytes() * target.len_bytes());
    for block in stored.chunks(BLOCK_ELEMENTS * source.len_bytes()) {
        convert_block(map, block, source, target, buffers, out)?;
    }
    Ok(())
}

fn convert_block(
    map: &ElementMap,
    block: &[u8],
    source: NumberType,
    target: NumberType,
    ConvertBuffers { integers, floats }: &mut ConvertBuffers,
    out: &mut Vec<u8>,
) -> Result<(), Inexact> {
    const BEYOND: &str = "is beyond 63 bits";
    const MISFIT: &str = "does not fit the type of the output";
    let inexact = |value: &dyn std::fmt::Display, reason: &str| Err(Inexact::new(value, reason));
    if let ElementMap::Unpack { scale, offset, missing, reinterpret, in_single } = map {
        let source = if *reinterpret { other_signedness(source) } else { source };
        source.decode_floats(block, integers, floats);
        for value in floats.iter_mut() {
            let is_missing = missing.contains(value);
            *value = match (is_missing, in_single) {
                (true, _) => f64::NAN,
                (false, true) => f64::from((*value as f32).mul_add_like(*scale as f32, *offset as f32)),
                (false, false) => *value * scale + offset,
            };
        }
        target.encode_floats(floats, out);
        return Ok(());
    }
    if let ElementMap::Repack { scale, offset, missing, reinterpret, packing } = map {
        let source = if *reinterpret { other_signedness(source) } else { source };
        source.decode_floats(block, integers, floats);
        integers.clear();
        integers.extend(floats.iter().map(|value| match missing.contains(value) {
            true => packing.missing,
            false => packing.stored(value * scale + offset),
        }));
        return target.encode_integers(integers, out).map_err(|at| Inexact::new(&integers[at], MISFIT));
    }
    if source.is_integer() {
        if !source.decode_integers(block, integers) {
            let at = integers.iter().position(|&value| value < 0).unwrap_or(0);
            return inexact(&(integers[at] as u64), BEYOND);
        }
        match map {
            ElementMap::Shift(by) => {
                for value in integers.iter_mut().filter(|value| **value >= 0) {
                    *value = match value.checked_add(*by) {
                        Some(sum) => sum,
                        None => return inexact(value, BEYOND),
                    };
                }
            }
            ElementMap::Lookup(table) => {
                for value in integers.iter_mut().filter(|value| **value >= 0) {
                    match usize::try_from(*value).ok().and_then(|at| table.get(at)) {
                        Some(found) => *value = *found,
                        None => return inexact(value, "leads beyond what it counts"),
                    }
                }
            }
            ElementMap::Scale { multiplier, divisor, offset, kept, units } => {
                let is_kept = |value: i64| value == NO_TIME || kept.contains(&(value as f64));
                for value in integers.iter_mut().filter(|value| !is_kept(**value)) {
                    let scaled = i128::from(*value) * i128::from(*multiplier) + offset;
                    let exact = (scaled % i128::from(*divisor) == 0).then(|| scaled / i128::from(*divisor));
                    *value = match exact.and_then(|exact| i64::try_from(exact).ok()) {
                        Some(exact) => exact,
                        None => return Err(Inexact::of_units(value, units)),
                    };
                }
            }
            ElementMap::Linear { .. } => return inexact(&integers[0], "is an integer, which other units would round"),
            ElementMap::Same | ElementMap::Cast | ElementMap::Unpack { .. } | ElementMap::Repack { .. } => {}
            ElementMap::Suffix(_) | ElementMap::Blank => return inexact(&"a number", "is not a text"),
        }
        if target.is_integer() {
            return match target.encode_integers(integers, out) {
                Ok(()) => Ok(()),
                Err(at) => inexact(&integers[at], MISFIT),
            };
        }
        if integers.contains(&NO_TIME) {
            return inexact(&NO_TIME, "stands for a missing value, which the floats of the output cannot represent");
        }
        // Exact: a float holds every integer of up to its precision.
        floats.clear();
        floats.extend(integers.iter().map(|&value| value as f64));
        let is_exact = |at: usize| holds(target, floats[at]) && floats[at] as i64 == integers[at];
        if let Some(at) = (0..floats.len()).find(|&at| !is_exact(at)) {
            return inexact(&integers[at], MISFIT);
        }
        target.encode_floats(floats, out);
        return Ok(());
    }
    source.decode_floats(block, integers, floats);
    match map {
        ElementMap::Scale { multiplier, divisor, offset, kept, units } => {
            for value in floats.iter_mut().filter(|value| value.is_finite() && !kept.contains(value)) {
                *value = match scale_exactly(*value, *multiplier, *divisor, *offset) {
                    Some(exact) if holds(target, exact) => exact,
                    _ => return Err(Inexact::of_units(value, units)),
                };
            }
        }
        ElementMap::Linear { slope, shift, kept } => {
            for value in floats.iter_mut().filter(|value| !kept.contains(value)) {
                *value = *value * slope + shift;
            }
        }
        ElementMap::Cast => {
            if let Some(value) = floats.iter().find(|value| !value.is_nan() && !holds(target, **value)) {
                return inexact(value, MISFIT);
            }
        }
        _ => return inexact(&"a float", "is not a whole number"),
    }
    if target.is_integer() {
        integers.clear();
        for value in floats.iter() {
            if value.fract() != 0.0 || value.abs() >= 9.2e18 {
                return inexact(value, MISFIT);
            }
            integers.push(*value as i64);
        }
        return match target.encode_integers(integers, out) {
            Ok(()) => Ok(()),
            Err(at) => inexact(&integers[at], MISFIT),
        };
    }
    target.encode_floats(floats, out);
    Ok(())
}

/// `a * b + c` in two roundings, as array libraries compute it.
trait MulAddLike {
    fn mul_add_like(self, factor: Self, addend: Self) -> Self;
}

impl MulAddLike for f32 {
    fn mul_add_like(self, factor: f32, addend: f32) -> f32 {
        self * factor + addend
    }
}

fn other_signedness(number: NumberType) -> NumberType {
    match number {
        NumberType::Integer { len_bytes, signed, is_big_endian } => {
            NumberType::Integer { len_bytes, signed: !signed, is_big_endian }
        }
        float @ NumberType::Float { .. } => float,
    }
}

/// Whether a float type holds this value without rounding; integer types hold whole numbers.
fn holds(target: NumberType, value: f64) -> bool {
    match target {
        NumberType::Float { len_bytes: 4, .. } => f64::from(value as f32) == value,
        NumberType::Float { .. } => true,
        NumberType::Integer { .. } => value.fract() == 0.0,
    }
}

/// `(value * multiplier + offset) / divisor` if a 64-bit float holds it; `None` also where the numbers on the way pass
/// 127 bits.
fn scale_exactly(value: f64, multiplier: i64, divisor: i64, offset: i128) -> Option<f64> {
    // value = mantissa / 2^shift, with the least shift.
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
    // total / (divisor * 2^shift): the divisor must go in after powers of two are taken out of it.
    let (odd, twos) = (divisor >> divisor.trailing_zeros(), divisor.trailing_zeros());
    if odd == 0 || total % i128::from(odd) != 0 {
        return None;
    }
    let quotient = total / i128::from(odd);
    let result = quotient as f64 / 2_f64.powi((shift + twos) as i32);
    // Rounded where more than 53 bits are significant.
    let significant = quotient.unsigned_abs().checked_shr(quotient.trailing_zeros().min(127)).unwrap_or(0);
    (significant < 1 << 53).then_some(result)
}

/// Texts in canonical bytes, each followed by `suffix`.
pub(crate) fn with_suffix(class: &TypeClass, canonical: &[u8], suffix: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(canonical.len() * 2);
    for element in CanonicalElements::new(class, canonical).flatten() {
        let text = string(class, element).unwrap_or_default();
        out.extend_from_slice(&((text.len() + suffix.len()) as u64).to_le_bytes());
        out.extend_from_slice(text);
        out.extend_from_slice(suffix.as_bytes());
    }
    out
}

/// Converts a box of an input's values to the output's and copies it to `target`.
///
/// `stored` holds, in the input's type, the elements of `read` (the box that [`source_box`] gives), row-major.
pub(crate) fn convert_piece(
    conversion: &InputConversion,
    (stored, read): (&[u8], &Extent),
    source: &Extent,
    (from, to): (&TypeClass, &TypeClass),
    fill: &[u8],
    (buffers, converted): (&mut ConvertBuffers, &mut Vec<u8>),
    target: BoxTarget<'_>,
) -> Result<(), ConvertError> {
    converted.clear();
    convert(&conversion.map, stored, (from, to), buffers, converted)?;
    let element_len_bytes = to.len_bytes() as usize;
    let Some(gather) = &conversion.gather else {
        let origin = vec![0; read.rank()];
        let values = BoxSource { bytes: converted, shape: &read.count, origin: &origin };
        return Ok(copy_box(values, target, &source.count, element_len_bytes)?);
    };
    // Element by element on the gathered axis, as slabs of the axes before it and runs of those behind it.
    let axis = gather.axis;
    let run_len_bytes = source.count[axis + 1..].iter().product::<u64>() as usize * element_len_bytes;
    let (slabs, wanted) = (source.count[..axis].iter().product::<u64>() as usize, source.count[axis] as usize);
    let read_along = read.count[axis] as usize;
    let mut gathered = Vec::with_capacity(slabs * wanted * run_len_bytes);
    for slab in 0..slabs {
        for place in 0..wanted {
            match gather.from.get(source.start[axis] as usize + place).copied().flatten() {
                Some(at) => {
                    let start = (slab * read_along + (u64::from(at) - read.start[axis]) as usize) * run_len_bytes;
                    gathered.extend_from_slice(&converted[start..start + run_len_bytes]);
                }
                None => (0..run_len_bytes / element_len_bytes).for_each(|_| gathered.extend_from_slice(fill)),
            }
        }
    }
    let origin = vec![0; read.rank()];
    let values = BoxSource { bytes: &gathered, shape: &source.count, origin: &origin };
    Ok(copy_box(values, target, &source.count, element_len_bytes)?)
}

/// The box of the input that `source`, a box of what it contributes, is made of; `None` where it needs nothing of it.
pub(crate) fn source_box(conversion: &InputConversion, source: &Extent) -> Option<Extent> {
    let mut read = source.clone();
    if let Some(Gather { axis, from, .. }) = &conversion.gather {
        let range = source.start[*axis] as usize..source.end(*axis) as usize;
        let places = from.get(range)?.iter().flatten();
        let (first, last) = (places.clone().min()?, places.max()?);
        (read.start[*axis], read.count[*axis]) = (u64::from(*first), u64::from(last - first + 1));
    }
    Some(read)
}

/// Why a box could not be converted.
#[derive(Debug)]
pub(crate) enum ConvertError {
    /// A value.
    Inexact(Inexact),
    /// The box.
    Core(raddle_core::CoreError),
}

impl From<Inexact> for ConvertError {
    fn from(error: Inexact) -> Self {
        Self::Inexact(error)
    }
}

impl From<raddle_core::CoreError> for ConvertError {
    fn from(error: raddle_core::CoreError) -> Self {
        Self::Core(error)
    }
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
                // result = p / q exactly: compare cross products of its own decomposition.
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

    #[test]
    fn columns_are_gathered_and_filled() {
        let conversion = InputConversion {
            map: ElementMap::Same,
            gather: Some(Gather { axis: 1, from: vec![Some(2), None, Some(0)].into(), len: 3 }),
            pick: None,
        };
        let class = NumberType::Integer { len_bytes: 1, signed: false, is_big_endian: false }.class();
        let source = Extent::new(&[0, 0], &[2, 3]);
        let read = source_box(&conversion, &source).unwrap();
        assert_eq!((read.start.as_slice(), read.count.as_slice()), (&[0, 0][..], &[2, 3][..]));
        let stored = [1, 2, 3, 4, 5, 6];
        let mut out = [0; 6];
        let target = BoxTarget { bytes: &mut out, shape: &[2, 3], origin: &[0, 0] };
        let (mut buffers, mut converted) = (ConvertBuffers::default(), Vec::new());
        let types = (&class, &class);
        let scratch = (&mut buffers, &mut converted);
        convert_piece(&conversion, (&stored, &read), &source, types, &[9], scratch, target).unwrap();
        assert_eq!(out, [3, 9, 1, 6, 9, 4]);
    }

    #[test]
    fn values_without_a_counterpart_are_named() {
        let class = NumberType::Integer { len_bytes: 1, signed: false, is_big_endian: false }.class();
        let run = |map: ElementMap, stored: &[u8]| {
            let mut out = Vec::new();
            convert(&map, stored, (&class, &class), &mut ConvertBuffers::default(), &mut out).map(|()| out)
        };
        assert_eq!(run(ElementMap::Shift(3), &[1, 2]).unwrap(), [4, 5]);
        assert_eq!(run(ElementMap::Shift(3), &[1, 253]).unwrap_err().value, "256");
        assert_eq!(run(ElementMap::Lookup(vec![7, 5].into()), &[1, 0]).unwrap(), [5, 7]);
        assert_eq!(run(ElementMap::Lookup(vec![7, 5].into()), &[2]).unwrap_err().value, "2");
        let units = ("hours".to_owned(), "days".to_owned());
        let half = ElementMap::Scale { multiplier: 1, divisor: 2, offset: 0, kept: vec![9.0], units };
        assert_eq!(run(half.clone(), &[4, 9]).unwrap(), [2, 9]);
        assert_eq!(run(half, &[5]).unwrap_err().value, "5 hours");
    }
}
