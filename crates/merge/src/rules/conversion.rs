//! Conversions of an input's values to those of the output, as plain numbers, and their application to a box.
//!
//! [`settle`](super::settle) creates them, and [`ColumnReader`](crate::write::values::ColumnReader) applies them. Invariant: a
//! conversion yields the value that readers of the convention consider equal, or an error that names the value.

use super::inexact::Inexact;
use super::packed::OutputPacking;
use super::pick::Pick;
use super::unit_scale::{NO_TIME, UNWRITTEN, UnitScale, holds, narrowed};
use crate::schema::attribute::string;
use raddle_core::plan::extent::{BoxSource, BoxTarget, Extent, copy_box};
use raddle_hdf5::logical::CanonicalElements;
use raddle_hdf5::model::TypeClass;
use raddle_hdf5::number::NumberType;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Conversions of the parts of a column, one per input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversion {
    /// Conversion of each input, in input order.
    pub of_inputs: Vec<InputConversion>,
}

/// Conversion of one input's part of a column.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InputConversion {
    /// Conversion of each value.
    pub map: ElementMap,
    /// Reordering of the elements of another axis, if there is any.
    pub gather: Option<Gather>,
    /// Selection of elements, if not all are taken.
    pub pick: Option<Pick>,
}

/// Axis whose elements are taken from other positions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gather {
    /// Number of the axis.
    pub axis: usize,
    /// Position in the input of each element of the output; `None` if the input lacks it.
    pub from: Arc<[Option<u32>]>,
    /// Number of elements in the input.
    pub len: u64,
}

/// Conversion of a value.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub enum ElementMap {
    /// Keep the value.
    #[default]
    Same,
    /// Store the value in a different type, which can represent it exactly.
    Cast,
    /// Add a number to nonnegative values, which are positions; negative values mean no position.
    Shift(i64),
    /// Count from another reference, in another unit.
    Scale(UnitScale),
    /// Compute `value * scale + offset` in floating point; some values become the output's fill value.
    Unpack {
        /// Factor.
        scale: f64,
        /// Summand.
        offset: f64,
        /// Packed values that represent missing ones.
        missing: Vec<f64>,
        /// Packed value that only some readers treat as missing.
        unwritten: Option<f64>,
        /// Whether stored integers have the other signedness (`_Unsigned`).
        reinterpret: bool,
        /// Whether to compute in 32 bits, as readers do for small types.
        in_single: bool,
    },
    /// Unpack with `value * scale + offset`, then pack as the output does.
    Repack {
        /// Factor.
        scale: f64,
        /// Summand.
        offset: f64,
        /// Packed values that represent missing ones.
        missing: Vec<f64>,
        /// Packed value that only some readers treat as missing.
        unwritten: Option<f64>,
        /// Whether stored integers have the other signedness (`_Unsigned`).
        reinterpret: bool,
        /// Packing of the output.
        packing: OutputPacking,
    },
    /// Convert a float to other units: `value * slope + shift`, rounded.
    Linear {
        /// Factor.
        slope: f64,
        /// Summand.
        shift: f64,
        /// Values that are not converted, such as the fill value.
        kept: Vec<f64>,
        /// Value that only some readers treat as missing.
        unwritten: Option<f64>,
    },
    /// Look up nonnegative values in a table; negative ones stay.
    Lookup(Arc<[i64]>),
    /// Append this suffix to strings.
    Suffix(Arc<str>),
    /// Write empty strings for an input that has none.
    Blank,
}

/// Rows of an input that the output does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trim {
    /// Number of rows before those taken.
    pub leading: u64,
    /// Number of rows that the input has.
    pub stored_rows: u64,
}

impl InputConversion {
    /// Returns whether values are passed on as stored.
    pub(crate) fn is_identity(&self) -> bool {
        self.map == ElementMap::Same && self.gather.is_none() && self.pick.is_none()
    }
}

impl ElementMap {
    /// Returns whether elements that were never written, which only some readers treat as missing, would change.
    pub(super) fn changes_unwritten(&self) -> bool {
        match self {
            Self::Unpack { unwritten, .. } | Self::Repack { unwritten, .. } => unwritten.is_some(),
            Self::Scale(scale) => scale.unwritten.is_some(),
            Self::Linear { slope, shift, unwritten, .. } => {
                unwritten.is_some_and(|unwritten| unwritten * slope + shift != unwritten)
            }
            _ => false,
        }
    }
}

/// Number of values decoded at once: 32 KiB of 64-bit numbers.
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
/// If a value has no exact counterpart. The error describes the first one.
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

const BEYOND: &str = "is beyond 63 bits";
const MISFIT: &str = "does not fit the type of the output";

fn convert_block(
    map: &ElementMap,
    block: &[u8],
    source: NumberType,
    target: NumberType,
    buffers: &mut ConvertBuffers,
    out: &mut Vec<u8>,
) -> Result<(), Inexact> {
    let ConvertBuffers { integers, floats } = buffers;
    let as_read = |reinterpret: bool| if reinterpret { source.with_other_signedness() } else { source };
    match map {
        ElementMap::Unpack { scale, offset, missing, unwritten, reinterpret, in_single } => {
            as_read(*reinterpret).decode_floats(block, integers, floats);
            check_written(floats, *unwritten)?;
            match in_single {
                true => {
                    let (scale, offset) = (*scale as f32, *offset as f32);
                    unpack(floats, missing, |value| f64::from(value as f32 * scale + offset));
                }
                false => unpack(floats, missing, |value| value * scale + offset),
            }
            target.encode_floats(floats, out);
            Ok(())
        }
        ElementMap::Repack { scale, offset, missing, unwritten, reinterpret, packing } => {
            as_read(*reinterpret).decode_floats(block, integers, floats);
            check_written(floats, *unwritten)?;
            integers.clear();
            integers.extend(floats.iter().map(|value| match missing.contains(value) {
                true => packing.missing,
                false => packing.stored(value * scale + offset),
            }));
            encode_integers(integers, target, out)
        }
        _ if source.is_integer() => {
            if !source.decode_integers(block, integers) {
                let at = integers.iter().position(|&value| value < 0).unwrap_or(0);
                return Err(Inexact::new(&(integers[at] as u64), BEYOND));
            }
            map_integers(map, integers, target)?;
            match target.is_integer() {
                true => encode_integers(integers, target, out),
                false => encode_as_floats(map, buffers, target, out),
            }
        }
        _ => {
            source.decode_floats(block, integers, floats);
            map_floats(map, floats, target)?;
            if !target.is_integer() {
                target.encode_floats(floats, out);
                return Ok(());
            }
            if let Some(value) = floats.iter().find(|value| value.fract() != 0.0 || value.abs() >= 9.2e18) {
                return Err(Inexact::new(value, MISFIT));
            }
            integers.clear();
            integers.extend(floats.iter().map(|value| *value as i64));
            encode_integers(integers, target, out)
        }
    }
}

fn encode_integers(integers: &[i64], target: NumberType, out: &mut Vec<u8>) -> Result<(), Inexact> {
    target.encode_integers(integers, out).map_err(|at| Inexact::new(&integers[at], MISFIT))
}

/// Replaces integers by their converted values. Leaves integers whose scale rounds to `target` for [`encode_as_floats`].
fn map_integers(map: &ElementMap, integers: &mut [i64], target: NumberType) -> Result<(), Inexact> {
    match map {
        ElementMap::Shift(by) => {
            for value in integers.iter_mut().filter(|value| **value >= 0) {
                *value = value.checked_add(*by).ok_or_else(|| Inexact::new(value, BEYOND))?;
            }
        }
        ElementMap::Lookup(table) => {
            for value in integers.iter_mut().filter(|value| **value >= 0) {
                let found = usize::try_from(*value).ok().and_then(|at| table.get(at));
                *value = *found.ok_or_else(|| Inexact::new(value, "refers to an element beyond the last"))?;
            }
        }
        ElementMap::Scale(scale) if scale.rounds(target) => {}
        ElementMap::Scale(scale) => {
            for value in integers.iter_mut() {
                *value = scale.integer(*value, target)?;
            }
        }
        ElementMap::Linear { .. } => {
            return Err(Inexact::new(&integers[0], "is an integer, which other units would round"));
        }
        ElementMap::Same | ElementMap::Cast | ElementMap::Unpack { .. } | ElementMap::Repack { .. } => {}
        ElementMap::Suffix(_) | ElementMap::Blank => return Err(Inexact::new(&"a number", "is not a string")),
    }
    Ok(())
}

/// Appends the integers in `buffers` as floats of type `target`, after the scales that round.
fn encode_as_floats(
    map: &ElementMap,
    ConvertBuffers { integers, floats }: &mut ConvertBuffers,
    target: NumberType,
    out: &mut Vec<u8>,
) -> Result<(), Inexact> {
    if integers.contains(&NO_TIME) {
        let reason = "stands for a missing value, which the floats of the output cannot represent";
        return Err(Inexact::new(&NO_TIME, reason));
    }
    floats.clear();
    floats.extend(integers.iter().map(|&value| value as f64));
    let rounded = match map {
        ElementMap::Scale(scale) if scale.rounds(target) => Some(scale),
        _ => None,
    };
    // A float holds every integer up to its precision.
    let is_exact = |at: usize| floats[at] as i64 == integers[at] && (rounded.is_some() || holds(target, floats[at]));
    if let Some(at) = (0..floats.len()).find(|&at| !is_exact(at)) {
        return Err(Inexact::new(&integers[at], MISFIT));
    }
    if let Some(scale) = rounded {
        for value in floats.iter_mut() {
            *value = scale.float(*value, target)?;
        }
    }
    target.encode_floats(floats, out);
    Ok(())
}

/// Replaces floats by their converted values.
fn map_floats(map: &ElementMap, floats: &mut [f64], target: NumberType) -> Result<(), Inexact> {
    match map {
        ElementMap::Scale(scale) => {
            for value in floats.iter_mut() {
                *value = scale.float(*value, target)?;
            }
        }
        ElementMap::Linear { slope, shift, kept, unwritten } => {
            for value in floats.iter_mut().filter(|value| !kept.contains(value)) {
                let converted = *value * slope + shift;
                if *unwritten == Some(*value) && narrowed(target, converted) != *value {
                    return Err(Inexact::new(value, UNWRITTEN));
                }
                *value = converted;
            }
        }
        ElementMap::Cast => {
            if let Some(value) = floats.iter().find(|value| !value.is_nan() && !holds(target, **value)) {
                return Err(Inexact::new(value, MISFIT));
            }
        }
        _ => return Err(Inexact::new(&"a float", "is not a whole number")),
    }
    Ok(())
}

/// Refuses elements that were never written and that no attribute names as missing.
fn check_written(values: &[f64], unwritten: Option<f64>) -> Result<(), Inexact> {
    match unwritten.filter(|unwritten| values.contains(unwritten)) {
        Some(unwritten) => Err(Inexact::new(&unwritten, UNWRITTEN)),
        None => Ok(()),
    }
}

/// Replaces missing values by NaN, and the others by their unpacked values. With up to two numbers for missing values,
/// which is usual, the loop has no branches.
fn unpack(values: &mut [f64], missing: &[f64], unpacked: impl Fn(f64) -> f64) {
    let (one, other) = match missing {
        // NaN equals no value.
        [] => (f64::NAN, f64::NAN),
        [one] => (*one, *one),
        [one, other] => (*one, *other),
        _ => {
            let replaced = |value: f64| if missing.contains(&value) { f64::NAN } else { unpacked(value) };
            return values.iter_mut().for_each(|value| *value = replaced(*value));
        }
    };
    for value in values {
        let is_missing = (*value == one) | (*value == other);
        *value = if is_missing { f64::NAN } else { unpacked(*value) };
    }
}

/// Returns strings as canonical bytes, each followed by `suffix`.
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

/// Converts a box of an input's values to the output's values and copies it to `target`.
///
/// `stored` holds the elements of `read` (the box that [`source_box`] returns) in the input's type, in row-major order.
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
    // Copies element by element along the gathered axis: slabs of the axes before it, runs of the axes after it.
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

/// Returns the box of the input that must be read for `source`, a box of its contribution; `None` if nothing must be
/// read.
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

/// Reason why a box could not be converted.
#[derive(Debug)]
pub(crate) enum ConvertError {
    /// A value has no exact counterpart.
    Inexact(Inexact),
    /// Copying the box failed.
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
    use crate::rules::unit_scale::Rounding;

    #[test]
    fn any_number_of_values_is_missing() {
        let stored = [3.0, -1.0, 0.0, f64::NAN, 7.5, 9.0];
        for missing in [&[][..], &[7.5], &[-1.0, 9.0], &[-1.0, 7.5, 9.0], &[f64::NAN]] {
            let mut values = stored;
            unpack(&mut values, missing, |value| value * 2.0 + 1.0);
            let expected = stored.map(|value| if missing.contains(&value) { f64::NAN } else { value * 2.0 + 1.0 });
            assert_eq!(values.map(f64::to_bits), expected.map(f64::to_bits), "{missing:?}");
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
        let kept = vec![9.0];
        let rounding = Rounding::NotRequested;
        let half = UnitScale { multiplier: 1, divisor: 2, offset: 0, kept, unwritten: None, rounding, units };
        let half = ElementMap::Scale(half);
        assert_eq!(run(half.clone(), &[4, 9]).unwrap(), [2, 9]);
        assert_eq!(run(half, &[5]).unwrap_err().value, "5 hours");
    }
}
